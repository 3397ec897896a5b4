"""A client for S3 and compatible servers: one retry counter, one line for each failure.

botocore, the core of boto3, signs and sends; trying again, and saying what went wrong, is done here, as for everything
else that this program asks of a network.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kaigen_downloader import google
from kaigen_downloader.errors import BadInput, Failure, Refused, Transient, Unavailable
from kaigen_downloader.folder import split
from kaigen_downloader.google_tokens import KEY_VARIABLE, tokens
from kaigen_downloader.listing import Total
from kaigen_downloader.net import is_encrypted
from kaigen_downloader.pace import DEFAULT, Pace
from kaigen_downloader.retry import Retry
from kaigen_downloader.s3_answers import send_bounded, set_up
from kaigen_downloader.s3_errors import Absent, explain
from kaigen_downloader.sending import sign_headers_only
from kaigen_downloader.text import hide, shown, size
from kaigen_downloader.tokens import Tokens, is_safe

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.session import Session

SCHEMES = ("s3", "gs", "az")
_ACCOUNT = re.compile("[a-z0-9]{3,24}")
"""A storage account (source: Azure Storage, account name)."""
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")
# The response of the server; its shape depends on the operation.
Reply = dict[str, object]


@dataclass(frozen=True, slots=True)
class Address:
    """A location in a bucket.

    Attributes:
        bucket: its name.
        prefix: empty, or what all keys begin with, a slash at its end.
        endpoint: URL of the server, or None for Amazon's.
        region: or None for what the environment says.
        addressing: `path`, `virtual`, or None for what the server usually wants.
        scheme: `s3`, `gs` for Google's API with tokens, or `az` for Azure Blob Storage.
        account: of `az`, the storage account; the bucket is its container.
    """

    bucket: str
    prefix: str
    endpoint: str | None = None
    region: str | None = None
    addressing: str | None = None
    scheme: str = "s3"
    account: str = ""

    @property
    def name(self) -> str:
        """Return `s3://BUCKET/PREFIX`, for messages."""
        account = f"{self.account}/" if self.account else ""
        return f"{self.scheme}://{account}{self.bucket}/{self.prefix}".rstrip("/")


def address(url: str, endpoint: str | None = None, region: str | None = None, addressing: str | None = None) -> Address:
    """Parse `s3://BUCKET[/PREFIX]`, `gs://BUCKET[/PREFIX]` or `az://ACCOUNT/CONTAINER[/PREFIX]`.

    Trailing slashes are ignored.

    Raises:
        BadInput: it is not one, or the endpoint is not a URL of a server.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise BadInput(
            f"{url}: a bucket is s3://BUCKET[/PREFIX], gs://BUCKET[/PREFIX] or az://ACCOUNT/CONTAINER[/PREFIX]"
        )
    account, rest = rest.split("/", 1) if scheme == "az" and "/" in rest else ("", rest)
    if scheme == "az" and not _ACCOUNT.fullmatch(account):
        raise BadInput(f"{url}: a container of Azure is az://ACCOUNT/CONTAINER[/PREFIX]")
    bucket, _, prefix = rest.partition("/")
    if not 3 <= len(bucket) <= 222 or not _LETTERS.issuperset(bucket):
        raise BadInput(f"{url}: {bucket!r} is not a valid bucket name")
    prefix = prefix.rstrip("/")
    if prefix:
        try:
            split(prefix)
        except BadInput:
            raise BadInput(f"{url}: {prefix!r} is not a valid prefix: it must be a relative path") from None
        prefix += "/"
    if len(prefix.encode()) > 512:
        raise BadInput(f"{url}: a prefix longer than 512 bytes")
    if endpoint is not None:
        endpoint = _checked(endpoint)
        if scheme != "s3" and not is_safe(endpoint):
            owner = "Google" if scheme == "gs" else "Azure"
            raise BadInput(f"--s3-endpoint: {endpoint} has no TLS, and would get a token of {owner}")
    elif scheme == "gs":
        endpoint = google.SERVER
    elif scheme == "az":
        endpoint = f"https://{account}.blob.core.windows.net"
    return Address(bucket, prefix, endpoint, region, addressing, scheme, account)


