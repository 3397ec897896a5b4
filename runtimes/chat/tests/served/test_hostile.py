"""Clients that send bodies where none belong, or never end one."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from kaigen_chat.connections import Connection
from kaigen_chat.http import OPEN, Event, Guard, Receive, Scope, Send
from kaigen_chat.metrics import Metrics


async def reached(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def ask(
    path: str, headers: list[tuple[bytes, bytes]], parts: list[bytes], *, ends: bool
) -> tuple[int, int]:
    """Return the status of a request, and how many parts of its body were read."""
    read = 0
    statuses: list[int] = []

    async def receive() -> Event:
        nonlocal read
        if read < len(parts):
            read += 1
            return {
                "type": "http.request",
                "body": parts[read - 1],
                "more_body": not ends or read < len(parts),
            }
        await asyncio.sleep(60)
        raise AssertionError("the guard waits longer than its deadline")

    async def send(event: Event) -> None:
        if event["type"] == "http.response.start":
            statuses.append(int(str(event["status"])))

    guard = Guard(
        reached, keys=(b"key",), max_body=1000, metrics=Metrics("m", "1"), routes=frozenset(), deadline=0.2
    )
    await guard({"type": "http", "path": path, "headers": headers, "method": "POST"}, receive, send)
    return statuses[0], read


@pytest.mark.parametrize("path", sorted(OPEN))
@pytest.mark.parametrize("header", [(b"content-length", b"4194304"), (b"transfer-encoding", b"chunked")])
def test_an_open_route_reads_no_body(path: str, header: tuple[bytes, bytes]) -> None:
    assert asyncio.run(ask(path, [header], [b"x" * 100], ends=False)) == (413, 0)


@pytest.mark.parametrize("path", sorted(OPEN))
def test_an_open_route_answers_a_probe(path: str) -> None:
    assert asyncio.run(ask(path, [], [b""], ends=True)) == (200, 1)


def test_the_key_is_checked_before_a_body_is_read() -> None:
    headers = [(b"content-length", b"100")]
    assert asyncio.run(ask("/v1/chat/completions", headers, [b"x"], ends=False)) == (401, 0)


def test_a_body_that_never_ends_meets_the_deadline() -> None:
    headers = [(b"authorization", b"Bearer key"), (b"content-length", b"100")]
    assert asyncio.run(ask("/v1/chat/completions", headers, [b"x"], ends=False)) == (408, 1)


class Hasty(Connection):
    headers_s = 0.3
    most = 3


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """A server whose clients must hurry."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(reached, http=Hasty, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    server.should_exit = True
    thread.join()


def closed_after(connection: socket.socket) -> float:
    """Return the seconds until the server closes a connection."""
    begin = time.monotonic()
    connection.settimeout(10)
    try:
        while connection.recv(1000):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - begin


WHOLE = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: a\r\n"])
def test_a_request_that_is_never_whole_is_closed(address: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(sent)
        assert closed_after(connection) < 5


def test_a_slow_client_gets_no_second_deadline(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nX: ")
        begin = time.monotonic()
        with pytest.raises(ConnectionError):
            send_slowly(connection)
        assert time.monotonic() - begin < 5


def send_slowly(connection: socket.socket) -> None:
    for _ in range(200):
        connection.sendall(b"x")
        time.sleep(0.05)


def test_a_connection_stays_open_between_requests(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.settimeout(10)
        for _ in range(2):
            connection.sendall(WHOLE)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.5)
        connection.sendall(WHOLE[:10])
        assert closed_after(connection) < 5


def test_connections_beyond_the_limit_are_closed(address: tuple[str, int]) -> None:
    open_ones = [socket.create_connection(address) for _ in range(3)]
    try:
        for connection in open_ones:
            connection.sendall(WHOLE)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        with socket.create_connection(address) as one_more:
            assert closed_after(one_more) < 5
        open_ones[0].sendall(WHOLE)
        assert open_ones[0].recv(1000).startswith(b"HTTP/1.1 200 ")
    finally:
        for connection in open_ones:
            connection.close()
