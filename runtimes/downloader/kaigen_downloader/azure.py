"""A client for Azure Blob Storage, which takes the requests that `s3.Client` takes.

botocore's HTTP session sends the requests of the REST API: it has proxies, limits and errors that the program knows
already. A multipart upload is a list of blocks that are committed together. Blocks that nobody commits disappear after
a week (source: Azure Storage REST API, Put Block and Put Block List).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from kaigen_downloader.azure_errors import explain_answer
from kaigen_downloader.azure_keys import credentials
from kaigen_downloader.errors import BadInput, Refused, Transient, Unavailable
from kaigen_downloader.listing import Total
from kaigen_downloader.pace import DEFAULT, Pace
from kaigen_downloader.retry import Retry
from kaigen_downloader.s3 import Address, Client, Reply, ca_bundle, text
from kaigen_downloader.s3_answers import send_bounded, set_up
from kaigen_downloader.s3_errors import Absent, explain
from kaigen_downloader.text import shown, size, whole_number

if TYPE_CHECKING:
    from botocore.awsrequest import AWSResponse

_META = "x-ms-meta-"
_PAGE = 1000
"""Names of a page of a listing; a page that is read whole must not be too large."""
_METHODS = {
    "GetObject": "GET",
    "HeadObject": "HEAD",
    "DeleteObject": "DELETE",
    "PutObject": "PUT",
    "UploadPart": "PUT",
    "CompleteMultipartUpload": "PUT",
}
_CONDITIONS = {"IfNoneMatch": "If-None-Match", "IfMatch": "If-Match"}
_FIRST_ERROR = 300


class AzureClient(Client):
    """The blobs below one prefix of one container. Safe for threads."""

    largest_copy = 0

    def __init__(
        self,
        where: Address,
        retry: Retry,
        *,
        timeout: float,
        connections: int,
        key: str = "",
        sas: str = "",
        pace: Pace = DEFAULT,
    ) -> None:
        """Find the credentials; no connection is made yet.

        Args:
            where: the container and the prefix.
            retry: for failures that pass.
            timeout: seconds that one connect, read or write may take.
            connections: how many are used at once.
            key: key of the account; empty for none.
            sas: shared access signature; empty for none.
            pace: the lowest speed of an answer.

        Raises:
            Failure: there are no credentials, or they are malformed.
        """
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        assert where.endpoint is not None
        self.where = where
        self._retry = retry
        self._keys = credentials(where.account, key, sas)
        self._container = f"{where.endpoint.rstrip('/')}/{where.bucket}"
        self._session = URLLib3Session(
            verify=ca_bundle() or True,
            proxies=get_environ_proxies(self._container),
            timeout=(timeout, timeout),
            max_pool_connections=connections + 2,
        )
        set_up(self._session, pace)
        self._uploads: dict[str, Mapping[str, str]] = {}

    def url(self, path: str) -> str:
        """Return the URL of a file, or of the prefix if the path is empty."""
        key = self.key(path) if path else self.where.prefix or "x"
        return self._keys.url(f"{self._container}/{quote(key, safe='/~')}")

    def signed(self, url: str, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a GET with those that prove who asks."""
        return self._keys.headers("GET", url, headers)

    def renewed(self) -> bool:
        """Return whether there are other credentials than those of this thread's last request, which was rejected."""
        return self._keys.renewed()

    def is_rejected(self, status: int) -> bool:
        """Return whether a status may mean that a token has expired; it could read the file when it was listed."""
        return status in (401, 403)

    def unchanged(self, head: Reply) -> dict[str, str]:
        """Return the condition of a request that a blob is still the one that the server described."""
        return {"IfMatch": text(head, "ETag")}

    def checksum(self, head: Reply) -> str:
        """Return the MD5 of a blob in hex; empty for none."""
        return text(head, "ContentMD5")

    @property
    def server(self) -> str:
        """Return the server's name, for messages."""
        return urlsplit(self._container).netloc

    @property
    def encrypted(self) -> bool:
        """Return False: the server compares an MD5 with each body, and no CRC32."""
        return False

    def listed(self, operation: str) -> Iterator[Reply]:
        """Yield all blobs below the prefix; there are no uploads to look for.

        Raises:
            Refused: the server lists what is not below the prefix.
            Failure: as `call`, or the listing has no end.
        """
        if operation != "ListObjectsV2":
            return
        seen: set[str] = set()
        total = Total(self.server, self.where.name)
        marker = ""
        while True:
            page = self._retried(operation, None, None, {"Prefix": self.where.prefix, "Marker": marker})
            entries = page["Blobs"]
            assert isinstance(entries, list)
            for key in (text(entry, "Key") for entry in entries):
                if not key.startswith(self.where.prefix):
                    raise Refused(f"{self.server} lists {shown(key)}, which is not below {self.where.name}")
            total.add(len(entries), sum(len(text(entry, "Key")) for entry in entries))
            yield from entries
            marker = text(page, "NextMarker")
            if not marker:
                return
            if marker in seen:
                raise Unavailable(f"{self.server} returns an endless listing of {self.where.name}")
            seen.add(marker)

    def read(self, path: str, limit: int = 64 << 20) -> bytes | None:
        """Return the content of a small blob, or None when it does not exist.

        Raises:
            BadInput: it is larger than `limit` bytes.
        """
        attempts = self._retry.attempts(f"{self.where.name}: GetObject {path}")
        while True:
            try:
                answer = self._sent("GetObject", self._blob(path), {}, None)
                data = self._content(answer, limit + 1)
            except Absent:
                return None
            except Transient as error:
                attempts.failed(error)
            else:
                if len(data) > limit:
                    raise BadInput(f"{self.where.name}/{path}: larger than {size(limit)}")
                return data

    def _content(self, answer: AWSResponse, most: int) -> bytes:
        from urllib3.exceptions import HTTPError

        content = bytearray()
        try:
            for piece in answer.raw.stream(65536):
                content += piece
                if len(content) >= most:
                    break
        except (HTTPError, OSError) as error:
            raise Transient(f"{self.server}: {type(error).__name__} while reading") from None
        finally:
            answer.raw.close()
        return bytes(content)

    def _blob(self, path: str) -> str:
        return f"{self._container}/{quote(self.key(path), safe='/~')}"

    def _once(self, operation: str, path: str | None, body: memoryview | None, more: Mapping[str, object]) -> Reply:
        """Send one request; see `call`. Names of operations, parameters and fields are those of S3."""
        if operation == "ListObjectsV2":
            return self._page(more)
        assert path is not None
        if operation == "CreateMultipartUpload":
            return {"UploadId": self._begun(more)}
        upload = str(more.get("UploadId", ""))
        if operation == "AbortMultipartUpload":
            self._uploads.pop(upload, None)
            return {}
        url, headers = self._blob(path), {_CONDITIONS[name]: str(more[name]) for name in _CONDITIONS if name in more}
        if operation == "PutObject":
            headers |= {"x-ms-blob-type": "BlockBlob", **_metadata(more.get("Metadata"))}
        elif operation == "UploadPart":
            block = _block(upload, more["PartNumber"])
            url += "?" + urlencode({"comp": "block", "blockid": block})
        elif operation == "CompleteMultipartUpload":
            url += "?comp=blocklist"
            headers |= _metadata(self._uploads.get(upload))
            body = memoryview(_block_list(upload, more["MultipartUpload"]))
        answer = self._sent(operation, url, headers, body)
        reply = _reply(answer)
        if operation == "UploadPart":
            reply["ETag"] = block
        if operation == "CompleteMultipartUpload":
            self._uploads.pop(upload, None)
        return reply

    def _begun(self, more: Mapping[str, object]) -> str:
        """Return the id of an upload. Its metadata is sent when the blocks are committed."""
        upload = uuid.uuid4().hex
        given = more.get("Metadata")
        self._uploads[upload] = given if isinstance(given, dict) else {}
        return upload

    def _page(self, more: Mapping[str, object]) -> Reply:
        query = {
            "restype": "container",
            "comp": "list",
            "maxresults": str(more.get("MaxKeys", _PAGE)),
            "include": "metadata",
            **({"prefix": str(more["Prefix"])} if more.get("Prefix") else {}),
            **({"marker": str(more["Marker"])} if more.get("Marker") else {}),
        }
        answer = self._sent("ListObjectsV2", f"{self._container}?{urlencode(query, quote_via=quote)}", {}, None)
        try:
            return _parsed(answer.content)
        except (ElementTree.ParseError, ValueError, RecursionError):
            raise Unavailable(f"{self.server} does not respond like a server of Azure Blob Storage") from None

    def _sent(self, operation: str, url: str, headers: Mapping[str, str], body: memoryview | None) -> AWSResponse:
        """Send a request with the credentials, and once more with another token if it is rejected."""
        answer = self._tried(operation, url, headers, body)
        code = answer.headers.get("x-ms-error-code", "")
        if (answer.status_code == 401 or code == "AuthenticationFailed") and self._keys.renewed():
            answer = self._tried(operation, url, headers, body)
        if answer.status_code < _FIRST_ERROR:
            return answer
        raise explain_answer(answer.status_code, answer.headers, operation, self.where, self.server)

    def _tried(self, operation: str, url: str, headers: Mapping[str, str], body: memoryview | None) -> AWSResponse:
        from botocore.awsrequest import AWSPreparedRequest
        from botocore.exceptions import BotoCoreError
        from botocore.parsers import ResponseParserError

        method = _METHODS.get(operation, "GET")
        send = dict(headers)
        if method == "PUT":
            content = body if body is not None else memoryview(b"")
            md5 = hashlib.md5(content, usedforsecurity=False).digest()
            send |= {
                "Content-Length": str(len(content)),
                "Content-MD5": base64.b64encode(md5).decode(),
                "Content-Type": "application/octet-stream",
            }
        final = self._keys.url(url)
        request = AWSPreparedRequest(
            method,
            final,
            self._keys.headers(method, final, send),
            self.sending(body) if body is not None else None,
            operation == "GetObject",
        )
        try:
            answer: AWSResponse = send_bounded(self._session, request)
            return answer
        except (ResponseParserError, ValueError):
            raise Transient(f"{operation}: {self.server} sent an answer that is not one of Azure") from None
        except (BotoCoreError, OSError) as error:
            raise explain(error, operation, self.where, self.server) from None


