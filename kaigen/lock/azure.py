"""Ask Azure Blob Storage which files are below a prefix, with a token or a shared access signature of the user.

The methods have the names, arguments and answers of boto3's client that `_Prefix` uses.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree

from kaigen.compile.builders.bucket_access import cloud_server, is_azure_server
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.kinds.sources import S3
from kaigen.oci.http import Opener, Response, user_agent

_VERSION = "2023-11-03"
"""Version of the REST API (source: Azure Storage REST API)."""
_SAS = "AZURE_STORAGE_SAS_TOKEN"
_RESOURCE = "https://storage.azure.com"
_TOKEN_WAIT_S = 60
_LARGEST = 256 << 20
_PAGE = 1000
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_WAY = f"log in with `az login` as somebody who may list and read it, or set {_SAS}"


class Container:
    """A client of one container."""

    def __init__(self, s3: S3) -> None:
        """Find the credentials of the user; nothing is asked of the server yet.

        Args:
            s3: the container and the prefix.

        Raises:
            NotFound: there are no credentials, or the server is not one that may get them.
        """
        self._s3 = s3
        server = cloud_server(s3)
        if not is_azure_server(s3) and urlsplit(server).hostname not in _LOOPBACK:
            hint = "leave `endpoint` out, or set `revision` to what the downloader prints"
            raise NotFound(f"the user's credentials for Azure are not sent to {server}", hint=hint)
        self._url = f"{server}/{s3.name.partition('/')[2]}"
        self._sas = os.environ.get(_SAS, "").strip().lstrip("?")
        self._headers = {"x-ms-version": _VERSION, "User-Agent": user_agent()}
        if not self._sas:
            self._headers["Authorization"] = f"Bearer {_token(s3)}"
        self._opener = Opener(None, "Azure Blob Storage", _LARGEST)

    def get_paginator(self, _: str) -> Container:
        """Return the client, which lists blobs in pages."""
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:
        """Yield pages of the blobs below a prefix."""
        marker, seen = "", {""}
        while True:
            query = {"restype": "container", "comp": "list", "maxresults": str(_PAGE), "include": "metadata"}
            query |= {name: text for name, text in (("prefix", Prefix), ("marker", marker)) if text}
            try:
                content = self._sent("GET", "", urlencode(query, quote_via=quote)).body
                root = ElementTree.fromstring(_without_types(content))
            except (ElementTree.ParseError, RecursionError):
                raise ValueError("the server sent no listing") from None
            yield {"Contents": [*_entries(root)]}
            marker = root.findtext("NextMarker") or ""
            if not marker:
                return
            if marker in seen:
                raise ValueError("the server sent a listing without an end")
            seen.add(marker)

    def head_object(self, *, Key: str, **_: object) -> dict[str, Any]:
        """Return what the server says of a blob."""
        headers = self._sent("HEAD", Key, "").headers
        metadata = {name[10:]: text for name, text in headers.items() if name.startswith("x-ms-meta-")}
        return {"ETag": headers["etag"], "ContentLength": int(headers["content-length"]), "Metadata": metadata}

    def get_object(self, *, Key: str, Range: str, IfMatch: str, **_: object) -> dict[str, Any]:
        """Return a range of a blob."""
        answer = self._sent("GET", Key, "", {"Range": Range, "If-Match": IfMatch})
        return {"Body": BytesIO(answer.body)}

    def _sent(self, method: str, key: str, query: str, more: dict[str, str] | None = None) -> Response:
        url = f"{self._url}/{quote(key, safe='/~')}" if key else self._url
        asked = "&".join(filter(None, (query, self._sas)))
        answer = self._opener.send(method, f"{url}?{asked}" if asked else url, {**self._headers, **(more or {})})
        if answer.status < 300:
            return answer
        code = answer.headers.get("x-ms-error-code", "")
        if answer.status == 412:
            raise SystemFailure(f"{self._s3.location} changes while it is read", hint="run `kaigen lock` again")
        if answer.status == 404:
            raise NotFound(f"the server has no {self._s3.location}")
        if answer.status in (401, 403):
            raise NotFound(f"the server does not show {self._s3.location} ({code or answer.status})", hint=_WAY)
        raise SystemFailure(f"the server answered HTTP {answer.status} ({code}) for {self._s3.location}")


def _token(s3: S3) -> str:
    """Return the token of the user from Azure's command line.

    Raises:
        NotFound: there is none.
    """
    query = ["--resource", _RESOURCE, "--query", "accessToken", "--output", "tsv"]
    command = ["az", "account", "get-access-token", *query]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TOKEN_WAIT_S)
    except (OSError, subprocess.TimeoutExpired):
        raise NotFound(f"there are no credentials for {s3.location}", hint=_WAY) from None
    if done.returncode or not done.stdout.strip():
        raise NotFound(f"there are no credentials for {s3.location}: `az` is not logged in", hint=_WAY)
    return done.stdout.strip()


def _without_types(content: bytes) -> bytes:
    """Return a document without a type, whose entities could stand for any number of bytes.

    Raises:
        ValueError: it has one.
    """
    if b"<!DOCTYPE" in content:
        raise ValueError("the server sent a document type")
    return content


def _entries(root: ElementTree.Element) -> Iterator[dict[str, Any]]:
    """Yield the blobs of a page, without the folders of accounts with hierarchical namespaces."""
    for blob in root.iterfind("Blobs/Blob"):
        name = blob.find("Name")
        key = (name.text or "") if name is not None else ""
        if name is not None and name.get("Encoded", "").lower() == "true":
            key = unquote(key)
        is_folder = blob.findtext("Properties/ResourceType") == "directory"
        if not is_folder and (blob.findtext("Metadata/hdi_isfolder") or "").lower() != "true":
            yield {
                "Key": key,
                "Size": int(blob.findtext("Properties/Content-Length") or ""),
                "ETag": blob.findtext("Properties/Etag") or "",
            }
