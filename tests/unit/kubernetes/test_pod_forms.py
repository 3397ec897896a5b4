"""Pods are found by their form in kinds that kaigen does not know, and the table has every place in those it knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.check.policy import check_policy
from kaigen.dialects.registry import find_kind as find_dialect
from kaigen.kubernetes.images import images_of
from kaigen.kubernetes.kind_table import find_kind
from kaigen.kubernetes.pods import CONTAINER_FIELDS, CONTAINER_LISTS, CONTAINER_MAPPINGS, containers, pod_templates
from kaigen.kubernetes.requests import requests_of, why_unlimited
from tests import plain_yaml

CRDS = Path(__file__).parents[2] / "cluster" / "crds"
POD = {"containers": [{"name": "c", "image": "evil.example/x"}]}


def object_of(spec: object, api_version: str = "example.com/v1", kind: str = "Runner") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def places_in(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, bool]]:
    """Yield each place of a schema that may have the form of a pod, and whether it is a single container."""
    fields = schema.get("properties", {})
    pods = [name for name in CONTAINER_FIELDS if fields.get(name, {}).get("type") == "array"]
    if pods:
        yield path, False
    elif fields.get("image", {}).get("type") == "string" and any(
        fields.get(name, {}).get("type") == kind
        for names, kind in ((CONTAINER_LISTS, "array"), (CONTAINER_MAPPINGS, "object"))
        for name in names
    ):
        yield path, True
    for name, below in fields.items():
        if name not in pods:
            yield from places_in(below, f"{path}.{name}" if path else name)
    if isinstance(schema.get("items"), dict):
        yield from places_in(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from places_in(schema["additionalProperties"], f"{path}.*")


def schemas() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield apiVersion, kind, version and schema of every custom resource that is not a dialect's spec."""
    for file in sorted(CRDS.glob("*.yaml")):
        definition = plain_yaml.load(file.read_text(encoding="utf-8"))["spec"]
        kind = definition["names"]["kind"]
        for version in definition["versions"]:
            api_version = f"{definition['group']}/{version['name']}"
            if find_dialect(api_version, kind) is None:
                yield api_version, kind, version["name"], version["schema"]["openAPIV3Schema"]


DIALECTS_OBJECTS = frozenset({"Root.koldun.gorizond.io", "Worker.koldun.gorizond.io"})
"""Objects that the operator of a dialect makes itself; kaigen reads no document of these kinds."""


CHANGES = frozenset({"TrainJob.trainer.kubeflow.org"})
"""Kinds that change pods of other objects: they have fields of pods, and no pod whose fields are all there."""


def test_the_table_has_every_place_of_the_custom_resources() -> None:
    found = 0
    for api_version, kind, _, schema in schemas():
        row = find_kind(api_version, kind)
        if row.type in DIALECTS_OBJECTS | CHANGES:
            continue
        known = {(place.path if place.single else f"{place.path}.spec".lstrip("."), place.single) for place in row.pods}
        places = set(places_in(schema))
        assert places <= known, f"{api_version} {kind}"
        found += len(places)
    assert found >= 15


@pytest.mark.parametrize(
    ("spec", "path", "single"),
    [
        ({"template": {"spec": POD}}, ("spec", "template", "spec"), False),
        ({"predictor": POD}, ("spec", "predictor"), False),
        (POD, ("spec",), False),
        ({"replicas": {"Worker": {"template": {"spec": POD}}}}, ("spec", "replicas", "Worker", "template", "spec"), 0),
        ({"jobs": [{"spec": POD}]}, ("spec", "jobs", 0, "spec"), False),
        ({"jobs": [[POD]]}, ("spec", "jobs", 0, 0), False),
        ({"initContainers": [{"image": "evil.example/x"}], "x": 1}, ("spec",), False),
        ({"ephemeralContainers": [{"name": "a"}]}, ("spec",), False),
        ({"containers": [None, {"name": "a"}]}, ("spec",), False),
        ({"model": {"image": "x", "resources": {}}}, ("spec", "model"), True),
        ({"script": {"image": "x", "command": ["sh"]}}, ("spec", "script"), True),
        ({"steps": [{"image": "x", "volumeMounts": []}]}, ("spec", "steps", 0), True),
    ],
)  # fmt: skip
def test_a_pod_is_found_by_its_form(spec: object, path: tuple[str | int, ...], single: bool) -> None:
    (template,) = pod_templates(object_of(spec))
    assert (template.spec_path, template.single, template.by_form) == (path, single, True)
    value: Any = object_of(spec)
    for step in containers(template)[0].path:
        value = value[step]
    assert value == containers(template)[0].body


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": []},
        {"containers": ["a"]},
        {"containers": {"a": {"image": "x"}}},
        {"containers": [{"id": 1, "image": 2}]},
        {"image": "x", "tag": "1"},
        {"image": {"repository": "x"}, "env": []},
        {"labels": {"image": "x", "env": "prod", "resources": "few"}},
        None,
        [],
    ],
)
def test_other_forms_are_no_pods(spec: object) -> None:
    assert pod_templates(object_of(spec)) == []


