"""Clients without a whole request: the probes, and the requests of others, are answered all the same.

Needs uvicorn and FastAPI, but no PyTorch.
"""

from __future__ import annotations

import logging
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kaigen_chat import connections
from kaigen_chat.connections import Connection, allow_connections
from kaigen_chat.http import Event, Guard, Receive, Scope, Send
from kaigen_chat.keys import Keys
from kaigen_chat.metrics import Metrics
from smuggling import ACCEPTED, BAD_CHUNKS, CHUNKED, NEXT, REFUSED, post

EXAMPLES = int(os.environ.get("KAIGEN_FUZZ_EXAMPLES", "25"))
PATIENCE = 30.0
"""Seconds for a probe on a busy machine. Connections that are never displaced would keep it waiting for a minute."""
WITH_KEY = b"Authorization: Bearer key"
PROBE = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
HALF = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
COMPLETION = post(WITH_KEY, b"Connection: close", b"Content-Length: 2", body=b"{}")
LARGE = b"GET /large HTTP/1.1\r\nHost: a\r\n" + WITH_KEY + b"\r\n\r\n"

RUDE = {
    "nothing": b"",
    "half of the first line": b"GET /hea",
    "half of the headers": HALF,
    "half of a body, without the key": HALF + b"Content-Length: 900\r\n\r\n{",
    "half of a body, with a wrong key": HALF + b"Authorization: Bearer x\r\nContent-Length: 900\r\n\r\n{",
    "half of a chunk": HALF + b"Transfer-Encoding: chunked\r\n\r\n900\r\n{",
    "a body for a path without one": b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n{",
    "a kept connection": NEXT,
    "requests that are sent together": NEXT * 50,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "zeros": bytes(100),
    "no line break": b"x" * 5000,
}

Address = tuple[str, int]


async def reached(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer any request that the guard lets through; one path with more than sockets hold."""
    parts = 64 if scope["path"] == "/large" else 0
    headers = [(b"content-length", b"%d" % (parts << 20))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(parts):
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
    end: Event = {"type": "http.response.body", "body": b""}
    await send(end)


@dataclass(frozen=True)
class Served:
    """Where the server listens, for all and for probes."""

    all: Address
    probes: Address


@contextmanager
def serving(most: int, **more: float) -> Iterator[Served]:
    """Run a server with two ports."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    served = Served(*(listener.getsockname() for listener in listeners))
    port = served.probes[1]
    fields = {"most": most, "probe_port": port, "headers_s": 60.0, "linger_s": more.get("linger", 60.0)}
    protocol = type("Rude", (Connection,), fields)
    guard = Guard(
        reached,
        keys=Keys((b"key",)),
        max_body=1000,
        metrics=Metrics("m", "1"),
        routes=frozenset(),
        probe_port=port,
        **{"deadline": 60.0, "linger": 60.0, **more},
    )
    config = uvicorn.Config(guard, http=protocol, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": listeners})
    with errors() as logged:
        thread.start()
        try:
            yield served
        finally:
            server.should_exit = True
            thread.join()
    assert [message for message in logged if "timeout graceful shutdown exceeded" not in message] == []


class Errors(logging.Handler):
    """Collects the messages of errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Add a message."""
        self.found.append(record.getMessage())


@contextmanager
def errors() -> Iterator[list[str]]:
    """Collect the errors that uvicorn and asyncio log."""
    handler = Errors()
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield handler.found
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


@pytest.fixture(scope="module")
def full() -> Iterator[Served]:
    """A server with all its places."""
    with serving(1024) as served:
        yield served


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    """A server with few places."""
    with serving(8, linger=0.2) as served:
        yield served


def ask(address: Address, data: bytes) -> bytes:
    """Return what the server answers until it closes the connection."""
    found = b""
    with socket.create_connection(address, timeout=20) as connection, suppress(ConnectionError):
        connection.sendall(data)
        while part := connection.recv(65536):
            found += part
    return found


def probe(address: Address) -> float:
    """Return the seconds that a probe takes."""
    begin = time.monotonic()
    assert ask(address, PROBE).startswith(b"HTTP/1.1 200 ")
    return time.monotonic() - begin


@contextmanager
def connected(address: Address, sent: bytes, count: int) -> Iterator[list[socket.socket]]:
    """Open connections that send something, and then nothing more."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(address, timeout=20))
            with suppress(ConnectionError):
                connection.sendall(sent)
            found.append(connection)
        yield found


@pytest.mark.parametrize(
    ("sent", "count"),
    [
        *((sent, 256) for sent in RUDE.values()),
        (RUDE["half of the headers"], 1100),
        (RUDE["half of a body, without the key"], 1100),
    ],
    ids=[*RUDE, "many halves of the headers", "many halves of a body"],
)
def test_clients_without_a_whole_request_stop_nobody(full: Served, sent: bytes, count: int) -> None:
    with connected(full.all, sent, count):
        for _ in range(5):
            assert probe(full.probes) < PATIENCE
            assert probe(full.all)
            time.sleep(0.1)
        assert ask(full.all, COMPLETION).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("sent", RUDE.values(), ids=list(RUDE))
def test_connections_that_come_again_and_again_stop_nobody(small: Served, sent: bytes) -> None:
    with connected(small.all, sent, 60):
        assert probe(small.probes) < PATIENCE
        assert probe(small.all)
        assert ask(small.all, COMPLETION).startswith(b"HTTP/1.1 200 ")


def test_a_body_with_the_key_is_not_displaced_by_strangers(small: Served) -> None:
    with connected(small.all, HALF + WITH_KEY + b"\r\nContent-Length: 2\r\n\r\n[", 1) as [slow]:
        assert probe(small.all) < PATIENCE
        with connected(small.all, HALF, 40):
            slow.sendall(b"]")
            assert slow.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_a_kept_connection_with_the_key_is_not_displaced_by_strangers(small: Served) -> None:
    with connected(small.all, COMPLETION.replace(b"Connection: close\r\n", b""), 1) as [kept]:
        assert kept.recv(1000).startswith(b"HTTP/1.1 200 ")
        with connected(small.all, NEXT, 40):
            kept.sendall(PROBE)
            assert kept.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_does_not_read_an_open_route_makes_room(small: Served) -> None:
    with connected(small.all, NEXT * 2000, 8):
        assert probe(small.all) < PATIENCE


def test_probes_are_answered_when_all_places_have_work(small: Served) -> None:
    with connected(small.all, LARGE, 8) as busy:
        for connection in busy:
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert ask(small.all, PROBE) == b""
        assert probe(small.probes) < PATIENCE


def test_the_port_of_probes_has_nothing_else(small: Served) -> None:
    for path, status in ((b"/health", b"200"), (b"/readyz", b"200"), (b"/metrics", b"404"), (b"/v1/models", b"404")):
        assert ask(small.probes, PROBE.replace(b"/health", path)).startswith(b"HTTP/1.1 " + status)


def test_the_port_of_probes_is_answered_when_it_is_full_itself(small: Served) -> None:
    with connected(small.probes, b"", 100):
        assert probe(small.probes) < PATIENCE


def test_the_memory_of_half_bodies_is_limited() -> None:
    head = HALF + WITH_KEY + b"\r\nContent-Length: 1000\r\n\r\n"
    with serving(64, linger=0.2) as served, connected(served.all, head + b"x" * 900, 20) as half:
        for connection in half[:2]:
            assert connection.recv(1000).startswith(b"HTTP/1.1 408 ")
        assert ask(served.all, COMPLETION).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("port", ["all", "probes"])
@pytest.mark.parametrize(("request_", "status"), REFUSED.values(), ids=list(REFUSED))
def test_a_request_with_two_ends_is_refused_and_the_connection_closed(
    small: Served, request_: bytes, status: int, port: str
) -> None:
    answer = ask(getattr(small, port), request_ + NEXT)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in answer.lower()


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=list(BAD_CHUNKS))
def test_a_body_with_two_ends_is_refused_and_the_connection_closed(small: Served, body: bytes) -> None:
    answer = ask(small.all, post(WITH_KEY, CHUNKED, body=body) + NEXT)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_bad_chunk_of_a_refused_request_ends_the_connection(small: Served) -> None:
    answer = ask(small.all, post(CHUNKED, body=b"1\r\n1\r\nx\r\n") + NEXT)
    assert answer.count(b"HTTP/1.1 ") <= 1


@pytest.mark.parametrize("request_", ACCEPTED.values(), ids=list(ACCEPTED))
def test_an_ordinary_request_keeps_the_connection(small: Served, request_: bytes) -> None:
    answer = ask(small.all, request_ + PROBE)
    assert answer.count(b"HTTP/1.1 200 ") + answer.count(b"HTTP/1.1 413 ") == 2


def test_no_more_connections_are_accepted_than_files_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 512))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    monkeypatch.setattr(Connection, "most", connections.MOST)
    allow_connections()
    assert limits == [(512, 512)]
    assert Connection.most == 512 - 16 - 256


PIECES = st.sampled_from(
    [
        *RUDE.values(),
        *ACCEPTED.values(),
        *(request for request, _ in REFUSED.values()),
        *(post(WITH_KEY, CHUNKED, body=body) for body in BAD_CHUNKS.values()),
        *(b"\r\n", b"\n", b"\0", b"{}", b"0\r\n\r\n", b"Host: a\r\n", b"GET /health HTTP/1.1\r\n"),
    ]
) | st.binary(max_size=50)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(st.lists(PIECES, max_size=4).map(b"".join), min_size=1, max_size=12), cut=st.floats(0, 1))
def test_probes_are_answered_whatever_others_send(small: Served, sent: list[bytes], cut: float) -> None:
    with ExitStack() as stack:
        for data in sent:
            stack.enter_context(connected(small.all, data[: int(cut * len(data)) or None], 1))
            assert probe(small.probes) < PATIENCE
            assert probe(small.all)
        assert ask(small.all, COMPLETION).startswith(b"HTTP/1.1 200 ")
