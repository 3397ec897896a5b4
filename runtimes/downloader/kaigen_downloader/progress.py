"""Counts bytes and prints the progress periodically."""

from __future__ import annotations

import threading
import time

from kaigen_downloader.text import duration, say, size


class Meter:
    """A counter that many threads add to and one thread prints."""

    def __init__(self, verb: str, total: int, done: int = 0, *, every: float = 10.0) -> None:
        """Start counting.

        Args:
            verb: first word of the lines.
            total: bytes in all.
            done: bytes that were there before, which count for the percentage and not for the speed.
            every: seconds between two lines.
        """
        self._verb = verb
        self._total = total
        self._before = done
        self._every = every
        self._lock = threading.Lock()
        self._added = 0
        self._lost = 0
        self._last = (time.monotonic(), 0)

    def add(self, count: int) -> None:
        """Count bytes that were just fetched."""
        with self._lock:
            self._added += count

    def lose(self, count: int) -> None:
        """Count bytes that were damaged and are fetched again."""
        with self._lock:
            self._lost += count

    @property
    def added(self) -> int:
        """Return the bytes counted with `add`, including those fetched twice."""
        return self._added

    def wait(self) -> float:
        """Return the seconds until the next line is due."""
        return max(0.0, self._last[0] + self._every - time.monotonic())

    def line(self) -> None:
        """Print a line when one is due."""
        with self._lock:
            now = time.monotonic()
            then, before = self._last
            if now - then < self._every:
                return
            added = self._added
            self._last = (now, added)
        speed = (added - before) / (now - then)
        done = min(self._total, max(0, self._before + added - self._lost))
        percent = 100 * done // self._total if self._total else 100
        left = f", about {duration((self._total - done) / speed)} left" if speed > 0 else ""
        say(f"{self._verb} {percent}%: {size(done)} of {size(self._total)}, {speed / 1e6:.1f} MB/s{left}")
