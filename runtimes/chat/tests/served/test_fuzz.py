"""Requests of any kind: the server logs no traceback, ends each of them in time, and answers others meanwhile."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from served import hasty
from served.server import Server

EXAMPLES = int(os.environ.get("KAIGEN_FUZZ_EXAMPLES", "25"))
MOST_MEMORY = 300 << 20
"""Bytes that the server may need for requests. A body has at most 4 MiB."""
SLACK = 10.0
"""Seconds in which a busy machine does anything."""

_PATHS = st.sampled_from(
    [
        b"/",
        b"/health",
        b"/v1/models",
        b"/v1/chat/completions",
        b"/v1/completions",
        b"/metrics",
        b"*",
        b"//",
        b"/%ff",
        b"/\xff",
        b"http://evil.example/",
        b"/" + b"a" * 70_000,
        b"",
    ]
)
_METHODS = st.sampled_from(
    [b"GET", b"POST", b"HEAD", b"OPTIONS", b"CONNECT", b"TRACE", b"get", b"P\x00ST", b"", b"PRI"]
)
_VERSIONS = st.sampled_from(
    [b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b"", b"HTTP/1.1 x"]
)
_ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\n "])
_LENGTHS = st.sampled_from(
    [b"0", b"5", b"-1", b"+5", b"5, 5", b"5, 6", b"99999999999999999999", b"x", b"", b"5_0", b"\xb2"]
)
_HEADERS = st.lists(
    st.one_of(
        st.tuples(st.just(b"Content-Length"), _LENGTHS),
        st.tuples(
            st.just(b"Transfer-Encoding"), st.sampled_from([b"chunked", b"gzip, chunked", b"identity", b"xchunked"])
        ),
        st.tuples(st.just(b"Expect"), st.sampled_from([b"100-continue", b"200-x"])),
        st.tuples(st.just(b"Upgrade"), st.sampled_from([b"websocket", b"h2c"])),
        st.tuples(st.just(b"Connection"), st.sampled_from([b"close", b"keep-alive", b"Upgrade", b"\x00"])),
        st.tuples(st.just(b"Host"), st.sampled_from([b"a", b"", b"a, b", b"\xff", b"[::1"])),
        st.tuples(st.just(b"Authorization"), st.binary(max_size=20)),
        st.tuples(st.binary(max_size=10), st.binary(max_size=20)),
        st.tuples(st.just(b"X-Long"), st.just(b"x" * 70_000)),
    ),
    max_size=5,
)
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)
_FIELDS = (
    "model",
    "messages",
    "prompt",
    "max_tokens",
    "n",
    "stop",
    "stream",
    "temperature",
    "top_p",
    "seed",
    "logprobs",
    "tools",
)
_VALID = {"messages": [{"role": "user", "content": "a"}], "prompt": "a", "max_tokens": 1}
_CHAT = st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=3).map(lambda odd: {**_VALID, **odd})
_BODIES = st.one_of(
    st.binary(max_size=50),
    st.one_of(_JSON, _CHAT).map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"[" * 100_000, b'"\\ud800"', b"1" * 10_000, b"{" + b" " * 5_000_000, b"\xff\xfe"]),
)


def _request(line: list[bytes], end: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    fields = b"".join(name + b": " + value + end for name, value in headers)
    return b" ".join(line) + end + fields + end + body


def _whole(body: bytes, path: bytes, chunk: int) -> bytes:
    """Return a valid request, with chunks of a size; 0 for a body that is not chunked."""
    head = b"POST " + path + b" HTTP/1.1\r\nHost: a\r\n"
    if not chunk:
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    parts = [body[at : at + chunk] for at in range(0, min(len(body), 20_000), chunk)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


_ASKED = st.sampled_from([b"/v1/chat/completions", b"/v1/completions", b"/chat"])
_REQUESTS = st.one_of(
    st.builds(_request, st.tuples(_METHODS, _PATHS, _VERSIONS).map(list), _ENDS, _HEADERS, _BODIES),
    st.builds(_whole, _BODIES, _ASKED, st.sampled_from([0, 1, 4000])),
    st.binary(max_size=100),
)
_SENT = st.lists(_REQUESTS, min_size=1, max_size=3).map(b"".join)
_CUTS = st.sampled_from([None, None, 1, 10, 0.5, 0.9])
"""Where the data ends: nowhere, after some bytes, or after a share of them."""


@pytest.fixture(scope="module")
def hurried(model: Path) -> Iterator[Server]:
    """The server with short deadlines."""
    with Server(model, "--threads", "1", program=(hasty.__file__,)) as running:
        yield running


def _memory(server: Server) -> int:
    """Return the most bytes of memory that the server had so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+([0-9]+) kB", status)
    assert found is not None
    return int(found[1]) << 10


