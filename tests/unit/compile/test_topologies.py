"""What a Topology becomes, and what it may not ask for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from kaigen.compile.serving.engine import DRAIN
from tests.unit.compile.specs import Object, app, context, model, objects, pod, said, topology

COMMIT = "0" * 40
MODELS = {
    "one": model(),
    "many": model(store={"volume": {"size": "100Gi", "accessModes": ["ReadWriteMany"]}}),
}
WHERE = context(models=MODELS)
HUB = {"huggingFace": {"repo": "org/base", "revision": COMMIT}}
FOLDER = {"folder": "/weights"}
KEDA = {"max": 3, "prometheus": {"address": "http://p:9090"}}
CONTAINER: Object = {"engine": "container", "image": "i:1"}
TEMPLATE: Object = {
    "spec": {
        "containers": [
            {
                "name": "a",
                "image": "i:1",
                "ports": [{"containerPort": 5000}],
                "resources": {"requests": {"cpu": 1, "memory": "1Gi"}},
            }
        ]
    }
}


def args(block: Any, where: Any = WHERE) -> list[str]:
    found: list[str] = pod(block, where)["containers"][0]["args"]
    return found


def env(spec: Object) -> dict[str, Any]:
    return {
        entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in spec["containers"][0]["env"]
    }


def group(block: Any, where: Any = WHERE) -> tuple[Object, Object]:
    template = objects(block, where)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    return template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, [("KG0341", "spec")]),
        ({"engine": "transformers"}, [("KG0341", "spec")]),
        ({"engine": "container"}, [("KG0341", "spec.engine")]),
        ({"model": "none"}, [("KG0301", "spec.model")]),
        ({"model": {"name": "none"}}, [("KG0301", "spec.model.name")]),
        ({"model": {**FOLDER, "mountPath": "/x"}}, [("KG0340", "spec.model.mountPath")]),
        ({"model": {**HUB, "mountPath": "/x"}}, [("KG0340", "spec.model.mountPath")]),
        ({"model": {"huggingFace": {"repo": "a/b"}}}, [("KG0310", "spec.model.huggingFace.repo")]),
        (
            {"model": {"huggingFace": {"repo": "a/b", "revision": "v1"}}},
            [("KG0310", "spec.model.huggingFace.revision")],
        ),
        ({**CONTAINER, "model": HUB}, [("KG0341", "spec.model.huggingFace")]),
        ({"model": "many", "args": ["x"]}, [("KG0340", "spec.args")]),
        ({"model": "many", "command": ["x"]}, [("KG0340", "spec.command")]),
        (
            {**CONTAINER, "contextLength": 5, "auth": {"secret": "s"}},
            [("KG0340", "spec.contextLength"), ("KG0340", "spec.auth")],
        ),
        (
            {"engine": "transformers", "model": "many", "quantization": "fp8"},
            [("KG0340", "spec.quantization")],
        ),
        (
            {"engine": "transformers", "model": "many", "shape": {"tensorParallel": 2}},
            [("KG0340", "spec.shape.tensorParallel")],
        ),
        (
            {"engine": "transformers", "model": "many", "shape": {"nodes": 2}},
            [("KG0343", "spec.shape.nodes")],
        ),
        (
            {"engine": "transformers", "model": "many", "servedNames": ["a", "b"]},
            [("KG0340", "spec.servedNames.1")],
        ),
        ({"model": "many", "transfer": {"memory": "1Gi"}}, [("KG0340", "spec.transfer")]),
        ({"model": "many", "tokenSecret": {"name": "s"}}, [("KG0340", "spec.tokenSecret")]),
        (
            {"model": FOLDER, "adapters": [{"name": "a", "model": "many"}, {"name": "a", "model": "many"}]},
            [("KG0342", "spec.adapters.1.name")],
        ),
        (
            {"model": FOLDER, "adapters": [{"name": "a", "model": "no"}]},
            [("KG0301", "spec.adapters.0.model")],
        ),
        ({"model": "one", "shape": {"nodes": 2}}, [("KG0309", "spec.model"), ("KG0311", "spec.model")]),
        (
            {"model": "one", "shape": {"replicas": 2}, "resources": {"gpus": 0}},
            [("KG0309", "spec.model")],
        ),
        ({"model": "many", "engineArgs": {"port": 1}}, [("KG0347", "spec.engineArgs.port")]),
        (
            {"model": "many", "engineArgs": {"max_model_len": 1}},
            [("KG0347", "spec.engineArgs.max_model_len")],
        ),
        (
            {"model": "many", "engineArgs": {"no-trust-remote-code": True}},
            [("KG0347", "spec.engineArgs.no-trust-remote-code")],
        ),
        ({"model": "many", "engineArgs": ["--seed", "1", "-tp", "2"]}, [("KG0347", "spec.engineArgs.2")]),
        ({"model": "many", "engineArgs": ["--api-key=x"]}, [("KG0347", "spec.engineArgs.0")]),
        (
            {"model": "many", "resources": {"gpus": 4}, "shape": {"tensorParallel": 3}},
            [("KG0344", "spec.shape.tensorParallel")],
        ),
        (
            {"model": "many", "resources": {"gpus": 4}, "shape": {"dataParallel": 3}},
            [("KG0344", "spec.shape.dataParallel")],
        ),
        (
            {"model": "many", "resources": {"instanceType": "g6.xlarge", "gpus": 4}},
            [("KG0344", "spec.resources.gpus")],
        ),
        (
            {"model": "many", "resources": {"gpus": {"profile": "1g.10gb", "count": 2}}},
            [("KG0345", "spec.resources.gpus")],
        ),
        ({"model": "many", "shape": {"executor": "ray"}}, [("KG0340", "spec.shape.executor")]),
        ({"model": "many", "shape": {"groups": "statefulSet"}}, [("KG0340", "spec.shape.groups")]),
        ({"model": "many", "shape": {"nodes": 2, "executor": "ray"}}, [("KG0343", "spec.shape.executor")]),
        (
            {"model": "many", "engineVersion": "0.11", "shape": {"nodes": 2, "executor": "native"}},
            [("KG0343", "spec.shape.executor")],
        ),
        ({"model": "many", "engineVersion": "0.5", "shape": {"nodes": 2}}, [("KG0343", "spec.shape.nodes")]),
        (
            {
                "model": "many",
                "engineVersion": "0.11",
                "shape": {"nodes": 2, "dataParallel": 2},
                "resources": {"gpus": 2},
            },
            [("KG0343", "spec.shape.dataParallel")],
        ),
        (
            {"model": "many", "shape": {"nodes": 2, "groups": "statefulSet"}, "autoscale": {"max": 2}},
            [("KG0353", "spec.autoscale")],
        ),
        (
            {"model": "many", "shape": {"nodes": 2, "replicas": 0, "groups": "statefulSet"}},
            [("KG0353", "spec.shape.replicas")],
        ),
        ({"model": "many", "autoscale": {"min": 0, "max": 2}}, [("KG0349", "spec.autoscale.min")]),
        ({"model": "many", "autoscale": {**KEDA, "min": 0}}, [("KG0349", "spec.autoscale.min")]),
        ({"model": "many", "autoscale": {"min": 3, "max": 2}}, [("KG0348", "spec.autoscale.min")]),
        ({"model": "many", "autoscale": {"max": 2, "scaler": "keda"}}, [("KG0348", "spec.autoscale")]),
        ({"model": "many", "autoscale": {"max": 2, "query": "x"}}, [("KG0348", "spec.autoscale.query")]),
        ({"model": "many", "autoscale": {**KEDA, "query": "x"}}, [("KG0348", "spec.autoscale")]),
        (
            {"model": "many", "autoscale": {**KEDA, "podMetric": "x"}},
            [("KG0348", "spec.autoscale.podMetric")],
        ),
        (
            {"model": "many", "autoscale": {"max": 2, "idleAfter": "2h"}},
            [("KG0348", "spec.autoscale.idleAfter")],
        ),
        ({**CONTAINER, "autoscale": {"max": 2}}, [("KG0348", "spec.autoscale")]),
        ({**CONTAINER, "autoscale": {"max": 2, "metric": "cache"}}, [("KG0348", "spec.autoscale.metric")]),
        (
            {"model": "many", "autoscale": {"max": 2}, "shape": {"replicas": 2}},
            [("KG0340", "spec.shape.replicas")],
        ),
        ({"model": "many", "disruption": {"minAvailable": 1}}, [("KG0340", "spec.disruption")]),
        (
            {"model": "many", "rollout": {"maxSurge": 0, "maxUnavailable": "0%"}},
            [("KG0351", "spec.rollout.maxUnavailable")],
        ),
        (
            {"model": "many", "storage": {"size": "1Gi"}, "rollout": {"maxSurge": 1}},
            [("KG0340", "spec.rollout.maxSurge")],
        ),
        ({"model": "many", "provisioning": "karpenter"}, [("KG0350", "spec.provisioning")]),
        (
            {"model": "many", "provisioning": "karpenter", "resources": {"instanceType": "g6.xlarge"}},
            [("KG0350", "spec.provisioning")],
        ),
        ({"model": "many", "service": {"type": "LoadBalancer"}}, [("KG0352", "spec.service.type")]),
        (
            {"model": "many", "service": {"type": "LoadBalancer"}, "auth": {"secret": "s"}},
            [],
        ),
        (
            {"model": "many", "service": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}},
            [("KG0340", "spec.service.loadBalancerSourceRanges")],
        ),
        (
            {"model": "many", "route": {"host": "h", "gateway": {"name": "g"}, "tls": {"secretName": "s"}}},
            [("KG0340", "spec.route.tls")],
        ),
        (
            {"model": "many", "route": {"host": "h", "gateway": {"className": "g", "namespace": "n"}}},
            [("KG0340", "spec.route.gateway.namespace")],
        ),
        (
            {
                "model": "many",
                "route": {"host": "h", "ingress": {}},
                "inferencePool": {"endpointPicker": "e"},
            },
            [("KG0340", "spec.inferencePool")],
        ),
        (
            {"model": "many", "auth": {"secret": "s"}, "env": {"VLLM_API_KEY": "x"}},
            [("KG0313", "spec.env.VLLM_API_KEY")],
        ),
        ({"model": {"name": "many", "mountPath": "/cache/"}}, [("KG0314", "spec.model")]),
        ({"model": "many", "security": {"runAsUser": 0}}, [("KG0305", "spec.security.runAsUser")]),
        ({"template": {}}, [("KG0341", "spec.template"), ("KG0341", "spec.template")]),
        ({"template": {**TEMPLATE, "x": 1}}, [("KG0340", "spec.template.x")]),
        ({"template": {"spec": {"containers": [{"name": "a"}]}}}, [("KG0341", "spec.template")]),
        (
            {"template": TEMPLATE, "model": "many", "env": {"A": "b"}},
            [("KG0340", "spec.model"), ("KG0340", "spec.env")],
        ),
        ({"template": TEMPLATE, "placement": {"spot": True}}, [("KG0340", "spec.placement.spot")]),
        ({"template": TEMPLATE, "security": {"runAsUser": 5}}, [("KG0340", "spec.security.runAsUser")]),
        ({"preset": "fhi-4"}, [("KG1101", "spec.preset")]),
        ({"preset": "llama-3.1-8b-instruct", "resources": {"gpuType": "L4"}}, [("KG0355", "spec.preset")]),
        (
            {"preset": "llama-3.1-8b-instruct", "resources": {"gpuType": "L4"}, "tokenSecret": {"name": "s"}},
            [],
        ),
        ({"preset": "kimi-k2.6", "model": "many"}, [("KG0354", "spec.preset")]),
        (
            {"preset": "phi-4", "resources": {"gpuType": "L4"}, "shape": {"nodes": 1}},
            [("KG1105", "spec.shape.nodes")],
        ),
        (
            {"preset": "phi-4", "resources": {"gpuType": "A100-80GB"}, "contextLength": 1000000},
            [("KG1105", "spec.contextLength")],
        ),
        ({**CONTAINER, "preset": "phi-4"}, [("KG0340", "spec.preset")]),
    ],
    ids=lambda value: str(value)[:90],
)
def test_what_is_wrong_is_told_at_its_field(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert said(topology(**spec), WHERE) == expected


def test_one_node_is_a_deployment_behind_a_service() -> None:
    made = objects(topology(model="many"), WHERE)
    assert sorted(made) == ["Deployment", "NetworkPolicy", "Service"]
    container = pod(topology(model="many"), WHERE)["containers"][0]
    assert container["command"] == ["vllm", "serve"]
    assert container["args"] == ["/model", "--served-model-name", "t", "--port=8000"]
    assert made["Service"]["spec"]["ports"][0] == {
        "name": "http",
        "port": 80,
        "targetPort": "http",
        "protocol": "TCP",
    }


def test_further_flags_are_sorted_whatever_their_order() -> None:
    given = {
        "z": 1,
        "b": True,
        "a-b": False,
        "m": {"y": [1], "x": "é"},
        "list": ["a", 1],
        "c.d": False,
        "t": "yes",
    }
    wanted = [
        "--no-a-b",
        "--b",
        "--c.d=false",
        "--list",
        "a",
        "1",
        '--m={"x":"é","y":[1]}',
        "--t=yes",
        "--z=1",
    ]
    for order in (given, dict(reversed(given.items()))):
        assert args(topology(model="many", engineArgs=order))[4:] == wanted


def test_arguments_of_a_list_stay_as_they_are() -> None:
    assert args(topology(model="many", engineArgs=["--b", "1e3", "--a"]))[4:] == ["--b", "1e3", "--a"]


def test_limits_and_names_become_flags() -> None:
    found = args(
        topology(
            model="many",
            servedNames=["a", "b"],
            contextLength=1000000,
            concurrency=8,
            quantization="fp8",
            trustRemoteCode=True,
            port=9000,
        )
    )
    assert found == [
        *("/model", "--served-model-name", "a", "b", "--port=9000", "--quantization=fp8"),
        *("--max-model-len=1000000", "--max-num-seqs=8", "--trust-remote-code"),
    ]


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
    ],
)
def test_parallelism_makes_up_all_gpus(
    shape: dict[str, int], gpus: int, expected: tuple[int, int, int]
) -> None:
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
    made = objects(block, WHERE)
    spec = made["LeaderWorkerSet"]["spec"]
    assert (spec["replicas"], spec["leaderWorkerTemplate"]["size"]) == (3, 2)
    leader, worker = group(block)
    assert leader["containers"][0]["args"][:-5] == worker["containers"][0]["args"][:-6]
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
    labels = [
        spec["leaderWorkerTemplate"][t]["metadata"]["labels"] for t in ("leaderTemplate", "workerTemplate")
    ]
    assert [selector.items() <= each.items() for each in labels] == [True, False]


def test_other_ports_are_open_among_the_pods_of_groups_only() -> None:
    policy = objects(topology(model="many", shape={"nodes": 2}), WHERE)["NetworkPolicy"]["spec"]
    among, serving = policy["ingress"]
    assert among == {"from": [{"podSelector": policy["podSelector"]}]}
    assert serving == {"ports": [{"port": 8000, "protocol": "TCP"}]}
    (alone,) = objects(topology(model="many"), WHERE)["NetworkPolicy"]["spec"]["ingress"]
    assert alone == serving


def test_only_those_who_are_named_may_connect() -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]
    block = topology(model="many", service={"allowFrom": peers})
    assert objects(block, WHERE)["NetworkPolicy"]["spec"]["ingress"][0]["from"] == peers


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
    assert ("ray start --head" in str(leader["containers"][0]["command"])) == ray
    assert ("ray start --block" in str(worker["containers"][0]["command"])) == ray
    assert ("--headless" in worker["containers"][0].get("args", [])) != ray
    backend = "ray" if ray else "mp"
    assert f"--distributed-executor-backend={backend}" in leader["containers"][0]["args"]


def test_without_leader_worker_set_each_copy_is_a_pair_of_sets() -> None:
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
        spec = objects(block, WHERE)["StatefulSet"]["spec"]
        assert spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] == "50Gi"
        kept = spec["persistentVolumeClaimRetentionPolicy"]
        assert kept == {"whenDeleted": policy, "whenScaled": policy}
        assert not any(volume["name"] == "cache" for volume in spec["template"]["spec"]["volumes"])


def test_weights_of_a_model_are_shared_read_only_behind_their_gate() -> None:
    found = pod(topology(model={"name": "many", "mountPath": "/w"}), WHERE)
    assert found["volumes"][0] == {
        "name": "model",
        "persistentVolumeClaim": {"claimName": "many-weights", "readOnly": True},
    }
    (gate,) = found["initContainers"]
    assert gate["args"][0] == "wait"
    assert "--dest=/w" in gate["args"]
    mounts = found["containers"][0]["volumeMounts"]
    assert {"name": "model", "mountPath": "/w", "readOnly": True} in mounts
    assert env(found)["HF_HUB_OFFLINE"] == "1"


def test_an_engine_that_pulls_gets_the_revision_and_the_token_by_reference() -> None:
    hub = {**HUB["huggingFace"], "tokenSecret": {"name": "hf"}, "endpoint": "https://mirror"}
    found = pod(topology(model={"huggingFace": hub}), WHERE)
    container = found["containers"][0]
    assert container["args"][0] == "org/base"
    for name in ("revision", "tokenizer-revision", "code-revision"):
        assert f"--{name}={COMMIT}" in container["args"]
    variables = env(found)
    assert variables["HF_TOKEN"] == {"secretKeyRef": {"name": "hf", "key": "token"}}
    assert variables["HF_ENDPOINT"] == "https://mirror"
    assert "HF_HUB_OFFLINE" not in variables
    assert "initContainers" not in found


def test_the_small_server_has_its_folder_filled_by_the_downloader() -> None:
    found = pod(
        topology(
            engine="transformers",
            model={"huggingFace": {**HUB["huggingFace"], "tokenSecret": {"name": "hf"}}},
        ),
        WHERE,
    )
    (fetch,) = found["initContainers"]
    assert fetch["args"][:2] == ["fetch", "huggingface"]
    assert "--dest=/cache/model" in fetch["args"]
    container = found["containers"][0]
    assert container["command"] == ["kaigen-chat"]
    assert container["args"][0] == "--model=/cache/model"
    assert "HF_TOKEN" in str(fetch["env"])
    assert "HF_TOKEN" not in env(found)


def test_an_image_is_mounted_as_a_volume() -> None:
    image = {"ref": "r/w:1", "path": "a/b", "pullSecrets": ["p"]}
    found = pod(topology(model={"image": image}), WHERE)
    assert found["volumes"][0] == {"name": "model", "image": {"reference": "r/w:1"}}
    mount = found["containers"][0]["volumeMounts"][0]
    assert mount == {"name": "model", "mountPath": "/model", "readOnly": True, "subPath": "a/b"}
    assert found["imagePullSecrets"] == [{"name": "p"}]


@pytest.mark.parametrize(("target", "expected"), [("1.34", [("KG0346", "spec.model.image")]), ("1.35", [])])
def test_image_volumes_behind_a_feature_gate_are_told(target: str, expected: list[tuple[str, str]]) -> None:
    assert said(topology(model={"image": {"ref": "r/w:1"}}), context(target=target)) == expected


def test_adapters_are_mounted_and_named() -> None:
    hub = {"repo": "a/b", "revision": COMMIT, "tokenSecret": {"name": "hf"}}
    block = topology(
        model=FOLDER,
        adapters=[
            {"name": "a", "image": {"ref": "r/a:1"}},
            {"name": "b", "volume": {"claimName": "c", "path": "x"}},
            {"name": "c", "model": "many"},
            {"name": "d", "huggingFace": hub},
        ],
    )
    found = pod(block, WHERE)
    given = found["containers"][0]["args"]
    at = given.index("--lora-modules")
    assert given[at - 1] == "--enable-lora"
    assert given[at + 1 : at + 5] == [f"{name}=/adapters/{name}" for name in "abcd"]
    assert [container["name"] for container in found["initContainers"]] == ["wait-for-c", "fetch-d"]
    mounts = {mount["mountPath"]: mount for mount in found["containers"][0]["volumeMounts"]}
    assert all(mounts[f"/adapters/{name}"]["readOnly"] for name in "abcd")
    assert mounts["/adapters/b"]["subPath"] == "x"


@pytest.mark.parametrize(("engine", "file"), [("vllm", False), ("transformers", True)])
def test_the_api_key_is_never_on_a_command_line(engine: str, file: bool) -> None:
    found = pod(topology(engine=engine, model="many", auth={"secret": "s", "key": "k"}), WHERE)
    container = found["containers"][0]
    if file:
        assert "--api-key-file=/etc/kaigen/auth/k" in container["args"]
        (volume,) = [volume for volume in found["volumes"] if volume["name"] == "auth"]
        assert volume["secret"]["secretName"] == "s"
        assert volume["secret"]["defaultMode"] == 0o440
    else:
        assert env(found)["VLLM_API_KEY"] == {"secretKeyRef": {"name": "s", "key": "k"}}
        assert not any("key" in argument for argument in container["args"])


def test_a_slice_and_a_claim_are_asked_for_as_kubernetes_wants_it() -> None:
    slice_ = pod(topology(model="many", resources={"gpus": {"profile": "1g.10gb"}}), WHERE)
    assert slice_["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == 1
    made = objects(
        topology(model="many", resources={"gpus": {"deviceClassName": "gpu.nvidia.com", "count": 2}}), WHERE
    )
    claimed = made["Deployment"]["spec"]["template"]["spec"]
    assert (
        claimed["resourceClaims"][0]["resourceClaimTemplateName"]
        == made["ResourceClaimTemplate"]["metadata"]["name"]
    )
    assert claimed["containers"][0]["resources"]["claims"] == [{"name": "gpus"}]
    assert "--tensor-parallel-size=2" in claimed["containers"][0]["args"]


@pytest.mark.parametrize(
    ("resources", "resource", "count"),
    [
        ({}, "nvidia.com/gpu", 1),
        ({"gpus": 2}, "nvidia.com/gpu", 2),
        ({"instanceType": "g6.12xlarge"}, "nvidia.com/gpu", 4),
        ({"instanceType": "g6.12xlarge", "gpus": 2}, "nvidia.com/gpu", 2),
        ({"instanceType": "Standard_ND96isr_MI300X_v5"}, "amd.com/gpu", 8),
    ],
)
def test_the_instance_type_tells_how_many_gpus(resources: dict[str, Any], resource: str, count: int) -> None:
    found = pod(topology(model="many", resources=resources), WHERE)["containers"][0]
    assert found["resources"]["limits"][resource] == count
    assert (f"--tensor-parallel-size={count}" in found["args"]) == (count > 1)


def test_no_gpu_is_asked_for_where_none_is_wanted() -> None:
    found = pod(topology(model="many", resources={"gpus": 0}), WHERE)["containers"][0]
    assert not any("/" in name for name in found["resources"]["limits"])


def test_shared_memory_has_a_size() -> None:
    for gpus, size in ((1, "1Gi"), (8, "16Gi")):
        volumes = pod(topology(model="many", resources={"gpus": gpus}), WHERE)["volumes"]
        assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}} in volumes


def test_time_to_start_follows_from_bytes_and_source() -> None:
    def attempts(**spec: Any) -> int:
        found: int = pod(topology(**spec), WHERE)["containers"][0]["startupProbe"]["failureThreshold"]
        return found

    assert attempts(model="many") > attempts(model="one")  # 100 GiB and 1 GiB
    big, small = (
        {"preset": name, "resources": {"instanceType": "p5en.48xlarge"}} for name in ("phi-4", "gpt-oss-20b")
    )
    assert attempts(**big) > attempts(**small)
    assert attempts(preset="phi-4", resources={"gpuType": "A100-80GB"}) > attempts(
        preset="phi-4", model="many", resources={"gpuType": "A100-80GB"}
    )
    assert attempts(model=FOLDER, probes={"startup": "2h"}) == 720


def test_a_rollout_is_given_longer_than_loading_takes() -> None:
    for spec in ({"model": "many"}, {"model": HUB}, {"model": FOLDER, "probes": {"startup": "5h"}}):
        deployment = objects(topology(**spec), WHERE)["Deployment"]["spec"]
        probe = deployment["template"]["spec"]["containers"][0]["startupProbe"]
        assert deployment["progressDeadlineSeconds"] > probe["failureThreshold"] * probe["periodSeconds"]


def test_probes_of_a_container_look_at_its_port_unless_it_has_paths() -> None:
    container = pod(topology(**CONTAINER, port=3000))["containers"][0]
    assert container["readinessProbe"]["tcpSocket"] == {"port": "http"}
    assert container["ports"][0]["containerPort"] == 3000
    container = pod(topology(**CONTAINER, probes={"ready": "/r"}))["containers"][0]
    assert (
        container["readinessProbe"]["httpGet"]["path"]
        == container["livenessProbe"]["httpGet"]["path"]
        == "/r"
    )


def test_replicas_are_left_to_the_scaler() -> None:
    block = topology(model="many", autoscale={"min": 2, "max": 5})
    made = objects(block, WHERE)
    assert "replicas" not in made["Deployment"]["spec"]
    assert "replicas" not in {setting.path for setting in app(block, WHERE).settings}
    scaler = made["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 5)
    assert scaler["metrics"][0]["pods"] == {
        "metric": {"name": "vllm:num_requests_waiting"},
        "target": {"type": "AverageValue", "averageValue": "5"},
    }
    grouped = objects(topology(model="many", shape={"nodes": 2}, autoscale={"max": 2}), WHERE)
    assert "replicas" not in grouped["LeaderWorkerSet"]["spec"]
    assert grouped["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["kind"] == "LeaderWorkerSet"


@pytest.mark.parametrize(("metric", "expected"), [("running", "16"), ("cache", "800m"), ("waiting", "5")])
def test_targets_are_quantities(metric: str, expected: str) -> None:
    made = objects(topology(model="many", autoscale={"max": 5, "metric": metric}), WHERE)
    target = made["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["target"]
    assert target == {"type": "AverageValue", "averageValue": expected}


def test_keda_scales_to_zero_by_demand_in_front() -> None:
    block = topology(
        model="many", autoscale={**KEDA, "min": 0, "query": "up", "target": 3, "idleAfter": "1h"}
    )
    spec = objects(block, WHERE)["ScaledObject"]["spec"]
    assert (spec["minReplicaCount"], spec["cooldownPeriod"]) == (0, 3600)
    assert spec["triggers"] == [
        {
            "type": "prometheus",
            "metadata": {"serverAddress": "http://p:9090", "query": "up", "threshold": "3"},
        }
    ]


def test_keda_sums_the_engines_own_metric() -> None:
    spec = objects(topology(model="many", autoscale=KEDA), WHERE)["ScaledObject"]["spec"]
    assert spec["triggers"][0]["metadata"]["query"] == (
        'sum(vllm:num_requests_waiting{namespace="default",pod=~"t-.+"})'
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"shape": {"replicas": 2}}, {"maxUnavailable": 1}),
        ({"autoscale": {"max": 2}}, {"maxUnavailable": 1}),
        ({"shape": {"replicas": 4}, "disruption": {"minAvailable": 3}}, {"minAvailable": 3}),
        ({"shape": {"replicas": 4}, "disruption": {"maxUnavailable": "50%"}}, {"maxUnavailable": "50%"}),
        ({"shape": {"replicas": 4, "nodes": 3}, "disruption": {"minAvailable": 3}}, {"minAvailable": 9}),
        ({"shape": {"replicas": 4, "nodes": 3}, "disruption": {"maxUnavailable": 2}}, {"maxUnavailable": 4}),
    ],
)
def test_several_replicas_have_a_budget_and_are_spread(spec: dict[str, Any], expected: Object | None) -> None:
    made = objects(topology(model="many", **spec), WHERE)
    assert ("PodDisruptionBudget" in made) == (expected is not None)
    if expected is not None:
        assert expected.items() <= made["PodDisruptionBudget"]["spec"].items()
    if "Deployment" in made:
        spread = made["Deployment"]["spec"]["template"]["spec"].get("topologySpreadConstraints")
        assert bool(spread) == (expected is not None)


@pytest.mark.parametrize(
    ("spec", "surge", "away"),
    [
        ({"model": "many", "resources": {"gpus": 0}}, 1, 0),
        ({"model": "many"}, 0, 1),
        ({"model": "one", "resources": {"gpus": 0}}, 0, 1),
        ({"model": "many", "rollout": {"maxSurge": 1}}, 1, 0),
        ({"model": "many", "resources": {"gpus": 0}, "rollout": {"maxUnavailable": "10%"}}, 0, "10%"),
    ],
)
def test_a_rollout_adds_pods_only_where_there_is_room(spec: dict[str, Any], surge: Any, away: Any) -> None:
    moving = objects(topology(**spec), WHERE)["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert moving == {"maxSurge": surge, "maxUnavailable": away}


def test_routes_come_in_the_last_wave() -> None:
    ways: list[tuple[Object, list[str]]] = [
        ({"gateway": {"name": "g", "namespace": "n"}}, ["HTTPRoute"]),
        (
            {"gateway": {"className": "c"}, "tls": {"secretName": "s", "clusterIssuer": "i"}},
            ["Gateway", "HTTPRoute"],
        ),
        ({"ingress": {"className": "c"}, "tls": {"secretName": "s"}}, ["Ingress"]),
    ]
    for way, kinds in ways:
        made = objects(topology(model="many", route={"host": "h.example", **way}), WHERE)
        assert sorted(set(made) - {"Deployment", "NetworkPolicy", "Service"}) == kinds
        for kind in kinds:
            assert made[kind]["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "4"
        if "Gateway" in kinds:
            (listener,) = made["Gateway"]["spec"]["listeners"]
            assert (listener["protocol"], listener["hostname"]) == ("HTTPS", "h.example")
            assert made["Gateway"]["metadata"]["annotations"]["cert-manager.io/cluster-issuer"] == "i"


def test_a_pool_stands_between_the_route_and_the_pods() -> None:
    block = topology(
        model="many",
        inferencePool={"endpointPicker": "epp"},
        route={"host": "h", "gateway": {"name": "g", "timeout": "1d90s"}},
    )
    made = objects(block, WHERE)
    rule = made["HTTPRoute"]["spec"]["rules"][0]
    assert rule["backendRefs"][0]["kind"] == "InferencePool"
    assert rule["timeouts"] == {"request": "24h1m30s"}
    pool = made["InferencePool"]["spec"]
    assert pool["endpointPickerRef"]["name"] == "epp"
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert pool["selector"]["matchLabels"].items() <= labels.items()
    assert app(block, WHERE).elsewhere == (("Service", "epp"),)


def test_nodes_of_its_own_are_told_by_label_and_taint() -> None:
    block = topology(
        model=FOLDER, resources={"gpuType": "L4", "gpus": 4}, provisioning="karpenter", shape={"replicas": 2}
    )
    made = objects(block, context("eks"))
    pool = made["NodePool"]
    assert pool["metadata"]["name"] == "default-t"
    assert "namespace" not in pool["metadata"]
    template = pool["spec"]["template"]
    wanted = {item["key"]: item["values"] for item in template["spec"]["requirements"]}
    assert wanted["karpenter.k8s.aws/instance-gpu-name"] == ["l4"]
    assert wanted["karpenter.k8s.aws/instance-gpu-count"] == ["4"]
    assert template["spec"]["nodeClassRef"]["kind"] == "EC2NodeClass"
    assert pool["spec"]["limits"] == {"nvidia.com/gpu": "12"}
    spec = made["Deployment"]["spec"]
    assert spec["template"]["spec"]["nodeSelector"] == template["metadata"]["labels"]
    taint = template["spec"]["taints"][0]
    assert any(item["key"] == taint["key"] for item in spec["template"]["spec"]["tolerations"])
    assert spec["strategy"]["rollingUpdate"]["maxSurge"] == 1


def test_nodes_of_azure_are_instance_types_with_that_gpu() -> None:
    block = topology(model=FOLDER, resources={"gpuType": "H100-NVL", "gpus": 2}, provisioning="karpenter")
    pool = objects(block, context("aks"))["NodePool"]["spec"]["template"]["spec"]
    wanted = {item["key"]: item["values"] for item in pool["requirements"]}
    assert wanted["node.kubernetes.io/instance-type"] == ["Standard_NC80adis_H100_v5"]
    assert pool["nodeClassRef"]["kind"] == "AKSNodeClass"


def test_a_template_is_taken_as_it_is() -> None:
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


def test_a_preset_brings_its_flags_and_gives_way_to_the_specs() -> None:
    spec: dict[str, Any] = {"preset": "qwen2.5-coder-7b-instruct", "resources": {"gpuType": "L4"}}
    given = args(topology(**spec))
    assert given[0] == "Qwen/Qwen2.5-Coder-7B-Instruct"
    assert {"--tool-call-parser=hermes", "--enable-auto-tool-choice", "--max-model-len=8192"} <= set(given)
    other = args(topology(**spec, contextLength=4096, engineArgs={"tool-call-parser": "own"}))
    assert "--tool-call-parser=hermes" not in other
    assert "--tool-call-parser=own" in other
    assert [argument for argument in other if "max-model-len" in argument] == ["--max-model-len=4096"]
    elsewhere = args(topology(**spec, model="many"))
    assert elsewhere[0] == "/model"
    assert "--tool-call-parser=hermes" in elsewhere


def test_what_a_spec_leaves_open_follows_from_the_plan() -> None:
    block = topology(
        preset="deepseek-v3-0324", resources={"instanceType": "p5.48xlarge"}, tokenSecret={"name": "s"}
    )
    made = objects(block, WHERE)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    assert made["size"] == 2
    container = made["leaderTemplate"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert {"--tensor-parallel-size=8", "--pipeline-parallel-size=2"} <= set(container["args"])
    assert any("each GPU needs" in note.text for note in app(block, WHERE).notes)


def test_room_on_the_nodes_disk_is_asked_for_where_weights_are_pulled() -> None:
    spec: dict[str, Any] = {"preset": "phi-4", "resources": {"gpuType": "A100-80GB"}}
    found = pod(topology(**spec), WHERE)["containers"][0]["resources"]["requests"]
    assert found["ephemeral-storage"] == "51Gi"
    owned = pod(topology(**spec, storage={"size": "60Gi"}), WHERE)["containers"][0]["resources"]["requests"]
    assert "ephemeral-storage" not in owned


@contextmanager
def metrics(counts: list[int]) -> Iterator[tuple[int, list[str]]]:
    """A server that tells one of these counts of running requests after the other, the last for ever."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            count = counts[min(len(asked), len(counts)) - 1]
            text = f'# HELP x\nvllm:num_requests_running{{m="a b"}} {count}.0\nvllm:num_requests_waiting{{m="c"}} 0.0\n'
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def drain(port: int, seconds: float) -> float:
    quick = DRAIN.replace("min(10, seconds)", "0").replace("time.sleep(1)", "time.sleep(0.01)")
    names = "vllm:num_requests_running,vllm:num_requests_waiting"
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", quick, str(port), names, str(seconds)], check=True, timeout=30)
    return time.monotonic() - start


