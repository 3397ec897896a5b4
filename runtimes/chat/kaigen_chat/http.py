"""HTTP helpers: middleware for all routes, and responses that stop when the client disconnects."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TypeVar

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from pydantic import JsonValue

from kaigen_chat.errors import Refused, bad_request
from kaigen_chat.keys import Keys
from kaigen_chat.metrics import Metrics
from kaigen_chat.places import Bodies, Rank

if TYPE_CHECKING:
    from kaigen_chat.service import Answer

# ASGI's messages: https://asgi.readthedocs.io, HTTP protocol.
Event = dict[str, object]
Scope = dict[str, object]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

T = TypeVar("T")

# Routes that probes and Prometheus call, without a key.
OPEN = frozenset({"/", "/health", "/healthz", "/readyz", "/metrics"})
PROBES = frozenset({"/health", "/healthz", "/readyz"})
"""Routes at the port of probes."""
EXTENSION = "kaigen.rank"
"""Name of the extension of a request's scope: a function that raises the rank of its connection."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

BODY_DEADLINE = 60.0
"""Seconds in which the body of a request must arrive."""
BODIES = 16
"""Bodies of the largest size that may be incomplete at the same time, or more that are smaller."""
LINGER = 5.0
"""Seconds in which a client may still send a body that was refused. A connection that is closed at once is reset, and a
client that is sending then may not get the response."""


def as_json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Response(body, status, dict(headers or {}), "application/json")


def refusal(error: Refused) -> Response:
    """Return the response for a rejected request."""
    return as_json(error.body(), error.status, error.headers())


async def read_json(request: Request) -> JsonValue:
    """Return the body of a request, regardless of its content type.

    Raises:
        Refused: it is not JSON, or has half of a surrogate pair, which no answer and no tokenizer can encode.
    """

    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON")

    try:
        # Decoded here: `json` would let halves of surrogate pairs pass in UTF-8 too.
        text = (await request.body()).decode()
        found: JsonValue = json.loads(text, parse_constant=refuse)
        if _SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise bad_request("The body is nested too deep") from None
    except UnicodeEncodeError:
        raise bad_request("The body has half of a surrogate pair, which is not a character") from None
    except ValueError as error:
        raise bad_request(f"The body is not JSON: {error}") from None
    return found


class Gone(Exception):
    """The client closed the connection before the response."""


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Wait for the work, or stop as soon as the client disconnects.

    Raises:
        Gone: it has.
    """
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Gone
        return doing.result()
    finally:
        for task in (doing, leaving):
            if not task.done():
                task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class Events(StreamingResponse):  # type: ignore[misc]  # FastAPI is not there when types are checked
    """Server-sent events that come as the engine makes them. Frees the answer, however the stream ends."""

    def __init__(self, answer: Answer, lines: AsyncIterator[object]) -> None:
        super().__init__(_lines(lines), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end, or until the client disconnects."""
        with self._answer:
            await super().__call__(scope, receive, send)


async def _lines(items: AsyncIterator[object]) -> AsyncIterator[bytes]:
    try:
        async for item in items:
            yield b"data: " + json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
    except Refused as error:
        yield b"data: " + json.dumps(error.body()).encode() + b"\n\n"
        return
    yield b"data: [DONE]\n\n"


