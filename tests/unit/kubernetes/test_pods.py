"""Pods, their containers and images are found in every kind that has some."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.kubernetes.images import images_of
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.selectors import Selector, pods_of, select_pods, selector_of

POD = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}


def object_of(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


@pytest.mark.parametrize(
    ("obj", "templates"),
    [
        (object_of("v1", "Pod", spec={"containers": []}), [((), "")]),
        (object_of("apps/v1", "Deployment", spec={"template": POD}), [(("spec", "template"), "")]),
        (
            object_of("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": [
                {"name": "a", "template": {"spec": {"template": POD}}},
                3,
                {"template": {"spec": {"template": POD}}},
            ]}),
            [
                (("spec", "replicatedJobs", 0, "template", "spec", "template"), "a"),
                (("spec", "replicatedJobs", 2, "template", "spec", "template"), "2"),
            ],
        ),
        (
            object_of("ray.io/v1", "RayCluster", spec={
                "headGroupSpec": {"template": POD},
                "workerGroupSpecs": [{"groupName": "gpu", "template": POD}],
            }),
            [
                (("spec", "headGroupSpec", "template"), "head"),
                (("spec", "workerGroupSpecs", 0, "template"), "gpu"),
            ],
        ),
        (object_of("apps/v1", "Deployment", spec={"template": {"spec": None}}), []),
        (object_of("apps/v1", "Deployment", spec=[POD]), []),
        (object_of("apps/v1", "Deployment"), []),
        (object_of("v1", "ConfigMap", spec={"template": POD}), []),
    ],
)  # fmt: skip
def test_every_template_has_its_path_and_role(
    obj: dict[str, Any], templates: list[tuple[tuple[str | int, ...], str]]
) -> None:
    found = pod_templates(obj)
    assert [(each.path, each.role) for each in found] == templates
    assert all(each.spec == {"containers": []} for each in found)
    assert all(each.metadata == (POD["metadata"] if each.path else obj["metadata"]) for each in found)


def test_containers_have_their_path_field_and_name() -> None:
    spec = {
        "containers": [{"name": "main"}, "junk", {"name": 3}],
        "initContainers": [{"name": "init"}],
        "ephemeralContainers": {"name": "debug"},
    }
    (template,) = pod_templates(object_of("apps/v1", "Deployment", spec={"template": {"spec": spec}}))
    path = ("spec", "template", "spec")
    assert template.metadata == {}
    assert [(each.path, each.field, each.name, each.body) for each in containers(template)] == [
        ((*path, "initContainers", 0), "initContainers", "init", {"name": "init"}),
        ((*path, "containers", 0), "containers", "main", {"name": "main"}),
        ((*path, "containers", 2), "containers", "containers[2]", {"name": 3}),
    ]


def test_images_are_those_that_pods_run_or_mount() -> None:
    pod = {
        "containers": [{"image": "b"}, {"image": 1}, {"name": "none"}, "junk"],
        "initContainers": [{"image": "a"}, {"image": "b"}],
        "ephemeralContainers": [{"image": "c"}],
        "volumes": [{"image": {"reference": "d"}}, {"image": {"reference": 2}}, {"image": "no"}, "junk"],
        "others": [{"image": "no"}],
        "image": "no",
    }
    assert images_of([{"spec": {"deep": [{"er": pod}]}}, {"image": "no"}]) == ["a", "b", "c", "d"]
    assert images_of([{"containers": {"image": "no"}, "volumes": {"image": {"reference": "no"}}}]) == []


def deployment(namespace: str | None = None, **labels: str) -> dict[str, Any]:
    """A Deployment whose pods have these labels and the port http."""
    ports = [{"name": "http"}, {"containerPort": 1}, {"name": 5}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "ports": ports}]}}
    obj = object_of("apps/v1", "Deployment", spec={"template": template})
    if namespace is not None:
        obj["metadata"]["namespace"] = namespace
    return obj


def test_pods_have_the_namespace_labels_and_port_names_of_their_template() -> None:
    (pods,) = pods_of([deployment("ml", app="x"), object_of("v1", "Service")])
    assert (pods.kind.type, pods.namespace, pods.labels) == ("Deployment.apps", "ml", {"app": "x"})
    assert pods.ports == {"http"}
    assert pods_of([deployment()])[0].namespace == ""


@pytest.mark.parametrize(
    ("namespace", "selector", "selects"),
    [
        ("ml", {"app": "x"}, True),
        ("", {"app": "x"}, True),
        ("other", {"app": "x"}, False),
        ("ml", {"app": "y"}, False),
        ("ml", {"app": "x", "tier": "gpu"}, False),
        ("ml", {"pod-template-hash": "1"}, True),
        ("ml", {}, True),
    ],
)
def test_a_plain_selector_selects_pods_of_its_namespace_with_all_labels(
    namespace: str, selector: dict[str, object], selects: bool
) -> None:
    pods = pods_of([deployment("ml", app="x")])
    assert bool(select_pods(pods, namespace, Selector("selector", selector, plain=True))) is selects
    assert bool(select_pods(pods, namespace, Selector("selector", {"matchLabels": selector}))) is selects


def test_pods_without_a_namespace_are_in_every_namespace() -> None:
    assert select_pods(pods_of([deployment(app="x")]), "ml", Selector("selector", {"app": "x"}, plain=True))


@pytest.mark.parametrize(
    ("key", "operator", "values", "selects"),
    [
        ("app", "In", ["x", "y"], True),
        ("app", "In", ["y"], False),
        ("app", "In", "x", False),
        ("tier", "In", [None], False),
        ("app", "NotIn", ["x"], False),
        ("app", "NotIn", ["y"], True),
        ("tier", "NotIn", ["y"], True),
        ("app", "Exists", None, True),
        ("tier", "Exists", None, False),
        ("app", "DoesNotExist", None, False),
        ("tier", "DoesNotExist", None, True),
        ("pod-template-hash", "DoesNotExist", None, True),
        ("tier", "Unknown", None, True),
        (3, "In", ["y"], True),
    ],
)
def test_an_expression_selects_pods_by_one_label(key: object, operator: str, values: object, selects: bool) -> None:
    expression = {"key": key, "operator": operator, "values": values}
    selector = Selector("selector", {"matchLabels": {"app": "x"}, "matchExpressions": [expression]})
    assert bool(select_pods(pods_of([deployment(app="x")]), "", selector)) is selects


def test_an_object_has_the_selector_of_its_kind() -> None:
    service = object_of("v1", "Service", spec={"selector": {"app": "x"}})
    assert selector_of(service) == Selector("selector", {"app": "x"}, plain=True)
    policy = object_of("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {"matchLabels": {"a": "b"}}})
    assert selector_of(policy) == Selector("podSelector", {"matchLabels": {"a": "b"}})
    monitor = {"selector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {"any": True}}
    assert selector_of(object_of("monitoring.coreos.com/v1", "PodMonitor", spec=monitor)) is None
    monitor.pop("namespaceSelector")
    assert selector_of(object_of("monitoring.coreos.com/v1", "PodMonitor", spec=monitor)) is not None
    assert selector_of(object_of("v1", "Service", spec={"selector": {}})) is None
    assert selector_of(object_of("v1", "ConfigMap", spec={"selector": {"app": "x"}})) is None
    assert selector_of(object_of("apps/v1", "Deployment", spec={"selector": {"matchLabels": {"a": "b"}}})) is None
