"""Requests whose end two programs may see at different bytes, and the status that each gets.

The tests of the chat server and of the proxy of rings have the same file.
"""

from __future__ import annotations

from collections.abc import Mapping

NEXT = b"GET /health HTTP/1.1\r\nHost: next\r\n\r\n"
"""What follows each of them on its connection. It must never be answered."""


def post(*lines: bytes, body: bytes = b"", version: bytes = b"1.1") -> bytes:
    """Return a request with further headers."""
    head = [b"POST /v1/chat/completions HTTP/" + version, b"Host: a", *lines]
    return b"\r\n".join([*head, b"", b""]) + body


CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: 5"
EMPTY = b"0\r\n\r\n"

REFUSED: Mapping[str, tuple[bytes, int]] = {
    # RFC 9112, 6.1 and 6.3: a length and a coding, or two of either.
    "length and coding": (post(LENGTH, CHUNKED, body=EMPTY), 400),
    "coding and length": (post(CHUNKED, LENGTH, body=EMPTY), 400),
    "length 0 and coding": (post(b"Content-Length: 0", CHUNKED, body=EMPTY), 400),
    "two lengths": (post(LENGTH, b"Content-Length: 6", body=b"12345"), 400),
    "the same length twice": (post(LENGTH, b"content-length: 5", body=b"12345"), 400),
    "a list of lengths": (post(b"Content-Length: 5, 5", body=b"12345"), 400),
    "two codings": (post(CHUNKED, b"Transfer-Encoding: identity", body=EMPTY), 400),
    "the same coding twice": (post(CHUNKED, CHUNKED, body=EMPTY), 400),
    "a coding in HTTP/1.0": (post(CHUNKED, body=EMPTY, version=b"1.0"), 400),
    # RFC 9110, 8.6: a length is digits.
    "a length with a sign": (post(b"Content-Length: +5", body=b"12345"), 400),
    "a negative length": (post(b"Content-Length: -1"), 400),
    "a length in hexadecimal": (post(b"Content-Length: 0x5", body=b"12345"), 400),
    "a length with an underscore": (post(b"Content-Length: 0_5", body=b"12345"), 400),
    "a length in other digits": (post("Content-Length: \uff15".encode(), body=b"12345"), 400),
    "an empty length": (post(b"Content-Length:", body=b"12345"), 400),
    "a length with a space inside": (post(b"Content-Length: 5 5", body=b"12345"), 400),
    "a length that is too long": (post(b"Content-Length: " + b"9" * 40), 400),
    # RFC 9112, 6.1 and 6.3: `chunked` alone, else 501, or 400 where it is not the last one.
    "an unknown coding": (post(b"Transfer-Encoding: xchunked", body=EMPTY), 400),
    "identity": (post(b"Transfer-Encoding: identity", body=EMPTY), 400),
    "chunked before another": (post(b"Transfer-Encoding: chunked, gzip", body=EMPTY), 400),
    "chunked after another": (post(b"Transfer-Encoding: gzip, chunked", body=EMPTY), 501),
    "chunked twice in a list": (post(b"Transfer-Encoding: chunked, chunked", body=EMPTY), 501),
    "chunked in other letters": (post(b"Transfer-Encoding: Chunked", body=EMPTY), 501),
    "chunked in quotes": (post(b'Transfer-Encoding: "chunked"', body=EMPTY), 400),
    "chunked with a parameter": (post(b"Transfer-Encoding: chunked;q=1", body=EMPTY), 400),
    "chunked after a vertical tab": (post(b"Transfer-Encoding: \x0bchunked", body=EMPTY), 400),
    "an empty coding": (post(b"Transfer-Encoding:", body=EMPTY), 400),
    # RFC 9112, 2.2 and 5: lines, names and values.
    "a space before the colon": (post(b"Content-Length : 5", body=b"12345"), 400),
    "a space before the colon of a coding": (post(b"Transfer-Encoding : chunked", body=EMPTY), 400),
    "a folded header": (post(b"X: a", b" Content-Length: 5", body=b"12345"), 400),
    "a header folded with a tab": (post(b"Transfer-Encoding:", b"\tchunked", body=EMPTY), 400),
    "a space before the first header": (
        b"POST / HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: a\r\n\r\n" + EMPTY,
        400,
    ),
    "a line that ends in LF": (post(b"X: a\nTransfer-Encoding: chunked", body=EMPTY), 400),
    "a CR inside a value": (post(b"X: a\rTransfer-Encoding: chunked", body=EMPTY), 400),
    "a head that ends in LF": (b"GET /health HTTP/1.1\nHost: a\n\n", 400),
    "a head that ends in CR": (b"GET /health HTTP/1.1\rHost: a\r\r", 400),
    "a head whose empty line is LF": (b"GET /health HTTP/1.1\r\nHost: a\r\n\n", 400),
    "NUL in a value": (post(b"X: a\0b"), 400),
    "NUL in a name": (post(b"X\0: a"), 400),
    "a control character in a value": (post(b"X: \x01"), 400),
    "DEL in a value": (post(b"X: \x7f"), 400),
    "a header without a colon": (post(b"chunked"), 400),
    "a header without a name": (post(b": chunked"), 400),
    "a name with a bracket": (post(b"Content-Length[]: 5"), 400),
    "no Host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "two Hosts": (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    # RFC 9112, 3: the first line.
    "an empty first line": (b"\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "two spaces in the first line": (b"GET  /health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a tab in the first line": (b"GET\t/health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a space in the target": (b"GET /health /x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "no version": (b"GET /health\r\nHost: a\r\n\r\n", 400),
    "a version of one number": (b"GET /health HTTP/2\r\nHost: a\r\n\r\n", 400),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "another version": (b"GET /health HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "headers that are too long": (post(b"X: " + b"x" * 70_000), 431),
}

ACCEPTED: Mapping[str, bytes] = {
    "no body": NEXT,
    "a length of 0": b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "spaces and tabs around a value": b"GET /health HTTP/1.1\r\nHost:\t a \t\r\nX:\r\nY: \t\r\n\r\n",
    "bytes above ASCII in a value": b"GET /health HTTP/1.1\r\nHost: a\r\nX: \xe4\xff\r\n\r\n",
}

BAD_CHUNKS: Mapping[str, bytes] = {
    "a size with a sign": b"+5\r\n12345\r\n0\r\n\r\n",
    "a size with 0x": b"0x5\r\n12345\r\n0\r\n\r\n",
    "a size with an underscore": b"0_5\r\n12345\r\n0\r\n\r\n",
    "an empty size": b"\r\n12345\r\n0\r\n\r\n",
    "a size that is too long": b"00000000000000000005\r\n12345\r\n0\r\n\r\n",
    "a size that ends in LF": b"5\n12345\r\n0\r\n\r\n",
    "a size that ends in CR": b"5\r12345\r\n0\r\n\r\n",
    "LF in an extension": b"5;a\nb\r\n12345\r\n0\r\n\r\n",
    "CR in an extension": b"5;a\rb\r\n12345\r\n0\r\n\r\n",
    "NUL in an extension": b"5;\0\r\n12345\r\n0\r\n\r\n",
    "a long extension": b"5;" + b"a" * 1000 + b"\r\n12345\r\n0\r\n\r\n",
    "a chunk that is longer than its size": b"4\r\n12345\r\n0\r\n\r\n",
    "a chunk that ends in LF": b"5\r\n12345\n0\r\n\r\n",
    "a body that ends in LF": b"5\r\n12345\r\n0\r\n\n",
    "trailers": b"5\r\n12345\r\n0\r\nContent-Length: 5\r\n\r\n",
    "a folded trailer": b"5\r\n12345\r\n0\r\n X: a\r\n\r\n",
    "no size": b"hello\r\n\r\n",
}
"""Bodies in chunks that are refused with 400, below headers that are in order."""

GOOD_CHUNKS: Mapping[str, bytes] = {
    "one chunk": b"5\r\n12345\r\n0\r\n\r\n",
    "a size in capital letters and with zeros": b"00A\r\n1234567890\r\n000\r\n\r\n",
    "an extension": b'5;name="a value"; other\r\n12345\r\n0;last\r\n\r\n',
    "no chunk": b"0\r\n\r\n",
}