def test_kinds_with_a_schema_are_not_searched() -> None:
    found = pod_templates(object_of({"selector": POD}, "v1", "Service"))
    assert found == []


def test_a_place_that_a_version_adds_to_a_known_kind_is_found() -> None:
    job = {"name": "node", "template": {"spec": {"template": {"spec": POD}}}}
    runtime = {"template": {"spec": {"replicatedJobs": [job]}}, "watcher": POD}
    found = pod_templates(object_of(runtime, "trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"))
    assert [(template.role, template.by_form) for template in found] == [("node", False), ("spec.watcher", True)]


def test_rules_of_pods_apply_to_what_is_found() -> None:
    privileged = {"name": "c", "image": "evil.example/x", "securityContext": {"privileged": True}}
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 64}}}
    obj = object_of({"predictor": {"containers": [{**privileged, **gpus}], "hostNetwork": True}})
    problems = {(problem.code, problem.path) for problem in check_policy(obj)}
    place = ("spec", "predictor")
    assert ("KG0520", (*place, "hostNetwork")) in problems
    assert ("KG0524", (*place, "containers", 0, "securityContext", "privileged")) in problems
    assert images_of([obj]) == ["evil.example/x"]
    assert images_of([object_of({"model": {"image": "evil.example/y", "env": []}})]) == ["evil.example/y"]
    assert requests_of(obj, BUILT_IN)["nvidia.com/gpu"] == 64 * 10**9
    assert why_unlimited(obj) == "kaigen does not know how many pods a Runner runs"


@pytest.mark.parametrize(
    ("kind", "cluster"), [("RayCluster", ()), ("RayService", ("rayClusterConfig",)), ("RayJob", ("rayClusterSpec",))]
)
def test_groups_of_ray_count_each_for_itself(kind: str, cluster: tuple[str, ...]) -> None:
    gpu = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    groups = [
        {"groupName": "head", "template": gpu},
        {"groupName": "a", "replicas": 1, "template": gpu},
        {"groupName": "a", "replicas": 5, "template": gpu},
    ]
    spec: Any = {"headGroupSpec": {"template": gpu}, "workerGroupSpecs": groups}
    for step in cluster:
        spec = {step: spec}
    assert requests_of(object_of(spec, "ray.io/v1", kind), BUILT_IN)["nvidia.com/gpu"] == 8 * 10**9


def test_the_autoscaler_of_ray_has_the_security_context_of_the_head() -> None:
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    requests = {"requests": {"cpu": 1, "memory": "1Gi"}}
    container = {"name": "c", "image": "x@sha256:" + "a" * 64, "securityContext": own, "resources": requests}
    head = {"rayStartParams": {}, "template": {"spec": {"securityContext": context, "containers": [container]}}}
    obj = object_of({"headGroupSpec": head, "autoscalerOptions": {"securityContext": own}}, "ray.io/v1", "RayCluster")
    assert [problem.message for problem in check_policy(obj)] == []
    obj["spec"]["autoscalerOptions"] = {"idleTimeoutSeconds": 60}
    paths = {problem.path for problem in check_policy(obj)}
    assert paths == {("spec", "autoscalerOptions")}
