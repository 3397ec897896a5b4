"""A server in front of an S3 server, with faults in what clients send to it.

The Host of a request passes unchanged, so that its signature stays valid.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import random
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.cluster.front import FrontServer

_PIECE = 1 << 16
_ANSWERS = {
    "503": (503, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"),
    "403": (403, b"<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>"),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request with bytes that the server has answered.

    Attributes:
        operation: `part` or `object`.
        key: name of the object.
        number: number of the part; 0 for an object.
        status: of the answer.
        sha256: of the bytes that the server got.
    """

    operation: str
    key: str
    number: int
    status: int
    sha256: str


@dataclass
class UploadFaults(FrontServer):
    """The server. Use it as a context manager.

    Attributes:
        backend: host and port of the S3 server.
        sent: the requests with bytes that it has answered.
        met: how many requests had the fault.
        speed: bytes of a body that pass in a second.
    """

    backend: str
    sent: list[Sent] = field(default_factory=list)
    met: int = 0
    speed: float = 1e12
    _fault: str = ""
    _operation: str = ""
    _then: str = ""
    _skipped: int = 0
    _left: int = 0
    _passed: int = 0
    _hold_at: float = float("inf")
    _is_held: bool = False
    _change: threading.Condition = field(default_factory=threading.Condition)

    def order(self, fault: str, operation: str, times: int = 1, *, after: int = 0, then: str = "") -> None:
        """Spoil the next requests of an operation.

        Args:
            fault: `503`, `403`, `cut` in the middle of the body, `lost` is the answer, `corrupt` is the body.
            operation: `begin`, `part`, `complete`, `object`, or `any`.
            times: how many requests.
            after: how many pass before.
            then: the operation from the first spoilt request on; empty for the same.
        """
        with self._change:
            self._fault, self._operation, self._then = fault, operation, then or operation
            self._left, self._skipped = times, after
            self.met = 0

    def wait_for_bytes(self, count: int, seconds: float = 60) -> bool:
        """Wait until more bytes of parts have arrived; return whether they have."""
        with self._change:
            goal = self._passed + count
            return self._change.wait_for(lambda: self._passed >= goal, seconds)

    @contextlib.contextmanager
    def held(self, count: int, seconds: float = 60) -> Iterator[None]:
        """Wait until a part is held in its middle; cut its connection at the end of the block.

        Args:
            count: bytes of parts that pass before.
            seconds: how long to wait.
        """
        with self._change:
            self._hold_at = self._passed + count
            assert self._change.wait_for(lambda: self._is_held, seconds), "no part was held"
        try:
            yield
        finally:
            with self._change:
                self._hold_at, self._is_held = float("inf"), False
                self._change.notify_all()

    def _next(self, operation: str) -> str:
        with self._change:
            if not self._left or self._operation not in (operation, "any"):
                return ""
            if self._skipped:
                self._skipped -= 1
                return ""
            self._left -= 1
            self._operation = self._then
            self.met += 1
            return self._fault

    def _body(self, handler: BaseHTTPRequestHandler, length: int, is_part: bool) -> bytes:
        """Read a body at the speed that is set.

        Raises:
            ConnectionError: the client went away.
        """
        data = b""
        while len(data) < length:
            piece = handler.rfile.read(min(_PIECE, length - len(data)))
            data += piece
            if not piece:
                raise ConnectionError("the client went away")
            if is_part:
                self._count(len(piece), is_whole=len(data) == length)
            time.sleep(len(piece) / self.speed)
        return data

    def _count(self, count: int, *, is_whole: bool) -> None:
        """Count bytes of a part, and hold the part if that was asked for.

        Raises:
            ConnectionError: it was held.
        """
        with self._change:
            self._passed += count
            self._change.notify_all()
            if self._passed >= self._hold_at and not is_whole:
                self._is_held = True
                self._change.notify_all()
                self._change.wait_for(lambda: not self._is_held)
                raise ConnectionError("the connection was cut")

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Pass a request on, and its response back.

        Raises:
            OSError: a connection was cut.
        """
        operation, key, number = _operation(handler.command, handler.path)
        fault = self._next(operation)
        body = self._body(handler, int(handler.headers.get("Content-Length") or 0), operation == "part")
        if fault in _ANSWERS:
            status, content = _ANSWERS[fault]
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(content)
            return
        if fault == "corrupt":
            place = random.Random(len(body)).randrange(len(body))
            body = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        with contextlib.closing(http.client.HTTPConnection(self.backend, timeout=30)) as connection:
            connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                if name.lower() not in ("expect", "connection"):
                    connection.putheader(name, value)
            connection.endheaders()
            if fault == "cut":
                connection.send(body[: len(body) // 2])
                connection.close()
                _cut(handler)
                return
            connection.send(body)
            response = connection.getresponse()
            content = response.read()
        if operation in ("part", "object"):
            sha256 = hashlib.sha256(body).hexdigest()
            self.sent.append(Sent(operation, key, number, response.status, sha256))
        if fault == "lost":
            _cut(handler)
            return
        handler.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("connection", "transfer-encoding"):
                handler.send_header(name, value)
        if response.getheader("Content-Length") is None:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)


def _cut(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection of a client without an answer."""
    handler.close_connection = True
    with contextlib.suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)


def _operation(method: str, target: str) -> tuple[str, str, int]:
    """Return the operation of a request, the name of the object and the number of the part."""
    path, _, text = target.partition("?")
    query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
    key = urllib.parse.unquote(path).lstrip("/").partition("/")[2]
    if method == "POST":
        return ("begin" if "uploads" in query else "complete"), key, 0
    if method == "PUT" and "partNumber" in query:
        return "part", key, int(query["partNumber"])
    if method == "PUT" and "/.kaigen/" not in f"/{key}":
        return "object", key, 0
    return "other", key, 0
