"""Koldun's models have every field of its CustomResourceDefinitions, and of its later versions no others than these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kaigen.dialects.koldun import DIALECT
from kaigen.kinds.block_schema import block_schema
from tests import plain_yaml

CRDS = Path(__file__).parents[2] / "cluster" / "crds"
NATS = {"nats": False, "nats.url": True, "nats.credentialsSecret": False} | {
    "nats.credentialsSecret.name": True,
    "nats.credentialsSecret.namespace": False,
}
LATER: Mapping[str, Mapping[str, bool]] = {
    "Model": dict.fromkeys(
        (
            *("conversion.convertWeights", "conversion.dependencies", "preConverted", "preConvertedPVCName"),
            *("preConvertedSizeBytes", "preConvertedSizeHuman", "replicaPower"),
        ),
        False,
    ),
    "Dllama": NATS,
    "Worker": NATS,
}
"""Fields that commits after edc6442 added, and whether they are required (source: gorizond/koldun, the definitions of
Dllama and Model at 136549a9, of Worker at 76bb2204)."""

ADDED: Mapping[str, Mapping[str, bool]] = {
    "Ingress": {
        "backend": True,
        **dict.fromkeys(
            (f"backend.{name}" for name in ("allowAnonymous", "conversationTTL", "dispatcherImage", "extraArgs")), False
        ),
        **dict.fromkeys(
            (f"backend.{name}" for name in ("dispatcherMetricsListen", "hashSecret", "imagePullPolicy")), False
        ),
        **dict.fromkeys((f"backend.{name}" for name in ("replicaPower", "resources", "responseTimeout")), False),
        "backend.image": True,
        "backend.nats": True,
        "backend.nats.url": True,
        **dict.fromkeys((f"backend.nats.{name}" for name in ("kvBucket", "modelsBucket", "tokensBucket")), False),
        **dict.fromkeys((f"backend.nats.{name}" for name in ("modelPrefix", "tokenPrefix", "ttlPrefix")), False),
        "backend.rootImage": True,
        "backend.rootMemory": False,
        "backend.rootMemory.overheadMaxRatio": False,
        "backend.sessionScaling": False,
        **dict.fromkeys((f"backend.sessionScaling.{name}" for name in ("minDllamas", "maxDllamas")), False),
        **dict.fromkeys(
            (f"backend.sessionScaling.{name}" for name in ("scaleUpBacklog", "scaleDownIdleSeconds")), False
        ),
        "backend.workerImage": True,
        "route": True,
        "route.host": True,
        **dict.fromkeys((f"route.{name}" for name in ("annotations", "ingressClassName", "path", "pathType")), False),
        "route.tls": False,
        "service": False,
        "service.port": False,
        "service.type": False,
    },
    "Session": {
        **dict.fromkeys(("hash", "modelRef", "modelRef.kind", "modelRef.name", "rootImage", "workerImage"), True),
        **dict.fromkeys(("modelRef.apiGroup", "modelRef.namespace", "dispatcherImage", "queue", "scaling"), False),
        **dict.fromkeys(("dispatcherMetricsListen", "replicaPower", "minIdle", "maxWorkers", "ttl"), False),
        "nats": False,
        "nats.url": False,
        "nats.credentialsSecret": False,
        "nats.credentialsSecret.name": False,
        "nats.credentialsSecret.namespace": False,
    },
    "Token": {"hash": True, "disabled": False, "metadata": False},
}
"""Fields of kinds that commits after edc6442 added, and whether they are required (source: gorizond/koldun, the
definitions of Ingress at f795c8b8, Session at 144ca97b, Token at 76bb2204). Fields of `resources`, `queue` and
`scaling` of a Session, which kaigen does not read, are left out."""

OPTIONAL = {
    "Ingress": {"backend.image", "backend.nats", "route"},
    "Session": {"nats.url", "nats.credentialsSecret.name"},
}
"""Fields by kind that only one of the two requires: kaigen needs neither backend nor queue nor route."""


def definition(kind: str) -> Any:
    """Return the schema of the `spec` of a kind."""
    (file,) = CRDS.glob(f"koldun.gorizond.io_{kind.lower()}s.yaml")
    (version,) = plain_yaml.load(file.read_text())["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def fields_of_definition(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, bool]]:
    """Yield every field of a schema, and whether it is required."""
    for name, inner in schema.get("properties", {}).items():
        yield prefix + name, name in schema.get("required", ())
        yield from fields_of_definition(inner, f"{prefix}{name}.")


def fields_of_model(schema: Any, definitions: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, bool]]:
    """Yield every field of the JSON Schema of a model, and whether it is required."""
    for option in [schema, *schema.get("anyOf", ())]:
        resolved = definitions[option["$ref"].rpartition("/")[2]] if "$ref" in option else option
        for name, inner in resolved.get("properties", {}).items():
            yield prefix + name, name in resolved.get("required", ())
            yield from fields_of_model(inner, definitions, f"{prefix}{name}.")


def fields_of(kind: Any) -> Mapping[str, bool]:
    """Return every field of kaigen's model of a kind, and whether it is required."""
    schema = block_schema(kind.model())
    return dict(fields_of_model(schema["properties"]["spec"], schema["$defs"]))


@pytest.mark.parametrize("kind", [kind for kind in DIALECT.kinds if kind.kind not in ADDED], ids=lambda kind: kind.kind)
def test_models_have_the_fields_of_the_definitions(kind: Any) -> None:
    assert fields_of(kind) == dict(fields_of_definition(definition(kind.kind))) | dict(LATER.get(kind.kind, {}))


@pytest.mark.parametrize("kind", [kind for kind in DIALECT.kinds if kind.kind in ADDED], ids=lambda kind: kind.kind)
def test_models_have_the_fields_of_later_kinds(kind: Any) -> None:
    found, expected = fields_of(kind), ADDED[kind.kind]
    assert found.keys() == expected.keys()
    assert {name for name in found if found[name] != expected[name]} == OPTIONAL.get(kind.kind, set())
