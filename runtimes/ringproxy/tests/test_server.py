"""The proxy between clients and an API that reads one connection after the other."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kaigen_ringproxy.metrics import Metrics
from kaigen_ringproxy.server import Options, Server
from kaigen_ringproxy.turns import Turns
from kaigen_ringproxy.upstream import Upstream

CHAT = {"messages": [{"role": "user", "content": "Hello"}]}


class Api:
    """An API that notes the bytes of each request, and how many it reads at the same time."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.most = self.now = 0
        self.go = asyncio.Event()
        self.go.set()
        self.breaks = False
        self._open: set[asyncio.Task[None]] = set()

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the request of a connection."""
        task = asyncio.create_task(self._connected(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def end(self) -> None:
        """Close the connections that are open, those included that were accepted last."""
        await asyncio.sleep(0.01)
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            # The proxy may end while it asks whether the API answers.
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._answer(reader, writer)
        finally:
            self.now -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        if head.startswith(b"POST"):
            self.requests.append(head + body)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            self._piece(writer, "one ")
            await writer.drain()
            await self.go.wait()
            if not self.breaks:
                self._piece(writer, "two")
                writer.write(b"c\r\ndata: [DONE]\r\n0000\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    @staticmethod
    def _piece(writer: asyncio.StreamWriter, text: str) -> None:
        choice = {"index": 2**32 - 1, "delta": {"role": "assistant", "content": text}, "finish_reason": ""}
        data = f"data: {json.dumps({'choices': [choice]})}\r\n\r\n".encode()
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


class World:
    """The proxy on a port, and the API behind it."""

    def __init__(self, api: Api, server: Server, ports: list[int], stop: asyncio.Event, metrics: Metrics) -> None:
        self.api = api
        self.port, self.probe_port = ports[0], ports[-1]
        self.stop = stop
        self.metrics = metrics
        self.server = server

    async def send(self, data: bytes, port: int | None = None) -> bytes:
        """Return the answer to the bytes of a request, until the proxy closes the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port or self.port)
        try:
            writer.write(data)
            return await reader.read()
        finally:
            writer.close()

    async def ask(self, body: Any = CHAT, *headers: str, path: str = "/v1/chat/completions") -> tuple[int, str]:
        """Return status and body of the answer to a POST; to a GET if there is no body."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", "host: x", "connection: close", *headers]
        lines += [f"content-length: {len(data)}"] if data else []
        answer = await self.send("\r\n".join([*lines, "", ""]).encode() + data)
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), rest.decode()


def run(test: Callable[[World], Awaitable[None]], *, queue: int = 16, probes: bool = False, **options: Any) -> None:
    """Run a test with a proxy, and with a port for probes if asked for."""

    async def body() -> None:
        api, metrics, stop = Api(), Metrics(), asyncio.Event()
        behind = await asyncio.start_server(api.connected, "127.0.0.1", 0)
        upstream = Upstream(behind.sockets[0].getsockname()[1])
        turns = Turns(upstream, metrics, queue=queue)
        server = Server(Options(names=["tiny"], context=64, **options), upstream, turns, metrics)
        turns.note(ready=True)
        ports: asyncio.Queue[int] = asyncio.Queue()
        listening = ports.put_nowait
        serving = server.serve("127.0.0.1", 0, stop, 5.0, listening, probe_port=0 if probes else None)
        task = asyncio.create_task(serving)
        world = World(api, server, [await ports.get() for _ in range(1 + probes)], stop, metrics)
        async with asyncio.timeout(60):
            await test(world)
            stop.set()
            await task
        behind.close()
        await api.end()
        # The transports close their sockets in the next turns of the loop.
        await asyncio.sleep(0.01)

    asyncio.run(body())


def test_a_chat_is_passed_on_as_the_program_reads_it() -> None:
    async def test(world: World) -> None:
        status, body = await world.ask()
        found = json.loads(body)
        assert (status, found["model"]) == (200, "tiny")
        choice = found["choices"][0]
        assert (choice["index"], choice["message"]["content"], choice["finish_reason"]) == (0, "one two", "stop")
        head, _, sent = world.api.requests[0].partition(b"\r\n\r\n")
        assert b"\r\nContent-Length: " in head
        assert json.loads(sent)["stream"] is True

    run(test)


def test_one_connection_carries_many_chats() -> None:
    async def test(world: World) -> None:
        data = json.dumps(CHAT).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        for _ in range(5):
            writer.write(head.encode() + data)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200 ")
            length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            assert b"one two" in await reader.readexactly(length)
        writer.close()

    run(test)


def test_a_stream_has_complete_events() -> None:
    async def test(world: World) -> None:
        status, body = await world.ask({**CHAT, "stream": True})
        events = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: ")]
        assert (status, events[-1]) == (200, "[DONE]")
        choices = [json.loads(event)["choices"][0] for event in events[:-1]]
        assert "".join(choice["delta"].get("content", "") for choice in choices) == "one two"
        assert [choice["index"] for choice in choices] == [0] * len(choices)
        assert choices[-1]["finish_reason"] == "stop"

    run(test)


def test_bad_requests_never_reach_the_program() -> None:
    async def test(world: World) -> None:
        assert (await world.ask(b"{"))[0] == 400
        assert (await world.ask({"messages": [{"role": "user", "content": [1]}]}))[0] == 400
        assert (await world.ask(None))[0] == 405
        assert (await world.ask(CHAT, path="/v1/completions"))[0] == 404
        assert (await world.ask(b"x" * 2000))[0] == 413
        assert b" 400 " in await world.send(b"no HTTP\r\n\r\n")
        assert b" 408 " in await world.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n")
        assert world.api.requests == []

    run(test, body=1000, head_seconds=0.2)


def test_a_body_in_chunks_is_read() -> None:
    async def test(world: World) -> None:
        body = json.dumps(CHAT).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        head += b"transfer-encoding: chunked\r\n\r\n"
        parts = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        assert b" 200 " in await world.send(head + parts)

    run(test)


def test_one_request_at_a_time_and_a_short_queue() -> None:
    async def test(world: World) -> None:
        world.api.go.clear()
        tasks = [asyncio.create_task(world.ask()) for _ in range(4)]
        while not any(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        while "kaigen_ring_requests_waiting 2\n" not in (await world.ask(None, path="/metrics"))[1]:
            await asyncio.sleep(0.01)
        assert len(world.api.requests) <= 1
        world.api.go.set()
        assert sorted([(await task)[0] for task in tasks]) == [200, 200, 200, 503]
        assert world.api.most == 1

    run(test, queue=2)


def test_a_client_that_leaves_the_queue_is_forgotten() -> None:
    async def test(world: World) -> None:
        world.api.go.clear()
        first = asyncio.create_task(world.ask())
        while not world.api.requests:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(world.ask())
        while "requests_waiting 1" not in world.metrics.text():
            await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.wait([second])
        while "requests_waiting 0" not in world.metrics.text():
            await asyncio.sleep(0.01)
        world.api.go.set()
        assert (await first)[0] == 200
        assert len(world.api.requests) == 1

    run(test)


def test_a_broken_answer_is_an_error() -> None:
    async def test(world: World) -> None:
        world.api.breaks = True
        assert (await world.ask())[0] == 502
        assert (await world.ask(None, path="/ready"))[0] == 503
        assert (await world.ask(None, path="/health"))[0] == 200
        assert (await world.ask())[0] == 503

    run(test)


def test_a_broken_stream_ends_with_an_error_and_not_with_done() -> None:
    async def test(world: World) -> None:
        world.api.breaks = True
        status, body = await world.ask({**CHAT, "stream": True})
        assert status == 200
        assert '"server_error"' in body
        assert "[DONE]" not in body

    run(test)


def test_the_key_opens_the_api_only() -> None:
    async def test(world: World) -> None:
        assert (await world.ask())[0] == 401
        assert (await world.ask(CHAT, "authorization: Bearer wrong"))[0] == 401
        assert (await world.ask(CHAT, "authorization: Bearer key"))[0] == 200
        assert (await world.ask(None, path="/v1/models"))[0] == 401
        assert (await world.ask(None, path="/ready"))[0] == 200

    run(test, key_file=KEY)


KEY = Path(__file__).parent / "key.txt"
CHECKSUMS = [hashlib.sha256(key).digest() for key in (b"one", b"")]


@pytest.mark.promise("Koldun", "`Token`: API tokens by their hash")
def test_keys_are_known_by_their_checksums_alone() -> None:
    async def test(world: World) -> None:
        for header in ("Bearer two", "Bearer ", f"Bearer {CHECKSUMS[0].hex()}", "one"):
            assert (await world.ask(CHAT, f"authorization: {header}"))[0] == 401
        assert (await world.ask(CHAT, "authorization: Bearer one"))[0] == 200

    run(test, key_checksums=CHECKSUMS)


def test_requests_in_flight_are_finished_at_the_end() -> None:
    async def test(world: World) -> None:
        world.api.go.clear()
        task = asyncio.create_task(world.ask())
        while not world.api.requests:
            await asyncio.sleep(0.01)
        world.stop.set()
        await asyncio.sleep(0.05)
        with pytest.raises(ConnectionRefusedError):
            await world.ask()
        world.api.go.set()
        assert (await task)[0] == 200

    run(test)


async def closed(reader: asyncio.StreamReader) -> bytes:
    """Return what arrives until the proxy closes a connection."""
    with suppress(ConnectionError):
        return await reader.read()
    return b""


def test_a_connection_that_sends_nothing_is_closed_after_the_time_for_headers() -> None:
    async def test(world: World) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        async with asyncio.timeout(5):
            assert await closed(reader) == b""
        writer.close()

    run(test, head_seconds=0.2)


METRICS = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Return whether the proxy answers on an open connection."""
    writer.write(METRICS)
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
    return head.startswith(b"HTTP/1.1 200 ")


