"""Rings of distributed-llama: what is written for each version, and which specs are refused."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from kaigen.compile.problems import Problems
from kaigen.compile.topology.resolution import resolve_topology
from kaigen.compile.topology.ring import resolve_ring
from kaigen.diagnostics.problem import Problem
from kaigen.kinds.compat import ServingNaming
from kaigen.plan.specs import plan_specs
from tests.unit.compile.specs import compiled, configured, context, model, objects, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT

CONFIG: Mapping[str, Any] = {
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 8192,
}
WEIGHTS = {"volume": {"claimName": "converted"}, "facts": {"config": CONFIG, "weights": "10Mi"}}
IMAGE = "registry.example/distributed-llama:v0.16.4"


def ring(**fields: Any) -> Any:
    """A ring of four nodes."""
    given = {"engine": "distributedLlama", "image": IMAGE, "model": WEIGHTS, "shape": {"nodes": 4}, **fields}
    return topology(**given)


def problems_of(block: Any) -> list[Problem]:
    """The problems of a ring."""
    problems = Problems()
    compiled(block, CONTEXT, problems)
    return problems.items


def containers(**fields: Any) -> dict[str, Any]:
    """The containers of the root and of a worker by role, and the proxy."""
    fields["shape"] = {"nodes": 4, "groups": "leaderWorkerSet"}
    template = objects(ring(**fields), CONTEXT)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    root, worker = (template[name]["spec"] for name in ("leaderTemplate", "workerTemplate"))
    return {"root": root["containers"][0], "proxy": root["containers"][1], "worker": worker["containers"][0]}


def flags(arguments: list[str]) -> dict[str, str]:
    """The values of flags by name."""
    return {name: value for name, value in pairwise(arguments) if name.startswith("--")}


@pytest.mark.parametrize(
    ("fields", "host", "attempts"),
    [
        ({}, True, 6),
        ({"image": "x/y:v0.16.2"}, False, 2),
        ({"image": "x/y:latest"}, False, 2),
        ({"image": "x/y:latest", "engineVersion": "0.16.4"}, True, 6),
    ],
)
def test_flags_follow_the_version(fields: dict[str, Any], host: bool, attempts: int) -> None:
    root = containers(**fields)["root"]
    assert ("--host" in root["args"]) == host
    assert root["livenessProbe"]["failureThreshold"] == attempts


@pytest.mark.parametrize(("weights", "buffers"), [("q40", "q80"), ("f32", "f32")])
def test_the_type_of_buffers_follows_the_weights(weights: str, buffers: str) -> None:
    root = containers(quantization=weights)["root"]
    assert flags(root["args"])["--buffer-float-type"] == buffers


@pytest.mark.parametrize(("cpu", "threads"), [("500m", "1"), ("3", "3"), ("2500m", "2")])
def test_threads_are_the_whole_cpus(cpu: str, threads: str) -> None:
    for name in ("root", "worker"):
        assert flags(containers(resources={"cpu": cpu})[name]["args"])["--nthreads"] == threads


def test_the_network_is_not_polled_unless_the_spec_says_so() -> None:
    assert flags(containers()["worker"]["args"])["--net-turbo"] == "0"
    assert containers(engineArgs={"net-turbo": 1})["root"]["args"][-2:] == ["--net-turbo", "1"]


def test_no_probe_opens_a_port_of_the_program() -> None:
    found = containers()
    for name in ("root", "worker"):
        probes = [value for key, value in found[name].items() if key.endswith("Probe")]
        assert probes
        assert all("exec" in probe for probe in probes)
    assert {probe for key in found["proxy"] if key.endswith("Probe") for probe in found["proxy"][key]} >= {"httpGet"}


def test_workers_mount_no_weights_and_the_root_waits_for_their_names() -> None:
    lws = objects(ring(shape={"nodes": 2, "groups": "leaderWorkerSet"}), CONTEXT)["LeaderWorkerSet"]
    template = lws["spec"]["leaderWorkerTemplate"]
    worker, root = template["workerTemplate"]["spec"], template["leaderTemplate"]["spec"]
    assert "model" not in {volume["name"] for volume in worker["volumes"]}
    assert root["initContainers"][-1]["args"][-1] == "$(POD_NAME)-1.$(POD_NAME)"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"image": None}, ("KG0341", "spec.engine")),
        ({"shape": {"nodes": 3}}, ("KG0393", "spec.shape.nodes")),
        ({"shape": {"nodes": 8}}, ("KG0393", "spec.shape.nodes")),
        ({"contextLength": 9000}, ("KG0393", "spec.contextLength")),
        ({"quantization": "q80"}, ("KG0391", "spec.quantization")),
        ({"resources": {"memory": "1Mi"}}, ("KG0393", "spec.resources.memory")),
        ({"port": 9990}, ("KG0393", "spec.port")),
        ({"engineArgs": {"batch": 1}}, ("KG0393", "spec.engineArgs.batch")),
        ({"engineArgs": ["--workers", "x"]}, ("KG0347", "spec.engineArgs.0")),
        ({"engineArgs": {"nthreads": 8}}, ("KG0347", "spec.engineArgs.nthreads")),
        ({"model": {"volume": {"claimName": "converted"}}}, ("KG0394", "spec.model")),
        ({"model": "many"}, ("KG0393", "spec.model")),
        ({"concurrency": 2}, ("KG0340", "spec.concurrency")),
        (
            {
                "shape": {"nodes": 4, "groups": "statefulSet"},
                "autoscale": {
                    "min": 0,
                    "max": 1,
                    "query": "x",
                    "target": 1,
                    "prometheus": {"address": "http://p:9090"},
                },
            },
            ("KG0353", "spec.autoscale"),
        ),
    ],
)
def test_what_cannot_run_is_refused(fields: dict[str, Any], problem: tuple[str, str]) -> None:
    given = {key: value for key, value in fields.items() if value is not None}
    block = ring(**given)
    if "image" in fields:
        block = topology(engine="distributedLlama", model=WEIGHTS, shape={"nodes": 4})
    assert problem in problem_paths(block, CONTEXT)


@pytest.mark.parametrize(
    ("name", "value", "message", "hint"),
    [
        ("temperature", "hot", "`--temperature` must be a number from 0, and not `hot`", "write a number from 0"),
        ("temperature", -1, "`--temperature` must be a number from 0, and not `-1`", "write a number from 0"),
        ("topp", 1.5, "`--topp` must be a number from 0 to 1, and not `1.5`", "write a number from 0 to 1"),
        ("net-turbo", 7, "`--net-turbo` must be `0` or `1`, and not `7`", "write `0` or `1`"),
        ("seed", True, "`--seed` must be a whole number from 0 to 2^63 - 1, and not `true`", "write a whole"),
        ("seed", str(2**63), "`--seed` must be a whole number from 0 to 2^63 - 1, and not", "write a whole"),
        ("gpu-segments", "all", "`--gpu-segments` must be two whole numbers such as `0:16`, and not", "write two"),
        ("gpu-index", "x", "`--gpu-index` must be a whole number from 0, and not `x`", "write a whole number"),
        ("chat-template", "chatml", "must be `llama2` or `llama3` or `deepSeek3`, and not `chatml`", "write `llama2`"),
        ("chat-template", "lama3", "must be `llama2` or `llama3` or `deepSeek3`, and not", "did you mean `llama3`?"),
    ],
)
def test_values_that_the_program_would_misread_are_refused(name: str, value: Any, message: str, hint: str) -> None:
    (problem,) = problems_of(ring(engineArgs={name: value}))
    assert (problem.code, problem.path) == ("KG0393", ("spec", "engineArgs", name))
    assert message in str(problem.message)
    assert problem.hint.startswith(hint)
    if not isinstance(value, bool):
        (problem,) = problems_of(ring(engineArgs=["--topp", "0.5", f"--{name}", str(value)]))
        assert problem.path == ("spec", "engineArgs", 3)


def test_a_flag_without_a_value_is_refused() -> None:
    (problem,) = problems_of(ring(engineArgs=["--seed", "--topp", "0.5"]))
    assert (str(problem.message), problem.path) == ("`--seed` requires a value", ("spec", "engineArgs", 0))


def test_values_of_every_flag_are_accepted_as_numbers_and_as_text() -> None:
    given = {"temperature": 0.7, "topp": 1, "seed": 3, "net-turbo": 0, "gpu-index": 1, "gpu-segments": "0:16"}
    for args in (given, {name: str(value) for name, value in given.items()}):
        assert problems_of(ring(engineArgs={**args, "chat-template": "deepSeek3"})) == []


@pytest.mark.parametrize(
    ("cpu", "turbo", "codes"), [("1500m", 1, ["KG0327"]), ("2", 1, []), ("1500m", 0, []), (None, 1, [])]
)
def test_polling_on_shared_cpus_is_a_warning(cpu: str | None, turbo: int, codes: list[str]) -> None:
    resources = {"cpu": cpu} if cpu is not None else {}
    found = problems_of(ring(engineArgs={"net-turbo": turbo}, resources=resources))
    assert [(item.code, item.path[-1]) for item in found] == [(code, "net-turbo") for code in codes]


@pytest.mark.parametrize("gpus", [2, {"profile": "1g.10gb", "count": 2}])
def test_more_gpus_than_a_node_uses_are_refused(gpus: Any) -> None:
    assert ("KG0393", "spec.resources.gpus") in problem_paths(ring(resources={"gpus": gpus}), CONTEXT)


def test_a_gpu_is_used_with_one_thread() -> None:
    for name in ("root", "worker"):
        found = flags(containers(resources={"gpus": 1})[name]["args"])
        assert (found["--gpu-index"], found["--nthreads"]) == ("0", "1")


@pytest.mark.parametrize(
    ("repo", "what"),
    [
        ("Qwen/Qwen3-8B", "the catalogue has `qwen3-8b` without the width of its MLP"),
        ("acme/own", "the shape of the model is not known"),
    ],
)
def test_a_model_without_a_shape_is_a_warning_that_says_what_is_missing(repo: str, what: str) -> None:
    source = {"huggingFace": {"repo": repo, "revision": "0" * 40}}
    stored = model(source=source, convert={"distributedLlama": {}})
    problems = Problems()
    compiled(ring(model="m"), context(models={"m": stored}), problems)
    (found,) = [item for item in problems.items if item.code == "KG0394"]
    assert str(found.message) == f"{what}, so kaigen checks neither the ring nor its memory"


def test_an_image_of_kaigen_yaml_is_used() -> None:
    context = configured(CONTEXT, images={**CONTEXT.config.images, "distributedLlama": "registry.example/own:v0.16.4"})
    made = objects(topology(engine="distributedLlama", model=WEIGHTS), context)
    pod = made["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example/own:v0.16.4"


def test_a_whole_ring_scales_to_zero() -> None:
    scaling = {"min": 0, "max": 2, "query": "sum(waiting)", "target": 1, "prometheus": {"address": "http://p:9090"}}
    made = objects(ring(shape={"nodes": 4, "groups": "leaderWorkerSet"}, autoscale=scaling), CONTEXT)
    scaled = made["ScaledObject"]["spec"]
    lws = made["LeaderWorkerSet"]
    # One replica is the root with its workers.
    assert (lws["spec"]["leaderWorkerTemplate"]["size"], "replicas" in lws["spec"]) == (4, False)
    assert scaled["scaleTargetRef"]["kind"] == "LeaderWorkerSet"
    assert scaled["scaleTargetRef"]["name"] == lws["metadata"]["name"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (0, 2)


def test_a_changed_ring_stops_before_the_new_one_starts() -> None:
    lws = objects(ring(shape={"nodes": 4, "groups": "leaderWorkerSet"}), CONTEXT)["LeaderWorkerSet"]["spec"]
    assert lws["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] == 0
    assert lws["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"


def test_only_the_pods_of_a_ring_reach_its_workers() -> None:
    policy = objects(ring(), CONTEXT)["NetworkPolicy"]["spec"]
    inside, outside = policy["ingress"]
    assert inside == {"from": [{"podSelector": policy["podSelector"]}]}
    assert [port["port"] for port in outside["ports"]] == [8000]


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("memory", [None, "1Gi"])
def test_the_plan_is_what_is_rendered(nodes: int, memory: str | None) -> None:
    resources = {"memory": memory} if memory else {}
    shape = {"nodes": nodes, "groups": "leaderWorkerSet"} if nodes > 1 else {"nodes": 1}
    block = ring(shape=shape, resources=resources)
    made = objects(block, CONTEXT)
    document: Any = SimpleNamespace(block=block, source="ring.yaml")
    resolution = resolve_topology(block, CONTEXT, Problems(), ServingNaming())
    (planned,) = plan_specs([document], lambda _: resolution).rings
    if nodes == 1:
        templates = [made["Deployment"]["spec"]["template"]]
    else:
        lws = made["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
        templates = [lws["leaderTemplate"], lws["workerTemplate"]]
        assert lws["size"] == planned.plan.nodes
    found = [template["spec"]["containers"][0]["resources"]["limits"]["memory"] for template in templates]
    assert found == [each for each in (planned.root, planned.worker) if each]
    arguments = flags(templates[0]["spec"]["containers"][0]["args"])
    assert arguments["--max-seq-len"] == str(planned.plan.context)


def hint(nodes: int, **config: Any) -> str:
    """Return the hint of the only error of a ring whose nodes have 32 MiB of memory each."""
    weights = {**WEIGHTS, "facts": {"config": {**CONFIG, **config}, "weights": "10Mi"}}
    block = ring(model=weights, shape={"nodes": nodes}, resources={"memory": "32Mi"})
    problems = Problems()
    resolve_ring(block.spec, None, CONTEXT, problems)
    (found,) = problems.items
    return found.hint


def test_only_a_ring_that_can_grow_is_advised_to() -> None:
    large = {"max_position_embeddings": 131072, "vocab_size": 131072}
    assert hint(2, **large) == "set more memory, more nodes or a shorter `contextLength`"
    assert hint(4, **large) == "set more memory or a shorter `contextLength`"


def test_a_model_that_runs_on_one_node_only_is_counted_in_the_singular() -> None:
    assert hint(2, num_key_value_heads=1) == "use 1 node, the root"
    assert hint(8) == "use 1, 2, 4 nodes, the root included"
