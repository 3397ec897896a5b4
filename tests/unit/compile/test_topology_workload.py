"""The workload of a Topology: its objects, several nodes, and rollouts."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.programs.files import program
from tests.unit.compile.specs import app, context, objects, pod, topology
from tests.unit.compile.topologies import CONTEXT, HUB, MODELS, TEMPLATE, args, group


def test_one_node_is_a_deployment_behind_a_service() -> None:
    made = objects(topology(model="many"), CONTEXT)
    assert sorted(made) == ["ConfigMap", "Deployment", "NetworkPolicy", "Service"]
    container = pod(topology(model="many"), CONTEXT)["containers"][0]
    assert container["command"][-2:] == ["vllm", "serve"]
    assert container["args"] == [
        *("/model", "--served-model-name", "t", "--port=8000", "--shutdown-timeout=20"),
        "--middleware=kaigen_connections.Connections",
    ]
    assert made["Service"]["spec"]["ports"][0] == {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}


@pytest.mark.parametrize(
    ("shape", "gpus", "expected"),
    [
        ({}, 1, (1, 1, 1)),
        ({}, 4, (4, 1, 1)),
        ({"dataParallel": 4}, 4, (1, 1, 4)),
        ({"pipelineParallel": 2}, 4, (2, 2, 1)),
        ({"nodes": 2}, 8, (8, 2, 1)),
        ({"nodes": 2, "tensorParallel": 16}, 8, (16, 1, 1)),
        ({"nodes": 4, "dataParallel": 2}, 4, (2, 4, 2)),
        ({"nodes": 2}, 0, (2, 1, 1)),
        ({"nodes": 2, "tensorParallel": 2}, 0, (2, 1, 1)),
        ({"nodes": 2, "dataParallel": 2}, 0, (1, 1, 2)),
    ],
)
def test_parallelism_makes_up_all_gpus(shape: dict[str, int], gpus: int, expected: tuple[int, int, int]) -> None:
    block = topology(model="many", shape=shape, resources={"gpus": gpus})
    found = (group(block)[0]["containers"][0]["args"] if "nodes" in shape else args(block)) + [""]
    given = {
        name: f"--{name}-parallel-size={value}"
        for name, value in zip(("tensor", "pipeline", "data"), expected, strict=True)
    }
    for name, value in zip(("tensor", "pipeline", "data"), expected, strict=True):
        assert (given[name] in found) == (value > 1), name


def test_several_nodes_are_groups_whose_leader_serves() -> None:
    block = topology(model="many", shape={"replicas": 3, "nodes": 2}, resources={"gpus": 8})
    made = objects(block, CONTEXT)
    spec = made["LeaderWorkerSet"]["spec"]
    # The controller takes a Service of its name, such as the app's, for the headless one that it needs.
    assert made["Service"]["metadata"]["name"] == made["LeaderWorkerSet"]["metadata"]["name"]
    assert spec["networkConfig"] == {"subdomainPolicy": "UniquePerReplica"}
    assert (spec["replicas"], spec["leaderWorkerTemplate"]["size"]) == (3, 2)
    leader, worker = group(block)
    assert leader["containers"][0]["args"][:-6] == worker["containers"][0]["args"][:-6]
    assert leader["containers"][0]["args"][-5:] == [
        "--distributed-executor-backend=mp",
        "--nnodes=2",
        "--node-rank=$(LWS_WORKER_INDEX)",
        "--master-addr=$(LWS_LEADER_ADDRESS)",
        "--master-port=29500",
    ]
    assert worker["containers"][0]["args"][-1] == "--headless"
    assert "ports" not in worker["containers"][0]
    assert "readinessProbe" not in worker["containers"][0]
    selector = made["Service"]["spec"]["selector"]
    labels = [spec["leaderWorkerTemplate"][t]["metadata"]["labels"] for t in ("leaderTemplate", "workerTemplate")]
    assert [selector.items() <= each.items() for each in labels] == [True, False]


@pytest.mark.parametrize(
    ("image", "version", "executor", "ray"),
    [
        (None, None, None, False),
        ("r/vllm:v0.11.2", None, None, True),
        ("r/vllm:v0.12.0", None, None, False),
        ("r/vllm:v0.15.1", None, "ray", True),
        ("r/vllm:nightly", None, None, False),
        ("r/vllm:nightly", "0.10", None, True),
        ("r:5000/vllm", "0.9.1", None, True),
        (f"r/vllm:v0.8.5@sha256:{'0' * 64}", None, None, True),
    ],
)
def test_the_engines_version_decides_how_nodes_find_each_other(
    image: str | None, version: str | None, executor: str | None, ray: bool
) -> None:
    shape: dict[str, Any] = {"nodes": 2} | ({"executor": executor} if executor else {})
    spec: dict[str, Any] = {"model": "many", "shape": shape, "resources": {"gpus": 8}}
    spec |= {"image": image} if image else {}
    spec |= {"engineVersion": version} if version else {}
    leader, worker = group(topology(**spec))
    assert (program("ray_leader.sh") in leader["containers"][0]["command"]) == ray
    assert (program("ray_worker.sh") in worker["containers"][0]["command"]) == ray
    assert ("--headless" in worker["containers"][0].get("args", [])) != ray
    backend = "ray" if ray else "mp"
    assert f"--distributed-executor-backend={backend}" in leader["containers"][0]["args"]


def test_without_leader_worker_set_each_replica_is_two_stateful_sets() -> None:
    block = topology(model="many", shape={"replicas": 2, "nodes": 3}, resources={"gpus": 8})
    found = app(block, context("k3s", MODELS)).render()
    sets = {item.body["metadata"]["name"]: item.body for item in found if item.body["kind"] == "StatefulSet"}
    assert sorted(sets) == ["t-0", "t-0-workers", "t-1", "t-1-workers"]
    assert sets["t-1-workers"]["spec"]["replicas"] == 2
    assert sets["t-1-workers"]["spec"]["ordinals"] == {"start": 1}
    for copy in "01":
        for name in (f"t-{copy}", f"t-{copy}-workers"):
            container = sets[name]["spec"]["template"]["spec"]["containers"][0]
            assert f"--master-addr=t-{copy}-0.t-nodes" in container["args"]
            rank = next(entry for entry in container["env"] if entry["name"] == "NODE_RANK")
            assert "pod-index" in rank["valueFrom"]["fieldRef"]["fieldPath"]
    headless = next(item.body for item in found if item.body["metadata"]["name"] == "t-nodes")
    assert headless["spec"]["publishNotReadyAddresses"] is True
    assert {body["spec"]["serviceName"] for body in sets.values()} == {"t-nodes"}
    selectors = [str(body["spec"]["selector"]) for body in sets.values()]
    assert len(set(selectors)) == len(selectors)


def test_pods_that_own_storage_are_a_stateful_set() -> None:
    for retain, policy in ((False, "Delete"), (True, "Retain")):
        block = topology(model=HUB, storage={"size": "50Gi", "retain": retain})
        spec = objects(block, CONTEXT)["StatefulSet"]["spec"]
        assert spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] == "50Gi"
        kept = spec["persistentVolumeClaimRetentionPolicy"]
        assert kept == {"whenDeleted": policy, "whenScaled": policy}
        assert not any(volume["name"] == "cache" for volume in spec["template"]["spec"]["volumes"])


@pytest.mark.parametrize(
    ("spec", "surge", "away"),
    [
        ({"model": "many", "resources": {"gpus": 0}}, 1, 0),
        ({"model": "many"}, 0, 1),
        ({"model": "many", "resources": {"gpus": 0, "extra": {"google.com/tpu": 8}}}, 0, 1),
        ({"model": "many", "resources": {"gpus": 0, "extra": {"aws.amazon.com/neuron": 2}}}, 0, 1),
        ({"model": "many", "resources": {"gpus": 0, "extra": {"hugepages-2Mi": "1Gi", "rdma/hca": 1}}}, 1, 0),
        ({"model": "one", "resources": {"gpus": 0}}, 0, 1),
        ({"model": "many", "rollout": {"maxSurge": 1}}, 1, 0),
        ({"model": "many", "resources": {"gpus": 0}, "rollout": {"maxUnavailable": "10%"}}, 0, "10%"),
    ],
)
def test_rollout_surges_only_onto_free_nodes(spec: dict[str, Any], surge: Any, away: Any) -> None:
    moving = objects(topology(**spec), CONTEXT)["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert moving == {"maxSurge": surge, "maxUnavailable": away}


def test_pod_template_is_used_unchanged() -> None:
    template = {"metadata": {"labels": {"tier": "x"}, "annotations": {"a": "b"}}, **TEMPLATE}
    made = objects(topology(template=template, shape={"replicas": 2}, placement={"queue": "q"}))
    deployment = made["Deployment"]
    assert deployment["spec"]["template"]["spec"] == TEMPLATE["spec"]
    metadata = deployment["spec"]["template"]["metadata"]
    assert metadata["labels"]["tier"] == "x"
    assert metadata["annotations"] == {"a": "b"}
    assert deployment["spec"]["selector"]["matchLabels"].items() <= metadata["labels"].items()
    assert deployment["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"
    assert made["Service"]["spec"]["ports"][0]["targetPort"] == 5000
    assert made["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"] == 5000
