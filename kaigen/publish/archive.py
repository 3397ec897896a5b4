"""Reproducible archives: the same bytes on every machine and with every version of Python and zlib."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Iterator, Mapping
from zlib import crc32

# No name, no time, no extra flags, unknown system: RFC 1952.
_GZIP_HEADER = bytes.fromhex("1f8b08000000000000ff")
_LARGEST_BLOCK = 0xFFFF


def tgz(files: Mapping[str, bytes], *, first: tuple[str, ...] = ()) -> bytes:
    """Return a `.tar.gz` of these files.

    Args:
        files: content by path.
        first: paths to put first, in this order, if they exist; all others are sorted.

    Returns:
        The archive. All times are 1970, all owners root, all modes 0644. It is not compressed: implementations of
        deflate differ, and the same content must have the same digest.
    """
    order = [path for path in first if path in files]
    order += sorted(files.keys() - set(order))
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in order:
            entry = tarfile.TarInfo(path)
            entry.size = len(files[path])
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(files[path]))
    return gzip_stored(target.getvalue())


def gzip_stored(data: bytes) -> bytes:
    """Return the data as a gzip file (RFC 1952) of stored blocks (RFC 1951, 3.2.4)."""
    return b"".join([_GZIP_HEADER, *_blocks(data), struct.pack("<II", crc32(data), len(data) & 0xFFFFFFFF)])


def _blocks(data: bytes) -> Iterator[bytes]:
    for start in range(0, max(len(data), 1), _LARGEST_BLOCK):
        block = data[start : start + _LARGEST_BLOCK]
        last = start + _LARGEST_BLOCK >= len(data)
        yield struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block
