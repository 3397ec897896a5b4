"""Tokens of an identity: asked for once, kept, and replaced before they expire or when a server rejects them."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from kaigen_downloader.errors import Refused, Transient
from kaigen_downloader.net import is_encrypted
from kaigen_downloader.text import hide

_AHEAD = 225.0
"""Seconds before its end at which a token is replaced (source: google-auth 2.63, REFRESH_THRESHOLD; the metadata server
has another token by then)."""
_LONGEST_ANSWER = 64 << 10
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

Answer = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    renew: float


class Tokens:
    """The token of one identity. Safe for threads."""

    def __init__(self, ask: Callable[[], Answer]) -> None:
        """Take the function that asks for a token; nothing is asked yet."""
        self._ask = ask
        self._lock = threading.Lock()
        self._token: _Token | None = None
        self._mine = threading.local()

    def header(self) -> str:
        """Return the header `Authorization` of a request that this thread sends.

        Raises:
            Transient: there is no token now.
            Refused: there is none.
        """
        with self._lock:
            if self._token is None or time.monotonic() >= self._token.renew:
                self._token = self._asked()
            self._mine.last = self._token.text
        return f"Bearer {self._mine.last}"

    def renewed(self) -> bool:
        """Replace the token of this thread's last request, which a server has rejected.

        Returns:
            Whether there is another token now.
        """
        rejected = getattr(self._mine, "last", "")
        with self._lock:
            if self._token is not None and self._token.text == rejected:
                self._token = self._asked()
            return self._token is not None and self._token.text != rejected

    def _asked(self) -> _Token:
        began = time.monotonic()
        answer = self._ask()
        token, seconds = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
            raise Refused("no credentials: the server of tokens sent an answer without a token")
        hide(token)
        life = float(seconds) if isinstance(seconds, int | float) else 0.0
        return _Token(token, began + life - min(_AHEAD, life / 2))


def is_safe(url: str) -> bool:
    """Return whether a token may be sent to a URL: over TLS, or within this machine."""
    return is_encrypted(url) or urlsplit(url).hostname in _LOOPBACK


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: its target would get what only this server may have."""

    def redirect_request(self, *_: object) -> None:
        """Return no request."""
        return None


def answer(opener: urllib.request.OpenerDirector, request: urllib.request.Request, server: str) -> Answer:
    """Return the JSON object that a server of tokens answers.

    Args:
        opener: sends the request; it follows no redirect.
        request: the request for a token.
        server: the server's name, for messages.

    Raises:
        Transient: there is no answer now.
        Refused: the server gives no token.
    """
    try:
        with opener.open(request, timeout=10) as reply:
            found = json.loads(reply.read(_LONGEST_ANSWER))
    except urllib.error.HTTPError as error:
        with error:
            reason = " ".join(error.read(1000).decode(errors="replace").split())[:300]
        text = f"no credentials: {server} answers {error.code}: {reason}".rstrip(": ")
        if error.code >= 500 or error.code in (408, 429):
            raise Transient(text) from None
        raise Refused(text) from None
    except (OSError, http.client.HTTPException) as error:
        reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        raise Transient(f"no credentials: {server} cannot be reached: {reason}") from None
    except (ValueError, RecursionError):
        raise Transient(f"no credentials: {server} sent an answer that is not JSON") from None
    if not isinstance(found, dict):
        raise Transient(f"no credentials: {server} sent an answer that is not JSON")
    return found
