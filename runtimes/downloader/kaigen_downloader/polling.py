"""Look for something until it is there, with a line of output for every change."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kaigen_downloader.errors import Unavailable
from kaigen_downloader.text import duration, say

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Polling:
    """How long and how often to look.

    Attributes:
        timeout: seconds until it gives up.
        every: seconds between two lines while nothing changes.
        poll: seconds between two looks.
    """

    timeout: float
    every: float
    poll: float

    def wait(self, look: Callable[[], tuple[T | None, str]], *, what: str = "", details: Callable[[], str] = str) -> T:
        """Return the result of `look` as soon as there is one.

        Args:
            look: returns a result, or None, and a description of the state.
            what: what it waits for, at the end of the first words of the error.
            details: returns what is printed after a description; a change of it alone prints no line.

        Raises:
            Unavailable: the time is over.
        """
        begin = time.monotonic()
        printed_at, printed = -self.every, ""
        while True:
            found, sight = look()
            if found is not None:
                return found
            now = time.monotonic()
            waited = duration(now - begin)
            if now - begin >= self.timeout:
                raise Unavailable(f"waited {waited}{what}: {sight}{details()}")
            if sight != printed or now - printed_at >= self.every:
                say(f"waiting for {waited}: {sight}{details()}")
                printed_at, printed = now, sight
            time.sleep(min(self.poll, max(0.0, begin + self.timeout - now)))
