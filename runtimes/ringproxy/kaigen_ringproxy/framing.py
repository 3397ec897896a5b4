"""Reads requests as RFC 9112 writes them, and refuses what a proxy in front may read in another way.

Where two programs find the end of a request at different bytes, one client's body becomes another client's request.
h11 0.16.0 takes the length of a request with both Content-Length and Transfer-Encoding from the latter and keeps the
connection, and it accepts equal Content-Length twice, folded lines, lines that end in LF alone (`h11/_headers.py`,
`_readers.py`, `_receivebuffer.py`), and control characters in values and in extensions of chunks (`_abnf.py`). The
bytes are therefore checked here before h11 gets them.

The chat server and the proxy of rings have the same file: an image is built from its own folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import h11

MOST_CHUNK_LINE = 256
"""Longest line with the size of a chunk, in bytes. Its extensions have no effect."""

_HEAD_END = b"\r\n\r\n"
_BROKEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?=[^\n])")
"""A character that no line may have, or a line break that is not CRLF."""
_REQUEST_LINE = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [\x21-\x7e]+ HTTP/([0-9]\.[0-9])")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):(.*)", re.DOTALL)
_LENGTH = re.compile(rb"[0-9]{1,19}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?")


class StrictConnection(h11.Connection):
    """The server's side of a connection, which refuses requests whose end is in doubt.

    Attributes:
        fault: why the client's bytes are refused; None while they are HTTP. Nothing after them is read.
    """

    def __init__(self, head_bytes: int) -> None:
        """Initialize.

        Args:
            head_bytes: most bytes of a request's line and headers.
        """
        super().__init__(h11.SERVER, max_incomplete_event_size=head_bytes + MOST_CHUNK_LINE)
        self.fault: h11.RemoteProtocolError | None = None
        self._head_bytes = head_bytes
        self._unread = bytearray()
        self._ended = False
        self._searched = 0
        self._left = 0
        self._step: Callable[[], int] = self._head

    @property
    def trailing_data(self) -> tuple[bytes, bool]:
        """What was received and not yet read, and whether the client has closed its side."""
        return super().trailing_data[0] + bytes(self._unread), self._ended

    def receive_data(self, data: bytes) -> None:
        """Add bytes of the client; none for the end of its side."""
        self._unread += data
        self._ended = self._ended or not data

    def forget(self) -> None:
        """Forget what was received and not yet read, because nothing more is read on this connection."""
        self._unread.clear()

    def next_event(self) -> Any:
        """Return the next event, as h11 does.

        Raises:
            h11.RemoteProtocolError: the client sends no HTTP, or a request that may be read in two ways.
        """
        if self.fault is not None:
            raise self.fault
        try:
            while (event := super().next_event()) is h11.NEED_DATA:
                if self.their_state in (h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
                    # "Connection: close" was its last request (RFC 9112, 9.6).
                    self._unread.clear()
                elif self.their_state is h11.DONE and self._unread:
                    return h11.PAUSED
                count = self._step() if self._unread else 0
                if count:
                    super().receive_data(bytes(self._unread[:count]))
                    del self._unread[:count]
                elif self._ended and self._unread:
                    _refuse("the connection was closed in the middle of a request")
                elif self._ended and not super().trailing_data[1]:
                    super().receive_data(b"")
                else:
                    return h11.NEED_DATA
        except h11.RemoteProtocolError as error:
            self.fault = error
            raise
        return event

    def _head(self) -> int:
        """Return the length of the line and headers of a request; 0 before they are complete."""
        broken = _BROKEN.search(self._unread, max(0, self._searched - 1))
        end = self._unread.find(_HEAD_END, max(0, self._searched - 3))
        self._searched = len(self._unread)
        if broken is not None and (end < 0 or broken.start() < end):
            _refuse("a line has a control character, or does not end with CR and LF")
        if (end if end >= 0 else self._searched) > self._head_bytes:
            _refuse(f"line and headers have more than {self._head_bytes} bytes", 431)
        if end < 0:
            return 0
        self._searched = 0
        self._step, self._left = self._body(bytes(self._unread[:end]).split(b"\r\n"))
        return end + len(_HEAD_END)

    def _body(self, lines: list[bytes]) -> tuple[Callable[[], int], int]:
        """Return what follows a request's line and headers: the next step, and how many bytes are left of it."""
        request = _REQUEST_LINE.fullmatch(lines[0])
        if request is None:
            _refuse("the first line is not a request")
        if request[1] not in (b"1.0", b"1.1"):
            _refuse("the version must be HTTP/1.1", 505)
        found: dict[bytes, list[bytes]] = {b"content-length": [], b"transfer-encoding": []}
        for line in lines[1:]:
            field = _FIELD.fullmatch(line)
            if field is None:
                _refuse("a header has no name, or a space before its colon, or is folded")
            if (values := found.get(field[1].lower())) is not None:
                values.append(field[2].strip(b"\t "))
        lengths, codings = found.values()
        if len(lengths) + len(codings) > 1:
            _refuse("Content-Length and Transfer-Encoding: one of them, and once")
        if codings:
            _check_coding(codings[0], request[1])
            return self._size, 0
        if lengths and not _LENGTH.fullmatch(lengths[0]):
            _refuse("Content-Length must be a number")
        left = int(lengths[0]) if lengths else 0
        return (self._data if left else self._head), left

    def _data(self) -> int:
        """Return how many bytes of a body without chunks there are."""
        count = min(self._left, len(self._unread))
        self._left -= count
        if not self._left:
            self._step = self._head
        return count

    def _size(self) -> int:
        """Return the length of the line with the size of a chunk; 0 before it is complete."""
        end = self._unread.find(b"\n", 0, MOST_CHUNK_LINE) + 1
        if not end and len(self._unread) < MOST_CHUNK_LINE:
            return 0
        line = bytes(self._unread[:end])
        size = _CHUNK.fullmatch(line.removesuffix(b"\r\n"))
        if size is None or not line.endswith(b"\r\n"):
            _refuse("the size of a chunk is not a number in a line of its own")
        self._left = int(size[1], 16)
        self._step = self._chunk if self._left else self._end
        return end

    def _chunk(self) -> int:
        """Return how many bytes of a chunk there are."""
        count = min(self._left, len(self._unread))
        self._left -= count
        if not self._left:
            self._step = self._chunk_end
        return count

    def _chunk_end(self) -> int:
        """Return the length of the line break after a chunk; 0 before it is complete."""
        return self._line_break(self._size, "a chunk does not end where its size says")

    def _end(self) -> int:
        """Return the length of the line break after the last chunk; 0 before it is complete."""
        return self._line_break(self._head, "the body has trailers, which this server does not accept")

    def _line_break(self, then: Callable[[], int], message: str) -> int:
        if not b"\r\n".startswith(self._unread[:2]):
            _refuse(message)
        if len(self._unread) < 2:
            return 0
        self._step = then
        return 2


def _check_coding(coding: bytes, version: bytes) -> None:
    """Refuse each Transfer-Encoding but `chunked`.

    RFC 9112, 6.1 and 6.3: 501 for an unknown coding below `chunked`, and 400 where `chunked` is not the last one, or
    the version is 1.0.
    """
    if version == b"1.0":
        _refuse("HTTP/1.0 has no Transfer-Encoding")
    if coding != b"chunked":
        last = coding.rpartition(b",")[2].strip(b"\t ").lower()
        _refuse("Transfer-Encoding must be `chunked`", 501 if last == b"chunked" else 400)


def _refuse(message: str, status: int = 400) -> NoReturn:
    raise h11.RemoteProtocolError(message, error_status_hint=status)
