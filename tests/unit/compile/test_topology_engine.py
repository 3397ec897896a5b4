"""The command line of a Topology's engine."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.problems import Problems
from tests.unit.compile.specs import app, compiled, objects, pod, topology
from tests.unit.compile.topologies import CONTEXT, args, env, group


def test_further_flags_are_sorted() -> None:
    given = {
        "seed": 1,
        "enable-prefix-caching": True,
        "async-scheduling": False,
        "kv-transfer-config": {"y": [1], "x": "é"},
        "allowed-media-domains": ["a", 1],
        "compilation-config.d": False,
        "uds": "yes",
    }
    wanted = [
        "--allowed-media-domains",
        "a",
        "1",
        "--no-async-scheduling",
        "--compilation-config.d=false",
        "--enable-prefix-caching",
        '--kv-transfer-config={"x":"é","y":[1]}',
        "--seed=1",
        "--uds=yes",
    ]
    for order in (given, dict(reversed(given.items()))):
        assert args(topology(model="many", engineArgs=order))[6:] == wanted


def test_arguments_of_a_list_are_kept_unchanged() -> None:
    given = ["--root-path", "1e3", "--enforce-eager"]
    assert args(topology(model="many", engineArgs=given))[6:] == given


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
        *("--max-model-len=1000000", "--max-num-seqs=8", "--trust-remote-code", "--shutdown-timeout=20"),
        "--middleware=kaigen_connections.Connections",
    ]


def test_versions_get_only_flags_that_they_know() -> None:
    several: dict[str, Any] = {"model": "many", "resources": {"gpus": 2}, "shape": {"dataParallel": 2}}
    new = {"--shutdown-timeout=20", "--distributed-timeout-seconds=1200"}
    for version, expected in (("0.17.1", set()), ("0.18.1", new), (None, new)):
        given = args(topology(**several, engineVersion=version, probes={"startup": "20m"}))
        assert {argument for argument in given if "timeout" in argument} == expected


def test_processes_wait_for_each_other_as_long_as_the_startup_probe() -> None:
    spec: dict[str, Any] = {"model": "many", "resources": {"gpus": 2}}
    for more in ({}, {"probes": {"startup": "3h"}}):
        several = topology(**spec, **more, shape={"dataParallel": 2})
        for found in (pod(several, CONTEXT), group(topology(**spec, **more, shape={"nodes": 2}))[0]):
            probe = found["containers"][0]["startupProbe"]
            seconds = str(probe["failureThreshold"] * probe["periodSeconds"])
            assert env(found)["VLLM_ENGINE_READY_TIMEOUT_S"] == seconds
            assert f"--distributed-timeout-seconds={seconds}" in found["containers"][0]["args"]
    alone = pod(topology(**spec), CONTEXT)
    assert "VLLM_ENGINE_READY_TIMEOUT_S" not in env(alone)
    assert not any("distributed" in argument for argument in alone["containers"][0]["args"])
    own = args(topology(**spec, shape={"dataParallel": 2}, engineArgs={"distributed-timeout-seconds": 60}))
    assert [argument for argument in own if "distributed" in argument] == ["--distributed-timeout-seconds=60"]


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_api_keys_are_a_file_and_never_on_a_command_line(engine: str) -> None:
    found = pod(topology(engine=engine, model="many", auth={"secret": {"name": "s", "key": "k"}}), CONTEXT)
    container = found["containers"][0]
    (volume,) = [volume for volume in found["volumes"] if volume["name"] == "auth"]
    assert volume["secret"]["secretName"] == "s"
    assert volume["secret"]["defaultMode"] == 0o440
    # A file of a subPath would never change.
    assert {"name": "auth", "mountPath": "/etc/kaigen/auth", "readOnly": True} in container["volumeMounts"]
    if engine == "transformers":
        assert "--api-key-file=/etc/kaigen/auth/k" in container["args"]
    else:
        assert env(found)["KAIGEN_API_KEYS"] == "/etc/kaigen/auth/k"
        assert container["command"][-4:] == ["python3", "/etc/kaigen-programs/kaigen_keys.py", "vllm", "serve"]
        # Connections are closed by the outermost one, also those of requests without a key.
        wanted = ["--middleware=kaigen_keys.Keys", "--middleware=kaigen_connections.Connections"]
        assert [argument for argument in container["args"] if "middleware" in argument] == wanted


def test_only_pods_that_serve_have_the_api_keys() -> None:
    spec = {
        "engine": "vllm",
        "model": "many",
        "auth": {"secret": {"name": "s"}},
        "shape": {"nodes": 2},
        "resources": {"gpus": 8},
    }
    template = objects(topology(**spec), CONTEXT)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    mounted = [
        [each["name"] for each in template[pod]["spec"]["volumes"] if each["name"] == "auth"]
        for pod in ("leaderTemplate", "workerTemplate")
    ]
    assert mounted == [["auth"], []]


def test_flags_of_the_spec_override_those_of_the_preset() -> None:
    spec: dict[str, Any] = {"preset": "qwen2.5-coder-7b-instruct", "resources": {"gpuType": "L4"}}
    given = args(topology(**spec))
    assert given[0] == "Qwen/Qwen2.5-Coder-7B-Instruct"
    assert {"--tool-call-parser=hermes", "--enable-auto-tool-choice", "--max-model-len=auto"} <= set(given)
    other = args(topology(**spec, contextLength=4096, engineArgs={"tool-call-parser": "mistral"}))
    assert "--tool-call-parser=hermes" not in other
    assert "--tool-call-parser=mistral" in other
    assert [argument for argument in other if "max-model-len" in argument] == ["--max-model-len=4096"]
    elsewhere = args(topology(**spec, model="many"))
    assert elsewhere[0] == "/model"
    assert "--tool-call-parser=hermes" in elsewhere


def test_what_a_spec_leaves_open_follows_from_the_plan() -> None:
    block = topology(preset="deepseek-v3-0324", resources={"instanceType": "p5.48xlarge"}, tokenSecret={"name": "s"})
    made = objects(block, CONTEXT)["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    assert made["size"] == 2
    container = made["leaderTemplate"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert {"--tensor-parallel-size=8", "--pipeline-parallel-size=2"} <= set(container["args"])
    assert any("each GPU needs" in note.text for note in app(block, CONTEXT).notes)


def test_kaigens_server_adds_adapters_to_the_model() -> None:
    adapters = [{"name": "a", "model": "many", "strength": 0.25}, {"name": "b", "model": "many"}]
    block = topology(model="many", engine="transformers", adapters=adapters)
    assert "--merge-adapters=/adapters/a=0.25,/adapters/b" in args(block)


def test_a_strength_has_no_effect_on_vllm() -> None:
    problems = Problems()
    compiled(topology(model="many", adapters=[{"name": "a", "model": "many", "strength": 1}]), CONTEXT, problems)
    assert [(item.code, item.path) for item in problems.items] == [("KG0340", ("spec", "adapters", 0, "strength"))]


def test_parameters_are_next_to_the_api_key() -> None:
    """No volume can be mounted in the read-only folder of another one, so the file is mounted alone."""
    spec = topology(
        engine="transformers", model="many", auth={"secret": {"name": "s", "key": "k"}}, params={"top-k": 3}
    )
    found = pod(spec, CONTEXT)
    mounts = {mount["mountPath"] for mount in found["containers"][0]["volumeMounts"]}
    assert {"/etc/kaigen/auth", "/etc/kaigen/params.json"} <= mounts
    assert env(found)["PARAM_TOP_K"] == "3"
    assert objects(spec, CONTEXT)["ConfigMap"]["data"]["params.json"] == '{"top-k":3}'
