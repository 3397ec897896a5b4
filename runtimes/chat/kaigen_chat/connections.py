"""Connections of the server: what they may send, how long clients may take, and how many there may be.

uvicorn closes a connection that idles after a response. One that never sends a whole request, or never reads a
response, would stay open for ever. Its parser, h11, accepts requests that two programs may read in two ways.
"""

from __future__ import annotations

import json
import resource
from asyncio import TimerHandle, Transport
from collections.abc import Callable, MutableMapping

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from kaigen_chat.errors import Refused
from kaigen_chat.framing import StrictConnection
from kaigen_chat.http import EXTENSION
from kaigen_chat.places import Places, Rank

HEADERS_S = 30.0
"""Seconds in which the headers of a request must arrive: from its first byte, or from the start of the connection."""
READ_S = 60.0
"""Seconds in which a client must read something of what waits for it."""
LINGER_S = 5.0
"""Seconds in which a client may still send after a request that is not HTTP."""
PAUSE_S = 0.1
"""Seconds between the answers to two requests of a connection that were sent together."""
MOST = 1024
"""Connections at a time. A new one takes the place of one without a whole request."""
MOST_PROBES = 16
"""Connections at a time at the port of probes. The kubelet needs two."""
HEAD_BYTES = 16384
"""Most bytes of a request's line and headers."""
RECEIVE_BUFFER = 65536
"""Bytes that the kernel keeps of what a connection has not read: they count as memory of the container."""
_OTHER_FILES = 256
"""Open files of the process that are not connections."""


class Connection(H11Protocol):  # type: ignore[misc]  # uvicorn is not there when types are checked
    """A connection with a strict parser, with deadlines, and with a place that a new one may take.

    Attributes:
        probe_port: port for probes, whose connections have places of their own; None for none.
    """

    headers_s = HEADERS_S
    read_s = READ_S
    linger_s = LINGER_S
    pause_s = PAUSE_S
    most = MOST
    probe_port: int | None = None
    _deadline: TimerHandle | None = None
    _unread: TimerHandle | None = None
    _refused: TimerHandle | None = None

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, object], **more: object) -> None:
        """Initialize, as uvicorn's protocol."""
        super().__init__(config, server_state, app_state, **more)
        self.conn = StrictConnection(HEAD_BYTES)
        self._places: Places[Connection] = Places(0)

    def connection_made(self, transport: Transport) -> None:
        """Start the deadline; close the connection when there are too many and all of them have work."""
        super().connection_made(transport)
        # Report everything that the client has not read: by default, only more than 64 KiB.
        transport.set_write_buffer_limits(high=0)
        self._places = self._places_here()
        if self._places.enter(self, lambda displaced: displaced.transport.abort()):
            self._start()
        else:
            transport.abort()

    def _places_here(self) -> Places[Connection]:
        """Return the places of the port that the client is connected to."""
        probe = self.server is not None and self.server[1] == self.probe_port is not None
        # The state of uvicorn's server is the only object that its connections share.
        shared: dict[bool, Places[Connection]] = self.server_state.__dict__.setdefault("kaigen_places", {})
        return shared.setdefault(probe, Places(MOST_PROBES if probe else self.most))

    def data_received(self, data: bytes) -> None:
        """Stop the deadline when the headers are complete; start it with the first bytes of the next request."""
        if self._refused is not None:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._deadline is None:
            self._start()

    def handle_events(self) -> None:
        """Let the application of a new request raise the rank of the connection."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            # The application starts in the next turn of the event loop.
            extensions: MutableMapping[str, object] = self.scope.setdefault("extensions", {})
            extensions[EXTENSION] = self._promoter(self.cycle)

    def _promoter(self, cycle: RequestResponseCycle) -> Callable[[Rank], None]:
        def promote(rank: Rank) -> None:
            if self.cycle is cycle and not cycle.response_complete:
                self._places.promote(self, rank)

        return promote

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not HTTP with the status and the reason of its fault, and close the connection."""
        fault = self.conn.fault
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        status = 400 if fault is None else fault.error_status_hint
        body = json.dumps(Refused(status, f"The request is not HTTP: {fault or msg}").body()).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=b""),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))
        if self.cycle is not None:
            # Nothing more of the body reaches the application, and nothing of its response is sent.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # A connection that is closed at once is reset, and a client that is sending then may not get the response.
        self._stop()
        self.conn.forget()
        self.transport.write_eof()
        self._refused = self.loop.call_later(self.linger_s, self.transport.abort)

    def on_response_complete(self) -> None:
        """Note that the connection has no more work; answer others before a request that arrived with the last one."""
        self._places.rest(self)
        if self.conn.trailing_data[0]:
            self.loop.call_later(self.pause_s, super().on_response_complete)
        else:
            super().on_response_complete()

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
        """Stop the deadlines, and free the place."""
        self._places.leave(self)
        self._stop()
        super().connection_lost(exc)
        for timer in (self._unread, self._refused):
            if timer is not None:
                timer.cancel()
        self._unread = None

    def _start(self) -> None:
        self._deadline = self.loop.call_later(self.headers_s, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def allow_connections() -> None:
    """Allow the process as many open files as connections need, or accept fewer connections.

    Container runtimes may start a process with 1024 open files at most. A server that reaches that limit accepts no
    connection, and no probe, until one is closed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MOST + MOST_PROBES + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    Connection.most = max(1, min(MOST, allowed - MOST_PROBES - _OTHER_FILES))
