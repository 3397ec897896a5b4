"""Connections end with the work, also those that the server announces to close."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from kaigen_downloader.errors import Refused, Stopped, Transient, Unavailable
from kaigen_downloader.net import Answer, Net
from kaigen_downloader.progress import Display, Meter
from kaigen_downloader.ranges import Served
from kaigen_downloader.remote import RemoteFile
from kaigen_downloader.retry import Patience, Retry
from runs import until
from servers import serving

SECONDS = 30.0
HEADERS = ("", "Connection: close\r\n")


def url(listener: socket.socket) -> str:
    """The URL of a listener."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}/x"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        yield server


def accepted(listener: socket.socket, header: str) -> socket.socket:
    """Accept a connection, and answer its request without the body."""
    connection, _ = listener.accept()
    connection.settimeout(SECONDS)
    connection.recv(65536)
    connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n{header}\r\n".encode())
    return connection


@pytest.mark.parametrize("header", HEADERS)
def test_a_read_ends_when_the_work_ends(listener: socket.socket, header: str) -> None:
    stop, begun = threading.Event(), threading.Event()

    def read() -> None:
        with client.get(url(listener), {}) as answer:
            begun.set()
            with contextlib.suppress(Stopped, Transient):
                answer.small_body(1000)

    with closing(Net("", None, timeout=SECONDS, stop=stop)) as client:
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        with accepted(listener, header):
            assert begun.wait(SECONDS)
            stop.set()
            client.abort()
            thread.join(SECONDS / 3)
        assert not thread.is_alive()


@pytest.mark.parametrize("header", HEADERS)
def test_an_answer_that_nobody_reads_closes_its_connection(listener: socket.socket, header: str) -> None:
    answers: list[Answer] = []

    def ask() -> None:
        with client.get(url(listener), {}) as answer:
            answers.append(answer)  # a reference, as in the traceback of an error

    with closing(Net("", None, timeout=SECONDS, stop=threading.Event())) as client:
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        with accepted(listener, header) as connection:
            assert connection.recv(1) == b""
        thread.join(SECONDS)
    assert [answer.status for answer in answers] == [200]


def test_connections_to_many_hosts_do_not_stay_open() -> None:
    count = 30
    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(serving(lambda request: request.reply(200, b"x"))) for _ in range(count)]
        client = stack.enter_context(closing(Net("", None, timeout=SECONDS, stop=threading.Event())))
        before = len(os.listdir("/proc/self/fd"))
        for host in (*hosts, hosts[0]):
            with client.get(f"http://{host}/x", {}) as answer:
                assert answer.small_body(10) == b"x"
        # Both ends of a connection are in this process; the other end closes a moment later.
        until(lambda: len(os.listdir("/proc/self/fd")) < before + count)
        assert len(client._all) == len(client._sockets) < count / 2


def test_a_request_for_a_token_is_not_signed_with_one(listener: socket.socket) -> None:
    def sign(url: str, headers: Mapping[str, str]) -> dict[str, str]:
        raise AssertionError(f"{url} was signed")

    with closing(Net(url(listener), None, timeout=SECONDS, stop=threading.Event(), sign=sign)) as client:
        thread = threading.Thread(target=lambda: accepted(listener, "").close(), daemon=True)
        thread.start()
        with client.get(url(listener), {}, login="") as answer:
            assert answer.status == 200
        thread.join(SECONDS)


def test_bytes_that_come_again_are_no_progress(listener: socket.socket) -> None:
    """A server that sends only whole files, and cuts each of them."""
    requests = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                with contextlib.closing(listener.accept()[0]) as connection:
                    request = connection.recv(65536)
                    requests.append(request)
                    whole = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n"
                    connection.sendall(whole.encode() + (b"" if b"Range" in request else bytes(300)))

    threading.Thread(target=serve, daemon=True).start()
    stop = threading.Event()
    meter = Meter("fetch", Display(), 1000, 1)
    with closing(Net("", None, timeout=SECONDS, stop=stop)) as client:
        remote = RemoteFile("a", 1000, "0" * 64, None, url(listener))
        served = Served(remote, client, meter, Retry(Patience(3, 0.0), stop), lambda *_: Refused("refused"))
        buffer = memoryview(bytearray(1000))
        with pytest.raises(Unavailable):
            served.fetch(0, 1000, lambda answer, offset: answer.readinto(buffer[offset:]))
    assert len(requests) < 20
