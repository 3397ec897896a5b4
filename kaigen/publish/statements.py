"""What is attached to an artifact: its provenance, and the images that its pods run. Reproducible byte for byte.

Formats: in-toto Statement v1 (github.com/in-toto/attestation), SLSA Provenance v1 (slsa.dev/provenance/v1), CycloneDX
1.6 (ECMA-424, JSON).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from kaigen import __version__
from kaigen.publish.source import Source
from kaigen.signing.bundle import STATEMENT_TYPE, canonical_json

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
