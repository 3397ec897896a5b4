"""Pushes charts for Helm and manifests for Flux as OCI artifacts, with provenance and an image list attached.

Attachments are pushed first and the tag last, so that an interrupted push leaves nothing that anyone can find.
Media types: helm.sh/docs/topics/registries, fluxcd.io/flux/cheatsheets/oci-artifacts, OCI image specification 1.1.

Formats of what is attached: in-toto Statement v1 (github.com/in-toto/attestation), SLSA Provenance v1
(slsa.dev/provenance/v1), CycloneDX 1.6 (ECMA-424, JSON). Reproducible byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct, field

from kaigen import __version__
from kaigen.diagnostics.errors import InputError
from kaigen.git.remote import Git
from kaigen.oci.attachments import attach, descriptor, parse_manifest
from kaigen.oci.reference import Reference
from kaigen.oci.registry import MANIFEST, Registry, digest_of
from kaigen.oci.signature import sign_manifest
from kaigen.publish.results import ArtifactResult, Status
from kaigen.publish.source import Source, require_newer
from kaigen.signing.bundle import BUNDLE, STATEMENT_TYPE, canonical_json

if TYPE_CHECKING:
    from kaigen.signing.keys import PrivateKey


STATEMENT = "application/vnd.in-toto+json"
BUILD_TYPE = "https://kaigen.dev/publish/v1"
BOM = "application/vnd.cyclonedx+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def provenance(
    source: Source, name: str, digest: str, parameters: Mapping[str, str], materials: Mapping[str, str]
) -> bytes:
    """Return the provenance statement of one artifact.

    Args:
        source: what it was rendered from.
        name: the artifact's reference.
        digest: `sha256:` and hexadecimal digits of its manifest.
        parameters: the parameters of the rendering, such as the environment.
        materials: SHA-256 in hexadecimal of each input file, by its path in the repository.
    """
    origin: dict[str, Any] = {"digest": {"gitCommit": source.commit}}
    if source.repository:
        origin["uri"] = f"git+{source.repository}"
    if source.dirty:
        origin["annotations"] = {"state": "uncommitted changes"}
    files = [{"name": path, "digest": {"sha256": digest}} for path, digest in sorted(materials.items())]
    algorithm, _, value = digest.partition(":")
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {algorithm: value}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": dict(sorted(parameters.items())),
                "resolvedDependencies": [origin, *files],
            },
            "runDetails": {"builder": {"id": "https://kaigen.dev/kaigen", "version": {"kaigen": __version__}}},
        },
    }
    return canonical_json(statement)


def bill_of_images(name: str, version: str, digest: str, images: Iterable[str]) -> bytes:
    """Return the bill of materials of one artifact.

    Args:
        name: name of the chart or of the manifests.
        version: version of the chart or of the manifests.
        digest: digest of the manifest, from which the serial number of the bill is derived.
        images: the images, as the pods name them.
    """
    components = [_component(image) for image in sorted(set(images))]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'https://kaigen.dev/bom/{digest}')}",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": f"{name}@{version}", "name": name, "version": version}
        },
        "components": components,
        "dependencies": [{"ref": f"{name}@{version}", "dependsOn": [component["bom-ref"] for component in components]}],
    }
    return canonical_json(bom)


def _component(image: str) -> dict[str, Any]:
    name, _, digest = image.partition("@")
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, tag = name, ""
    component: dict[str, Any] = {"type": "container", "bom-ref": image, "name": path}
    known = _DIGEST.fullmatch(digest) is not None
    if tag or known:
        component["version"] = tag or digest
    if known:
        component["hashes"] = [{"alg": "SHA-256", "content": digest.partition(":")[2]}]
        # A package URL of type oci is versioned by digest only (purl-spec, types/oci).
        last = path.rpartition("/")[2].lower()
        qualifiers = f"repository_url={quote(_with_registry(path), safe='')}" + (
            f"&tag={quote(tag, safe='')}" if tag else ""
        )
        component["purl"] = f"pkg:oci/{last}@{quote(digest, safe='')}?{qualifiers}"
    return component


def _with_registry(path: str) -> str:
    """Return the repository with its registry, which is Docker Hub by default."""
    host, slash, _ = path.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return path.lower()
    return f"docker.io/{path if slash else f'library/{path}'}".lower()


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
