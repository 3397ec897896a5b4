"""The content of output files: bytes, or an object that knows their digest."""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol, TypeAlias


class Content(Protocol):
    """Bytes that are read only when they must be written.

    For a caller that knows the digest from a cache: an output file that is up to date then costs no read.
    """

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, as 64 lower-case hexadecimal digits."""

    def read(self) -> bytes:
        """Return the bytes."""


FileContent: TypeAlias = bytes | Content
"""The content of one output file: plain bytes, or an object that knows their digest."""


def data_of(content: FileContent) -> bytes:
    """Return the bytes of a content."""
    return content if isinstance(content, bytes) else content.read()


def digest_of(content: FileContent) -> str:
    """Return the SHA-256 of a content in hexadecimal; it is computed only for plain bytes."""
    return digest(content) if isinstance(content, bytes) else content.digest


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    return sha256(data, usedforsecurity=False).hexdigest()
