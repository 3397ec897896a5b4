"""The images that an app's pods run, as a software bill of materials (CycloneDX 1.6, ECMA-424, JSON)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from kaigen.signing.canonical import encode

BOM = "application/vnd.cyclonedx+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


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
            "component": {
                "type": "application",
                "bom-ref": f"{name}@{version}",
                "name": name,
                "version": version,
            }
        },
        "components": components,
        "dependencies": [
            {"ref": f"{name}@{version}", "dependsOn": [component["bom-ref"] for component in components]}
        ],
    }
    return encode(bom)


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