def test_a_connection_stays_open_after_a_request_for_longer_than_headers_may_take() -> None:
    async def test(world: World) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        assert await answers(reader, writer)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.6):
                await reader.read(1)
        assert await answers(reader, writer)
        writer.close()

    run(test, head_seconds=0.2)


def test_a_new_connection_takes_the_place_of_the_one_that_idled_for_the_longest() -> None:
    async def test(world: World) -> None:
        pairs = [await asyncio.open_connection("127.0.0.1", world.port) for _ in range(3)]
        for pair in [*pairs, pairs[0]]:
            assert await answers(*pair)
        more = await asyncio.open_connection("127.0.0.1", world.port)
        assert await answers(*more)
        assert await closed(pairs[1][0]) == b""
        assert await answers(*pairs[0])
        assert await answers(*pairs[2])
        for _, writer in [*pairs, more]:
            writer.close()

    run(test, connections=3)


def test_a_connection_beyond_the_limit_is_closed_when_all_have_requests() -> None:
    async def test(world: World) -> None:
        world.api.go.clear()
        tasks = [asyncio.create_task(world.ask()) for _ in range(2)]
        while "connections 2\n" not in world.metrics.text() or not world.api.requests:
            await asyncio.sleep(0.01)
        with suppress(ConnectionError):
            assert await world.send(METRICS) == b""
        world.api.go.set()
        assert [(await task)[0] for task in tasks] == [200, 200]

    run(test, connections=2)


