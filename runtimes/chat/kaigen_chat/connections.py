"""Connections of the server: how long a client may take for the headers of a request, and how many there may be.

uvicorn closes a connection that idles after a response. One that never sends a whole request would stay open for ever.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 30.0
"""Seconds in which the headers of a request must arrive: from its first byte, or from the start of the connection."""
MOST = 1024
"""Connections at a time. More are closed."""


class Connection(H11Protocol):  # type: ignore[misc]  # uvicorn is not there when types are checked
    """A connection with a deadline for headers."""

    headers_s = HEADERS_S
    most = MOST
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:
        """Start the deadline; close the connection when there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._start()

    def data_received(self, data: bytes) -> None:
        """Stop the deadline when the headers are complete; start it with the first bytes of the next request."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._deadline is None:
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop()
        super().connection_lost(exc)

    def _start(self) -> None:
        self._deadline = self.loop.call_later(self.headers_s, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
