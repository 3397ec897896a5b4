"""HTTP requests to registries and Hubs: one retry policy, no credentials along a redirect to another host."""

from __future__ import annotations

import http.client
import random
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from email.message import Message
from time import sleep
from typing import IO, Any, TypeAlias

from msgspec import Struct

from kaigen import __version__
from kaigen.core.credentials import mask_urls
from kaigen.diagnostics.errors import SystemFailure

ATTEMPTS = 5
TIMEOUT_S = 60.0
RETRY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_LARGEST_BODY = 8 << 20
_LONGEST_PAUSE_S = 20.0

Body: TypeAlias = bytes | IO[bytes] | None
"""Content of a request; a file is sent from its start in every attempt, and needs a header with its length."""


class Unreachable(SystemFailure):
    """A server does not answer."""


class Response(Struct, frozen=True):
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def _headers(message: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in message.items()}


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if old.scheme == "https" and new.scheme != "https":
            raise SystemFailure(f"{old.hostname} redirects to a URL without TLS")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and new.netloc != old.netloc:
            request.remove_header("Authorization")
        return request


def _pause_after(attempt: int) -> float:
    return float(min(_LONGEST_PAUSE_S, 0.25 * 2**attempt) * random.uniform(0.5, 1.0))


class Opener:
    """Sends requests, with one retry policy for all."""

    def __init__(
        self,
        pause: Callable[[float], object] | None,
        server: str,
        largest_body: int = _LARGEST_BODY,
        *,
        attempts: int = 0,
        timeout: float = 0.0,
    ) -> None:
        """Send nothing yet.

        Args:
            pause: waits some seconds; None for `sleep`.
            server: what it sends requests to, for messages.
            largest_body: bytes of a response that are read.
            attempts: how often a request is sent that fails; 0 for `ATTEMPTS`.
            timeout: seconds of silence that count as a failure; 0 for `TIMEOUT_S`.
        """
        self._attempts = attempts or ATTEMPTS
        self._timeout = timeout or TIMEOUT_S
        self._server = server
        self._largest_body = largest_body
        self._open = urllib.request.build_opener(_Redirects()).open
        self._pause = pause or sleep

    def wait(self, attempt: int) -> None:
        """Wait after a failed attempt, longer after each one."""
        self._pause(_pause_after(attempt))

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: Body = None, *, retry: bool = True
    ) -> Response:
        """Return the response to a request, also if it is an error.

        Raises:
            Unreachable: the server cannot be reached.
        """
        host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts or not retry
            if body is not None and not isinstance(body, bytes):
                body.seek(0)
            request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
            wait = _pause_after(attempt)
            try:
                with self._open(request, timeout=self._timeout) as stream:
                    return Response(stream.status, _headers(stream.headers), stream.read(self._largest_body))
            except urllib.error.HTTPError as error:
                with error:
                    response = Response(error.code, _headers(error.headers), error.read(self._largest_body))
                if error.code not in RETRY_STATUSES or last:
                    return response
                retry_after = response.headers.get("retry-after", "")
                wait = min(float(retry_after), _LONGEST_PAUSE_S) if _is_number(retry_after) else wait
            except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
                if last:
                    reason = getattr(error, "reason", None) or error
                    raise Unreachable(f"cannot reach {self._server} {host}: {mask_urls(str(reason))}") from None
            self._pause(wait)
        raise AssertionError("the last attempt returns or raises")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def user_agent() -> str:
    """Return the name and version that servers see."""
    return f"kaigen/{__version__}"
