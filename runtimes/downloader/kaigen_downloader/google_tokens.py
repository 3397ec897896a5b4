"""Tokens for Google's servers: of the pod's identity, from the metadata server, or of a service account's key.

Both are short-lived. A token is replaced before it expires, and also when a server rejects it before that.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from kaigen_downloader.errors import BadInput, Refused, Transient
from kaigen_downloader.net import is_encrypted
from kaigen_downloader.text import hide, shown

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

KEY_VARIABLE = "GOOGLE_SERVICE_ACCOUNT_KEY"
"""The variable with a key file of a service account, in JSON."""
_METADATA = "metadata.google.internal"
_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_AHEAD = 225.0
"""Seconds before its end at which a token is replaced (source: google-auth 2.63, REFRESH_THRESHOLD; the metadata server
has another token by then)."""
_LONGEST_ANSWER = 64 << 10
_JWT_SECONDS = 3600
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


def tokens(key: str) -> Tokens:
    """Return the tokens of a service account's key, or of the pod's identity if it is empty.

    Args:
        key: the content of the key file.

    Raises:
        BadInput: it is not the key of a service account.
    """
    return Tokens(_of_key(key) if key else _of_pod)


def _of_pod() -> Answer:
    host = os.environ.get("GCE_METADATA_HOST", "").strip() or _METADATA
    request = urllib.request.Request(f"http://{host}{_PATH}", headers={"Metadata-Flavor": "Google"})
    # The metadata server is on the node; no proxy leads to it.
    opener = urllib.request.build_opener(_Stay, urllib.request.ProxyHandler({}))
    return _answer(opener, request, f"the metadata server {host}")


def _of_key(text: str) -> Callable[[], Answer]:
    """Return the function that asks for a token with a key."""
    account, url, name, key = _parsed(text)

    def ask() -> Answer:
        claims = {"iss": account, "scope": _SCOPE, "aud": url}
        form = urlencode({"grant_type": _GRANT, "assertion": _signed(claims, name, key)})
        return _answer(urllib.request.build_opener(_Stay), urllib.request.Request(url, form.encode()), url)

    return ask


def _parsed(text: str) -> tuple[str, str, str, RSAPrivateKey]:
    """Return the account, the URL of its tokens, the name of the key, and the key."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    hide(text)
    try:
        fields = json.loads(text)
        kind = fields["type"]
        account, url, name = (str(fields[field]) for field in ("client_email", "token_uri", "private_key_id"))
        hide(fields["private_key"])
        key = load_pem_private_key(fields["private_key"].encode(), None)
    except (ValueError, KeyError, TypeError, AttributeError):
        # What it is may contain a key.
        raise BadInput(f"{KEY_VARIABLE} is not the JSON key file of a service account") from None
    if kind != "service_account" or not isinstance(key, RSAPrivateKey):
        raise BadInput(f"{KEY_VARIABLE} is not the key file of a service account, but of type {shown(str(kind))}")
    if not is_safe(url):
        raise BadInput(f"{KEY_VARIABLE}: `token_uri` is not an https URL")
    return account, url, name, key


def is_safe(url: str) -> bool:
    """Return whether a token may be sent to a URL: over TLS, or within this machine."""
    return is_encrypted(url) or urlsplit(url).hostname in _LOOPBACK


def _signed(claims: Mapping[str, str], name: str, key: RSAPrivateKey) -> str:
    """Return a JSON Web Token (source: RFC 7515, RFC 7523)."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    now = int(time.time())
    head = {"alg": "RS256", "typ": "JWT", "kid": name}
    body = {**claims, "iat": now, "exp": now + _JWT_SECONDS}
    content = b".".join(_base64(json.dumps(part).encode()) for part in (head, body))
    return (content + b"." + _base64(key.sign(content, PKCS1v15(), SHA256()))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: its target would get what only this server may have."""

    def redirect_request(self, *_: object) -> None:
        return None


def _answer(opener: urllib.request.OpenerDirector, request: urllib.request.Request, server: str) -> Answer:
    """Return the JSON object that a server of tokens answers."""
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
