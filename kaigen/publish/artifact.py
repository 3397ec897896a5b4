"""Pushes charts for Helm and manifests for Flux as OCI artifacts, with provenance and an image list attached.

Attachments are pushed first and the tag last, so that an interrupted push leaves nothing that anyone can find.
Media types: helm.sh/docs/topics/registries, fluxcd.io/flux/cheatsheets/oci-artifacts, OCI image specification 1.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.git.remote import Git
from kaigen.publish.attestation import STATEMENT, encode, provenance
from kaigen.publish.reference import Reference
from kaigen.publish.registry import INDEX, MANIFEST, Registry, digest_of
from kaigen.publish.results import ArtifactResult, Status
from kaigen.publish.sbom import BOM, bill_of_images
from kaigen.publish.source import Source, require_newer

HELM_CONFIG = "application/vnd.cncf.helm.config.v1+json"
HELM_CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
FLUX_CONFIG = "application/vnd.cncf.flux.config.v1+json"
FLUX_CONTENT = "application/vnd.cncf.flux.content.v1.tar+gzip"
EMPTY = "application/vnd.oci.empty.v1+json"
REVISION = "org.opencontainers.image.revision"


class Artifact(Struct, frozen=True):
    """One artifact, ready to push.

    Attributes:
        reference: repository and tag to push to.
        name: of the chart, or of the environment's manifests.
        version: the chart's version, or the tag.
        config: media type and content of its configuration.
        layer: media type and content of its archive.
        annotations: annotations of its manifest.
        images: the images that its pods run.
        parameters: the parameters of the rendering, such as the environment.
        materials: SHA-256 of each input file.
        immutable: whether the content of the tag must never change.
    """

    reference: Reference
    name: str
    version: str
    config: tuple[str, bytes]
    layer: tuple[str, bytes]
    annotations: Mapping[str, str]
    images: Sequence[str]
    parameters: Mapping[str, str] = field(default_factory=dict)
    materials: Mapping[str, str] = field(default_factory=dict)
    immutable: bool = True

    def manifest(self) -> bytes:
        """Return the OCI image manifest."""
        return encode(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": descriptor(*self.config),
                "layers": [descriptor(*self.layer)],
                "annotations": dict(self.annotations),
            }
        )


def descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    """Return an OCI content descriptor."""
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}


def push_artifact(
    git: Git,
    source: Source,
    artifact: Artifact,
    *,
    plain_http: bool = False,
    allow_older: bool = False,
    dry_run: bool = False,
) -> ArtifactResult:
    """Push an artifact unless the registry has it.

    Args:
        git: the source's repository.
        source: what was rendered.
        artifact: the artifact to push.
        plain_http: use HTTP without TLS also for a registry on another machine.
        allow_older: replace manifests even if they come from a commit that this source does not contain.
        dry_run: only report what would be done.

    Raises:
        InputError: KG0908, the registry has this version with different content.
        CheckFailed: the manifests in the registry come from a commit that this source does not contain.
        SystemFailure: the registry is unreachable or rejects the push.
    """
    registry = Registry(artifact.reference, plain_http=plain_http)
    manifest = artifact.manifest()
    current = registry.manifest(artifact.reference.tag)
    if current is not None:
        old = _parse_manifest(current, artifact.reference)
        if _content_digests(old) == _content_digests(json.loads(manifest)):
            return _result(artifact, digest_of(current), "unchanged")
        if artifact.immutable:
            raise _version_exists(artifact)
        if not allow_older:
            _require_newer(git, source, old, artifact.reference)
    digest = digest_of(manifest)
    if dry_run:
        return _result(artifact, digest, "planned")
    registry.push_blob(artifact.config[1])
    registry.push_blob(artifact.layer[1])
    statement = provenance(source, str(artifact.reference), digest, artifact.parameters, artifact.materials)
    bom = bill_of_images(artifact.name, artifact.version, digest, artifact.images)
    subject = {"mediaType": MANIFEST, "digest": digest, "size": len(manifest)}
    _attach(registry, subject, ((STATEMENT, statement), (BOM, bom)))
    if not artifact.immutable:
        registry.push_manifest(source.commit[:12], manifest, MANIFEST)
    registry.push_manifest(artifact.reference.tag, manifest, MANIFEST)
    return _result(artifact, digest, "published")


def _result(artifact: Artifact, digest: str, status: Status) -> ArtifactResult:
    return ArtifactResult(
        artifact.name, artifact.version, str(artifact.reference), digest, status, (STATEMENT, BOM)
    )


def _version_exists(artifact: Artifact) -> InputError:
    hint = "raise its version with the annotation `kaigen.dev/version`, or set `publish.versionSuffix` in kaigen.yaml"
    return InputError.of(
        "KG0908",
        f"{artifact.reference} already has version {artifact.version} of chart {artifact.name}, with different content",
        hint=hint,
    )


def _parse_manifest(content: bytes, reference: Reference) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise SystemFailure(f"the registry returned an invalid manifest for {reference}")
    return data


def _content_digests(manifest: Mapping[str, Any]) -> list[str]:
    """Return the digests of an artifact's configuration and layers."""
    parts = [manifest.get("config"), *(manifest.get("layers") or [])]
    return [str(part.get("digest")) if isinstance(part, dict) else "" for part in parts]


def _require_newer(git: Git, source: Source, old: Mapping[str, Any], reference: Reference) -> None:
    annotations = old.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    commit = str(annotations.get(REVISION, "")).rpartition(":")[2]
    if commit and all(char in "0123456789abcdef" for char in commit):
        origin = str(annotations.get("org.opencontainers.image.source", ""))
        require_newer(git, source, commit, origin, str(reference))


def _attach(registry: Registry, subject: Mapping[str, Any], parts: Sequence[tuple[str, bytes]]) -> None:
    """Push attachments that refer to a manifest, before the manifest itself is pushed."""
    registry.push_blob(b"{}")
    unlisted: list[dict[str, Any]] = []
    for media_type, content in parts:
        registry.push_blob(content)
        manifest = encode(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "artifactType": media_type,
                "config": descriptor(EMPTY, b"{}"),
                "layers": [descriptor(media_type, content)],
                "subject": dict(subject),
            }
        )
        if not registry.push_manifest(digest_of(manifest), manifest, MANIFEST):
            unlisted.append({**descriptor(MANIFEST, manifest), "artifactType": media_type})
    if unlisted:
        _list_referrers(registry, str(subject["digest"]), unlisted)


def _list_referrers(registry: Registry, digest: str, referrers: Sequence[Mapping[str, Any]]) -> None:
    """List referrers under a tag, the specification's fallback for a registry without the referrers API."""
    tag = digest.replace(":", "-")
    current = registry.manifest(tag)
    old = _parse_manifest(current, registry.reference).get("manifests") if current is not None else []
    entries = {
        str(item["digest"]): dict(item)
        for item in [*(old if isinstance(old, list) else []), *referrers]
        if isinstance(item, dict) and "digest" in item
    }
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entries[key] for key in sorted(entries)]}
    content = encode(index)
    if content != current:
        registry.push_manifest(tag, content, INDEX)
