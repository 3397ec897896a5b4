"""Weights and adapters of a Topology."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kaigen.compile.context import SpecIndex
from kaigen.compile.job.compile import compile_job
from kaigen.compile.problems import Problems
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from tests.unit.compile.specs import context, objects, pod, problem_paths, topology
from tests.unit.compile.topologies import COMMIT, CONTEXT, FOLDER, HUB, args, env


def test_weights_of_a_model_are_shared_read_only_behind_their_gate() -> None:
    found = pod(topology(model={"name": "many", "mountPath": "/w"}), CONTEXT)
    assert found["volumes"][0] == {
        "name": "model",
        "persistentVolumeClaim": {"claimName": "many-weights", "readOnly": True},
    }
    (gate,) = found["initContainers"]
    assert gate["args"][0] == "wait"
    (revision,) = [each.removeprefix("--identity=") for each in gate["args"] if each.startswith("--identity=")]
    assert f"--dest=/w/{revision}" in gate["args"]
    assert gate["volumeMounts"] == [{"name": "model", "mountPath": "/w", "readOnly": True}]
    mount = {"name": "model", "mountPath": "/w", "readOnly": True, "subPath": revision}
    assert mount in found["containers"][0]["volumeMounts"]
    assert env(found)["HF_HUB_OFFLINE"] == "1"


def test_the_output_of_a_job_is_mounted_read_only() -> None:
    job = read_block(Job, {"metadata": {"name": "tune"}, "spec": {"image": "i", "output": {"volume": {"size": "1Gi"}}}})
    rendered = [item.body for item in compile_job(job, CONTEXT, Problems()).render()]
    index = SpecIndex({("Job", "default", "tune"): job})
    where = replace(CONTEXT, specs=index, objects_of=lambda *_: rendered)
    block = topology(model={"job": {"name": "tune", "path": "merged"}})
    found = pod(block, where)
    claim = {"claimName": "tune-output", "readOnly": True}
    assert found["volumes"][0] == {"name": "model", "persistentVolumeClaim": claim}
    mount = {"name": "model", "mountPath": "/model", "readOnly": True, "subPath": "merged"}
    assert mount in found["containers"][0]["volumeMounts"]
    assert found["containers"][0]["args"][0] == "/model"
    many = topology(model={"job": {"name": "tune"}}, shape={"replicas": 2})
    assert problem_paths(many, where) == [("KG0309", "spec.model.job.name")]


def test_an_engine_that_pulls_gets_the_revision_and_the_token_by_reference() -> None:
    hub = {**HUB["huggingFace"], "tokenSecret": {"name": "hf"}, "endpoint": "https://mirror"}
    found = pod(topology(model={"huggingFace": hub}), CONTEXT)
    container = found["containers"][0]
    assert container["args"][0] == "org/base"
    for name in ("revision", "tokenizer-revision", "code-revision"):
        assert f"--{name}={COMMIT}" in container["args"]
    variables = env(found)
    assert variables["HF_TOKEN"] == {"secretKeyRef": {"name": "hf", "key": "token"}}
    assert variables["HF_ENDPOINT"] == "https://mirror"
    assert "HF_HUB_OFFLINE" not in variables
    assert "initContainers" not in found


def test_downloader_fills_the_folder_of_kaigens_server() -> None:
    found = pod(
        topology(engine="transformers", model={"huggingFace": {**HUB["huggingFace"], "tokenSecret": {"name": "hf"}}}),
        CONTEXT,
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
    image = {"ref": "r/w:1", "path": "a/b", "pullSecrets": [{"name": "p"}]}
    found = pod(topology(model={"image": image}), CONTEXT)
    assert found["volumes"][0] == {"name": "model", "image": {"reference": "r/w:1"}}
    mount = found["containers"][0]["volumeMounts"][0]
    assert mount == {"name": "model", "mountPath": "/model", "readOnly": True, "subPath": "a/b"}
    assert found["imagePullSecrets"] == [{"name": "p"}]


@pytest.mark.parametrize(("target", "expected"), [("1.34", [("KG0346", "spec.model.image")]), ("1.35", [])])
def test_image_volumes_behind_a_feature_gate_are_reported(target: str, expected: list[tuple[str, str]]) -> None:
    assert problem_paths(topology(model={"image": {"ref": "r/w:1"}}), context(target=target)) == expected


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
    found = pod(block, CONTEXT)
    given = found["containers"][0]["args"]
    at = given.index("--lora-modules")
    assert given[at - 2 : at] == ["--max-loras=4", "--enable-lora"]
    assert given[at + 1 : at + 5] == [f"{name}=/adapters/{name}" for name in "abcd"]
    assert [container["name"] for container in found["initContainers"]] == ["wait-for-c", "fetch-d"]
    mounts = {mount["mountPath"]: mount for mount in found["containers"][0]["volumeMounts"]}
    assert all(mounts[f"/adapters/{name}"]["readOnly"] for name in "abcd")
    assert mounts["/adapters/b"]["subPath"] == "x"


def test_one_batch_may_use_every_adapter() -> None:
    def most(count: int, **spec: Any) -> list[str]:
        adapters = [{"name": f"a{number}", "image": {"ref": "r/a:1"}} for number in range(count)]
        given = args(topology(model=FOLDER, adapters=adapters, **spec))
        return [argument for argument in given if "max-loras" in argument]

    assert [most(count) for count in (1, 2, 20)] == [[], ["--max-loras=2"], ["--max-loras=8"]]
    assert most(2, engineArgs={"max-loras": 1}) == ["--max-loras=1"]


def test_weights_of_an_existing_volume_are_mounted() -> None:
    found = pod(topology(model={"volume": {"claimName": "models", "path": "qwen/v3"}}))
    assert {"name": "model", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}} in found["volumes"]
    mount = {"name": "model", "mountPath": "/model", "readOnly": True, "subPath": "qwen/v3"}
    assert mount in found["containers"][0]["volumeMounts"]
    assert "initContainers" not in found
    assert "/model" in [*found["containers"][0]["command"], *found["containers"][0]["args"]]


def test_weights_of_an_existing_volume_are_never_mounted_by_two_rollouts() -> None:
    block = topology(model={"volume": {"claimName": "models"}}, resources={"gpus": 0})
    limits = objects(block)["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert limits == {"maxSurge": 0, "maxUnavailable": 1}
