"""The workload `classify` of a Job, and shards."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.images import default_images
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from tests.unit.compile.specs import context, job, model, objects, pod, problem_paths

OUTPUT = {"volume": {"size": "1Gi", "mountPath": "/artifacts"}}
SHARED = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}
MODELS = {"weights": model(), "shared": model(store=SHARED)}
DIGEST = "0" * 64


def classifier(settings: dict[str, Any] | None = None, **spec: Any) -> Job:
    """Return a Job with the workload `classify`."""
    whole = {
        "workload": "classify",
        "model": "shared",
        "output": OUTPUT,
        "classify": {"input": "/artifacts/input.jpg", **(settings or {})},
        **spec,
    }
    return read_block(Job, {"metadata": {"name": "j"}, "spec": whole})


def container(block: Job) -> Any:
    return pod(block, context(models=MODELS))["containers"][0]


def test_the_container_is_kaigens_own() -> None:
    made = container(classifier())
    assert made["image"] == default_images()["classify"]
    assert made["args"] == [
        "--model=resnet50",
        "--weights=/model/model.safetensors",
        "--input=/artifacts/input.jpg",
        "--output=/artifacts/output.json",
        "--top-k=5",
        "--batch-size=32",
        "--precision=auto",
        "--device=cpu",
    ]


def test_every_setting_is_an_argument() -> None:
    weights = {"file": "a/b.safetensors", "version": "IMAGENET1K_V1", "sha256": DIGEST}
    settings = {
        "image": "registry.example/classify:1",
        "model": "resnet50",
        "weights": weights,
        "output": "/artifacts/labels/all.jsonl",
        "topK": 1,
        "batchSize": 64,
        "precision": "bfloat16",
    }
    made = container(classifier(settings, model={"name": "shared", "mountPath": "/w"}, resources={"gpus": 1}))
    assert made["image"] == "registry.example/classify:1"
    assert made["args"] == [
        "--model=resnet50",
        "--weights=/w/a/b.safetensors",
        "--weights-version=IMAGENET1K_V1",
        f"--weights-sha256={DIGEST}",
        "--input=/artifacts/input.jpg",
        "--output=/artifacts/labels/all.jsonl",
        "--top-k=1",
        "--batch-size=64",
        "--precision=bfloat16",
        "--device=cuda",
    ]


def test_without_settings_the_inputs_are_classified() -> None:
    block = classifier(inputs=[{"url": "https://a.example/cat.jpg"}], classify={})
    assert "--input=/inputs" in container(block)["args"]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (classifier(model=None), [("KG0364", "spec.classify.model")]),
        (classifier({"weights": {"path": "/artifacts/w.safetensors"}}, model=None), []),
        (classifier({"weights": {"path": "/a", "file": "b"}}), [("KG0340", "spec.classify.weights.file")]),
        (classifier(classify={}), [("KG0365", "spec.workload")]),
        (classifier(output=None), [("KG0366", "spec.workload")]),
        (classifier({"output": "/else/output.json"}), [("KG0366", "spec.classify.output")]),
        (classifier({"output": "/artifacts-2/o.json"}), [("KG0366", "spec.classify.output")]),
        (classifier({"output": "/artifacts/"}), [("KG0366", "spec.classify.output")]),
        (classifier({"output": "/artifacts/../o.json"}), [("KG0366", "spec.classify.output")]),
        (
            classifier({"model": "mobilenet_v3_small", "weights": {"version": "IMAGENET1K_V2"}}),
            [("KG0367", "spec.classify.weights.version")],
        ),
        (classifier(args=["x"], command=["y"]), [("KG0340", "spec.command"), ("KG0340", "spec.args")]),
        (classifier(resources={"gpus": 2}), [("KG0328", "spec.resources.gpus")]),
        (classifier(nodes=2), [("KG0309", "spec.output.volume"), ("KG0340", "spec.nodes")]),
        (job(classify={}), [("KG0340", "spec.classify")]),
        (job(shards=2, nodes=2), [("KG0368", "spec.shards")]),
        (job(parallelism=2), [("KG0340", "spec.parallelism")]),
        (job(shards=2, env={"SHARDS": 1}), [("KG0313", "spec.env.SHARDS")]),
        (job(shards=2, output=OUTPUT), [("KG0309", "spec.output.volume")]),
        (job(shards=2, model="weights"), [("KG0309", "spec.model")]),
        (classifier(shards=2, output={"volume": {**SHARED["volume"], "mountPath": "/artifacts"}}), []),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, list) else "",
)
def test_problem_is_reported_at_its_field(block: Job, expected: list[tuple[str, str]]) -> None:
    assert problem_paths(block, context(models=MODELS)) == expected


def test_each_shard_is_retried_and_fails_alone() -> None:
    spec = objects(job(shards=8, parallelism=3, retries=1))["Job"]["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (8, 3, "Indexed")
    assert spec["backoffLimitPerIndex"] == 1
    assert "maxFailedIndexes" not in spec
    variables = {item["name"]: item["value"] for item in spec["template"]["spec"]["containers"][0]["env"]}
    assert variables["SHARDS"] == "8"


def test_a_permanent_failure_fails_one_shard_only() -> None:
    shard, whole = (objects(block, context(models=MODELS))["Job"] for block in (classifier(shards=2), classifier()))
    actions = [item["spec"]["podFailurePolicy"]["rules"][1]["action"] for item in (shard, whole)]
    assert actions == ["FailIndex", "FailJob"]
