"""Charts for Helm and manifests for Flux as OCI artifacts, with where they come from and what they run attached.

What is attached is pushed first and the tag last: who is killed on the way leaves nothing that can be found.
Media types: helm.sh/docs/topics/registries, fluxcd.io/flux/cheatsheets/oci-artifacts, OCI image specification 1.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kaigen.diagnostics.diagnostic import InputError, SystemFailure
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


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact, ready to be pushed.

    Attributes:
        reference: where it goes; the tag is named.
        name: of the chart, or of the environment's manifests.
        version: the chart's version, or the tag.
        config: media type and content of its configuration.
        layer: media type and content of its archive.
        annotations: of its manifest.
        images: that its pods run.
        parameters: what was asked for.
        materials: SHA-256 of each file that it was made from.
        fixed: whether the tag never changes what it stands for.
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
    fixed: bool = True

    def manifest(self) -> bytes:
        """The image manifest."""
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
    """An OCI content descriptor."""
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
    """Push an artifact, unless it is there.

    Args:
        git: the source's repository.
        source: what was rendered.
        artifact: what shall be there.
        plain_http: speak to a registry without TLS that is not on this machine.
        allow_older: push manifests also over those of a commit that this source does not contain.
        dry_run: say what would be done.

    Raises:
        InputError: KG0908, the version is there with other content.
        CheckFailed: the manifests that are there come from something that this source does not contain.
        SystemFailure: the registry cannot be reached or refuses.
    """
    registry = Registry(artifact.reference, plain_http=plain_http)
    manifest = artifact.manifest()
    there = registry.manifest(artifact.reference.tag)
    if there is not None:
        old = _read(there, artifact.reference)
        if _content(old) == _content(json.loads(manifest)):
            return _result(artifact, digest_of(there), "unchanged")
        if artifact.fixed:
            raise _taken(artifact)
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
    if not artifact.fixed:
        registry.push_manifest(source.commit[:12], manifest, MANIFEST)
    registry.push_manifest(artifact.reference.tag, manifest, MANIFEST)
    return _result(artifact, digest, "published")


def _result(artifact: Artifact, digest: str, status: Status) -> ArtifactResult:
    return ArtifactResult(
        artifact.name, artifact.version, str(artifact.reference), digest, status, (STATEMENT, BOM)
    )


def _taken(artifact: Artifact) -> InputError:
    hint = "raise its version with the annotation `kaigen.dev/version`, or publish with --version-suffix"
    return InputError.of(
        "KG0908",
        f"version {artifact.version} of chart {artifact.name} is at {artifact.reference} with other content",
        hint=hint,
    )


def _read(content: bytes, reference: Reference) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise SystemFailure(f"the registry gives no manifest for {reference}")
    return data


def _content(manifest: Mapping[str, Any]) -> list[str]:
    """The digests of what an artifact holds, whatever its manifest says besides."""
    parts = [manifest.get("config"), *(manifest.get("layers") or [])]
    return [str(part.get("digest")) if isinstance(part, dict) else "" for part in parts]


def _require_newer(git: Git, source: Source, old: Mapping[str, Any], reference: Reference) -> None:
    annotations = old.get("annotations")
    said = annotations if isinstance(annotations, dict) else {}
    commit = str(said.get(REVISION, "")).rpartition(":")[2]
    if commit and all(char in "0123456789abcdef" for char in commit):
        origin = str(said.get("org.opencontainers.image.source", ""))
        require_newer(git, source, commit, origin, str(reference))


def _attach(registry: Registry, subject: Mapping[str, Any], parts: Sequence[tuple[str, bytes]]) -> None:
    """Push what refers to a manifest that is not there yet."""
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


def _list_referrers(registry: Registry, digest: str, found: Sequence[Mapping[str, Any]]) -> None:
    """List referrers under a tag, for a registry without the referrers API: the specification's fallback."""
    tag = digest.replace(":", "-")
    there = registry.manifest(tag)
    old = _read(there, registry.reference).get("manifests") if there is not None else []
    entries = {
        str(item["digest"]): dict(item)
        for item in [*(old if isinstance(old, list) else []), *found]
        if isinstance(item, dict) and "digest" in item
    }
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entries[key] for key in sorted(entries)]}
    content = encode(index)
    if content != there:
        registry.push_manifest(tag, content, INDEX)
