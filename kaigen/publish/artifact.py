"""Pushes charts for Helm and manifests for Flux as OCI artifacts, with provenance and an image list attached.

Attachments are pushed first and the tag last, so that an interrupted push leaves nothing that anyone can find.
Media types: helm.sh/docs/topics/registries, fluxcd.io/flux/cheatsheets/oci-artifacts, OCI image specification 1.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kaigen.diagnostics.errors import InputError
from kaigen.git.remote import Git
from kaigen.oci.attachments import attach, descriptor, parse_manifest
from kaigen.oci.reference import Reference
from kaigen.oci.registry import MANIFEST, Registry, digest_of
from kaigen.oci.signature import sign_manifest
from kaigen.publish.results import ArtifactResult, Status
from kaigen.publish.source import Source, require_newer
from kaigen.publish.statements import BOM, STATEMENT, bill_of_images, provenance
from kaigen.signing.bundle import BUNDLE, canonical_json

if TYPE_CHECKING:
    from kaigen.signing.keys import PrivateKey

HELM_CONFIG = "application/vnd.cncf.helm.config.v1+json"
HELM_CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
FLUX_CONFIG = "application/vnd.cncf.flux.config.v1+json"
FLUX_CONTENT = "application/vnd.cncf.flux.content.v1.tar+gzip"
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
        return canonical_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": descriptor(*self.config),
                "layers": [descriptor(*self.layer)],
                "annotations": dict(self.annotations),
            }
        )


def push_artifact(
    git: Git,
    source: Source,
    artifact: Artifact,
    *,
    plain_http: bool = False,
    allow_older: bool = False,
    dry_run: bool = False,
    key: PrivateKey | None = None,
) -> ArtifactResult:
    """Push an artifact unless the registry has it.

    Args:
        git: the source's repository.
        source: what was rendered.
        artifact: the artifact to push.
        plain_http: use HTTP without TLS also for a registry on another machine.
        allow_older: replace manifests even if they come from a commit that this source does not contain.
        dry_run: only report what would be done.
        key: signs the artifact, also one that the registry has without a signature of this key.

    Raises:
        InputError: KG0908, the registry has this version with different content.
        CheckFailed: the manifests in the registry come from a commit that this source does not contain.
        SystemFailure: the registry is unreachable or rejects the push.
    """
    registry = Registry(artifact.reference, plain_http=plain_http)
    tags = (artifact.reference.tag, *(() if artifact.immutable else (source.commit[:12],)))
    manifest = artifact.manifest()
    current = registry.manifest(artifact.reference.tag)
    if current is not None:
        old = parse_manifest(current, artifact.reference)
        if _content_digests(old) == _content_digests(json.loads(manifest)):
            if key is not None and not dry_run:
                sign_manifest(registry, current, key, tags[:1])
            return _result(artifact, digest_of(current), "unchanged", key)
        if artifact.immutable:
            raise _version_exists(artifact)
        if not allow_older:
            _require_newer(git, source, old, artifact.reference)
    digest = digest_of(manifest)
    if dry_run:
        return _result(artifact, digest, "planned", key)
    registry.push_blob(artifact.config[1])
    registry.push_blob(artifact.layer[1])
    statement = provenance(source, str(artifact.reference), digest, artifact.parameters, artifact.materials)
    bom = bill_of_images(artifact.name, artifact.version, digest, artifact.images)
    subject = {"mediaType": MANIFEST, "digest": digest, "size": len(manifest)}
    attach(registry, subject, ((STATEMENT, statement), (BOM, bom)))
    if key is not None:
        sign_manifest(registry, manifest, key, tags)
    for tag in reversed(tags):
        registry.push_manifest(tag, manifest, MANIFEST)
    return _result(artifact, digest, "published", key)


def _result(artifact: Artifact, digest: str, status: Status, key: PrivateKey | None) -> ArtifactResult:
    attached = (STATEMENT, BOM, BUNDLE) if key is not None else (STATEMENT, BOM)
    return ArtifactResult(artifact.name, artifact.version, str(artifact.reference), digest, status, attached)


def _version_exists(artifact: Artifact) -> InputError:
    hint = "raise its version with the annotation `kaigen.dev/version`, or set `publish.versionSuffix` in kaigen.yaml"
    return InputError.of(
        "KG0908",
        f"{artifact.reference} already has version {artifact.version} of chart {artifact.name}, with different content",
        hint=hint,
    )


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
