"""`tune` of a Job: the program, its settings, its memory, and apps that serve the result."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kaigen.catalog.images import default_images
from kaigen.compile.builders.job_output import ADAPTER, MODEL
from kaigen.compile.job.tune import PERMANENT_EXIT_CODES
from kaigen.compile.problems import Problems
from kaigen.diagnostics.diagnostic import Severity
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from tests.cases import ROOT
from tests.rendering import diagnostics_of
from tests.unit.compile.specs import compiled, context, model, objects, pod, problem_paths

SHARED = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}
CODE = "0" * 40


def of_repository(repo: str, **spec: Any) -> Any:
    return model(store=SHARED, source={"huggingFace": {"repo": repo, "revision": CODE}}, **spec)


MODELS = {
    "unknown": model(store=SHARED),
    "small": of_repository("Qwen/Qwen2.5-0.5B-Instruct"),
    "large": of_repository("meta-llama/Llama-3.1-8B-Instruct"),
    "quantized": of_repository("deepseek-ai/DeepSeek-V3"),
}
WHERE = context(models=MODELS)


def tuned(settings: dict[str, Any] | None = None, **spec: Any) -> Job:
    """Return a Job with `tune`."""
    whole = {
        "tune": settings or {},
        "model": "unknown",
        "inputs": [{"url": "https://a.example/train.jsonl"}],
        "output": SHARED,
        **spec,
    }
    return read_block(Job, {"metadata": {"name": "j"}, "spec": whole})


def container(block: Job) -> Any:
    return pod(block, WHERE)["containers"][0]


def test_the_container_is_kaigens_trainer_and_its_settings_are_a_file() -> None:
    made = container(tuned())
    assert made["image"] == default_images()["train"]
    assert made["args"] == [
        "--model=/model",
        "--dataset=/inputs",
        "--output=/output",
        "--params=/etc/kaigen/params.json",
    ]
    assert {"name": "params", "mountPath": "/etc/kaigen", "readOnly": True} in made["volumeMounts"]
    found = json.loads(objects(tuned({"rank": 8}), WHERE)["ConfigMap"]["data"]["params.json"])
    assert (found["method"], found["rank"], found["learningRate"]) == ("lora", 8, 2e-4)
    assert not [variable for variable in made["env"] if variable["name"].startswith("PARAM_")]


def test_places_follow_the_spec() -> None:
    own = {"image": "registry.example/train:1", "dataset": "/data/chats.jsonl"}
    output = {"volume": {**SHARED["volume"], "mountPath": "/results"}}
    made = container(tuned(own, model={"name": "unknown", "mountPath": "/w"}, output=output))
    assert made["image"] == "registry.example/train:1"
    assert made["args"][:3] == ["--model=/w", "--dataset=/data/chats.jsonl", "--output=/results"]


def test_the_result_may_be_in_a_volume_that_exists() -> None:
    results = {"results": {"claimName": "adapters", "mountPath": "/results"}}
    block = tuned({"output": "/results/own"}, volumes=results, output=None)
    assert container(block)["args"][2:4] == ["--output=/results/own", "--flat"]
    assert "PersistentVolumeClaim" not in objects(block, WHERE)


def test_columns_of_the_samples_are_settings() -> None:
    columns = {"prompt": "question", "completion": "answer"}
    found = json.loads(objects(tuned({"columns": columns}), WHERE)["ConfigMap"]["data"]["params.json"])
    assert found["columns"] == columns
    assert "columns" not in json.loads(objects(tuned(), WHERE)["ConfigMap"]["data"]["params.json"])


@pytest.mark.parametrize(
    ("settings", "spec", "path"),
    [
        ({"output": "/results"}, {"output": None}, "spec.tune.output"),
        (
            {"output": "/other"},
            {"output": None, "volumes": {"r": {"claimName": "a", "mountPath": "/o"}}},
            "spec.tune.output",
        ),
        (
            {"output": "/r"},
            {"output": None, "volumes": {"r": {"claimName": "a", "mountPath": "/r", "readOnly": True}}},
            "spec.tune.output",
        ),
        ({"output": "/r"}, {"volumes": {"r": {"claimName": "a", "mountPath": "/r"}}}, "spec.tune.output"),
        ({"columns": {"completion": "answer"}}, {}, "spec.tune.columns"),
        ({"columns": {"prompt": "question", "text": "story"}}, {}, "spec.tune.columns"),
    ],
)
def test_results_and_columns_that_cannot_be_are_errors(
    settings: dict[str, Any], spec: dict[str, Any], path: str
) -> None:
    assert problem_paths(tuned(settings, **spec), WHERE) == [("KG0374", path)]


def test_exit_codes_and_folders_are_those_of_the_program() -> None:
    readme = (ROOT / "runtimes/train/README.md").read_text(encoding="utf-8")
    final = re.findall(r"^\| (\d+) \| .* \| does not help \|$", readme, re.MULTILINE)
    assert tuple(map(int, final)) == PERMANENT_EXIT_CODES
    text = (ROOT / "runtimes/train/kaigen_train/model.py").read_text(encoding="utf-8")
    assert f'ADAPTER, MODEL = "{ADAPTER}", "{MODEL}"' in text.splitlines()
    rules = objects(tuned(), WHERE)["Job"]["spec"]["podFailurePolicy"]["rules"]
    assert list(PERMANENT_EXIT_CODES) in [rule["onExitCodes"]["values"] for rule in rules if "onExitCodes" in rule]


def test_a_changed_setting_is_a_new_run() -> None:
    names = {
        objects(tuned(settings), WHERE)["Job"]["metadata"]["name"]
        for settings in ({}, {"rank": 16}, {"rank": 8}, {"learningRate": 1e-4})
    }
    assert len(names) == 3


def test_several_nodes_have_the_variables_of_torchrun() -> None:
    made = container(tuned(nodes=2, groups="indexedJob", resources={"gpus": 4}))
    env = {variable["name"]: variable.get("value") for variable in made["env"]}
    assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == ("2", "4")
    assert "command" not in made


def memory(name: str, settings: dict[str, Any], **resources: Any) -> str:
    """Return the memory that the container requests."""
    found = container(tuned(settings, model=name, resources=resources))["resources"]
    assert found["requests"]["memory"] == found["limits"]["memory"]
    return str(found["requests"]["memory"])


def test_memory_follows_the_model_if_kaigen_knows_it() -> None:
    assert memory("small", {}, gpus=1) == "5Gi"
    assert memory("large", {}, gpus=1) == "20Gi"
    assert memory("large", {}, gpus=2) == "39Gi"
    assert memory("large", {"merge": True}, gpus=1) == "35Gi"
    assert memory("large", {"method": "full"}, gpus=1) == "35Gi"
    # Without a GPU, activations and optimizer are in the memory of the pod.
    assert memory("small", {}) == "14Gi"
    assert memory("small", {"batchSize": 1, "maxLength": 512}) == "5Gi"
    assert memory("small", {"method": "full", "batchSize": 1, "maxLength": 512}) == "11Gi"
    assert memory("large", {}, gpus=1, memory="64Gi") == "64Gi"
    assert memory("unknown", {}, gpus=1) == "16Gi"
    assert memory("quantized", {}, gpus=1) == "16Gi"


def test_facts_of_the_model_come_first() -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 8192,
        "vocab_size": 32000,
    }
    facts = of_repository("Qwen/Qwen2.5-0.5B-Instruct", facts={"config": config, "weights": "40Gi"})
    made = pod(tuned(model="described", resources={"gpus": 1}), context(models={"described": facts}))
    assert made["containers"][0]["resources"]["requests"]["memory"] == "45Gi"


@pytest.mark.parametrize(
    ("settings", "resources", "expected"),
    [
        ({}, {"gpuType": "L4"}, [("KG1107", "spec.tune.batchSize")]),
        ({"batchSize": 1}, {"gpuType": "L4"}, []),
        ({"method": "full"}, {"gpuType": "L4"}, [("KG1107", "spec.tune.method")]),
        ({"method": "full"}, {"gpuType": "H200"}, []),
        ({}, {"gpuType": "T4"}, [("KG1107", "spec.tune.method")]),
        ({"method": "qlora", "batchSize": 2}, {"gpuType": "T4"}, []),
        ({"method": "full"}, {"gpus": 1}, []),
        ({}, {"gpuType": "A100-80GB", "gpus": {"profile": "1g.10gb"}}, [("KG1107", "spec.tune.method")]),
        ({}, {"instanceType": "g4dn.xlarge", "gpus": 1}, [("KG1107", "spec.tune.method")]),
        ({"method": "qlora"}, {}, [("KG0376", "spec.tune.method")]),
    ],
)
def test_gpus_must_have_memory_for_the_weights(
    settings: dict[str, Any], resources: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    where = context("gke" if "gpuType" in resources else "generic", models=MODELS)
    found = problem_paths(tuned(settings, model="large", resources=resources), where)
    assert [each for each in found if each[0] in ("KG1107", "KG0376")] == expected


def test_a_pass_that_is_too_large_has_a_batch_that_fits() -> None:
    found = Problems()
    compiled(tuned(model="large", resources={"gpuType": "L4"}), context("gke", models=MODELS), found)
    (problem,) = (each for each in found.items if each.code == "KG1107")
    assert problem.severity is Severity.WARNING
    assert str(problem.message) == "a pass of 4 samples of 1024 tokens takes 23 GiB of each GPU, and L4 has 22 GiB"
    assert problem.hint == "use `batchSize: 3`, and more `gradientAccumulation`"
    found = Problems()
    block = tuned({"maxLength": 65536}, model="large", resources={"gpuType": "L4"})
    compiled(block, context("gke", models=MODELS), found)
    assert [each.hint for each in found.items if each.code == "KG1107"] == ["use a smaller `maxLength`"]


def test_gpus_of_other_vendors_need_another_image() -> None:
    resources = {"instanceType": "Standard_ND96isr_MI300X_v5", "gpus": 8}
    assert ("KG0376", "spec.resources") in problem_paths(tuned(resources=resources), WHERE)
    own = tuned({"image": "registry.example/train-rocm:1"}, resources=resources)
    assert ("KG0376", "spec.resources") not in problem_paths(own, WHERE)


SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: base}}
spec:
  source: {{huggingFace: {{repo: a/b, revision: 7ae557604adf67be50417f59c2c2f167def9a775}}}}
  store: {{volume: {{size: 5Gi, accessModes: [ReadWriteMany]}}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: j}}
spec:
  tune: {tune}
  model: base
  inputs: [{{url: "https://a.example/train.jsonl"}}]
  output: {{volume: {{size: 5Gi, accessModes: [ReadWriteMany]}}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: t}}
spec: {served}
"""
ADAPTED = "{{model: base, resources: {{gpus: 1}}, adapters: [{{name: a, job: {job}}}]}}"
SERVED = "{{model: {{job: {job}}}, resources: {{gpus: 1}}}}"


