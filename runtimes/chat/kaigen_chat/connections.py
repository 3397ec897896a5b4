"""Connections of the server: how long clients may take to send and to read, and how many there may be.

uvicorn closes a connection that idles after a response. One that never sends a whole request, or never reads a
response, would stay open for ever.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 30.0
"""Seconds in which the headers of a request must arrive: from its first byte, or from the start of the connection."""
READ_S = 60.0
"""Seconds in which a client must read something of what waits for it."""
MOST = 1024
"""Connections at a time. A new one takes the place of the one that has idled for the longest."""


class Connection(H11Protocol):  # type: ignore[misc]  # uvicorn is not there when types are checked
    """A connection with deadlines for the headers of a request and for reading the response."""

    headers_s = HEADERS_S
    read_s = READ_S
    most = MOST
    _deadline: TimerHandle | None = None
    _unread: TimerHandle | None = None
    _idle_since: float | None = None

    def connection_made(self, transport: Transport) -> None:
        """Start the deadline; close the connection when there are too many and all of them have work."""
        super().connection_made(transport)
        # Report everything that the client has not read: by default, only more than 64 KiB.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > self.most and not self._take_place():
            transport.abort()
        else:
            self._idle_since = self.loop.time()
            self._start()

    def _take_place(self) -> bool:
        """Close the connection that has idled for the longest; return whether there was one."""
        since = [
            (each._idle_since, each)
            for each in self.connections
            if each._idle_since is not None and not each.transport.is_closing()
        ]
        if not since:
            return False
        min(since, key=lambda pair: pair[0])[1].transport.abort()
        return True

    def data_received(self, data: bytes) -> None:
        """Stop the deadline when the headers are complete; start it with the first bytes of the next request."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._idle_since = None
            self._stop()
        elif self._deadline is None:
            self._start()

    def on_response_complete(self) -> None:
        """Note that the connection idles, unless the next request has arrived already."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.conn.their_state is not h11.IDLE:
            self._idle_since = None

    def pause_writing(self) -> None:
        """Start the deadline for reading: the client leaves something unread."""
        super().pause_writing()
        self._expect_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop the deadline: the client has read everything."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _expect_reading(self, unread: int) -> None:
        self._unread = self.loop.call_later(self.read_s, self._check_reading, unread)

    def _check_reading(self, before: int) -> None:
        """Close the connection if as much is unread as when the deadline began."""
        unread = self.transport.get_write_buffer_size()
        if unread < before:
            self._expect_reading(unread)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadlines."""
        self._stop()
        super().connection_lost(exc)
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _start(self) -> None:
        self._deadline = self.loop.call_later(self.headers_s, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
