"""Plain objects with values of any type give diagnostics, also when the facts for Argo CD and Flux are collected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.pipeline.run import Run
from tests.unit.check.example_objects import objects
from tests.unit.check.mutations import at, places

KAIGEN_YAML = """
namespace: ml
passthrough: true
gitops:
  repository: https://git.example.com/ml.git
  argocd: {}
  flux: {}
  tenancy: {namespaces: true}
tenants:
  team-a: {namespaces: [ml], folders: [specs/team-a], gpus: 4}
secrets:
  externalSecrets: {store: {name: vault}}
"""
EXAMPLES = objects()
VALUES = ("null", "[]", '["a"]', "7", '"x"', "{}", '{"a": 1}')
"""What replaces a value, in JSON: each use is a copy."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Return the settings of a repository that copies objects for Argo CD and Flux."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "specs/team-a").mkdir(parents=True)
    (folder / "kaigen.yaml").write_text(KAIGEN_YAML)
    return load_config(folder)


def outcome(config: Config, obj: dict[str, Any]) -> Iterator[str]:
    """Yield the code and place of each error of a file with one object; without errors, make its output."""
    file = Path(config.root) / "specs/team-a/object.json"
    file.write_text(json.dumps(obj))
    run = Run.load((), config, use_cache=False)
    errors = [each for each in run.diagnostics if each.severity is Severity.ERROR]
    if not errors:
        assert run.files("both")
    for each in errors:
        assert each.mark is not None
        yield f"{each.code} {each.path}"


@st.composite
def mutated_objects(draw: st.DrawFn) -> dict[str, Any]:
    """Return a valid object with one or two values replaced, of its own kind or of one without a schema."""
    obj: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(EXAMPLES))))
    if draw(st.booleans()):
        obj["apiVersion"] = "example.com/v1"
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from(list(places(obj))))
        at(obj, place[:-1])[place[-1]] = json.loads(draw(st.sampled_from(VALUES)))
    return obj


@settings(max_examples=150)
@given(obj=mutated_objects())
def test_values_of_other_types_in_plain_objects_are_handled(config: Config, obj: dict[str, Any]) -> None:
    list(outcome(config, obj))


@pytest.mark.parametrize("api_version", ["v1", "example.com/v1"])
@pytest.mark.parametrize(
    ("field", "value"), [("namespace", ["a"]), ("labels", ["a"]), ("annotations", "a"), ("namespace", 7)]
)
def test_metadata_of_the_wrong_type_is_one_error_whatever_the_kind(
    config: Config, api_version: str, field: str, value: Any
) -> None:
    metadata = {"name": "a", field: value}
    obj = {"apiVersion": api_version, "kind": "ConfigMap", "metadata": metadata}
    assert list(outcome(config, obj)).count(f"KG0506 metadata.{field}") == 1


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("HorizontalPodAutoscaler", "spec", "x"),
        ("HorizontalPodAutoscaler", "spec.scaleTargetRef", ["x"]),
        ("HorizontalPodAutoscaler", "spec.scaleTargetRef.kind", {}),
        ("RoleBinding", "roleRef", 7),
        ("RoleBinding", "roleRef.name", ["x"]),
        ("Role", "rules", 7),
        ("ExternalSecret", "spec.data[0].secretKey", {"a": 1}),
    ],
)
def test_fields_that_kaigen_reads_are_errors_when_their_type_is_wrong(
    config: Config, kind: str, field: str, value: Any
) -> None:
    obj = next(json.loads(json.dumps(each)) for each in EXAMPLES if each["kind"] == kind)
    *above, last = field.replace("[", ".[").split(".")
    steps = [int(step[1:-1]) if step.startswith("[") else step for step in above]
    at(obj, tuple(steps))[last] = value
    assert any(each.endswith(f" {field}") for each in outcome(config, obj))
