"""An answer ends: it has a lowest speed, and a limit of bytes that are not those of its body."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from kaigen_downloader.errors import Failure, Transient
from kaigen_downloader.net import Net
from kaigen_downloader.pace import MOST_FRAMING, Pace, _Paced
from kaigen_downloader.retry import Patience, Retry
from kaigen_downloader.s3 import Client, Reply, address

BODY = 20
HEAD = f"HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n".encode()
QUICK = Pace(limit=1024, time=0.3)
"""More than the server sends, over a time in which it sends several bytes."""


@contextmanager
def dripping(head: bytes = HEAD, thinks: float = 0.0, pause: float = 0.05) -> Iterator[str]:
    """A server that sends a head, and then a byte after each pause, as many as the head says."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    ended.wait(thinks)
                    connection.sendall(head)
                    for _ in range(BODY):
                        if ended.wait(pause):
                            return
                        connection.sendall(b"x")

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.close()


@contextmanager
def endless(head: bytes, piece: bytes) -> Iterator[str]:
    """A server that sends a head, and then the same piece for as long as the client reads."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(head)
                    while True:
                        connection.sendall(piece * (65536 // len(piece)))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "answers that are not final": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n"),
    "a trailer": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"x"),
    "the size of a chunk": (CHUNKED + b"1;", b"x"),
    "sizes of chunks": (CHUNKED, b"1;" + b"x" * 8000 + b"\r\nx\r\n"),
}


def net(pace: Pace) -> Net:
    return Net("", None, timeout=30, stop=threading.Event(), pace=pace)


def body(host: str, pace: Pace) -> bytes:
    with closing(net(pace)) as client, client.get(f"http://{host}/x", {}) as answer:
        return answer.small_body(1 << 20)


def listed(host: str, pace: Pace) -> Iterator[Reply]:
    """The objects of a bucket."""
    where = address("s3://models/a", f"http://{host}", "us-east-1")
    retry = Retry(Patience(attempts=1), threading.Event())
    client = Client(where, retry, timeout=30, connections=1, keys=("key", "s3_secret"), pace=pace)
    return client.listed("ListObjectsV2")


def test_a_body_that_drips_is_a_failure_that_may_pass() -> None:
    with dripping() as host, pytest.raises(Transient, match=r"B came in .*, less than 1\.0 KiB a second"):
        body(host, QUICK)


def test_a_read_into_a_buffer_does_not_wait_until_it_is_full() -> None:
    with (
        dripping() as host,
        closing(net(QUICK)) as client,
        client.get(f"http://{host}/x", {}) as answer,
        pytest.raises(Transient, match="--speed-limit"),
    ):
        answer.readinto(memoryview(bytearray(BODY)))


def test_headers_that_drip_are_a_failure_that_may_pass() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nX: ") as host, pytest.raises(Transient, match="--speed-limit"):
        body(host, QUICK)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", HEAD, HEAD.replace(b"200 OK", b"403 No")])
def test_an_s3_server_that_drips_is_a_failure_that_may_pass(head: bytes) -> None:
    with dripping(head) as host, pytest.raises(Failure, match="--speed-limit"):
        next(listed(host, QUICK))


@pytest.mark.parametrize("pace", [QUICK, Pace(limit=0)])
@pytest.mark.parametrize("kind", ENDLESS)
def test_endless_bytes_next_to_a_body_are_a_failure_that_may_pass(kind: str, pace: Pace) -> None:
    with endless(*ENDLESS[kind]) as host, pytest.raises(Transient):
        body(host, pace)


@pytest.mark.parametrize("kind", ENDLESS)
def test_endless_bytes_of_an_s3_server_are_a_failure_that_may_pass(kind: str) -> None:
    with endless(*ENDLESS[kind]) as host, pytest.raises(Failure):
        next(listed(host, QUICK))


def test_a_body_of_small_chunks_has_no_limit_of_framing() -> None:
    text = CHUNKED + b"1\r\nx\r\n" * (2 * MOST_FRAMING) + b"0\r\n\r\n"
    with dripping(text) as host:
        assert body(host, QUICK) == b"x" * (2 * MOST_FRAMING)


@pytest.mark.parametrize("pace", [Pace(limit=0, time=0.3), Pace(limit=1024, time=600)])
def test_a_server_that_is_fast_enough_may_send_byte_by_byte(pace: Pace) -> None:
    with dripping() as host:
        assert body(host, pace) == b"x" * BODY


def test_the_work_of_a_server_before_its_first_byte_does_not_count() -> None:
    with dripping(HEAD + b"x" * BODY, thinks=1.0) as host:
        assert body(host, QUICK) == b"x" * BODY


def test_time_between_reads_does_not_count() -> None:
    with io.BytesIO(b"x" * BODY) as content, closing(_Paced(content, QUICK)) as paced:
        for _ in range(BODY):
            assert paced.read(1) == b"x"
            time.sleep(0.03)
        assert paced.read(1) == b""
