"""How often and how long to try again."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass

from kaigen_downloader.errors import Stopped, Transient, Unavailable
from kaigen_downloader.text import duration, say


@dataclass(frozen=True, slots=True)
class Patience:
    """The rule.

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
    """The rule as one run applies it, with all its threads."""

    def __init__(self, patience: Patience, stop: threading.Event) -> None:
        """Begins; `stop` is set when work is to end."""
        self.patience = patience
        self.stop = stop
        self._last_said = float("-inf")
        self._lock = threading.Lock()

    def attempts(self, what: str) -> Attempts:
        """The count for one piece of work, named as messages shall name it."""
        return Attempts(self, what)

    def say(self, text: str) -> None:
        """Prints, unless it did so within the last second: many connections fail together."""
        with self._lock:
            now = time.monotonic()
            if now - self._last_said < 1.0:
                return
            self._last_said = now
        say(text)


class Attempts:
    """Counts the failures of one piece of work."""

    def __init__(self, retry: Retry, what: str) -> None:
        """Begins with none."""
        self._retry = retry
        self._what = what
        self._failed = 0

    def failed(self, error: Transient, *, progress: bool = False) -> None:
        """Sleeps until the next attempt.

        Args:
            error: why this one failed.
            progress: it brought something all the same, so the count begins anew.

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
