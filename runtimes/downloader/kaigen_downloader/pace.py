"""Answers that never end: their bytes come too slowly, or they are not those of the body.

A server that sends a byte now and then never reaches the time limit of a read, and one that sends status lines or
trailers without an end never reaches the limit of a body.
"""

from __future__ import annotations

import functools
import http.client
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaigen_downloader.errors import Transient
from kaigen_downloader.text import duration, size

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Pace:
    """The lowest speed of an answer, as curl's options `--speed-limit` and `--speed-time`.

    Attributes:
        limit: bytes a second; 0 for any speed.
        time: seconds of waiting for bytes over which the speed is measured.
    """

    limit: int = 1024
    time: float = 300.0

    def response_class(self) -> Callable[..., http.client.HTTPResponse]:
        """Return the class of responses for a connection of http.client."""
        return functools.partial(_Response, self)


DEFAULT = Pace()
"""The speed without options."""

MOST_FRAMING = 256 << 10
"""Bytes of an answer next to its body: status lines, headers, sizes of chunks and trailers.

They take less than `--speed-time` at the lowest speed. Servers limit the headers that they accept to 8 to 32 KiB.
"""


class _Response(http.client.HTTPResponse):
    """A response that has a lowest speed, and few bytes next to its body."""

    def __init__(self, pace: Pace, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.fp = _Framed(_Paced(self.fp.detach(), pace))


class _Framed(io.BufferedReader):
    """Bytes of an answer. Lines are its framing; all else is its body, which gives room for more lines."""

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._room = MOST_FRAMING

    def readline(self, most: int | None = -1, /) -> bytes:
        limit = self._room + 1
        line = super().readline(limit if most is None or most < 0 else min(most, limit))
        self._room -= len(line)
        if self._room < 0:
            raise Transient(f"the answer has more than {size(MOST_FRAMING)} of headers, chunk sizes and trailers")
        return line

    def read(self, most: int | None = -1, /) -> bytes:
        data = super().read(most)
        self._add(len(data))
        return data

    def read1(self, most: int = -1, /) -> bytes:
        data = super().read1(most)
        self._add(len(data))
        return data

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        count = super().readinto(buffer)
        self._add(count)
        return count

    def _add(self, body: int) -> None:
        self._room = min(MOST_FRAMING, self._room + body)


class _Paced(io.RawIOBase):
    """Bytes of a socket, with a lowest speed. The time until the first of them is that of the server's work."""

    def __init__(self, raw: io.RawIOBase | io.BytesIO, pace: Pace) -> None:
        self._raw = raw
        self._pace = pace
        self._has_begun = False
        self._count = 0
        self._waited = 0.0

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        begin = time.monotonic()
        count: int | None = self._raw.readinto(buffer)
        if self._has_begun and count:
            self._waited += time.monotonic() - begin
            self._count += count
            self._check()
        self._has_begun = True
        return count

    def _check(self) -> None:
        if self._waited < self._pace.time:
            return
        if self._count < self._pace.limit * self._waited:
            sent = f"{size(self._count)} came in {duration(self._waited)}"
            raise Transient(f"{sent}, less than {size(self._pace.limit)} a second (--speed-limit)")
        self._count, self._waited = 0, 0.0

    def close(self) -> None:
        self._raw.close()
        super().close()
