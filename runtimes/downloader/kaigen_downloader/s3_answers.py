"""The connections of botocore: how large pieces of a body are, and what an answer may be.

Answers that are read whole are listings and errors, but not objects. botocore reads them without a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse

    from kaigen_downloader.pace import Pace

LARGEST = 64 << 20
"""Bytes of an answer. A listing has at most 1,000 keys of 1 KiB."""
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
    """
    from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError
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
            if len(content) > LARGEST:
                answer.raw.close()
                raise HTTPClientError(error=f"the answer is larger than {LARGEST} bytes")
    except Silent as error:
        raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
    except ProtocolError as error:
        raise ConnectionClosedError(endpoint_url=request.url, error=error, request=request) from error
    except HTTPError as error:
        raise HTTPClientError(error=error) from error
    answer._content = bytes(content)
    return answer
