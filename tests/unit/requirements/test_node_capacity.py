"""The largest pods of apps against the nodes of a cluster, and classes and queues that no controller uses.

`tests/cluster/test_two_syncers.py` asks a real cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.config.load import load_config
from kaigen.doctor.apps import check_requirements
from kaigen.kubernetes.quantities import nano
from kaigen.pipeline.run import Run
from kaigen.requirements.cluster import findings_of
from kaigen.requirements.collect import collect
from kaigen.requirements.model import Finding, Pod, Requirement, Requirements, Use
from kaigen.requirements.node_capacity import pod_findings
from tests.unit.cluster.api_server import api_server

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(
    name: str, taints: list[dict[str, str]] | None = None, labels: dict[str, str] | None = None, **has: str
) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or []},
        "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "50Gi", **has}},
    }


def pod(spec: dict[str, Any] | None = None, name: str = "chat", **requests: str) -> Pod:
    names = {"gpu": "nvidia.com/gpu", "disk": "ephemeral-storage"}
    amounts = {names.get(key, key): nano(text) or 0 for key, text in requests.items()}
    return Pod(Use(f"ml/{name}", f"specs/{name}.yaml"), f"Deployment {name}", spec or {}, amounts)


def finding(pods: list[Pod], nodes: list[Any], pools: list[Any] | None = None) -> Finding:
    ((_, found),) = pod_findings(pods, nodes, pools or [])
    return found


GPU = node("gpu-1", [TAINT], {"gpu": "l4"}, **{"nvidia.com/gpu": "1"})
SMALL = node("small-1", labels={"zone": "a", "generation": "3"})
TOLERATED = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}


LACKS = "no node fits: of small-1, small-1 has the most"


@pytest.mark.parametrize(
    ("wanted", "detail"),
    [
        (pod(cpu="400"), f"{LACKS} cpu: 4"),
        (pod(memory="17Gi", cpu="1"), f"{LACKS} memory: 16Gi"),
        (pod(disk="60Gi"), f"{LACKS} ephemeral-storage: 50Gi"),
        (pod(TOLERATED, gpu="2"), "no node fits: of gpu-1, small-1, gpu-1 has the most nvidia.com/gpu: 1"),
        (
            pod({"nodeSelector": {"gpu": "l4"}}, gpu="1"),
            "no node fits: it does not tolerate `nvidia.com/gpu=present:NoSchedule` of gpu-1",
        ),
        (pod({"nodeSelector": {"gpu": "h100"}}, cpu="1"), "no node fits: none has `gpu=h100`"),
    ],
)
def test_a_pod_that_fits_no_node_is_missing_with_the_reason(wanted: Pod, detail: str) -> None:
    assert finding([wanted], [GPU, SMALL]) == Finding("missing", detail)


def test_a_pod_that_fits_names_its_nodes() -> None:
    assert finding([pod(TOLERATED, gpu="1")], [GPU, SMALL]) == Finding("found", "fits 1 node: gpu-1")
    assert finding([pod(cpu="4", memory="16Gi")], [SMALL]).status == "found"
    assert finding([pod(cpu="1")], []).detail == "no node fits: the cluster has none"


@pytest.mark.parametrize(
    ("operator", "key", "values", "fits"),
    [
        ("In", "zone", ["a", "b"], True),
        ("In", "zone", ["b"], False),
        ("NotIn", "zone", ["a"], False),
        ("NotIn", "other", ["a"], True),
        ("Exists", "zone", None, True),
        ("Exists", "other", None, False),
        ("DoesNotExist", "zone", None, False),
        ("Gt", "generation", ["2"], True),
        ("Gt", "generation", ["3"], False),
        ("Lt", "generation", ["4"], True),
    ],
)
def test_required_affinity_chooses_nodes(operator: str, key: str, values: list[str] | None, fits: bool) -> None:
    rule = {"key": key, "operator": operator, **({"values": values} if values else {})}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    assert (finding([pod(spec, cpu="1")], [SMALL]).status == "found") is fits
    terms["nodeSelectorTerms"].append(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["small-1"]}]}
    )
    assert finding([pod(spec, cpu="1")], [SMALL]).status == "found", "one of two terms is enough"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "nvidia.com/gpu", "value": "present"}, True),
        ({"key": "nvidia.com/gpu", "value": "absent"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations_admit_to_tainted_nodes(toleration: dict[str, str], fits: bool) -> None:
    assert (finding([pod({"tolerations": [toleration]}, cpu="1")], [GPU]).status == "found") is fits


def test_the_pod_of_an_app_that_does_not_fit_is_reported_and_not_a_larger_one() -> None:
    own = [pod(cpu="4"), pod({"nodeSelector": {"gpu": "h100"}}, cpu="1")]
    ((requirement, found),) = pod_findings(own, [SMALL], [])
    assert (requirement.title, found.status) == ("ml/chat (Deployment chat: cpu 1)", "missing")
    ((requirement, found),) = pod_findings([pod(cpu="1"), pod(cpu="4")], [SMALL], [])
    assert (requirement.title, found.status) == ("ml/chat (Deployment chat: cpu 4)", "found")


def pool(**changes: Any) -> dict[str, Any]:
    made = {
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}],
        "taints": [TAINT],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "large"},
        "spec": {"template": {"metadata": {"labels": {"team": "a"}}, "spec": made}, **changes},
    }


@pytest.mark.parametrize(
    ("selector", "limits", "makes"),
    [
        ({"node.kubernetes.io/instance-type": "p5.48xlarge"}, {}, True),
        ({"node.kubernetes.io/instance-type": "g6.xlarge"}, {}, False),
        ({"team": "a", "topology.kubernetes.io/zone": "eu-1a"}, {}, True),
        ({"team": "b"}, {}, False),
        ({"unknown": "label"}, {}, False),
        ({}, {"cpu": "500"}, True),
        ({}, {"cpu": "300"}, False),
    ],
)
def test_a_node_pool_that_may_make_a_node_makes_it_a_note(
    selector: dict[str, str], limits: dict[str, str], makes: bool
) -> None:
    wanted = pod({**TOLERATED, "nodeSelector": selector}, cpu="400")
    found = finding([wanted], [SMALL], [pool(limits=limits)])
    assert found.status == ("found" if makes else "missing")
    assert ("NodePool large may make one" in found.detail) is makes
    assert finding([pod(cpu="400")], [SMALL], [pool()]).status == "missing", "its taint is not tolerated"


SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  image: docker.io/acme/engine:1
  engine: transformers
  preset: qwen2.5-0.5b-instruct
  resources: {gpus: 0, cpu: 400, memory: 4Gi}
  route: {host: chat.example.com, ingress: {}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  image: docker.io/acme/train:1
  resources: {cpu: 1, memory: 1Gi}
  placement: {queue: batch}
"""


