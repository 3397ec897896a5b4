"""What is attached to an artifact in a registry: manifests that name it as their subject (OCI 1.1)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kaigen.diagnostics.errors import SystemFailure
from kaigen.oci.reference import Reference
from kaigen.oci.registry import INDEX, MANIFEST, Registry, digest_of
from kaigen.signing.bundle import canonical_json

EMPTY = "application/vnd.oci.empty.v1+json"


def descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    """Return an OCI content descriptor."""
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}


def parse_manifest(content: bytes, reference: Reference) -> dict[str, Any]:
    """Return a manifest or an index of the registry.

    Raises:
        SystemFailure: it is not valid.
    """
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise SystemFailure(f"the registry returned an invalid manifest for {reference}")
    return data


def attach(
    registry: Registry,
    subject: Mapping[str, Any],
    parts: Sequence[tuple[str, bytes]],
    annotations: Mapping[str, str] | None = None,
) -> None:
    """Push attachments that refer to a manifest, which may be pushed later.

    Args:
        registry: the repository of the manifest.
        subject: descriptor of the manifest.
        parts: media type and content of each attachment.
        annotations: annotations of each attachment.
    """
    registry.push_blob(b"{}")
    unlisted: list[dict[str, Any]] = []
    more = {"annotations": dict(annotations)} if annotations else {}
    for media_type, content in parts:
        registry.push_blob(content)
        manifest = canonical_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "artifactType": media_type,
                "config": descriptor(EMPTY, b"{}"),
                "layers": [descriptor(media_type, content)],
                "subject": dict(subject),
                **more,
            }
        )
        if not registry.push_manifest(digest_of(manifest), manifest, MANIFEST):
            unlisted.append({**descriptor(MANIFEST, manifest), "artifactType": media_type, **more})
    if unlisted:
        _list_referrers(registry, str(subject["digest"]), unlisted)


def _list_referrers(registry: Registry, digest: str, referrers: Sequence[Mapping[str, Any]]) -> None:
    """List referrers under a tag, the specification's fallback for a registry without the referrers API."""
    tag = digest.replace(":", "-")
    current = registry.manifest(tag)
    old = parse_manifest(current, registry.reference).get("manifests") if current is not None else []
    entries = {
        str(item["digest"]): dict(item)
        for item in [*(old if isinstance(old, list) else []), *referrers]
        if isinstance(item, dict) and "digest" in item
    }
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entries[key] for key in sorted(entries)]}
    content = canonical_json(index)
    if content != current:
        registry.push_manifest(tag, content, INDEX)
