"""The server in front of the API: connections, paths, and answers."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11

from kaigen_ringproxy.answers import answer, chunk, error_body, models
from kaigen_ringproxy.checks import Chat, Refused, checked
from kaigen_ringproxy.metrics import Metrics
from kaigen_ringproxy.text import say
from kaigen_ringproxy.turns import Turns
from kaigen_ringproxy.upstream import Broken, Upstream

_CHUNK = 65536
_HEAD_BYTES = 32768
_CHAT = "/v1/chat/completions"
_JSON = "application/json"
_PATHS = {_CHAT: "POST", "/v1/models": "GET", "/health": "GET", "/ready": "GET", "/metrics": "GET"}


class Gone(Exception):
    """The client closed the connection."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the server behaves.

    Attributes:
        names: names of the model.
        context: longest context of the model, in tokens.
        key_file: file with the API key; None for none.
        body: most bytes of a request's body.
        connections: most connections at the same time. A new one takes the place of the one that has idled for the
            longest.
        deadline: seconds that a chat may take, with the time in the queue.
        head_seconds: seconds that a client has for the first byte, for the headers, and again for the body.
        idle_seconds: seconds that a connection stays open after a request: longer than proxies keep it.
        read_seconds: seconds in which a client must read something of what waits for it.
        linger_seconds: seconds in which a client may still send a request that was refused.
    """

    names: Sequence[str]
    context: int
    key_file: Path | None = None
    body: int = 1 << 20
    connections: int = 256
    deadline: float = 1800.0
    head_seconds: float = 30.0
    idle_seconds: float = 620.0
    read_seconds: float = 60.0
    linger_seconds: float = 5.0


class Client:
    """One connection of a client."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, read_seconds: float
    ) -> None:
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)
        self._reader = reader
        self._writer = writer
        self._read_seconds = read_seconds
        # Wait for all that the client has not read: by default, only for what exceeds 64 KiB.
        writer.transport.set_write_buffer_limits(high=0)

    async def event(self) -> Any:
        """Return the next event of the connection.

        Raises:
            Gone: it was closed.
            h11.RemoteProtocolError: the client does not send HTTP.
        """
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            self.http.receive_data(await self._read())
        if isinstance(event, h11.ConnectionClosed):
            raise Gone
        return event

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(_CHUNK)
        except OSError:
            raise Gone from None

    async def first_byte(self) -> None:
        """Wait until the client sends something.

        Raises:
            Gone: it closed the connection.
        """
        if self.http.trailing_data[0]:
            return
        data = await self._read()
        if not data:
            raise Gone
        self.http.receive_data(data)

    async def left(self) -> None:
        """Wait until the client closes the connection, or sends too much; a request that it sends is kept."""
        size = 0
        with contextlib.suppress(Gone):
            while size <= _HEAD_BYTES and (data := await self._read()):
                self.http.receive_data(data)
                size += len(data)

    async def send(self, event: Any) -> None:
        """Send a part of an answer.

        Raises:
            Gone: the client closed the connection, or does not read.
        """
        data = self.http.send(event)
        if not data:
            return
        try:
            self._writer.write(data)
            while not await self._is_read():
                pass
        except OSError:
            raise Gone from None

    async def _is_read(self) -> bool:
        """Wait until the client has read everything; returns False if it has read only a part of it in time.

        Raises:
            Gone: it has read nothing.
        """
        transport = self._writer.transport
        before = transport.get_write_buffer_size()
        try:
            async with asyncio.timeout(self._read_seconds):
                await self._writer.drain()
        except TimeoutError:
            if transport.get_write_buffer_size() < before:
                return False
            transport.abort()
            raise Gone from None
        return True

    async def discard(self, most: int, seconds: float) -> None:
        """End the answer, and read what the client still sends, so that it gets the answer before the end.

        Args:
            most: most bytes to read.
            seconds: longest time to read.
        """
        with contextlib.suppress(Gone, OSError, TimeoutError):
            self._writer.write_eof()
            async with asyncio.timeout(seconds):
                while most > 0 and (data := await self._read()):
                    most -= len(data)

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        try:
            async with asyncio.timeout(self._read_seconds):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            pass


