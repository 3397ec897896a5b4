"""Clients that send bodies where none belong, never end one, never read an answer, or only keep a connection."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
import uvicorn
from kaigen_chat.connections import Connection
from kaigen_chat.http import OPEN, Event, Guard, Receive, Scope, Send
from kaigen_chat.keys import Keys
from kaigen_chat.metrics import Metrics

LARGE = 64 << 20
"""Bytes of the answer on /large: more than the sockets of both sides hold."""


async def reached(scope: Scope, receive: Receive, send: Send) -> None:
    length = LARGE if scope["path"] == "/large" else 0
    headers = [(b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(length >> 20):
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def ask(path: str, headers: list[tuple[bytes, bytes]], parts: list[bytes], *, ends: bool) -> tuple[int, int]:
    """Return the status of a request, and how many parts of its body were read before the response."""
    read = 0
    statuses: list[tuple[int, int]] = []

    async def receive() -> Event:
        nonlocal read
        if read < len(parts):
            read += 1
            return {"type": "http.request", "body": parts[read - 1], "more_body": not ends or read < len(parts)}
        await asyncio.sleep(60)
        raise AssertionError("the guard waits longer than its deadline")

    async def send(event: Event) -> None:
        if event["type"] == "http.response.start":
            statuses.append((int(str(event["status"])), read))

    guard = guarded(deadline=0.2, linger=0.2)
    await guard({"type": "http", "path": path, "headers": headers, "method": "POST"}, receive, send)
    return statuses[0]


def guarded(**more: Any) -> Guard:
    """Return an application behind the guard."""
    return Guard(reached, keys=Keys((b"key",)), max_body=1000, metrics=Metrics("m", "1"), routes=frozenset(), **more)


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
    read_s = 0.3
    most = 3


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """A server whose clients must hurry."""
    listener = socket.create_server(("127.0.0.1", 0))
    guard = guarded(deadline=0.3, linger=0.5)
    server = uvicorn.Server(
        uvicorn.Config(guard, http=Hasty, log_level="critical", lifespan="off", timeout_keep_alive=60)
    )
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


def answers(connection: socket.socket) -> bool:
    """Return whether the server answers a request."""
    connection.settimeout(10)
    connection.sendall(WHOLE)
    return connection.recv(1000).startswith(b"HTTP/1.1 200 ")


@contextmanager
def connected(address: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    """Open some connections, in order."""
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(address)) for _ in range(count)]


def test_a_new_connection_takes_the_place_of_the_one_that_idled_for_the_longest(address: tuple[str, int]) -> None:
    with connected(address, 3) as idle:
        for connection in idle:
            assert answers(connection)
        assert answers(idle[0])
        with socket.create_connection(address) as one_more:
            assert answers(one_more)
            assert closed_after(idle[1]) < 5
            assert answers(idle[0])
            assert answers(idle[2])


def test_connections_that_send_nothing_take_no_place(address: tuple[str, int]) -> None:
    with connected(address, 3), socket.create_connection(address) as one_more:
        assert answers(one_more)


BODY = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n"
KEY = b"Authorization: Bearer key\r\n"


def test_a_connection_beyond_the_limit_is_closed_when_all_have_work(address: tuple[str, int]) -> None:
    with connected(address, 3) as busy:
        for connection in busy:
            connection.sendall(LARGE_REQUEST)
            assert connection.recv(12) == b"HTTP/1.1 200"
        with socket.create_connection(address) as one_more:
            assert closed_after(one_more) < 5


LARGE_REQUEST = b"GET /large HTTP/1.1\r\nHost: a\r\n" + KEY + b"\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (BODY + b"\r\n", b"401"),
        (BODY.replace(b"900", b"9000") + KEY + b"\r\n", b"413"),
        (BODY + KEY + b"\r\n", b"408"),
        (b"POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"413"),
    ],
)
def test_a_connection_whose_body_is_refused_is_answered_and_closed(
    address: tuple[str, int], request_: bytes, status: bytes
) -> None:
    with socket.create_connection(address) as connection:
        connection.settimeout(10)
        connection.sendall(request_)
        head = connection.recv(1000)
        assert head.startswith(b"HTTP/1.1 " + status)
        assert b"\r\nconnection: close\r\n" in head
        begin = time.monotonic()
        with pytest.raises(ConnectionError):
            send_slowly(connection)
        assert time.monotonic() - begin < 5


def test_a_client_that_sends_all_of_a_refused_body_gets_the_answer(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.settimeout(10)
        connection.sendall(BODY + b"\r\n")
        for _ in range(9):
            connection.sendall(b"x" * 100)
            time.sleep(0.01)
        received = b""
        while data := connection.recv(1000):
            received += data
        assert received.startswith(b"HTTP/1.1 401 ")
        assert received.endswith(b"}")


def test_a_refusal_without_a_body_keeps_the_connection(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.settimeout(10)
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n")
        received = b""
        while not received.endswith(b"}"):
            received += connection.recv(1000)
        assert received.startswith(b"HTTP/1.1 401 ")
        assert answers(connection)


def test_a_client_that_does_not_read_its_answer_is_disconnected(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(LARGE_REQUEST)
        with pytest.raises(ConnectionError):
            send_slowly(connection)
        received = 0
        with suppress(ConnectionError):
            while data := connection.recv(1 << 20):
                received += len(data)
        assert received < LARGE


def test_a_client_that_reads_slowly_gets_its_answer(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.settimeout(10)
        connection.sendall(LARGE_REQUEST)
        received = 0
        while received < LARGE:
            if received < LARGE // 4:
                time.sleep(0.02)
            data = connection.recv(1 << 18)
            assert data
            received += len(data)
