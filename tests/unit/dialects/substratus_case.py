"""Resources of Substratus for the tests: written as a user's files, lowered and compiled as those would be."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import Run

Object = dict[str, Any]

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SETTINGS: Object = {
    "clusterName": "substratus",
    "registry": "registry.example.com/substratus",
    "artifacts": "s3://acme-artifacts",
}


def resource(kind: str, spec: Object | None = None, name: str = "it", **directives: str) -> Object:
    """Return a resource with annotations of kaigen."""
    annotations = {f"kaigen.dev/{key.replace('_', '-')}": value for key, value in directives.items()}
    metadata: Object = {"name": name} | ({"annotations": annotations} if annotations else {})
    document = {"apiVersion": "substratus.ai/v1", "kind": kind, "metadata": metadata}
    return document | ({"spec": spec} if spec is not None else {})


def model(changes: Object | None = None, name: str = "it", **directives: str) -> Object:
    """Return a Model with an image, and the given changes."""
    return resource("Model", {"image": "example.com/load:1"} | (changes or {}), name, **directives)


def server(changes: Object | None = None, name: str = "it", **directives: str) -> Object:
    """Return a Server of the Model `it`, with the given changes."""
    spec = {"image": "example.com/serve:1", "model": {"name": "it"}} | (changes or {})
    return resource("Server", spec, name, **directives)


def config(settings: Object | None = None, profile: str = "generic") -> Config:
    """Return the settings of a repository with the given settings of Substratus."""
    own = SETTINGS if settings is None else settings
    return Config(namespace="ml", profile=profile, dialects={"substratus": own})


def loaded(*documents: Object | str, of: Config | None = None) -> Run:
    """Return a file with these documents, lowered."""
    texts = [item if isinstance(item, str) else yaml.safe_dump(item, sort_keys=False) for item in documents]
    return Run.load(["-"], of or config(), stdin=io.BytesIO("\n---\n".join(texts).encode()), use_cache=False)


def compiled(*documents: Object | str, of: Config | None = None) -> Compilation:
    """Compile a file with these documents."""
    return loaded(*documents, of=of).compilation()


def specs(*documents: Object | str, of: Config | None = None) -> dict[str, Any]:
    """Return the specs that documents are lowered to, as `Kind/name`."""
    found = loaded(*documents, of=of)
    assert not [item for item in found.load_diagnostics if item.severity is Severity.ERROR], found.load_diagnostics
    return {f"{spec.block.kind}/{spec.block.metadata.name}": spec.block for spec in found.specs}


def objects(*documents: Object | str, of: Config | None = None) -> dict[str, Mapping[str, Any]]:
    """Return the objects that documents become, as `Kind/name`."""
    apps = compiled(*documents, of=of).apps
    bodies = [item.body for app in apps for item in app.app.render(app.values, tests=False)]
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}


def errors(*documents: Object | str, of: Config | None = None) -> list[Diagnostic]:
    """Return every error."""
    with pytest.raises(InputError) as caught:
        compiled(*documents, of=of)
    return [item for item in caught.value.diagnostics if item.severity is Severity.ERROR]


def codes(found: list[Diagnostic]) -> list[tuple[str, str]]:
    """Return the code and field of each diagnostic."""
    return [(item.code, item.path) for item in found]


def warnings(*documents: Object | str, of: Config | None = None) -> list[tuple[str, str]]:
    """Return the code and field of every warning of the lowering."""
    return codes(list(loaded(*documents, of=of).load_diagnostics))