NODE_OF_CHAT = Requirement("node", "chat", "ml", uses=(Use("ml/chat", "specs/chat.yaml"),))


def required(folder: Path) -> Requirements:
    (folder / "specs").mkdir()
    (folder / "specs" / "chat.yaml").write_text(SPEC)
    (folder / "kaigen.yaml").write_text("apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n")
    config = load_config(folder)
    return collect(Run.load((), config, use_cache=False).compilation(), config)


def test_nodes_default_ingress_class_and_queue_of_a_cluster_are_compared(tmp_path: Path) -> None:
    found = required(tmp_path)
    kueue = {
        "kind": "APIResourceList",
        "resources": [{"name": "localqueues", "kind": "LocalQueue", "namespaced": True}],
    }
    stopped = {"type": "Active", "status": "False", "reason": "ClusterQueueDoesNotExist", "message": "no research"}
    queue = {"metadata": {"name": "batch"}, "status": {"conditions": [stopped]}}
    versions = {"versions": [{"groupVersion": "kueue.x-k8s.io/v1beta2", "version": "v1beta2"}]}
    group = {"name": "kueue.x-k8s.io", **versions, "preferredVersion": versions["versions"][0]}
    classes = "/apis/networking.k8s.io/v1/ingressclasses?limit=500"
    answers = {
        "/version": (200, {"major": "1", "minor": "36"}),
        "/api/v1/nodes?limit=500": (200, {"items": [SMALL]}),
        classes: (200, {"items": [{"metadata": {"name": "nginx"}}]}),
        "/apis": (200, {"groups": [group]}),
        "/apis/kueue.x-k8s.io": (200, group),
        "/apis/kueue.x-k8s.io/v1beta2": (200, kueue),
        "/apis/kueue.x-k8s.io/v1beta2/namespaces/ml/localqueues/batch": (200, queue),
        "/api/v1/namespaces/ml/resourcequotas?limit=500": (200, {"items": []}),
    }
    (tmp_path / "server").mkdir()
    with api_server(tmp_path / "server", answers) as (cluster, _):
        findings = {f"{item.kind} {item.title}": each for item, each in findings_of(found, cluster).items()}
    (chat,) = (each for name, each in findings.items() if name.startswith("node ml/chat (Deployment chat: "))
    (train,) = (each for name, each in findings.items() if name.startswith("node ml/train (Job train-"))
    assert chat == Finding("missing", "no node fits: of small-1, small-1 has the most cpu: 4")
    assert train == Finding("found", "fits 1 node: small-1")
    assert findings["IngressClass (default)"].status == "missing"
    assert findings["LocalQueue ml/batch"] == Finding("missing", "Active is False: no research")
    ((_, failed),) = (
        each for each in enumerate(check_requirements({NODE_OF_CHAT: chat})) if each[1].status == "failed"
    )
    assert failed.detail == "no node fits: of small-1, small-1 has the most cpu: 4; needed at specs/chat.yaml"
    assert failed.fix.startswith("add such a node")


def test_nodes_that_may_not_be_listed_are_unknown(tmp_path: Path) -> None:
    found = required(tmp_path)
    (tmp_path / "server").mkdir()
    with api_server(tmp_path / "server", {"/api/v1/nodes?limit=500": (403, {"kind": "Status", "code": 403})}) as (
        cluster,
        _,
    ):
        findings = {
            f"{item.kind} {item.title}": each
            for item, each in findings_of(Requirements("", (), (), found.pods), cluster).items()
        }
    assert findings == {"node for the largest pods": Finding("unknown", "not allowed to list nodes")}
