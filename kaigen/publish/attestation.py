"""The provenance of an artifact: an in-toto statement with SLSA provenance, reproducible byte for byte.

Formats: in-toto Statement v1 (github.com/in-toto/attestation), SLSA Provenance v1 (slsa.dev/provenance/v1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen import __version__
from kaigen.publish.source import Source
from kaigen.signing.canonical import encode

STATEMENT = "application/vnd.in-toto+json"
BUILD_TYPE = "https://kaigen.dev/publish/v1"


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
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {algorithm: value}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": dict(sorted(parameters.items())),
                "resolvedDependencies": [origin, *files],
            },
            "runDetails": {
                "builder": {"id": "https://kaigen.dev/kaigen", "version": {"kaigen": __version__}}
            },
        },
    }
    return encode(statement)
