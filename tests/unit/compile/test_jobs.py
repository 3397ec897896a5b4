"""Problems of Jobs, and Jobs of several nodes."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.helm_values import unsupported_values
from kaigen.kinds.model import Model
from tests.unit.compile.specs import SOURCE, context, job, model, objects, pod, problem_paths

MODELS = {
    "one": model(),
    "many": model(store={"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}),
    "readers": model(store={"volume": {"size": "1Gi", "accessModes": ["ReadOnlyMany"]}}),
}
KEY = {"name": "data", "key": "url"}
OUTPUT = {"volume": {"size": "1Gi"}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"model": "none"}, [("KG0301", "spec.model")]),
        ({"model": {"name": "none"}}, [("KG0301", "spec.model.name")]),
        ({"model": {"source": SOURCE}}, [("KG0303", "spec.model")]),
        ({"model": {"source": SOURCE}, "output": OUTPUT}, [("KG0303", "spec.model")]),
        (
            {"model": {"source": SOURCE, "mountPath": "/outputs"}, "output": OUTPUT},
            [("KG0303", "spec.model.mountPath")],
        ),
        ({"model": {"source": SOURCE, "mountPath": "/output"}, "output": OUTPUT}, []),
        ({"model": {"source": SOURCE, "mountPath": "/output/a/b"}, "output": OUTPUT}, []),
        ({"model": "one", "nodes": 2}, [("KG0309", "spec.model")]),
        ({"model": "many", "nodes": 2}, []),
        ({"model": "readers", "nodes": 2}, []),
        ({"output": OUTPUT, "nodes": 2}, [("KG0309", "spec.output.volume")]),
        ({"model": "one", "resources": {"gpus": 1}}, [("KG0311", "spec.model")]),
        ({"model": "many", "resources": {"gpus": 1}}, []),
        ({"params": {"a": 2**53 + 1}}, [("KG0312", "spec.params.a")]),
        ({"params": {"a": [{"b": -(2**53) - 1}]}}, [("KG0312", "spec.params.a.0.b")]),
        ({"params": {"a": 2**53}, "env": {"A": 2**60}}, []),
        ({"params": {"a": 1, "A": 2}}, [("KG0313", "spec.params.A")]),
        ({"params": {"a": 1}, "env": {"PARAM_A": "x"}}, [("KG0313", "spec.params.a")]),
        ({"nodes": 2, "env": {"NODE_RANK": "1"}}, [("KG0313", "spec.env.NODE_RANK")]),
        ({"env": {"NODE_RANK": "1", "HOME": "/root"}}, []),
        ({"model": {"name": "one", "mountPath": "/output/"}, "output": OUTPUT}, [("KG0314", "spec.model")]),
        (
            {"output": {"volume": {"size": "1Gi", "mountPath": "/etc/kaigen"}}, "params": {"a": 1}},
            [("KG0314", "spec.output")],
        ),
        (
            {
                "output": {"volume": {"size": "1Gi", "mountPath": "/dev/shm"}},
                "resources": {"sharedMemory": "1Gi"},
            },
            [("KG0314", "spec.output")],
        ),
        ({"inputs": [{"url": "https://a.example/b"}, {"secret": KEY, "path": "c/d"}]}, []),
        (
            {"inputs": [{"url": "https://a.example/"}, {"secret": KEY}]},
            [("KG0329", f"spec.inputs.{n}") for n in (0, 1)],
        ),
        (
            {"inputs": {"files": [{"url": "https://a.example/b"}, {"secret": KEY, "path": "b/c"}]}},
            [("KG0329", "spec.inputs.files.1")],
        ),
        (
            {"inputs": {"files": [{"url": "https://a.example/b"}], "mountPath": "/output"}, "output": OUTPUT},
            [("KG0314", "spec.inputs")],
        ),
        ({"args": ["fine", "a\x85b"]}, [("KG0315", "spec.args.1")]),
        ({"env": {"A": "\x7f"}}, [("KG0315", "spec.env.A")]),
        ({"params": {"a": {"\u2028": 1}}}, [("KG0315", "spec.params.a.\u2028")]),
        ({"placement": {"affinity": {"<<": {"a": 1}}}}, [("KG0315", "spec.placement.affinity.<<")]),
    ],
    ids=lambda value: str(value)[:60],
)
def test_problem_is_reported_at_its_field(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert problem_paths(job(**spec), context(models=MODELS)) == expected


@pytest.mark.parametrize(
    "value", ["\n\t\r é 🚀 \u200b\ufeff", 2**53, -(2**53), 0.0, 1e300, [None], {"": ""}, True]
)
def test_values_that_helm_supports_are_accepted(value: Any) -> None:
    assert list(unsupported_values(value)) == []


def test_negative_zero_is_reported() -> None:
    assert [item.code for item in unsupported_values({"a": -0.0})] == ["KG0312"]


def test_several_nodes_find_each_other() -> None:
    block = job(nodes=3)
    made, spec = objects(block), pod(block)
    run, service = made["Job"]["spec"], made["Service"]
    assert (run["completions"], run["parallelism"], run["completionMode"]) == (3, 3, "Indexed")
    variables = {entry["name"]: entry for entry in spec["containers"][0]["env"]}
    assert variables["NNODES"]["value"] == "3"
    assert "job-completion-index" in variables["NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert spec["subdomain"] == service["metadata"]["name"]
    # A pod of an Indexed Job is called JOB-INDEX, and its host name is below the headless Service's.
    assert variables["MASTER_ADDR"]["value"] == f"$(JOB_NAME)-0.{service['metadata']['name']}"
    assert list(variables).index("JOB_NAME") < list(variables).index("MASTER_ADDR")
    assert variables["MASTER_PORT"]["value"] == str(service["spec"]["ports"][0]["port"])
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True


def test_one_node_has_no_rendezvous() -> None:
    assert "Service" not in objects(job())
    assert "subdomain" not in pod(job())


@pytest.mark.parametrize(
    ("output", "weights", "scratch"),
    [("/output", "/model", "/tmp"), ("/tmp", "/model", "/scratch"), ("/tmp/", "/scratch", "/var/tmp")],
)
def test_there_is_always_a_folder_to_write_to(output: str, weights: str, scratch: str) -> None:
    block = job(
        model={"name": "one", "mountPath": weights}, output={"volume": {"size": "1Gi", "mountPath": output}}
    )
    container = pod(block, context(models=MODELS))["containers"][0]
    assert {"name": "scratch", "mountPath": scratch} in container["volumeMounts"]
    assert {"name": "HOME", "value": scratch} in container["env"]


def test_home_of_the_spec_is_kept() -> None:
    (home,) = [
        entry for entry in pod(job(env={"HOME": "/me"}))["containers"][0]["env"] if entry["name"] == "HOME"
    ]
    assert home["value"] == "/me"


def test_variables_are_strings() -> None:
    block = job(env={"A": True, "B": False, "C": 12, "D": 9007199254740993, "E": "x"})
    env = {entry["name"]: entry["value"] for entry in pod(block)["containers"][0]["env"]}
    assert (env["A"], env["B"], env["C"], env["D"], env["E"]) == (
        "true",
        "false",
        "12",
        "9007199254740993",
        "x",
    )


def test_parameters_reach_the_container_unchanged() -> None:
    """Kubernetes replaces `$(NAME)` in a variable, and takes `$$` for `$`."""
    params = {"money": "$$5 for $(HOME)", "rate": 1e-5, "flag": True, "list": [1, "a"]}
    env = {entry["name"]: entry.get("value") for entry in pod(job(params=params))["containers"][0]["env"]}
    assert env["PARAM_MONEY"] == "$$$$5 for $$(HOME)"
    assert (env["PARAM_RATE"], env["PARAM_FLAG"], env["PARAM_LIST"]) == ("0.00001", "true", '[1,"a"]')
    text = objects(job(params=params))["ConfigMap"]["data"]["params.json"]
    assert text == '{"flag":true,"list":[1,"a"],"money":"$$5 for $(HOME)","rate":0.00001}'


@pytest.mark.parametrize(
    ("revision", "warned"),
    [("main", True), ("0" * 40, False), ("0" * 39, True), ("A" * 40, True), ("v1.0", True)],
)
def test_a_revision_that_may_move_is_a_warning(revision: str, warned: bool) -> None:
    block: Model = model(source={"huggingFace": {"repo": "a/b", "revision": revision}})
    assert problem_paths(block) == ([("KG0310", "spec.source.huggingFace.revision")] if warned else [])


def test_claim_is_in_the_wave_of_its_first_pod() -> None:
    for block in (model(), job(output=OUTPUT)):
        made = objects(block)
        waves = {
            kind: int(found["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-wave", 0))
            for kind, found in made.items()
        }
        assert waves["PersistentVolumeClaim"] <= waves["Job"]


def test_inputs_are_fetched_first_and_only_the_downloader_gets_secret_urls() -> None:
    inputs = {
        "files": [
            {"url": "https://a.example/data/train.parquet?v=2", "sha256": "0" * 64},
            {"secret": KEY, "path": "more/test.parquet"},
        ],
        "mountPath": "/mnt/data",
        "transfer": {"memory": "1Gi", "concurrency": 2, "image": "fetch:2"},
    }
    made = pod(job(model="one", inputs=inputs), context(models=MODELS))
    wait, fetch = made["initContainers"]
    assert wait["name"] == "wait-for-model"
    assert fetch["image"] == "fetch:2"
    assert fetch["resources"]["limits"] == {"memory": "1Gi"}
    *arguments, connections = fetch["args"]
    assert connections == "--connections=2"
    assert arguments[:-1] == [
        "fetch",
        "http",
        "--file=train.parquet=https://a.example/data/train.parquet?v=2",
        f"--sha256=train.parquet={'0' * 64}",
        "--file-from=more/test.parquet=ADDRESS_1",
        "--dest=/mnt/data",
    ]
    assert fetch["env"] == [{"name": "ADDRESS_1", "valueFrom": {"secretKeyRef": KEY}}]
    (container,) = made["containers"]
    assert "ADDRESS_1" not in {variable["name"] for variable in container["env"]}
    mounted = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert mounted["/mnt/data"]["readOnly"] is True
    assert {"name": "inputs", "emptyDir": {}} in made["volumes"]


def test_files_of_web_servers_are_weights_like_any_other() -> None:
    files = [{"url": "https://a.example/m.safetensors", "sha256": "0" * 64}]
    moved = [{"url": "https://b.example/x", "path": "m.safetensors", "sha256": "0" * 64}]
    first, second = (pod(model(source={"http": {"files": some}})) for some in (files, moved))

    def identity_of(made: Any) -> str:
        return next(str(arg) for arg in made["containers"][0]["args"] if arg.startswith("--identity="))

    assert first["containers"][0]["args"][:2] == ["fetch", "http"]
    assert identity_of(first) == identity_of(second), (
        "where a file came from does not matter, what it is does"
    )
