"""Labels and annotations of pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kaigen.compile.context import Context
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from kaigen.kinds.model import Model
from kaigen.kinds.topology import Topology
from tests.unit.compile.specs import SOURCE, Block, Object, app, configured, context, problem_paths

SPECS: dict[str, tuple[type[Any], Object]] = {
    "Job": (Job, {"image": "i"}),
    "JobSet": (Job, {"image": "i", "nodes": 2, "groups": "jobSet"}),
    "Model": (Model, {"source": SOURCE, "store": {"volume": {"size": "1Gi"}}}),
    "Topology": (Topology, {"model": {"folder": "/weights"}}),
    "groups": (
        Topology,
        {
            "model": {"folder": "/weights"},
            "image": "vllm/vllm-openai:v0.25.1",
            "shape": {"nodes": 2, "groups": "statefulSet"},
            "resources": {"gpus": 1},
        },
    ),
    "template": (Topology, {"template": {"spec": {"containers": []}}, "port": 80}),
}
every_kind = pytest.mark.parametrize("name", SPECS)
Make = Callable[..., Block]


def block(name: str, metadata: Object | None = None, **spec: Any) -> Block:
    """Return the spec of a name with further metadata and fields."""
    kind, fields = SPECS[name]
    found: Block = read_block(kind, {"metadata": {"name": "x", **(metadata or {})}, "spec": {**fields, **spec}})
    return found


def templates(spec: Block, where: Context | None = None) -> list[Object]:
    """Return the metadata of every pod template."""
    found = []
    for item in app(spec, where).render():
        inner = item.body.get("spec", {})
        for job in inner.get("replicatedJobs", ()):
            found.append(job["template"]["spec"]["template"]["metadata"])
        if "containers" in inner.get("template", {}).get("spec", {}):
            found.append(inner["template"]["metadata"])
    assert found
    return found


def selectors(spec: Block) -> list[object]:
    """Return everything by which the objects of a spec select pods."""
    return [
        {key: value for key, value in item.body["spec"].items() if "elector" in key}
        for item in app(spec).render()
        if "spec" in item.body
    ]


@every_kind
def test_labels_and_annotations_of_the_spec_reach_every_pod(name: str) -> None:
    metadata = {"labels": {"team": "ml"}, "annotations": {"example.com/a": "b"}}
    for found in templates(block(name, metadata)):
        assert found["labels"]["team"] == "ml"
        assert found["annotations"]["example.com/a"] == "b"


@every_kind
def test_selectors_do_not_depend_on_labels(name: str) -> None:
    assert selectors(block(name, {"labels": {"team": "ml"}})) == selectors(block(name))


@pytest.mark.parametrize("name", [name for name in SPECS if name != "template"])
def test_pods_have_labels_and_annotations_of_their_own(name: str) -> None:
    metadata = {"labels": {"team": "ml", "tier": "1"}, "annotations": {"example.com/a": "b"}}
    spec = block(name, metadata, podLabels={"team": "research"}, podAnnotations={"example.com/c": "d"})
    for found in templates(spec):
        assert (found["labels"]["team"], found["labels"]["tier"]) == ("research", "1")
        assert found["annotations"]["example.com/a"] == "b"
        assert found["annotations"]["example.com/c"] == "d"
    assert all("example.com/c" not in item.body["metadata"].get("annotations", {}) for item in app(spec).render())
    assert selectors(spec) == selectors(block(name))


@every_kind
def test_directions_for_syncers_and_queues_stay_on_objects(name: str) -> None:
    metadata = {
        "labels": {"kueue.x-k8s.io/queue-name": "q"},
        "annotations": {"argocd.argoproj.io/sync-options": "Prune=false", "helm.sh/resource-policy": "keep"},
    }
    for found in templates(block(name, metadata)):
        assert "kueue.x-k8s.io/queue-name" not in found["labels"]
        assert "annotations" not in found


@every_kind
def test_labels_of_all_apps_reach_objects_and_pods(name: str) -> None:
    where = configured(context(), labels={"cost": "42", "team": "all"}, annotations={"example.com/owner": "me"})
    spec = block(name, {"labels": {"team": "ml"}})
    for item in app(spec, where).render():
        assert item.body["metadata"]["labels"]["cost"] == "42"
        assert item.body["metadata"]["labels"]["team"] == "ml"
        assert item.body["metadata"]["annotations"]["example.com/owner"] == "me"
    for found in templates(spec, where):
        assert (found["labels"]["cost"], found["labels"]["team"]) == ("42", "ml")
        assert found["annotations"]["example.com/owner"] == "me"


def test_a_template_keeps_its_own_labels() -> None:
    template = {
        "metadata": {"labels": {"team": "own"}, "annotations": {"example.com/a": "own"}},
        "spec": {"containers": []},
    }
    metadata = {"labels": {"team": "ml", "tier": "1"}, "annotations": {"example.com/a": "b"}}
    (found,) = templates(block("template", metadata, template=template))
    assert (found["labels"]["team"], found["labels"]["tier"]) == ("own", "1")
    assert found["annotations"] == {"example.com/a": "own"}


def test_pods_that_use_azures_identity_have_its_label() -> None:
    account = {"create": {"annotations": {"azure.workload.identity/client-id": "1"}}}
    (found,) = templates(block("Job", serviceAccount=account))
    assert found["labels"]["azure.workload.identity/use"] == "true"


@pytest.mark.parametrize(
    "key", ["app.kubernetes.io/name", "app.kubernetes.io/component", "kaigen.dev/group", "job-name"]
)
def test_reserved_labels_are_reported(key: str) -> None:
    assert problem_paths(block("Job", {"labels": {key: "x"}})) == [("KG0324", f"metadata.labels.{key}")]
    assert problem_paths(block("Job", podLabels={key: "x"})) == [("KG0324", f"spec.podLabels.{key}")]
