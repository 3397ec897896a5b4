"""The connections of botocore: how large pieces of a body are, and what an answer may be.

Answers that are read whole are listings and errors, but not objects. botocore reads them without a limit.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from kaigen_downloader.listing import LARGEST_ANSWER
from kaigen_downloader.text import size

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse

    from kaigen_downloader.pace import Pace

PIECE = 256 << 10
"""Bytes of a body that are sent at once; http.client's 16 KiB need sixteen times as many turns of the interpreter."""
_FIRST_ERROR = 300


class _Sending:
    """A connection that sends larger pieces."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{**named, "blocksize": PIECE})


class _NoRedirects:
    """A pool of connections in which urllib3 follows no redirects.

    botocore lets it follow none either, but urllib3 still parses their addresses. If that fails, the answer stays open.
    """

    def urlopen(self, *given: Any, **named: Any) -> Any:
        return super().urlopen(*given, **{**named, "redirect": False})  # type: ignore[misc]


def set_up(session: Any, pace: Pace) -> None:
    """Send bodies in larger pieces, follow no redirects, and give the answers of a server a lowest speed.

    Args:
        session: botocore's HTTP session, which has made no connection yet.
        pace: the speed.
    """
    pools = session._pool_classes_by_scheme
    for scheme, pool in pools.items():
        own = {"response_class": staticmethod(pace.response_class())}
        connection = type("Connection", (_Sending, pool.ConnectionCls), own)
        pools[scheme] = type("Pool", (_NoRedirects, pool), {"ConnectionCls": connection})


def send_bounded(session: Any, request: AWSPreparedRequest, **_: object) -> AWSResponse:
    """Send a request and read its answer up to a limit: a handler of botocore's event `before-send`.

    Args:
        session: botocore's HTTP session.
        request: the signed request.

    Returns:
        The answer. It has no content yet if it is an object, which others read in pieces.

    Raises:
        HTTPClientError: the answer is larger, or it ended early.
        ResponseParserError: it has a document type.
    """
    from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError, ProtocolError
    from urllib3.exceptions import ReadTimeoutError as Silent

    is_object = request.stream_output
    request.stream_output = True
    try:
        answer: AWSResponse = session.send(request)
    finally:
        request.stream_output = is_object
    # botocore reads the error that answers a download whole.
    if is_object and answer.status_code < _FIRST_ERROR:
        return answer
    content = bytearray()
    try:
        for piece in answer.raw.stream(65536):
            content += piece
            if len(content) > LARGEST_ANSWER:
                answer.raw.close()
                raise HTTPClientError(error=f"the answer is larger than {size(LARGEST_ANSWER)}")
    except Silent as error:
        raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
    except ProtocolError as error:
        raise ConnectionClosedError(endpoint_url=request.url, error=error, request=request) from error
    except HTTPError as error:
        raise HTTPClientError(error=error) from error
    answer._content = bytes(content)
    if _has_document_type(answer._content):
        if answer.status_code < _FIRST_ERROR:
            raise ResponseParserError("the answer has a document type")
        answer._content = b""  # such as the web page of a proxy: the status describes the error
    return answer


class _Root(Exception):
    """The root element begins, so the document has no type."""


def _has_document_type(content: bytes) -> bool:
    """Return whether an answer is XML with a document type, whose entities can stand for any number of bytes.

    Answers of S3 have none. The document is read as botocore reads it.
    """
    from xml.parsers import expat

    found = False

    def find(*_: object) -> None:
        nonlocal found
        found = True
        raise _Root

    def end(*_: object) -> None:
        raise _Root

    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = find
    parser.StartElementHandler = end
    with contextlib.suppress(_Root, expat.ExpatError):
        parser.Parse(content, True)
    return found
