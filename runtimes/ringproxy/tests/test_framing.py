"""Requests are read as RFC 9112 writes them, however their bytes arrive."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaigen_ringproxy.framing import StrictConnection
from smuggling import ACCEPTED, BAD_CHUNKS, CHUNKED, GOOD_CHUNKS, NEXT, REFUSED, post

HEAD_BYTES = 32768
Read = tuple[list[tuple[bytes, bytes]], int]
"""The targets and bodies of the requests that were read, and the status of what was refused; 0 for nothing."""


def read(parts: Iterable[bytes], connection: h11.Connection | None = None) -> Read:
    """Return what is read of the bytes of a connection, each request of which is answered at once."""
    connection = connection or StrictConnection(HEAD_BYTES)
    found: list[tuple[bytes, bytes]] = []
    for part in parts:
        connection.receive_data(part)
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError as error:
                return found, error.error_status_hint
            if isinstance(event, h11.Request):
                found.append((event.target, b""))
            elif isinstance(event, h11.Data):
                found[-1] = (found[-1][0], found[-1][1] + event.data)
            elif isinstance(event, h11.EndOfMessage):
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is h11.DONE and connection.their_state is h11.DONE:
                    connection.start_next_cycle()
            else:
                break
    return found, 0


def split(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Return data in parts."""
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in pairwise(edges) if end > start]


@pytest.mark.parametrize(("request_", "status"), REFUSED.values(), ids=list(REFUSED))
def test_a_request_with_two_ends_is_refused_and_nothing_after_it_is_read(request_: bytes, status: int) -> None:
    assert read([request_ + NEXT]) == ([], status)
    assert read(bytes([each]) for each in request_ + NEXT) == ([], status)


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=list(BAD_CHUNKS))
def test_a_body_with_two_ends_is_refused_and_nothing_after_it_is_read(body: bytes) -> None:
    data = post(CHUNKED, body=body) + NEXT
    for parts in ([data], [bytes([each]) for each in data]):
        found, status = read(parts)
        assert ([target for target, _ in found], status) == ([b"/v1/chat/completions"], 400)


@pytest.mark.parametrize("request_", ACCEPTED.values(), ids=list(ACCEPTED))
def test_an_ordinary_request_is_read(request_: bytes) -> None:
    found, status = read([request_ + NEXT])
    assert (len(found), status) == (2, 0)


@pytest.mark.parametrize("body", GOOD_CHUNKS.values(), ids=list(GOOD_CHUNKS))
def test_a_body_in_chunks_is_read(body: bytes) -> None:
    found, status = read([post(CHUNKED, body=body) + NEXT])
    assert (found[1:], status) == ([(b"/health", b"")], 0)
    assert found[0][1] in (b"12345", b"1234567890", b"")


def test_a_request_after_the_last_one_of_a_connection_is_not_read() -> None:
    for last in (b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"GET /a HTTP/1.0\r\n\r\n"):
        assert read([last + NEXT]) == ([(b"/a", b"")], 0)
        assert read([last, NEXT, b""]) == ([(b"/a", b"")], 0)


@pytest.mark.parametrize(
    ("data", "status"), [(b"", 0), (NEXT, 0), (NEXT[:-1], 400), (post(b"Content-Length: 5", body=b"1"), 400)]
)
def test_the_end_of_a_connection_in_a_request_is_no_request(data: bytes, status: int) -> None:
    assert read([data, b""] if data else [b""])[1] == status


PIECES = st.sampled_from(
    [
        *(request for request, _ in REFUSED.values() if len(request) < 1000),
        *ACCEPTED.values(),
        *(post(CHUNKED, body=body) for body in (*BAD_CHUNKS.values(), *GOOD_CHUNKS.values())),
        *(b"GET /x HTTP/1.1\r\n", b"Host: a\r\n", b"\r\n", b"\n", b"\r", b"0\r\n\r\n", b"5\r\n12345\r\n"),
        *(CHUNKED + b"\r\n", b"Content-Length: 5\r\n", b"Connection: close\r\n", b"Upgrade: h2c\r\n"),
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES | st.binary(max_size=8), max_size=8), st.lists(st.integers(0, 5000), max_size=12))
def test_what_is_read_does_not_depend_on_how_it_arrives(pieces: list[bytes], places: list[int]) -> None:
    data = b"".join(pieces)
    whole = read([data] if data else [])
    assert read(split(data, places)) == whole
    # h11 alone accepts more, but reads nothing in another way.
    alone, _ = read([data] if data else [], h11.Connection(h11.SERVER))
    accepted = whole[0][:-1] if whole[1] else whole[0]
    assert alone[: len(accepted)] == accepted
