"""Connections end with the work, also those that the server announces to close."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from kaigen_downloader.errors import Stopped, Transient
from kaigen_downloader.net import Answer, Net

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
                answer.small_body()

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
