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
LATER = {
    "Model": {
        "conversion.convertWeights",
        "conversion.dependencies",
        "preConverted",
        "preConvertedPVCName",
        "preConvertedSizeBytes",
        "preConvertedSizeHuman",
    }
}
"""Fields that commits after edc6442 added."""


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


@pytest.mark.parametrize("kind", [kind for kind in DIALECT.kinds if kind.kind != "Ingress"], ids=lambda kind: kind.kind)
def test_models_have_the_fields_of_the_definitions(kind: Any) -> None:
    schema = block_schema(kind.model())
    found = dict(fields_of_model(schema["properties"]["spec"], schema["$defs"]))
    later = LATER.get(kind.kind, set())
    assert found == dict(fields_of_definition(definition(kind.kind))) | dict.fromkeys(later, False)
