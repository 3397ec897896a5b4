"""A packed folder as an OCI artifact."""

from __future__ import annotations

from typing import IO

from msgspec import Struct

from kaigen.contexts.archive import Packed
from kaigen.oci.attachments import EMPTY, descriptor
from kaigen.oci.reference import Reference, parse_reference
from kaigen.oci.registry import MANIFEST, Registry, digest_of
from kaigen.publish.results import Status
from kaigen.signing.bundle import canonical_json

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
