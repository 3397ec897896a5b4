"""What is attached to an image of kaigen's: the packages that are installed in it, and what it was built from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from kaigen.diagnostics.errors import SystemFailure
from kaigen.images.recipes import Recipe
from kaigen.oci.attachments import attach, parse_manifest
from kaigen.oci.registry import Registry, digest_of
from kaigen.signing.bundle import STATEMENT_TYPE, canonical_json

BILL = "application/vnd.cyclonedx+json"
STATEMENT = "application/vnd.in-toto+json"
PROVENANCE = "https://slsa.dev/provenance/v1"
_BUILD_TYPE = "https://kaigen.dev/image/v1"
_ENTRY = re.compile(
    r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)(?: ; ([^\\\n]+?))? *(?:\\\n|\n|$)((?:    --hash.*\n?)*)", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill_of_packages(name: str, version: str, lock: str, identity: str, made: str = "") -> bytes:
    """Return the packages of a lock as a CycloneDX 1.6 bill of materials.

    A package has the SHA-256 of each of its files that the lock allows to be installed.

    Args:
        name: what the packages are installed in.
        version: its version.
        lock: text of the lock files.
        identity: makes the serial number of the bill, with the name.
        made: time of the bill (RFC 3339); empty for none.
    """
    components = list(_components(lock))
    own = {"type": "application", "bom-ref": f"{name}@{version}", "name": name, "version": version}
    refs = [component["bom-ref"] for component in components]
    return canonical_json(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'https://kaigen.dev/bom/{identity}/{name}')}",
            "version": 1,
            "metadata": {**({"timestamp": made} if made else {}), "component": own},
            "components": components,
            "dependencies": [{"ref": own["bom-ref"], "dependsOn": refs}],
        }
    )


def _components(lock: str) -> Iterator[dict[str, Any]]:
    for name, version, marker, hashes in _ENTRY.findall(lock):
        url = f"pkg:pypi/{name}@{version}"
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": url,
            "name": name,
            "version": version,
            "purl": url,
            "hashes": [{"alg": "SHA-256", "content": each} for each in _HASH.findall(hashes)],
        }
        if marker:
            component["properties"] = [{"name": "kaigen:marker", "value": marker.strip()}]
        yield component


def attach_facts(
    registry: Registry, recipe: Recipe, locks: tuple[Path, ...], digest: str, version: str, inputs: Mapping[str, str]
) -> int:
    """Attach bill of materials and provenance to a pushed image, and return the bytes of its layers.

    The bill has the locked Python packages; those of the base image are not known to kaigen.

    Args:
        registry: the repository of the image.
        recipe: what the image was built from.
        locks: lock files of its packages.
        digest: its digest.
        version: its tag.
        inputs: what else it was built from by name, such as `base` and `commit`.

    Raises:
        SystemFailure: the registry does not have the image, or rejects what is attached.
    """
    found = registry.named(digest)
    if found is None:
        raise SystemFailure(f"the registry has no {registry.reference.repository}@{digest}, which was just pushed")
    content = found[1]
    manifest = parse_manifest(content, registry.reference)
    subject = {"mediaType": manifest["mediaType"], "digest": digest, "size": len(content)}
    text = "".join(lock.read_text() for lock in locks)
    bill = bill_of_packages(recipe.name, version, text, digest)
    attach(registry, subject, [(BILL, bill), (STATEMENT, _provenance(registry, recipe, locks, digest, inputs))])
    return _layer_bytes(registry, manifest)


def _provenance(
    registry: Registry, recipe: Recipe, locks: tuple[Path, ...], digest: str, inputs: Mapping[str, str]
) -> bytes:
    used = [{"name": lock.name, "digest": {"sha256": digest_of(lock.read_bytes())[7:]}} for lock in locks]
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": registry.reference.repository, "digest": {"sha256": digest.partition(":")[2]}}],
            "predicateType": PROVENANCE,
            "predicate": {
                "buildDefinition": {
                    "buildType": _BUILD_TYPE,
                    "externalParameters": {"image": recipe.name, **inputs},
                    "resolvedDependencies": used,
                },
                "runDetails": {"builder": {"id": "https://kaigen.dev/images"}},
            },
        }
    )


def _layer_bytes(registry: Registry, manifest: Mapping[str, Any]) -> int:
    """Return the compressed size of the layers of an image; of the first platform's for an index."""
    if "manifests" in manifest:
        found = registry.named(manifest["manifests"][0]["digest"])
        manifest = parse_manifest(found[1], registry.reference) if found is not None else {"layers": []}
    return sum(layer["size"] for layer in manifest["layers"])
