"""Clients without a whole request keep no probe from being answered."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaigen_reaper.metrics import Metrics, serve

EXAMPLES = int(os.environ.get("KAIGEN_FUZZ_EXAMPLES", "25"))
PROBE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
RUDE = {
    "nothing": b"",
    "half of the first line": b"GET /hea",
    "half of the headers": b"GET /healthz HTTP/1.1\r\nHost: a\r\n",
    "half of a body": b"POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n{",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no line break": b"x" * 5000,
}


@pytest.fixture(scope="module")
def port() -> int:
    """The port of a server that lives as long as the process."""
    return serve(Metrics(), 0, lambda: None, "127.0.0.1")


def probe(port: int) -> float:
    """Return the seconds that a probe takes."""
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(PROBE)
        assert connection.recv(1000).startswith(b"HTTP/1.0 200 ")
    return time.monotonic() - begin


@contextmanager
def connected(port: int, sent: bytes, count: int) -> Iterator[None]:
    """Open connections that send something, and then nothing more."""
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            with suppress(ConnectionError):
                connection.sendall(sent)
        yield


@pytest.mark.parametrize("count", [256, 1024])
@pytest.mark.parametrize("sent", RUDE.values(), ids=list(RUDE))
def test_clients_without_a_whole_request_stop_no_probe(port: int, sent: bytes, count: int) -> None:
    with connected(port, sent, count):
        for _ in range(5):
            assert probe(port) < 30
            time.sleep(0.1)
        assert threading.active_count() < 256


@settings(max_examples=EXAMPLES, deadline=None)
@given(sent=st.lists(st.sampled_from([*RUDE.values(), PROBE]) | st.binary(max_size=100), max_size=5))
def test_probes_are_answered_whatever_others_send(port: int, sent: list[bytes]) -> None:
    with ExitStack() as stack:
        for data in sent:
            stack.enter_context(connected(port, data, 1))
        assert probe(port) < 30
