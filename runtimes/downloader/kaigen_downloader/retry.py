"""Retries: how many and how long."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass

from kaigen_downloader.errors import Stopped, Transient, Unavailable
from kaigen_downloader.text import duration, say


@dataclass(frozen=True, slots=True)
class Patience:
    """The retry policy.

    Attributes:
        attempts: failures in a row, without any progress between them, that end the run.
        base: seconds before the second attempt; doubled for each one after it, with jitter.
        cap: seconds that such a pause never exceeds.
        longest: seconds that a server may ask us to wait; more than that ends the run.
    """

    attempts: int = 8
    base: float = 0.5
    cap: float = 30.0
    longest: float = 600.0


class Retry:
    """The retry policy of one run, shared by its threads."""

    def __init__(self, patience: Patience, stop: threading.Event) -> None:
        """Initialize; `stop` is set when the work must end."""
        self.patience = patience
        self.stop = stop
        self._last_printed = float("-inf")
        self._lock = threading.Lock()

    def attempts(self, what: str) -> Attempts:
        """Return the counter of one task, with its name for messages."""
        return Attempts(self, what)

    def say(self, text: str) -> None:
        """Print a message, at most one per second, because many connections fail together."""
        with self._lock:
            now = time.monotonic()
            if now - self._last_printed < 1.0:
                return
            self._last_printed = now
        say(text)


class Attempts:
    """Counts the failures of one task."""

    def __init__(self, retry: Retry, what: str) -> None:
        """Start with no failure."""
        self._retry = retry
        self._what = what
        self._failed = 0

    def failed(self, error: Transient, *, progress: bool = False) -> None:
        """Sleep until the next attempt.

        Args:
            error: why this one failed.
            progress: the attempt made progress, so the count starts again.

        Raises:
            Unavailable: that was the last attempt, or the server asks for too long a wait.
            Stopped: work ended meanwhile.
        """
        patience, stop = self._retry.patience, self._retry.stop
        if stop.is_set():
            raise Stopped
        self._failed = 1 if progress else self._failed + 1
        if self._failed >= patience.attempts:
            raise Unavailable(f"{self._what}: {error}; gave up after {self._failed} attempts")
        if error.retry_after is not None and error.retry_after > patience.longest:
            raise Unavailable(f"{self._what}: {error}; that is longer than this run waits")
        pause = min(patience.cap, patience.base * 2 ** (self._failed - 1)) * random.uniform(0.5, 1.0)
        pause = max(pause, error.retry_after or 0.0)
        then = f"attempt {self._failed + 1} of {patience.attempts} follows"
        self._retry.say(f"{self._what}: {error}; {then}" + (f" in {duration(pause)}" if pause >= 1 else ""))
        if stop.wait(pause):
            raise Stopped
