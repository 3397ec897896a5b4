"""Clients without a whole request: the probes, and the requests of others, are answered all the same."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smuggling import ACCEPTED, BAD_CHUNKS, CHUNKED, NEXT, REFUSED, post
from test_server import CHAT, METRICS, World, answers, closed, run

EXAMPLES = int(os.environ.get("KAIGEN_FUZZ_EXAMPLES", "25"))
PATIENCE = 30.0
"""Seconds for a probe on a busy machine. Connections that are never displaced would keep it waiting for a minute."""
KEY = Path(__file__).parent / "key.txt"
WITH_KEY = "authorization: Bearer key"
PROBE = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
HALF = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"

RUDE = {
    "nothing": b"",
    "half of the first line": b"GET /hea",
    "half of the headers": HALF,
    "half of a body, without the key": HALF + b"content-length: 900\r\n\r\n{",
    "half of a body, with a wrong key": HALF + b"authorization: Bearer x\r\ncontent-length: 900\r\n\r\n{",
    "half of a chunk": HALF + b"transfer-encoding: chunked\r\n\r\n900\r\n{",
    "a body for a path without one": b"GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n{",
    "a kept connection": METRICS,
    "requests that are sent together": METRICS * 50,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "zeros": bytes(100),
    "no line break": b"x" * 5000,
}

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(world: World, sent: bytes, count: int) -> list[Connection]:
    """Open connections that send something, and then nothing more."""
    found = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(sent)
        found.append((reader, writer))
    return found


async def leave(connections: list[Connection]) -> None:
    """Close connections."""
    for _, writer in connections:
        writer.close()
    for _, writer in connections:
        with suppress(ConnectionError):
            await writer.wait_closed()


async def probe(port: int) -> float:
    """Return the seconds that a probe takes."""
    begin = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(PROBE)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    writer.close()
    return time.monotonic() - begin


def rude(test: Callable[[World], Awaitable[None]], **options: Any) -> None:
    """Run a test with a proxy that has a key and a port for probes, and long deadlines."""
    run(test, **{"key_file": KEY, "head_seconds": 60.0, "linger_seconds": 60.0, "probes": True, **options})


@pytest.mark.parametrize(
    ("sent", "count"),
    [*((sent, 256) for sent in RUDE.values()), (RUDE["half of the headers"], 1024)],
    ids=[*RUDE, "half of the headers, four times as many"],
)
def test_clients_without_a_whole_request_stop_nobody(sent: bytes, count: int) -> None:
    async def test(world: World) -> None:
        connections = await connect(world, sent, count)
        for _ in range(5):
            assert await probe(world.probe_port) < PATIENCE
            assert await probe(world.port)
            await asyncio.sleep(0.1)
        assert (await world.ask(CHAT, WITH_KEY))[0] == 200
        assert (await world.ask(CHAT))[0] == 401
        await leave(connections)

    rude(test)


def test_a_body_with_the_key_is_not_displaced_by_strangers() -> None:
    async def test(world: World) -> None:
        [slow] = await connect(world, HALF + b"authorization: Bearer key\r\ncontent-length: 2\r\n\r\n[", 1)
        await asyncio.sleep(0.1)
        connections = await connect(world, HALF, 40)
        slow[1].write(b"]")
        assert b" 400 " in await slow[0].readuntil(b"\r\n")
        await leave([slow, *connections])

    rude(test, connections=8)


def test_a_kept_connection_with_the_key_is_not_displaced_by_strangers() -> None:
    async def test(world: World) -> None:
        known = b"GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer key\r\n\r\n"
        [kept] = await connect(world, known, 1)
        assert b" 200 " in await kept[0].readuntil(b"}]}")
        connections = await connect(world, METRICS, 40)
        assert await answers(*kept)
        await leave([kept, *connections])

    rude(test, connections=8)


def test_a_client_that_does_not_read_makes_room_at_once() -> None:
    async def test(world: World) -> None:
        connections = await connect(world, METRICS * 20_000, 8)
        await asyncio.sleep(0.5)
        assert await probe(world.port) < PATIENCE
        for reader, _ in connections[:1]:
            await closed(reader)
        await leave(connections)

    rude(test, connections=8, pause_seconds=0)


def test_a_path_without_a_body_reads_none() -> None:
    async def test(world: World) -> None:
        for path in ("/health", "/ready", "/metrics"):
            sent = f"GET {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n123456789".encode()
            assert (await world.send(sent)).startswith(b"HTTP/1.1 413 ")

    rude(test, linger_seconds=0.1)


def test_the_memory_of_half_bodies_is_limited() -> None:
    async def test(world: World) -> None:
        head = HALF + b"authorization: Bearer key\r\ncontent-length: 1000\r\n\r\n"
        connections = await connect(world, head + b"x" * 900, 5)
        for reader, _ in connections[:2]:
            assert b" 408 " in await reader.readuntil(b"\r\n")
        assert (await world.ask(CHAT, WITH_KEY))[0] == 200
        await leave(connections)

    rude(test, bodies=3000)


def test_the_port_of_probes_has_nothing_else() -> None:
    async def test(world: World) -> None:
        for path, status in (("/health", b"200"), ("/ready", b"200"), ("/metrics", b"404"), ("/v1/models", b"404")):
            answer = await world.send(PROBE.replace(b"/health", path.encode()), world.probe_port)
            assert answer.startswith(b"HTTP/1.1 " + status)

    rude(test)


def test_the_port_of_probes_is_answered_when_it_is_full_itself() -> None:
    async def test(world: World) -> None:
        connections = []
        for _ in range(200):
            connections.append(await asyncio.open_connection("127.0.0.1", world.probe_port))
        assert await probe(world.probe_port) < PATIENCE
        await leave(connections)

    rude(test)


@pytest.mark.parametrize("port", ["port", "probe_port"])
@pytest.mark.parametrize(("request_", "status"), REFUSED.values(), ids=list(REFUSED))
def test_a_request_with_two_ends_is_refused_and_the_connection_closed(request_: bytes, status: int, port: str) -> None:
    async def test(world: World) -> None:
        answer = await world.send(request_ + NEXT, getattr(world, port))
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"\r\nconnection: close\r\n" in answer.lower()
        assert world.api.requests == []

    rude(test, linger_seconds=0.1)


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=list(BAD_CHUNKS))
def test_a_body_with_two_ends_is_refused_and_the_connection_closed(body: bytes) -> None:
    async def test(world: World) -> None:
        answer = await world.send(post(WITH_KEY.encode(), CHUNKED, body=body) + NEXT)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert world.api.requests == []

    rude(test, linger_seconds=0.1)


@pytest.mark.parametrize("request_", ACCEPTED.values(), ids=list(ACCEPTED))
def test_an_ordinary_request_keeps_the_connection(request_: bytes) -> None:
    async def test(world: World) -> None:
        assert (await world.send(request_ + PROBE)).count(b"HTTP/1.1 200 ") == 2

    rude(test)


PIECES = st.sampled_from(
    [
        *RUDE.values(),
        *ACCEPTED.values(),
        *(request for request, _ in REFUSED.values()),
        *(post(WITH_KEY.encode(), CHUNKED, body=body) for body in BAD_CHUNKS.values()),
        *(b"\r\n", b"\n", b"\0", b"{}", b"0\r\n\r\n", b"Host: a\r\n", b"GET /health HTTP/1.1\r\n"),
    ]
) | st.binary(max_size=50)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    sent=st.lists(st.lists(PIECES, max_size=4).map(b"".join), min_size=1, max_size=12),
    cut=st.floats(0, 1),
    leaves=st.booleans(),
)
def test_probes_are_answered_whatever_others_send(sent: list[bytes], cut: float, leaves: bool) -> None:
    async def test(world: World) -> None:
        connections = []
        for data in sent:
            connections += await connect(world, data[: int(cut * len(data)) or None], 1)
            assert await probe(world.probe_port) < PATIENCE
            assert await probe(world.port) < PATIENCE
            if leaves:
                await leave(connections[-1:])
        assert (await world.ask(CHAT, WITH_KEY))[0] == 200
        await leave(connections)

    rude(test, connections=4, linger_seconds=0.2)