class Server:
    """Serves until it is stopped, then finishes the requests that it has."""

    def __init__(self, options: Options, upstream: Upstream, turns: Turns, metrics: Metrics) -> None:
        self._options = options
        self._upstream = upstream
        self._turns = turns
        self._metrics = metrics
        self._draining = False
        self._open: set[asyncio.Task[None]] = set()
        # The one that has idled for the longest is first.
        self._idle: dict[asyncio.Task[None], None] = {}
        self._abandoned: set[asyncio.Task[None]] = set()

    async def serve(
        self,
        host: str,
        port: int,
        stop: asyncio.Event,
        drain: float,
        listening: Callable[[int], None] = lambda port: say(f"listening on port {port}"),
    ) -> None:
        """Serve until `stop` is set, then finish the requests in flight.

        Args:
            host: address to listen on.
            port: port to listen on.
            stop: ends the server.
            drain: longest time to finish requests, in seconds.
            listening: is called with the port.
        """
        server = await asyncio.start_server(self._connected, host, port)
        watch = asyncio.create_task(self._turns.watch(2.0))
        listening(server.sockets[0].getsockname()[1])
        await stop.wait()
        self._draining = True
        server.close()
        pending = (self._open - self._idle.keys()) | self._abandoned
        while self._close_idle():
            pass
        if pending:
            say(f"finishing {len(pending)} requests")
            await asyncio.wait(pending, timeout=drain)
        watch.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        client = Client(reader, writer, self._options.read_seconds)
        self._open.add(task)
        self._metrics.set("connections", len(self._open))
        try:
            if len(self._open) <= self._options.connections or self._close_idle():
                await self._requests(client, task)
        except (Gone, TimeoutError, asyncio.CancelledError, h11.ProtocolError):
            pass
        finally:
            self._idle.pop(task, None)
            try:
                await client.close()
            finally:
                self._open.discard(task)
                self._metrics.set("connections", len(self._open))

    def _close_idle(self) -> bool:
        """Close the connection that has idled for the longest; returns whether there was one."""
        task = next(iter(self._idle), None)
        if task is None:
            return False
        del self._idle[task]
        task.cancel()
        return True

    async def _requests(self, client: Client, task: asyncio.Task[None]) -> None:
        """Answer the requests of one connection, one after the other."""
        seconds = self._options.head_seconds
        while not self._draining:
            self._idle[task] = None
            async with asyncio.timeout(seconds):
                await client.first_byte()
            del self._idle[task]
            seconds = self._options.idle_seconds
            await self._request(client)
            if client.http.our_state is not h11.DONE or client.http.their_state is not h11.DONE:
                return
            client.http.start_next_cycle()

    async def _request(self, client: Client) -> None:
        start, path, status = time.monotonic(), "invalid", 400
        try:
            async with asyncio.timeout(self._options.head_seconds):
                request = await client.event()
            if not isinstance(request, h11.Request):
                raise Gone
            target = request.target.decode("ascii", "replace").partition("?")[0]
            self._check_path(request, target)
            path = target
            async with asyncio.timeout(self._options.head_seconds):
                body = await self._body(client)
            status = await self._answer(client, path, body, request)
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            await self._refuse(client, Refused(f"the request is no HTTP: {error}", status=status))
        except TimeoutError:
            status = 408
            await self._refuse(client, Refused("the request was not complete in time", status=408))
        except Refused as refused:
            status = refused.status
            await self._refuse(client, refused)
        finally:
            self._metrics.add("requests_total", path=path, status=status)
            if path == _CHAT:
                self._metrics.add("request_seconds_total", time.monotonic() - start)

    def _check_path(self, request: h11.Request, path: str) -> None:
        if path not in _PATHS:
            raise Refused("there is no such path", status=404)
        if request.method != _PATHS[path].encode():
            raise Refused(f"the method must be {_PATHS[path]}", status=405)
        if self._options.key_file is None or not path.startswith("/v1/"):
            return
        try:
            expected = b"Bearer " + self._options.key_file.read_bytes().strip()
        except OSError as error:
            say(f"error: {error}")
            raise Refused("the server has no API key", status=503) from None
        given = next((value for name, value in request.headers if name == b"authorization"), b"")
        if not hmac.compare_digest(given, expected):
            raise Refused("the API key is missing or wrong", status=401)

    async def _body(self, client: Client) -> bytes:
        parts, size = [], 0
        while not isinstance(event := await client.event(), h11.EndOfMessage):
            size += len(event.data)
            if size > self._options.body:
                raise Refused(f"the body has more than {self._options.body} bytes", status=413)
            parts.append(bytes(event.data))
        return b"".join(parts)

    async def _answer(self, client: Client, path: str, body: bytes, request: h11.Request) -> int:
        """Answer a request; returns the status."""
        if path == _CHAT:
            return await self._chat(client, checked(body, self._options.names, self._options.context))
        if path == "/v1/models":
            return await self._send(client, 200, models(self._options.names))
        if path == "/metrics":
            return await self._send(client, 200, self._metrics.text().encode(), "text/plain; version=0.0.4")
        ready = path == "/health" or (self._turns.ready and not self._draining)
        return await self._send(
            client, 200 if ready else 503, b"ok\n" if ready else b"not ready\n", "text/plain"
        )

    async def _refuse(self, client: Client, refused: Refused) -> None:
        if client.http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send(client, refused.status, error_body(refused), close=True)
            if client.http.their_state is not h11.DONE:
                await client.discard(self._options.body, self._options.linger_seconds)

    async def _send(
        self, client: Client, status: int, body: bytes, kind: str = _JSON, *, close: bool = False
    ) -> int:
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        headers += [("Connection", "close")] if close or self._draining else []
        headers += [("Retry-After", "5")] if status == 503 else []
        await client.send(h11.Response(status_code=status, headers=headers))
        await client.send(h11.Data(data=body))
        await client.send(h11.EndOfMessage())
        return status

    async def _chat(self, client: Client, chat: Chat) -> int:
        """Answer a chat; returns the status.

        The API writes to a client that has left as well, so the work goes on alone: closing its connection is what
        ends it.
        """
        pieces: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        work = asyncio.create_task(self._generate(chat, pieces))
        left = asyncio.create_task(client.left())
        try:
            send = asyncio.create_task(self._send_chat(client, chat, pieces))
            await asyncio.wait((send, left), return_when=asyncio.FIRST_COMPLETED)
            if not send.done():
                send.cancel()
                await asyncio.wait((send,))
                raise Gone
            return send.result()
        finally:
            # Until it has ended, it is the one that waits for the next request on this connection.
            left.cancel()
            await asyncio.wait((left,))
            if not work.done():
                self._metrics.add("abandoned_total")
                if self._turns.is_waiting(work):
                    work.cancel()
                else:
                    self._abandoned.add(work)
                    work.add_done_callback(self._abandoned.discard)

    async def _generate(self, chat: Chat, pieces: asyncio.Queue[str | Exception | None]) -> None:
        """Put the pieces of an answer into a queue; the last item is None or an error."""
        try:
            async with asyncio.timeout(self._options.deadline), self._turns.turn():
                try:
                    async with aclosing(self._upstream.chat(chat.body)) as found:
                        async for piece in found:
                            self._metrics.add("chunks_total")
                            pieces.put_nowait(piece)
                except Broken:
                    self._turns.note(False)
                    raise
        except Broken as error:
            pieces.put_nowait(Refused(f"the ring broke: {error}", status=502))
        except TimeoutError:
            pieces.put_nowait(Refused("the answer took too long", status=504))
        except Refused as refused:
            pieces.put_nowait(refused)
        else:
            pieces.put_nowait(None)

    async def _send_chat(
        self, client: Client, chat: Chat, pieces: asyncio.Queue[str | Exception | None]
    ) -> int:
        if not chat.stream:
            found = []
            while isinstance(piece := await pieces.get(), str):
                found.append(piece)
            if piece is not None:
                raise piece
            return await self._send(client, 200, answer(chat.model, "".join(found)))
        piece = await pieces.get()
        if isinstance(piece, Exception):
            raise piece
        headers = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]
        headers += [("Connection", "close")] if self._draining else []
        await client.send(h11.Response(status_code=200, headers=[*headers, ("Transfer-Encoding", "chunked")]))
        write = chunk(chat.model)
        await client.send(h11.Data(data=write({"role": "assistant", "content": ""}, None)))
        while isinstance(piece, str):
            await client.send(h11.Data(data=write({"content": piece}, None)))
            piece = await pieces.get()
        if isinstance(piece, Refused):
            # The status is sent already, so the error is the last event, without the end that clients wait for.
            await client.send(h11.Data(data=b"data: " + error_body(piece) + b"\n\n"))
            await client.send(h11.EndOfMessage())
            return piece.status
        await client.send(h11.Data(data=write({}, "stop") + b"data: [DONE]\n\n"))
        await client.send(h11.EndOfMessage())
        return 200