def _block(upload: str, number: object) -> str:
    """Return the id of a block; all of one blob have the same length (source: Put Block)."""
    return base64.b64encode(f"{upload}-{number:>06}".encode()).decode()


def _block_list(upload: str, given: object) -> bytes:
    """Return the blocks in their order. The latest of an id is meant, so that the request can be repeated."""
    parts = given["Parts"] if isinstance(given, dict) else []
    ids = "".join(f"<Latest>{escape(_block(upload, part['PartNumber']))}</Latest>" for part in parts)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{ids}</BlockList>'.encode()


def _metadata(given: object) -> dict[str, str]:
    """Return headers with metadata, whose names have no hyphens (source: naming of metadata, C# identifiers)."""
    found = given if isinstance(given, Mapping) else {}
    return {_META + str(name).replace("-", "_"): str(value) for name, value in found.items()}


def _reply(answer: AWSResponse) -> Reply:
    """Return what an answer says of a blob, with the names of S3."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    metadata = {
        name.removeprefix(_META).replace("_", "-"): value for name, value in headers.items() if name.startswith(_META)
    }
    reply: Reply = {"ETag": headers.get("etag", ""), "Metadata": metadata}
    length = whole_number(headers.get("content-length", ""))
    if length is not None:
        reply["ContentLength"] = length
    with contextlib.suppress(binascii.Error, ValueError):
        reply["ContentMD5"] = base64.b64decode(headers.get("content-md5", ""), validate=True).hex()
    return reply


def _parsed(content: bytes) -> Reply:
    """Return a page of a listing: blobs with the names of S3, and the marker of the next page.

    Raises:
        ValueError: it is none.
    """
    root = ElementTree.fromstring(content)
    if root.tag != "EnumerationResults":
        raise ValueError
    blobs = []
    for blob in root.iterfind("Blobs/Blob"):
        name = blob.find("Name")
        key = (name.text or "") if name is not None else ""
        if name is not None and name.get("Encoded", "").lower() == "true":
            key = unquote(key)
        # Accounts with hierarchical namespaces list folders as blobs without content.
        is_folder = (blob.findtext("Properties/ResourceType") or "") == "directory"
        is_folder = is_folder or (blob.findtext("Metadata/hdi_isfolder") or "").lower() == "true"
        if not is_folder:
            length = whole_number(blob.findtext("Properties/Content-Length") or "")
            etag = (blob.findtext("Properties/Etag") or "").strip('"')
            modified = _time(blob.findtext("Properties/Last-Modified") or "")
            blobs.append({"Key": key, "Size": length, "ETag": etag, "LastModified": modified})
    return {"Blobs": blobs, "NextMarker": root.findtext("NextMarker") or ""}


def _time(text: str) -> datetime | None:
    """Return a time of a listing (source: Azure Storage REST API, List Blobs); None if there is none."""
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None