@pytest.mark.parametrize(
    ("tune", "served", "job", "message", "hint"),
    [
        ("{}", ADAPTED, "{name: j, path: adapter}", "", ""),
        ("{merge: true}", SERVED, "{name: j, path: model}", "", ""),
        ("{method: full}", SERVED, "{name: j, path: model}", "", ""),
        (
            "{}",
            ADAPTED,
            "{name: j}",
            "Job `j` stores an adapter in `adapter`, and this app reads an adapter in its root",
            "set `path: adapter`",
        ),
        ("{merge: true}", SERVED, "{name: j, path: merged}", "a model in `merged`", "set `path: model`"),
        ("{}", SERVED, "{name: j, path: adapter}", "reads a model in `adapter`", "set `tune.merge: true` of Job `j`"),
        ("{method: full}", ADAPTED, "{name: j, path: model}", "reads an adapter in `model`", "leave out `merge`"),
    ],
)
def test_apps_serve_the_folder_with_the_result(tune: str, served: str, job: str, message: str, hint: str) -> None:
    text = SPECS.format(tune=tune, served=served.format(job=job))
    found = [item for item in diagnostics_of(text) if item.code == "KG0375"]
    assert [(message in item.message, hint in (item.hint or "")) for item in found] == (
        [(True, True)] if message else []
    )
