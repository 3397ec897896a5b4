"""Sends objects and parts to a bucket, so that the server verifies their bytes.

Over HTTP, the signature of a request covers the sha256 of its body. Over TLS nobody can change a body on its way, and a
CRC32 that the server compares finds damage for a third of the processor time. The SDKs of Amazon do the same. Not all
servers verify a CRC32: Backblaze B2 refuses the header, others ignore it. So it replaces the sha256 only on a server
that has confirmed one in this run.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from zlib_ng import zlib_ng

from kaigen_downloader.errors import BadInput, Refused
from kaigen_downloader.net import is_encrypted

if TYPE_CHECKING:
    from kaigen_downloader.s3 import Client, Reply

PARAMETER = "ChecksumCRC32"
"""The checksum of a body, as the API calls it in requests, answers and lists of parts."""
_HEADER = "x-amz-checksum-crc32"


def crc32(content: memoryview) -> str:
    """Return the checksum of the bytes, as the API writes it."""
    return base64.b64encode(zlib_ng.crc32(content).to_bytes(4, "big")).decode()


def sign_headers_only(client: Any) -> None:
    """Let the signature leave out bodies that have a CRC32, if the request goes over TLS.

    Args:
        client: botocore's client of S3, which signs bodies.
    """
    from botocore.config import Config

    own = client.meta.config
    unsigned = own.merge(Config(s3={**own.s3, "payload_signing_enabled": False}))

    def choose(params: dict[str, Any], **_: object) -> None:
        if _HEADER in params["headers"] and is_encrypted(params["url"]):
            params["context"]["client_config"] = unsigned

    client.meta.events.register_last("before-call.s3", choose)


class Sender:
    """Sends bodies through a client. Safe for threads."""

    def __init__(self, client: Client) -> None:
        """Send bodies with their sha256 until `probe` finds that a CRC32 is verified, too."""
        self._client = client
        self._confirmed = False

    @property
    def algorithm(self) -> dict[str, Any]:
        """Return the parameters of a new multipart upload."""
        return {"ChecksumAlgorithm": "CRC32"} if self._confirmed else {}

    def probe(self, path: str, content: memoryview, **condition: str) -> None:
        """Create a small object, and find out whether the server verifies a CRC32.

        Args:
            path: of the object.
            content: its bytes.
            condition: parameters on which it depends.

        Raises:
            Conflict: the condition is not met.
            Failure: anything else.
        """
        if self._client.encrypted:
            crc = crc32(content)
            try:
                reply = self._client.call("PutObject", path, body=content, ChecksumCRC32=crc, **condition)
            except (Refused, BadInput):
                # The request without the checksum shows what was refused.
                pass
            else:
                self._confirmed = reply.get(PARAMETER) == crc
                return
        self._client.call("PutObject", path, body=content, **condition)

    def send(self, operation: str, path: str, content: memoryview, **more: object) -> Reply:
        """Send an object or a part.

        Args:
            operation: `PutObject` or `UploadPart`.
            path: of the object.
            content: the bytes.
            more: further parameters of the operation.

        Returns:
            What the server says.

        Raises:
            Failure: as `Client.call`.
        """
        if self._confirmed:
            crc = crc32(content)
            reply = self._client.call(operation, path, body=content, ChecksumCRC32=crc, **more)
            if reply.get(PARAMETER) == crc:
                return reply
            # Nothing has verified these bytes, such as another server behind the same name.
            self._confirmed = False
        reply = self._client.call(operation, path, body=content, **more)
        # Not asked for, so it does not belong to the upload.
        reply.pop(PARAMETER, None)
        return reply
