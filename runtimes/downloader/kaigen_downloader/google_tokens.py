"""Tokens for Google's servers: of the pod's identity, from the metadata server, or of a service account's key.

Both are short-lived.
"""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from kaigen_downloader.errors import BadInput
from kaigen_downloader.text import hide, shown
from kaigen_downloader.tokens import Answer, Stay, Tokens, answer, is_safe

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

KEY_VARIABLE = "GOOGLE_SERVICE_ACCOUNT_KEY"
"""The variable with a key file of a service account, in JSON."""
_METADATA = "metadata.google.internal"
_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_JWT_SECONDS = 3600


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
    opener = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({}))
    return answer(opener, request, f"the metadata server {host}")


def _of_key(text: str) -> Callable[[], Answer]:
    """Return the function that asks for a token with a key."""
    account, url, name, key = _parsed(text)

    def ask() -> Answer:
        claims = {"iss": account, "scope": _SCOPE, "aud": url}
        form = urlencode({"grant_type": _GRANT, "assertion": _signed(claims, name, key)})
        return answer(urllib.request.build_opener(Stay), urllib.request.Request(url, form.encode()), url)

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
