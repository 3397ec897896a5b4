"""The core schemas against an independent validator: jsonschema on the schemas of kubernetes-validate.

Ours is stricter by what `tools/core_rules.yaml` and `kaigen.check.object_rules` add, in nothing else, never looser.
"""

from __future__ import annotations

import importlib.util
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing

from kaigen.check import codes
from kaigen.check.schema_check import check_object
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.schemas import SUPPORTED_VERSIONS
from tests import plain_yaml
from tests.unit.check.example_objects import label, objects
from tests.unit.check.mutations import DAMAGES, damaged, places

# What only ours looks for.
STRICTER = {
    codes.AMOUNT_DOUBTFUL,
    codes.BAD_VALUE,
    codes.DUPLICATE_ENTRY,
    codes.FIELD_CONFLICT,
    codes.OUT_OF_RANGE,
    codes.RESOURCE_NAME_INVALID,
    codes.SELECTOR_MISMATCH,
    codes.UNKNOWN_NAME_IN_POD,
}
RULES = plain_yaml.load((Path(__file__).parents[3] / "tools" / "core_rules.yaml").read_text())
REQUIRED = {field for fields in RULES["required"].values() for field in fields} | {"ports", "storage"}
REQUIRED_BY_RULES = {f"missing field `{field}`" for field in REQUIRED}
# How the rules of kaigen.check.object_rules say that a field is missing.
CONDITIONS = ("missing field", "a metric of type", "a target of type", "the rule grants nothing")
CORE = objects("cluster.yaml", "workloads.yaml")


@cache
def definitions(target: str) -> tuple[Any, Any]:
    """The strict definitions of a target, and a registry that holds them."""
    spec = importlib.util.find_spec("kubernetes_validate")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "kubernetes-json-schema" / f"v{target}.0-local-strict"
    content = json.loads((folder / "_definitions.json").read_bytes())
    resource = referencing.Resource.from_contents(content)
    return content, referencing.Registry().with_resource(content["$id"], resource)


@cache
def validator(target: str, api_version: str, kind: str) -> jsonschema.Draft202012Validator:
    """The validator of a kind in a target."""
    content, registry = definitions(target)
    group, _, version = api_version.rpartition("/")
    expected = {"group": group, "version": version, "kind": kind}
    name = next(
        name
        for name, schema in content["$defs"].items()
        if expected in schema.get("x-kubernetes-group-version-kind", ())
    )
    return jsonschema.Draft202012Validator({"$ref": f"{content['$id']}#/$defs/{name}"}, registry=registry)


def only_stricter(findings: list[Problem]) -> bool:
    """Whether the findings are all of rules that a JSON schema does not hold."""
    return all(
        f.code in STRICTER or f.message in REQUIRED_BY_RULES or f.message.startswith(CONDITIONS) for f in findings
    )


@pytest.mark.parametrize("target", SUPPORTED_VERSIONS)
def test_valid_objects_are_accepted_by_both(target: str) -> None:
    for obj in CORE:
        if target == "1.33" and obj["apiVersion"] == "resource.k8s.io/v1":
            continue
        assert validator(target, obj["apiVersion"], obj["kind"]).is_valid(obj)
        assert check_object(obj, target=target) == []


@pytest.mark.parametrize("obj", CORE, ids=label)
def test_damaged_objects_are_refused_by_both_or_by_neither(obj: dict[str, Any]) -> None:
    chosen = random.Random(label(obj))
    everywhere = [place for place in places(obj) if place[0] not in ("apiVersion", "kind")]
    schema = validator("1.36", obj["apiVersion"], obj["kind"])
    refused = 0
    for place in chosen.sample(everywhere, min(25, len(everywhere))):
        for damage in chosen.sample(DAMAGES, 3):
            changed = damaged(obj, place, damage)
            if changed is None:
                continue
            theirs = list(schema.iter_errors(changed))
            ours = check_object(changed)
            if not theirs:
                assert only_stricter(ours), (place, damage, ours)
                continue
            assert not {f.code for f in ours} <= STRICTER, (place, damage, theirs[0].message)
            refused += 1
            for error in theirs:
                where = tuple(error.absolute_path)
                assert any(f.path[: len(where)] == where for f in ours), (place, damage, where)
    assert refused > 0
