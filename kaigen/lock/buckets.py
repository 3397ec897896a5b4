"""Ask S3 servers which files are below a prefix. boto3 makes the requests, with the credentials of the user.

Google's server gets a token of the user, unless the spec has HMAC keys. Azure has an API of its own.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from kaigen.compile.builders.bucket_access import GOOGLE, uses_tokens
from kaigen.config.lock_file import LockedBucket, LockedObject
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.kinds.sources import S3
from kaigen.kubernetes.buckets import split_location
from kaigen.lock.answers import all_at_once, read_facts
from kaigen.lock.azure import Container

_STATE = ".kaigen"
"""Folder in which the downloader keeps its state; it is not part of the files."""
_HEX = re.compile("[0-9a-f]{64}")
_DENIED = frozenset({"403", "AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"})
_ABSENT = frozenset({"404", "NoSuchBucket", "NoSuchKey"})
_CHANGED = frozenset({"412", "PreconditionFailed"})
_TOKEN = "GOOGLE_OAUTH_ACCESS_TOKEN"
_TOKEN_WAIT_S = 60
_TOKEN_WAY = f"log in with `gcloud auth login` as somebody who may list and read it, or set {_TOKEN}"
_WAY = "give the environment credentials that may list and read it: AWS_PROFILE, or AWS_ACCESS_KEY_ID and its secret"


T = TypeVar("T")


class Buckets:
    """A client of S3 servers."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str, bool], Any] = {}
        self._lock = threading.Lock()

    def bucket(self, s3: S3, *, data: bool) -> LockedBucket:
        """Return the files below a prefix.

        Args:
            s3: the bucket and the prefix.
            data: whether the files are a dataset, which has no weights.

        Raises:
            NotFound: there is no such bucket, it has no files, or it is not shown.
            SystemFailure: the server cannot be reached, or gives no valid answer, or boto3 is not installed.
        """
        return self._ask(s3, lambda prefix: prefix.locked(data=data))

    def content(self, s3: S3, path: str, file: LockedObject) -> bytes:
        """Return the content of a file below a prefix.

        Args:
            s3: the bucket and the prefix.
            path: the file.
            file: as it is listed.

        Raises:
            NotFound: it is not shown.
            SystemFailure: the server cannot be reached, or gives no valid answer.
        """
        return self._ask(s3, lambda prefix: prefix.range(path, file, 0, file.size))

    def _ask(self, s3: S3, question: Callable[[_Prefix], T]) -> T:
        if s3.scheme == "az":
            try:
                return question(_Prefix(Container(s3), s3))
            except (ValueError, KeyError, TypeError) as error:
                reason = " ".join(str(error).split())[:300] or type(error).__name__
                raise SystemFailure(f"cannot list {s3.location}: {reason}") from None
        try:
            from botocore import exceptions
        except ImportError:
            raise SystemFailure(
                "`kaigen lock` requires boto3 for buckets", hint='install it with `pip install "kaigen[lock]"`'
            ) from None
        try:
            return question(_Prefix(self._client(s3), s3))
        except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError):
            raise NotFound(f"there are no credentials for {s3.location}", hint=_WAY) from None
        except exceptions.ClientError as error:
            raise _refusal(s3, error.response) from None
        except (exceptions.BotoCoreError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise SystemFailure(f"cannot list {s3.location}: {reason}") from None

    def _client(self, s3: S3) -> Any:
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config

        google, has_token = s3.scheme == "gs", uses_tokens(s3)
        endpoint = s3.endpoint or (GOOGLE if google else "")
        region = s3.region or ("auto" if google else "")
        with self._lock:
            known = self._clients.get((endpoint, region, has_token))
            if known is None:
                log_in = _log_in(_token(s3)) if has_token else None
                session = boto3.Session()
                known = session.client(
                    "s3",
                    endpoint_url=endpoint or None,
                    region_name=region or session.region_name or "us-east-1",
                    config=Config(
                        s3={"addressing_style": "path" if endpoint else "auto"},
                        retries={"mode": "standard", "total_max_attempts": 5},
                        connect_timeout=20,
                        request_checksum_calculation="when_required",
                        response_checksum_validation="when_required",
                        user_agent_extra="kaigen",
                        signature_version=UNSIGNED if has_token else None,
                    ),
                )
                if log_in is not None:
                    known.meta.events.register("before-sign.s3", log_in)
                self._clients[endpoint, region, has_token] = known
        return known


def _token(s3: S3) -> str:
    """Return the user's token for Google: that of the environment, else that of gcloud.

    Raises:
        NotFound: there is none.
    """
    token = os.environ.get(_TOKEN, "").strip()
    if token:
        return token
    command = ["gcloud", "auth", "print-access-token"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TOKEN_WAIT_S)
    except (OSError, subprocess.TimeoutExpired):
        raise NotFound(f"there are no credentials for {s3.location}", hint=_TOKEN_WAY) from None
    if done.returncode or not done.stdout.strip():
        raise NotFound(f"there are no credentials for {s3.location}: gcloud has no account", hint=_TOKEN_WAY)
    return done.stdout.strip()


def _log_in(token: str) -> Callable[..., None]:
    """Return the handler that sends a token in place of a signature, and no header of Amazon."""

    def log_in(request: Any, **_: object) -> None:
        for name in [name for name in request.headers if name.lower().startswith("x-amz-")]:
            del request.headers[name]
        request.headers["Authorization"] = f"Bearer {token}"

    return log_in


def _refusal(s3: S3, response: Mapping[str, Any]) -> Exception:
    """Return the failure for an error of a server."""
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    way = _TOKEN_WAY if uses_tokens(s3) else _WAY
    if code in _ABSENT or status == 404:
        return NotFound(f"the server has no {s3.location}")
    if code in _CHANGED:
        return SystemFailure(f"{s3.location} changes while it is read", hint="run `kaigen lock` again")
    if code in _DENIED or status in (401, 403):
        return NotFound(f"the server does not show {s3.location} ({code or status})", hint=way)
    return SystemFailure(f"the server answered HTTP {status} ({code}) for {s3.location}")


class _Prefix:
    """The files below a prefix."""

    def __init__(self, client: Any, s3: S3) -> None:
        self._client = client
        self._s3 = s3
        self._bucket, prefix = split_location(s3.uri)
        self._prefix = f"{prefix}/" if prefix else ""

    def locked(self, *, data: bool) -> LockedBucket:
        """Return what it contains."""
        listed = dict(self._listed())
        if not listed:
            raise NotFound(f"{self._s3.location} has no files")
        odd = next((path for path in listed if not path.isprintable()), None)
        if odd is not None:
            raise NotFound(f"{self._s3.location} has a file with an unusable name: {odd!r}")
        paths = sorted(listed)
        found = all_at_once(lambda path: self._object(path, *listed[path]), paths)
        files = dict(zip(paths, found, strict=True))

        def read(path: str, start: int, end: int) -> bytes:
            return self.range(path, files[path], start, end)

        facts = read_facts([] if data else paths, read)
        return LockedBucket(**facts.fields(), files=files)

    def _listed(self) -> Iterator[tuple[str, tuple[int, str]]]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
        for page in pages:
            for entry in page.get("Contents", ()):
                key = entry["Key"]
                if not key.startswith(self._prefix):
                    raise ValueError(f"the server lists {key[:100]!r}, which is not below the prefix")
                path = key[len(self._prefix) :]
                # A key that ends in a slash is what consoles show as a folder.
                if path and not path.endswith("/") and path.split("/")[0] != _STATE:
                    yield path, (int(entry["Size"]), entry["ETag"].strip('"'))

    def _object(self, path: str, size: int, etag: str) -> LockedObject:
        head = self._client.head_object(Bucket=self._bucket, Key=self._prefix + path, ChecksumMode="ENABLED")
        if head["ETag"].strip('"') != etag or head["ContentLength"] != size:
            raise ValueError(f"{path} changed while it was listed")
        version = head.get("VersionId")
        return LockedObject(
            size=size, etag=etag, sha256=_sha256(head), version=version if version not in (None, "null") else None
        )

    def range(self, path: str, file: LockedObject, start: int, end: int) -> bytes:
        """Return the bytes of a file from a start to an end; fewer at its end."""
        end = min(end, file.size)
        if start >= end:
            return b""
        answer = self._client.get_object(
            Bucket=self._bucket, Key=self._prefix + path, Range=f"bytes={start}-{end - 1}", IfMatch=f'"{file.etag}"'
        )
        content: bytes = answer["Body"].read(end - start + 1)
        if len(content) != end - start:
            raise ValueError(f"{path} has another length than it is listed with")
        return content


def _sha256(head: Mapping[str, Any]) -> str | None:
    """Return the sha256 of an object: the server's, or the one that the downloader stored with it."""
    found = ""
    # Of an object of several parts, the server's is a checksum of checksums.
    if head.get("ChecksumType") != "COMPOSITE":
        try:
            found = base64.b64decode(head.get("ChecksumSHA256", ""), validate=True).hex()
        except binascii.Error:
            found = ""
    if not _HEX.fullmatch(found):
        stored = {**head.get("Metadata", {}), **head.get("ResponseMetadata", {}).get("HTTPHeaders", {})}
        names = ("sha256", "x-goog-meta-sha256")
        found = next((value for name, value in stored.items() if name.lower() in names), "")
    return found if _HEX.fullmatch(found) else None
