"""A folder as a tar archive, the same bytes on every machine, and as an OCI artifact."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from typing import IO

from msgspec import Struct

from kaigen.contexts.folder import CODE, IGNORE_FILE, Entry
from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.diff.formatting import size_text
from kaigen.oci.attachments import EMPTY, descriptor
from kaigen.oci.reference import Reference, parse_reference
from kaigen.oci.registry import MANIFEST, Registry, digest_of
from kaigen.publish.results import Status
from kaigen.signing.bundle import canonical_json

_ROOT = "context"
"""Folder of the archive with the files: next to it, the downloader has its own."""
LARGEST = 1 << 30
"""Bytes of the files, unless a user sets another limit."""

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1 << 20


class Packed(Struct, frozen=True):
    """What was packed.

    Attributes:
        digest: digest of the archive, `sha256:…`.
        size: bytes of the archive.
        files: number of files.
        bytes: bytes of the files.
    """

    digest: str
    size: int
    files: int
    bytes: int


def pack(entries: Sequence[Entry], target: IO[bytes], largest: int = LARGEST) -> Packed:
    """Write the archive of entries.

    The files are sorted and not compressed, because implementations of deflate differ. All times are 1970, all owners
    root, and all modes 0755 for folders and files that can be run, 0644 for others.

    Args:
        entries: what it contains, sorted.
        target: receives it.
        largest: most bytes of the files.

    Raises:
        InputError: KG0911, the files are larger.
        SystemFailure: a file changed while it was read.
    """
    files = [entry for entry in entries if entry.is_file]
    total = sum(entry.size for entry in files)
    if total > largest:
        big = sorted(files, key=lambda entry: -entry.size)[:3]
        shown = ", ".join(f"{entry.name} ({size_text(entry.size)})" for entry in big)
        raise InputError.of(
            CODE,
            f"the files have {size_text(total)}, and the limit is {size_text(largest)}; the largest are {shown}",
            hint=f"name what the build does not need in {IGNORE_FILE}, or raise --max-size",
        )
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(entries):
        digest.update(chunk)
        target.write(chunk)
        size += len(chunk)
    return Packed(f"sha256:{digest.hexdigest()}", size, len(files), total)


def _chunks(entries: Sequence[Entry]) -> Iterator[bytes]:
    yield _header(_ROOT, tarfile.DIRTYPE)
    for entry in entries:
        name = f"{_ROOT}/{entry.name}"
        if entry.is_folder:
            yield _header(name, tarfile.DIRTYPE)
        elif entry.target:
            yield _header(name, tarfile.SYMTYPE, target=entry.target)
        else:
            mode = 0o755 if entry.is_executable else 0o644
            yield _header(name, tarfile.REGTYPE, mode=mode, size=entry.size)
            yield from _content(entry)
    yield bytes(2 * _BLOCK)


def _header(name: str, kind: bytes, *, mode: int = 0o755, size: int = 0, target: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size, info.linkname = kind, mode, size, target
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _content(entry: Entry) -> Iterator[bytes]:
    left = entry.size
    # A file that became a link since it was found is not followed.
    descriptor = os.open(entry.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        while left and (data := file.read(min(_CHUNK, left))):
            left -= len(data)
            yield data
        if left or file.read(1):
            raise SystemFailure(f"{entry.path}: the file changed while it was read", hint="run it again")
    if entry.size % _BLOCK:
        yield bytes(_BLOCK - entry.size % _BLOCK)


TYPE = "application/vnd.kaigen.build-context.v1"
"""Type of the artifact."""
LAYER = "application/vnd.oci.image.layer.v1.tar"
_SCHEME = "oci://"
_CONFIG = b"{}"
_TAG_DIGITS = 12


class Pushed(Struct, frozen=True):
    """The result of a push.

    Attributes:
        reference: the artifact by digest, as a spec names it.
        digest: digest of the artifact.
        tag: the tag that keeps it.
        status: what was done.
    """

    reference: str
    digest: str
    tag: str
    status: Status


def target(text: str) -> Reference:
    """Return the repository to push to, `REGISTRY/REPOSITORY[:TAG]`.

    Raises:
        InputError: KG0906, it is not one.
    """
    return parse_reference(_SCHEME + text.removeprefix(_SCHEME), tag=True)


def manifest_of(packed: Packed) -> bytes:
    """Return the manifest of a packed folder; the same folder has the same one."""
    return canonical_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": TYPE,
            "config": descriptor(EMPTY, _CONFIG),
            "layers": [
                {
                    "mediaType": LAYER,
                    "digest": packed.digest,
                    "size": packed.size,
                    "annotations": {"org.opencontainers.image.title": "context.tar"},
                }
            ],
        }
    )


def plan_push(packed: Packed, where: Reference) -> Pushed:
    """Return what `push` returns, without asking the registry.

    Args:
        packed: the packed folder.
        where: its repository. Without a tag, the tag is made of the digest.
    """
    digest = digest_of(manifest_of(packed))
    tag = where.tag or f"context-{digest.partition(':')[2][:_TAG_DIGITS]}"
    name = f"{where.host}/{where.repository}" + (f":{where.tag}" if where.tag else "")
    return Pushed(f"{name}@{digest}", digest, tag, "planned")


def push(packed: Packed, archive: IO[bytes], where: Reference, *, plain_http: bool = False) -> Pushed:
    """Push a packed folder unless the registry has it under its tag.

    Args:
        packed: the packed folder.
        archive: its archive.
        where: its repository.
        plain_http: use HTTP without TLS also for a registry on another machine.

    Raises:
        SystemFailure: the registry is unreachable or rejects the push.
    """
    result, manifest = plan_push(packed, where), manifest_of(packed)
    registry = Registry(where, plain_http=plain_http)
    if registry.manifest(result.tag) == manifest:
        return Pushed(result.reference, result.digest, result.tag, "unchanged")
    registry.push_blob(_CONFIG)
    registry.push_file(archive, packed.digest, packed.size)
    registry.push_manifest(result.tag, manifest, MANIFEST)
    return Pushed(result.reference, result.digest, result.tag, "published")