@asynccontextmanager
async def unread(world: World) -> AsyncIterator[socket.socket]:
    """Ask for metrics, again and again, until the proxy stops to read because nobody reads its answers."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", world.port))
        with suppress(TimeoutError, ConnectionError):
            while True:
                async with asyncio.timeout(0.5):
                    await loop.sock_sendall(client, METRICS * 100)
        yield client


def test_a_client_that_does_not_read_is_disconnected() -> None:
    async def test(world: World) -> None:
        async with unread(world):
            while "connections 0\n" not in world.metrics.text():
                await asyncio.sleep(0.01)

    run(test, read_seconds=0.3, pause_seconds=0)


def test_a_client_that_reads_slowly_stays_connected() -> None:
    async def test(world: World) -> None:
        async with unread(world) as client:
            for _ in range(12):
                await asyncio.sleep(0.1)
                await asyncio.get_running_loop().sock_recv(client, 1 << 18)
            assert "connections 1\n" in world.metrics.text()

    run(test, read_seconds=1.0, pause_seconds=0)


def test_the_rest_of_a_refused_request_is_read_for_a_while() -> None:
    async def test(world: World) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"
        writer.write(head + b"x" * 2000)
        assert b" 413 " in await reader.readuntil(b"\r\n\r\n")
        assert b"more than 1000 bytes" in await reader.read()
        begin = time.monotonic()
        with suppress(ConnectionError):
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        assert 0.2 < time.monotonic() - begin < 5
        writer.close()

    run(test, body=1000, linger_seconds=0.3)