def _answer(connection: socket.socket) -> bytes:
    """Return the start of the answer; nothing if the server closes the connection instead.

    Raises:
        TimeoutError: the server does neither.
    """
    connection.settimeout(2 * hasty.DEADLINE + SLACK)
    try:
        return connection.recv(1000)
    except ConnectionError:
        return b""


def _send(connection: socket.socket, data: bytes, pause: float) -> None:
    """Send data in two parts. The server may close the connection before the end."""
    connection.settimeout(SLACK)
    half = len(data) // 2 if pause else len(data)
    try:
        connection.sendall(data[:half])
        time.sleep(pause)
        connection.sendall(data[half:])
    except ConnectionError:
        pass


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(sent=_SENT, cut=_CUTS, pause=st.sampled_from([0, 0, 0.02]), leaves=st.booleans())
@example(sent=_whole(b"{" + b" " * 5_000_000, b"/v1/chat/completions", 0), cut=None, pause=0, leaves=False)
@example(sent=_whole(b"[" * 100_000, b"/v1/chat/completions", 0), cut=None, pause=0, leaves=False)
@example(sent=_whole(b"{}", b"/v1/chat/completions", 1), cut=0.9, pause=0, leaves=False)
@example(sent=b"GET /health HTTP/1.1\r\nHost: a\r\n", cut=None, pause=0, leaves=False)
@example(sent=b"GET /health HTTP/1.1\r\nX: " + b"x" * 1_000_000, cut=None, pause=0, leaves=False)
def test_any_request_ends_and_others_are_answered(
    hurried: Server, sent: bytes, cut: float | None, pause: float, leaves: bool
) -> None:
    if cut is not None:
        sent = sent[: int(cut if cut >= 1 else cut * len(sent))]
    before = len(hurried.lines)
    address = hurried.url.rpartition("/")[2].split(":")
    with socket.create_connection((address[0], int(address[1]))) as connection:
        _send(connection, sent, pause)
        if leaves:
            connection.close()
        started = time.monotonic()
        assert hurried.request("/health")[0] == 200
        assert time.monotonic() - started < SLACK
        if not leaves:
            found = _answer(connection)
            assert not found or re.match(rb"HTTP/1\.1 [1-5][0-9][0-9] ", found), found
            assert not found.startswith(b"HTTP/1.1 500 "), found
    log = "".join(hurried.lines[before:])
    assert "Traceback" not in log, log
    assert "Exception" not in log, log
    assert hurried.process.poll() is None


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc")
@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"{" + b" " * 4_000_000, b"/v1/chat/completions"),
        (b'{"messages":[' + b"{}," * 1_300_000 + b"{}]}", b"/v1/chat/completions"),
        (b'{"prompt":[' + b"{}," * 1_300_000 + b"{}]}", b"/v1/completions"),
    ],
    ids=["spaces", "messages", "prompts"],
)
def test_large_bodies_need_little_memory(hurried: Server, body: bytes, path: bytes) -> None:
    before = _memory(hurried)
    address = hurried.url.rpartition("/")[2].split(":")
    body = _whole(body, path, 0)
    for _ in range(40):
        with socket.create_connection((address[0], int(address[1]))) as connection:
            _send(connection, body, 0)
            assert _answer(connection).startswith(b"HTTP/1.1 400 ")
    assert _memory(hurried) - before < MOST_MEMORY