def test_a_pod_goes_when_its_last_request_is_done() -> None:
    with metrics([2, 1, 1, 0]) as (port, asked):
        drain(port, 20)
    assert asked == ["/metrics"] * 4


def test_a_pod_goes_when_its_time_is_up() -> None:
    with metrics([1]) as (port, asked):
        assert drain(port, 0.5) < 10
    assert len(asked) > 1


def test_a_pod_whose_engine_is_gone_waits_for_nothing() -> None:
    assert drain(1, 20) < 10


def test_the_grace_period_holds_the_drain() -> None:
    for spec in ({"model": "many"}, {"engine": "transformers", "model": "many"}, CONTAINER):
        assert pod(topology(**spec, drain="7m"), WHERE)["terminationGracePeriodSeconds"] > 420


@pytest.mark.parametrize(("preset", "least"), [("falcon-7b", 13.4), ("phi-4", 27.3)])
def test_kaigens_server_is_given_memory_for_all_weights(preset: str, least: float) -> None:
    made = pod(topology(preset=preset, engine="transformers", resources={"gpuType": "A100-80GB"}))
    limit = made["containers"][0]["resources"]["limits"]["memory"]
    assert limit.endswith("Gi")
    assert int(limit.removesuffix("Gi")) > least + 3


def test_a_taint_is_accepted_once() -> None:
    accepted = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    made = pod(topology(model="many", resources={"gpus": 1}, placement={"tolerations": [accepted]}), WHERE)
    assert made["tolerations"] == [accepted]
