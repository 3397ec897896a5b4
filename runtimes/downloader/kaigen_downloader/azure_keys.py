"""What proves to Azure's storage who sends a request: a token, an account key or a shared access signature (SAS).

Source: Azure Storage REST API, "Authorize with Shared Key", of versions since 2015-02-21.
"""

from __future__ import annotations

import base64
import binascii
import email.utils
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from kaigen_downloader import azure_tokens
from kaigen_downloader.errors import BadInput
from kaigen_downloader.text import hide

KEY_VARIABLE = "AZURE_STORAGE_KEY"
"""The variable with an account key (source: Azure CLI, `az storage`)."""
SAS_VARIABLE = "AZURE_STORAGE_SAS_TOKEN"
"""The variable with a shared access signature, the query of a URL."""
VERSION = "2023-11-03"
"""Version of the REST API."""
_SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


class Credentials(Protocol):
    """What is added to requests. Safe for threads."""

    def url(self, url: str) -> str:
        """Return a URL as it is sent."""

    def headers(self, method: str, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request, with those that prove who sends it."""

    def renewed(self) -> bool:
        """Return whether there are other credentials than those of this thread's last request."""


def credentials(account: str, key: str, sas: str) -> Credentials:
    """Return the credentials for an account: a SAS, else a key, else tokens of the pod's workload identity.

    Raises:
        BadInput: the key or the SAS is malformed, or both are given.
        Refused: there are no credentials.
    """
    if key and sas:
        raise BadInput(f"set {KEY_VARIABLE} or {SAS_VARIABLE}, not both")
    if sas:
        return _Sas(sas)
    if key:
        return _Key(account, key)
    return _Token()


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    return {**headers, "x-ms-version": VERSION}


class _Token:
    """Tokens of a workload identity."""

    def __init__(self) -> None:
        self._tokens = azure_tokens.tokens()

    def url(self, url: str) -> str:
        return url

    def headers(self, method: str, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        return {**_plain(headers), "Authorization": self._tokens.header()}

    def renewed(self) -> bool:
        return self._tokens.renewed()


class _Sas:
    """A shared access signature."""

    def __init__(self, text: str) -> None:
        query = text.lstrip("?")
        signature = dict(parse_qsl(query)).get("sig", "")
        if not signature or not query.isascii() or not query.isprintable() or set(query) & set(" #?"):
            hide(text)
            raise BadInput(f"{SAS_VARIABLE} is not a shared access signature: it has no `sig=`")
        for secret in (query, signature, *(each[4:] for each in query.split("&") if each.startswith("sig="))):
            hide(secret)
        self._query = query

    def url(self, url: str) -> str:
        return f"{url}{'&' if '?' in url else '?'}{self._query}"

    def headers(self, method: str, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        return _plain(headers)

    def renewed(self) -> bool:
        return False


class _Key:
    """A key of the account, which signs each request."""

    def __init__(self, account: str, text: str) -> None:
        hide(text)
        try:
            self._key = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self._key = b""
        if not self._key:
            raise BadInput(f"{KEY_VARIABLE} is not an account key: it is not base64")
        self._account = account

    def url(self, url: str) -> str:
        return url

    def headers(self, method: str, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        send = {**_plain(headers), "x-ms-date": email.utils.formatdate(time.time(), usegmt=True)}
        lower = {name.lower(): " ".join(value.split()) for name, value in send.items()}
        length = lower.get("content-length", "")
        given = {**lower, "content-length": "" if length == "0" else length}
        own = [f"{name}:{lower[name]}" for name in sorted(lower) if name.startswith("x-ms-")]
        parts = urlsplit(url)
        query = sorted((name.lower(), value) for name, value in _query(parts.query))
        resource = [f"/{self._account}{parts.path}", *(f"{name}:{value}" for name, value in query)]
        text = "\n".join([method, *(given.get(name, "") for name in _SIGNED), *own, *resource])
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return {**send, "Authorization": f"SharedKey {self._account}:{base64.b64encode(digest).decode()}"}

    def renewed(self) -> bool:
        return False


def _query(text: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in text.split("&") if part]
    return [(unquote(name), unquote(value)) for name, _, value in pairs]
