"""The server in front of the API: connections, paths, and answers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import h11

from kaigen_ringproxy.answers import answer, chunk, error_body, models
from kaigen_ringproxy.checks import Chat, Refused, checked
from kaigen_ringproxy.client import Client, Gone
from kaigen_ringproxy.metrics import Metrics
from kaigen_ringproxy.places import Bodies, Places, Rank
from kaigen_ringproxy.text import say
from kaigen_ringproxy.turns import Turns
from kaigen_ringproxy.upstream import Broken, Upstream

_CHAT = "/v1/chat/completions"
_JSON = "application/json"
_PROBES = {"/health": "GET", "/ready": "GET"}
_PATHS = {_CHAT: "POST", "/v1/models": "GET", **_PROBES, "/metrics": "GET"}
_GUARDED = "/v1/"
"""Start of the paths that need the key. Nothing else takes a body."""
_PROBE_CONNECTIONS = 16
"""Connections at the port of probes at the same time. The kubelet needs two."""
_BACKLOG = 1024
"""Connections that wait until they are accepted."""
_RECEIVE_BUFFER = 32768
"""Bytes that the kernel keeps of what a connection has not read: they count as memory of the container."""
_STREAM_BUFFER = 8192
"""Half of the bytes of a connection that are kept before no more are received."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the server behaves.

    Attributes:
        names: names of the model.
        context: longest context of the model, in tokens.
        key_file: file with the API keys, one a line, read for each request; None for none.
        key_checksums: SHA-256 checksums of further API keys.
        body: most bytes of a request's body.
        bodies: most bytes of all bodies that are not complete. The oldest is refused for a new one.
        connections: most connections at the same time. A new one takes the place of one without a whole request.
        deadline: seconds that a chat may take, with the time in the queue.
        head_seconds: seconds that a client has for the first byte, for the headers, and again for the body.
        idle_seconds: seconds that a connection stays open after a request: longer than proxies keep it.
        read_seconds: seconds in which a client must read something of what waits for it.
        linger_seconds: seconds in which a client may still send a request that was refused.
        pause_seconds: seconds between the answers to two requests of a connection that were sent together, in which
            others are answered.
    """

    names: Sequence[str]
    context: int
    key_file: Path | None = None
    key_checksums: Sequence[bytes] = ()
    body: int = 1 << 20
    bodies: int = 16 << 20
    connections: int = 256
    deadline: float = 1800.0
    head_seconds: float = 30.0
    idle_seconds: float = 620.0
    read_seconds: float = 60.0
    linger_seconds: float = 5.0
    pause_seconds: float = 0.1

    @property
    def need_key(self) -> bool:
        """Whether requests must have one of the API keys."""
        return self.key_file is not None or bool(self.key_checksums)

    def accept(self, key: bytes) -> bool:
        """Return whether a key is valid; comparing takes as long whichever it is.

        Raises:
            OSError: the file cannot be read.
        """
        known = list(self.key_checksums)
        if self.key_file is not None:
            lines = [line.strip() for line in self.key_file.read_bytes().splitlines()]
            known += [hashlib.sha256(line).digest() for line in lines if line]
        checksum = hashlib.sha256(key).digest()
        return any([hmac.compare_digest(checksum, each) for each in known]) and bool(key)


@dataclass(frozen=True, slots=True)
class Door:
    """A port, and who is connected to it.

    Attributes:
        paths: the methods by paths.
        places: the connections.
        clients: the clients by connection.
    """

    paths: Mapping[str, str]
    places: Places[asyncio.Task[None]]
    clients: dict[asyncio.Task[None], Client] = field(default_factory=dict)


class Server:
    """Serves until it is stopped, then finishes the requests that it has."""

    def __init__(self, options: Options, upstream: Upstream, turns: Turns, metrics: Metrics) -> None:
        self._options = options
        self._upstream = upstream
        self._turns = turns
        self._metrics = metrics
        self._draining = False
        self._public = Door(_PATHS, Places(options.connections))
        self._probes = Door(_PROBES, Places(_PROBE_CONNECTIONS))
        self._bodies: Bodies[asyncio.Timeout] = Bodies(options.bodies)
        self._idle: set[asyncio.Task[None]] = set()
        self._abandoned: set[asyncio.Task[None]] = set()

    async def serve(
        self,
        host: str,
        port: int,
        stop: asyncio.Event,
        drain: float,
        listening: Callable[[int], None] = lambda port: say(f"listening on port {port}"),
        probe_port: int | None = None,
    ) -> None:
        """Serve until `stop` is set, then finish the requests in flight.

        Args:
            host: address to listen on.
            port: port to listen on.
            stop: ends the server.
            drain: longest time to finish requests, in seconds.
            listening: is called with the port, and then with that of probes if there is one.
            probe_port: port for probes alone, whatever clients do at the other; None for none.
        """
        servers = [await self._listen(host, port, self._public)]
        if probe_port is not None:
            servers.append(await self._listen(host, probe_port, self._probes))
        watch = asyncio.create_task(self._turns.watch(2.0))
        for server in servers:
            listening(server.sockets[0].getsockname()[1])
        await stop.wait()
        self._draining = True
        for server in servers:
            server.close()
        pending = (self._public.clients.keys() - self._idle) | self._abandoned
        for task in self._idle:
            task.cancel()
        if pending:
            say(f"finishing {len(pending)} requests")
            await asyncio.wait(pending, timeout=drain)
        for client in (*self._public.clients.values(), *self._probes.clients.values()):
            client.abort()
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)

    async def _listen(self, host: str, port: int, door: Door) -> asyncio.Server:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connected(Client(reader, writer, self._options.read_seconds), door)

        server = await asyncio.start_server(
            connected, host, port, limit=_STREAM_BUFFER, backlog=_BACKLOG, start_serving=False
        )
        for each in server.sockets:
            # Connections inherit it.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        await server.start_serving()
        return server

    async def _connected(self, client: Client, door: Door) -> None:
        task = asyncio.current_task()
        assert task is not None

        def close(displaced: asyncio.Task[None]) -> None:
            door.clients[displaced].abort()
            displaced.cancel()

        door.clients[task] = client
        try:
            if door.places.enter(task, close):
                self._metrics.set("connections", len(self._public.clients))
                await self._requests(client, door, task)
        except (Gone, TimeoutError, asyncio.CancelledError, h11.ProtocolError):
            pass
        finally:
            self._idle.discard(task)
            try:
                await client.close()
            finally:
                door.places.leave(task)
                del door.clients[task]
                self._metrics.set("connections", len(self._public.clients))

    async def _requests(self, client: Client, door: Door, task: asyncio.Task[None]) -> None:
        """Answer the requests of one connection, one after the other."""
        seconds = self._options.head_seconds
        while not self._draining:
            self._idle.add(task)
            async with asyncio.timeout(seconds):
                await client.first_byte()
            self._idle.discard(task)
            seconds = self._options.idle_seconds
            await self._request(client, door, task)
            if client.http.our_state is not h11.DONE or client.http.their_state is not h11.DONE:
                return
            client.http.start_next_cycle()
            door.places.rest(task)
            if client.http.trailing_data[0]:
                await asyncio.sleep(self._options.pause_seconds)

    async def _request(self, client: Client, door: Door, task: asyncio.Task[None]) -> None:
        start, path, status = time.monotonic(), "invalid", 400
        try:
            async with asyncio.timeout(self._options.head_seconds):
                request = await client.event()
            if not isinstance(request, h11.Request):
                raise Gone
            target = request.target.decode("ascii", "replace").partition("?")[0]
            self._check_path(request, target, door.paths)
            path = target
            if path.startswith(_GUARDED) and self._options.need_key:
                door.places.promote(task, Rank.KNOWN)
            body = await self._body(client, path)
            if path.startswith(_GUARDED):
                door.places.promote(task, Rank.WORKING)
            status = await self._answer(client, path, body, lambda: door.places.rest(task))
        except h11.RemoteProtocolError as error:
            path, status = "invalid", error.error_status_hint
            await self._refuse(client, Refused(f"the request is not HTTP: {error}", status=status))
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

    def _check_path(self, request: h11.Request, path: str, paths: Mapping[str, str]) -> None:
        if path not in paths:
            raise Refused("there is no such path", status=404)
        if request.method != paths[path].encode():
            raise Refused(f"the method must be {paths[path]}", status=405)
        if not self._options.need_key or not path.startswith(_GUARDED):
            return
        given = next((value for name, value in request.headers if name == b"authorization"), b"")
        scheme, _, key = given.partition(b" ")
        try:
            valid = self._options.accept(key) and scheme == b"Bearer"
        except OSError as error:
            say(f"error: {error}")
            raise Refused("the server has no API key", status=503) from None
        if not valid:
            raise Refused("the API key is missing or wrong", status=401)

    async def _body(self, client: Client, path: str) -> bytes:
        """Return the body of a request; none for a path that takes none."""
        body, most = bytearray(), self._options.body if path.startswith(_GUARDED) else 0
        async with asyncio.timeout(self._options.head_seconds) as limit:
            try:
                while not isinstance(event := await client.event(), h11.EndOfMessage):
                    body += event.data
                    if len(body) > most:
                        raise Refused(f"the body has more than {most} bytes", status=413)
                    for late in self._bodies.add(limit, len(event.data)):
                        late.reschedule(0)
            finally:
                self._bodies.end(limit)
        return bytes(body)

    async def _answer(self, client: Client, path: str, body: bytes, generated: Callable[[], None]) -> int:
        """Answer a request; returns the status.

        Args:
            client: the client.
            path: path of the request.
            body: body of the request.
            generated: is called when nothing is left to do for it but to send.
        """
        if path == _CHAT:
            chat = checked(body, self._options.names, self._options.context)
            return await self._chat(client, chat, generated)
        generated()
        if path == "/v1/models":
            return await self._send(client, 200, models(self._options.names))
        if path == "/metrics":
            return await self._send(client, 200, self._metrics.text().encode(), "text/plain; version=0.0.4")
        ready = path == "/health" or (self._turns.ready and not self._draining)
        return await self._send(client, 200 if ready else 503, b"ok\n" if ready else b"not ready\n", "text/plain")

    async def _refuse(self, client: Client, refused: Refused) -> None:
        if client.http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send(client, refused.status, error_body(refused), close=True)
            if client.http.their_state is not h11.DONE:
                await client.discard(self._options.body, self._options.linger_seconds)

    async def _send(self, client: Client, status: int, body: bytes, kind: str = _JSON, *, close: bool = False) -> int:
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        headers += [("Connection", "close")] if close or self._draining else []
        headers += [("Retry-After", "5")] if status == 503 else []
        await client.send(h11.Response(status_code=status, headers=headers))
        await client.send(h11.Data(data=body))
        await client.send(h11.EndOfMessage())
        return status

    async def _chat(self, client: Client, chat: Chat, generated: Callable[[], None]) -> int:
        """Answer a chat; returns the status.

        The API writes to a client that has left as well, so the work goes on alone: closing its connection is what
        ends it.
        """
        pieces: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        work = asyncio.create_task(self._generate(chat, pieces))
        work.add_done_callback(lambda _: generated())
        left = asyncio.create_task(client.left())
        send = asyncio.create_task(self._send_chat(client, chat, pieces))
        try:
            await asyncio.wait((send, left), return_when=asyncio.FIRST_COMPLETED)
            if not send.done():
                raise Gone
            return send.result()
        finally:
            # Until it has ended, it is the one that waits for the next request on this connection.
            left.cancel()
            send.cancel()
            await asyncio.gather(left, send, return_exceptions=True)
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

    async def _send_chat(self, client: Client, chat: Chat, pieces: asyncio.Queue[str | Exception | None]) -> int:
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