def _checked(url: str) -> str:
    """Return the URL of a server with its scheme in small letters, as botocore compares it."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.username is not None or parts.query or parts.fragment:
        raise BadInput(f"--s3-endpoint: not the http or https URL of a server: {url}")
    return parts.geturl()


class _Body(io.RawIOBase):
    """Bytes to send without copying, in small pieces, each with its own write timeout."""

    def __init__(self, view: memoryview, stop: threading.Event) -> None:
        self._bytes = view
        self._stop = stop
        self._at = 0

    @property
    def view(self) -> memoryview:
        """Return all of the bytes."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._bytes)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._bytes)}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, count: int | None = -1) -> memoryview:
        if self._stop.is_set():
            raise OSError("the work has ended")
        end = len(self._bytes) if count is None or count < 0 else self._at + count
        piece = self._bytes[self._at : end]
        self._at += len(piece)
        return piece


class Client:
    """The objects below one prefix of one bucket. Safe for threads."""

    largest_copy = 5 << 30
    """Bytes of an object that one request can copy (source: Amazon S3, CopyObject); 0 if none can."""

    def __init__(
        self,
        where: Address,
        retry: Retry,
        *,
        timeout: float,
        connections: int,
        keys: tuple[str, str] | None = None,
        google_key: str = "",
        pace: Pace = DEFAULT,
    ) -> None:
        """Find the credentials; no other connection is made yet.

        Args:
            where: the bucket and the prefix.
            retry: for failures that pass.
            timeout: seconds that one connect, read or write may take.
            connections: how many are used at once.
            keys: access key ID and secret access key; None for those that botocore finds.
            google_key: key file of a service account for `gs://`; empty for that of the environment, or for the
                identity of the pod if that has none either.
            pace: the lowest speed of an answer.

        Raises:
            Failure: there are no credentials, or the settings make no sense.
        """
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.session import Session

        self.where = where
        self._retry = retry
        environment = os.environ
        region = where.region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
        style = where.addressing or ("path" if where.endpoint else None)
        self._tokens: Tokens | None = None
        if where.scheme == "gs":
            self._tokens = tokens(google_key or environment.get(KEY_VARIABLE, "").strip())
        try:
            session = Session()
            if self._tokens is None:
                self._credentials = _credentials(session, where, keys)
            self._client = session.create_client(
                "s3",
                endpoint_url=where.endpoint,
                # Servers other than Amazon's have one region, and mostly accept this name for it.
                region_name=region or ("us-east-1" if where.endpoint else None),
                verify=ca_bundle(),
                config=Config(
                    connect_timeout=timeout,
                    read_timeout=timeout,
                    max_pool_connections=connections + 2,
                    signature_version=UNSIGNED if self._tokens is not None else None,
                    retries={"total_max_attempts": 1, "mode": "standard"},
                    # Google, Ceph and older MinIO know none of the newer checksums. The signature covers the
                    # sha256 of every body, which all of them verify; see `sending` for the exception.
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    s3={"payload_signing_enabled": True} | ({"addressing_style": style} if style else {}),
                    tcp_keepalive=True,
                    user_agent_extra="kaigen-downloader",
                ),
            )
        except (BotoCoreError, ClientError, OSError, ValueError) as error:
            raise explain(error, "", where, self.server) from None
        # botocore would follow a bucket to another region automatically. Report the region to the user instead.
        self._client.meta.events.register_last("before-parameter-build.s3", _stay)
        http_session = self._client._endpoint.http_session
        set_up(http_session, pace)
        if self._tokens is not None:
            send = functools.partial(google.send, http_session, self._tokens)
        else:
            sign_headers_only(self._client)
            send = functools.partial(send_bounded, http_session)
        self._client.meta.events.register_last("before-send.s3", send)

    @contextlib.contextmanager
    def used_with(self, retry: Retry) -> Iterator[None]:
        """Use the retry counter of another task for a while."""
        mine, self._retry = self._retry, retry
        try:
            yield
        finally:
            self._retry = mine

    def url(self, path: str) -> str:
        """Return the URL of a file, or of the prefix if the path is empty."""
        key = self.key(path) if path else self.where.prefix or "x"
        given = {"Bucket": self.where.bucket, "Key": key}
        url: str = self._client.generate_presigned_url("get_object", given)
        return url.partition("?")[0]

    def signed(self, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that sign a GET of a URL with these headers."""
        if self._tokens is not None:
            return {"Authorization": self._tokens.header()}
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest

        request = AWSRequest("GET", url)
        frozen = self._credentials.get_frozen_credentials()
        S3SigV4Auth(frozen, "s3", self._client.meta.region_name).add_auth(request)
        return dict(request.headers.items())

    def renewed(self) -> bool:
        """Return whether there are other credentials than those of this thread's last request, which was rejected."""
        return self._tokens is not None and self._tokens.renewed()

    def is_rejected(self, status: int) -> bool:
        """Return whether a status may mean that a token has expired."""
        return status == 401

    def checksum(self, head: Reply) -> str | None:
        """Return the checksum of an object that is no ETag, as `RemoteFile.md5`; None if the ETag may be one."""
        return google.checksum(head) if self._tokens is not None else None

    def unchanged(self, head: Reply) -> dict[str, str]:
        """Return the condition of a request that an object is still the one that the server described."""
        return {"IfMatch": text(head, "ETag" if self._tokens is None else "VersionId")}

    @property
    def server(self) -> str:
        """Return the server's name, for messages."""
        client = getattr(self, "_client", None)
        url: str = client.meta.endpoint_url if client is not None else self.where.endpoint or "s3"
        return urlsplit(url).netloc.rpartition("@")[2] or url

    @property
    def encrypted(self) -> bool:
        """Return whether requests go over TLS."""
        url: str = self._client.meta.endpoint_url
        return is_encrypted(url)

    def key(self, path: str) -> str:
        """Return the key of a file.

        Raises:
            BadInput: it would be too long, or is not a name for a file.
        """
        split(path)
        key = self.where.prefix + path
        if len(key.encode()) > 1024:
            raise BadInput(f"the file name {shown(path)} makes a key longer than 1024 bytes")
        return key

    def call(self, operation: str, path: str | None = None, *, body: memoryview | None = None, **more: object) -> Reply:
        """Call the server, with retries for temporary failures.

        Args:
            operation: as the API calls it, such as `PutObject`.
            path: of the file, when it is about one.
            body: what to send.
            more: further parameters of the operation.

        Returns:
            What the server says.

        Raises:
            Absent: the object or upload is not there.
            Failure: what else it means.
        """
        return self._retried(operation, path, body, more)

    def _retried(self, operation: str, path: str | None, body: memoryview | None, more: Mapping[str, object]) -> Reply:
        attempts = self._retry.attempts(f"{self.where.name}: {operation}" + (f" {path}" if path else ""))
        while True:
            try:
                return self._once(operation, path, body, more)
            except Transient as error:
                if body is not None:
                    self._check_access()
                attempts.failed(error)

    def _check_access(self) -> None:
        """Ask whether the credentials are still accepted.

        A server may refuse a body and close the connection before all of it was sent, and its answer is then lost.

        Raises:
            Refused: they are not.
        """
        try:
            self._once("ListObjectsV2", None, None, {"Prefix": self.where.prefix, "MaxKeys": 1})
        except Refused:
            raise
        except Failure:
            return

    def sending(self, body: memoryview) -> io.RawIOBase:
        """Return the bytes of a request as a file, which ends with the work."""
        return _Body(body, self._retry.stop)

    def once(self, operation: str, path: str, **more: object) -> Reply:
        """Like `call`, but only once.

        Raises:
            Transient: it may pass.
        """
        return self._once(operation, path, None, more)

    def _once(self, operation: str, path: str | None, body: memoryview | None, more: Mapping[str, object]) -> Reply:
        from botocore import xform_name
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        given: dict[str, object] = {"Bucket": self.where.bucket, **more}
        if path is not None:
            given["Key"] = self.key(path)
        if body is not None:
            given["Body"] = self.sending(body)
        try:
            reply: Reply = getattr(self._client, xform_name(operation))(**given)
            return reply
        except (ResponseParserError, ValueError, ArithmeticError, RecursionError):
            # All but the first: a value that is not a number or not a date, or elements below each other without end.
            raise Transient(f"{operation}: {self.server} sent an answer that is not one of S3") from None
        except (BotoCoreError, ClientError, OSError) as error:
            raise explain(error, operation, self.where, self.server) from None

    def read(self, path: str, limit: int = 64 << 20) -> bytes | None:
        """Return the content of a small object, or None when it does not exist.

        Raises:
            BadInput: it is larger than `limit` bytes.
        """
        from botocore.exceptions import BotoCoreError

        attempts = self._retry.attempts(f"{self.where.name}: GetObject {path}")
        while True:
            try:
                body = self.once("GetObject", path)["Body"]
                try:
                    data: bytes = body.read(limit + 1)  # type: ignore[attr-defined]
                except (BotoCoreError, OSError) as error:
                    raise explain(error, "GetObject", self.where, self.server) from None
                finally:
                    body.close()  # type: ignore[attr-defined]
            except Absent:
                return None
            except Transient as error:
                attempts.failed(error)
            else:
                if len(data) > limit:
                    raise BadInput(f"{self.where.name}/{path}: larger than {size(limit)}")
                return data

    def listed(self, operation: str) -> Iterator[Reply]:
        """Yield all entries of a listing below the prefix.

        Args:
            operation: `ListObjectsV2` or `ListMultipartUploads`.

        Raises:
            Refused: the server lists what is not below the prefix.
            Failure: as `call`, or the listing has no end.
        """
        what, pages = {
            "ListObjectsV2": ("Contents", {"ContinuationToken": "NextContinuationToken"}),
            "ListMultipartUploads": ("Uploads", {"KeyMarker": "NextKeyMarker", "UploadIdMarker": "NextUploadIdMarker"}),
        }[operation]
        more: dict[str, object] = {}
        seen: set[tuple[object, ...]] = set()
        total = Total(self.server, self.where.name)
        while True:
            reply = self._retried(operation, None, None, {"Prefix": self.where.prefix, **more})
            if operation == "ListObjectsV2" and not text(reply, "Name"):
                # Such as a web page, which has no objects either.
                raise Unavailable(f"{self.server} does not respond like an S3 server")
            entries = reply.get(what)
            listed: list[Reply] = entries if isinstance(entries, list) else []
            for key in (text(entry, "Key") for entry in listed):
                if not key.startswith(self.where.prefix):
                    raise Refused(f"{self.server} lists {shown(key)}, which is not below {self.where.name}")
            texts = (value for entry in listed for value in entry.values() if isinstance(value, str))
            total.add(len(listed), sum(map(len, texts)))
            yield from listed
            found = tuple(reply.get(name) for name in pages.values())
            if not reply.get("IsTruncated"):
                return
            if found in seen or not found[0]:
                raise Unavailable(f"{self.server} returns an endless listing of {self.where.name}")
            seen.add(found)
            more = more | {name: value for name, value in zip(pages, found, strict=True) if value is not None}


def ca_bundle() -> str | None:
    """Return the file with certificates of authorities, if the environment names one."""
    return os.environ.get("AWS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE") or None


def _credentials(session: Session, where: Address, keys: tuple[str, str] | None) -> Credentials:
    """Return the credentials of a server of S3: the keys, or what botocore finds."""
    if keys is not None:
        session.set_credentials(*keys)
    credentials = session.get_credentials()
    if credentials is None:
        raise Refused(
            f"{where.name}: no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or give the service account a cloud identity"
        )
    frozen = credentials.get_frozen_credentials()
    hide(frozen.secret_key)
    hide(frozen.token or "")
    return credentials


def _stay(context: dict[str, dict[str, object]], **_: object) -> None:
    """Make botocore believe that it has already followed a redirect, so that it follows no other."""
    context.setdefault("s3_redirect", {})["redirected"] = True


def text(reply: Mapping[str, object], name: str) -> str:
    """Return a text of a response; empty when it has none."""
    value = reply.get(name)
    return value if isinstance(value, str) else ""