class Guard:
    """Middleware for all routes: checks the API key, limits the body, counts responses.

    Args:
        app: what is guarded.
        keys: one of these must be sent; none lets everybody in.
        max_body: most bytes of a body.
        metrics: where answers are counted.
        routes: paths that are counted by name.
        probe_port: port that has the routes of probes only; None for none.
        deadline: seconds in which a body must arrive.
        linger: seconds in which a client may still send a body that was refused.
    """

    def __init__(
        self,
        app: App,
        *,
        keys: Keys,
        max_body: int,
        metrics: Metrics,
        routes: frozenset[str],
        probe_port: int | None = None,
        deadline: float = BODY_DEADLINE,
        linger: float = LINGER,
    ) -> None:
        self._app = app
        self._keys = keys
        self._max_body = max_body
        self._metrics = metrics
        self._routes = routes
        self._probe_port = probe_port
        self._bodies: Bodies[asyncio.Timeout] = Bodies(BODIES * max_body)
        self._deadline = deadline
        self._linger = linger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"])
        route = path if path in self._routes else "other"

        async def counted(event: Event) -> None:
            if event["type"] == "http.response.start":
                self._metrics.answered(route, int(str(event["status"])))
            await send(event)

        headers = _headers(scope)
        try:
            self._check_port(scope)
            if path in OPEN:
                self._check_empty(headers)
            else:
                self._check_key(headers)
                if self._keys.required:
                    _promote(scope, Rank.KNOWN)
            async with asyncio.timeout(self._deadline) as limit:
                try:
                    body = await self._body(headers, receive, limit)
                finally:
                    self._bodies.end(limit)
        except Refused as error:
            await self._refuse(error, headers, receive, counted)
            return
        except TimeoutError:
            slow = Refused(408, f"The body did not arrive within {self._deadline:g} seconds", code="request_timeout")
            await self._refuse(slow, headers, receive, counted)
            return
        except Gone:
            return
        if path not in OPEN:
            _promote(scope, Rank.WORKING)
        await self._app(scope, _replay(body, receive), counted)

    async def _refuse(self, error: Refused, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Send an error; if the request has a body, discard what arrives of it for a while, then disconnect."""
        response = refusal(error)
        has_body = _has_body(headers)
        raw = [*response.raw_headers, *([(b"connection", b"close")] if has_body else [])]
        await send({"type": "http.response.start", "status": error.status, "headers": raw})
        await send({"type": "http.response.body", "body": response.body, "more_body": has_body})
        if has_body:
            await self._discard(receive)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _discard(self, receive: Receive) -> None:
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self._linger):
                while size <= self._max_body:
                    event = await receive()
                    if event["type"] == "http.disconnect" or not event.get("more_body"):
                        return
                    part = event.get("body", b"")
                    assert isinstance(part, bytes)
                    size += len(part)

    def _check_port(self, scope: Scope) -> None:
        if self._probe_port is None or scope["path"] in PROBES:
            return
        server = scope["server"]
        if isinstance(server, Sequence) and server[1] == self._probe_port:
            raise Refused(404, f"This port has {', '.join(sorted(PROBES))} only")

    def _check_empty(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a body where anybody may ask: it would fill the memory before the key is checked."""
        if _has_body(headers):
            raise Refused(413, "This route takes no body", code="request_too_large")

    def _check_key(self, headers: Mapping[bytes, bytes]) -> None:
        if not self._keys.required:
            return
        scheme, _, sent = headers.get(b"authorization", b"").partition(b" ")
        if not self._keys.is_valid(sent.strip()) or scheme.lower() != b"bearer":
            raise _NoKey()

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive, limit: asyncio.Timeout) -> bytes:
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._max_body:
            raise self._too_large()
        body = bytearray()
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Gone
            part = event.get("body", b"")
            assert isinstance(part, bytes)
            body += part
            if len(body) > self._max_body:
                raise self._too_large()
            if not event.get("more_body"):
                return bytes(body)
            for late in self._bodies.add(limit, len(part)):
                late.reschedule(0)

    def _too_large(self) -> Refused:
        return Refused(413, f"The body is larger than {self._max_body} bytes", code="request_too_large")


class _NoKey(Refused):
    def __init__(self) -> None:
        super().__init__(
            401,
            "A valid API key is required: Authorization: Bearer KEY",
            kind="authentication_error",
            code="invalid_api_key",
        )

    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


def _headers(scope: Scope) -> dict[bytes, bytes]:
    found = scope["headers"]
    assert isinstance(found, list)
    return dict(found)


def _promote(scope: Scope, rank: Rank) -> None:
    """Raise the rank of a request's connection, if the server has ranks."""
    extensions = scope.get("extensions")
    promote = extensions.get(EXTENSION) if isinstance(extensions, dict) else None
    if callable(promote):
        promote(rank)


def _has_body(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-length", b"0").strip() not in (b"", b"0") or b"transfer-encoding" in headers


def _replay(body: bytes, receive: Receive) -> Receive:
    """Replay the body that was already read, then continue with new messages."""
    first = True

    async def again() -> Event:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again
