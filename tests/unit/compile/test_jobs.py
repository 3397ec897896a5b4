"""Problems of Jobs, and Jobs of several nodes."""

from __future__ import annotations

import re
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
        ({"params": {"a-b": 1, "a_b": 2}}, [("KG0313", "spec.params.a_b")]),
        ({"params": {"a": 1}, "env": {"PARAM_A": "x"}}, [("KG0313", "spec.params.a")]),
        ({"nodes": 2, "env": {"NODE_RANK": "1"}}, [("KG0313", "spec.env.NODE_RANK")]),
        ({"nodes": 2, "env": {"PET_NNODES": "1"}}, [("KG0313", "spec.env.PET_NNODES")]),
        ({"groups": "jobSet"}, [("KG0340", "spec.groups")]),
        ({"env": {"NODE_RANK": "1", "HOME": "/root"}}, []),
        ({"model": {"name": "one", "mountPath": "/output/"}, "output": OUTPUT}, [("KG0314", "spec.model")]),
        (
            {"output": {"volume": {"size": "1Gi", "mountPath": "/etc/kaigen"}}, "params": {"a": 1}},
            [("KG0314", "spec.output")],
        ),
        (
            {"output": {"volume": {"size": "1Gi", "mountPath": "/dev/shm"}}, "resources": {"sharedMemory": "1Gi"}},
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
        ({"inputs": [{"wait": "1h", "path": "a"}]}, [("KG0371", "spec.inputs.0.wait")]),
        ({"inputs": {"files": [{"wait": "1h", "path": "a"}]}}, [("KG0371", "spec.inputs.files.0.wait")]),
        ({"inputs": {"files": [{"url": "https://a.example/b"}], "into": "output"}}, [("KG0371", "spec.inputs.into")]),
        (
            {"inputs": {"files": [{"wait": "1h"}], "into": "output", "mountPath": "/inputs"}, "output": OUTPUT},
            [("KG0329", "spec.inputs.files.0"), ("KG0340", "spec.inputs.mountPath")],
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


@pytest.mark.parametrize("value", ["\n\t\r é 🚀 \u200b\ufeff", 2**53, -(2**53), 0.0, 1e300, [None], {"": ""}, True])
def test_values_that_helm_supports_are_accepted(value: Any) -> None:
    assert list(unsupported_values(value)) == []


def test_negative_zero_is_reported() -> None:
    assert [item.code for item in unsupported_values({"a": -0.0})] == ["KG0312"]


def variables(made: Any) -> dict[str, Any]:
    """Return the variables of a pod's container by name."""
    return {entry["name"]: entry for entry in made["containers"][0]["env"]}


INDEX = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}


def test_pods_of_an_indexed_job_find_each_other() -> None:
    block = job(nodes=3, groups="indexedJob")
    made, spec = objects(block), pod(block)
    run, service = made["Job"]["spec"], made["Service"]
    assert (run["completions"], run["parallelism"], run["completionMode"]) == (3, 3, "Indexed")
    assert spec["subdomain"] == service["metadata"]["name"]
    env = variables(spec)
    # A pod of an Indexed Job is called JOB-INDEX, and its host name is below the headless Service's.
    assert env["MASTER_ADDR"]["value"] == f"$(JOB_NAME)-0.{service['metadata']['name']}"
    assert list(env).index("JOB_NAME") < list(env).index("MASTER_ADDR")
    assert env["MASTER_PORT"]["value"] == str(service["spec"]["ports"][0]["port"])
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True


def test_each_rank_of_an_indexed_job_has_retries_of_its_own() -> None:
    """A lost rank fails all others, and one more failure than retries would end a common limit at once."""
    run = objects(job(nodes=4, groups="indexedJob", retries=2))["Job"]["spec"]
    assert (run["backoffLimitPerIndex"], run["maxFailedIndexes"]) == (2, 0)
    assert "backoffLimit" not in run


def test_a_job_set_starts_all_pods_again() -> None:
    made = objects(job(nodes=3, retries=4, deadline="1h"))
    assert "Service" not in made
    spec = made["JobSet"]["spec"]
    assert spec["failurePolicy"]["maxRestarts"] == 4
    (replicated,) = spec["replicatedJobs"]
    run = replicated["template"]["spec"]
    assert (run["completions"], run["parallelism"], run["completionMode"]) == (3, 3, "Indexed")
    assert (run["backoffLimit"], run["activeDeadlineSeconds"]) == (0, 3600)
    env = variables(run["template"]["spec"])
    assert env["MASTER_ADDR"]["value"] == "$(JOB_NAME)-0.$(JOBSET_NAME)"
    assert "subdomain" not in run["template"]["spec"]


def test_a_train_job_has_a_runtime_of_its_name_with_the_same_job_set() -> None:
    made = objects(job(nodes=3, groups="trainJob", deadline="1h", placement={"queue": "research"}))
    train, runtime = made["TrainJob"], made["TrainingRuntime"]
    name = train["metadata"]["name"]
    assert re.fullmatch("j-[0-9a-f]{8}", name)
    assert train["spec"]["runtimeRef"] == {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": name}
    assert runtime["metadata"]["name"] == name
    assert train["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert "kueue.x-k8s.io/queue-name" not in runtime["metadata"]["labels"]
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 3}
    found = runtime["spec"]["template"]["spec"]
    expected = objects(job(nodes=3, groups="jobSet", deadline="1h", placement={"queue": "research"}))["JobSet"]["spec"]
    (replicated,), (plain,) = found["replicatedJobs"], expected["replicatedJobs"]
    step = "trainer.kubeflow.org/trainjob-ancestor-step"
    assert replicated["template"].pop("metadata") == {"labels": {step: "trainer"}}
    (container,) = replicated["template"]["spec"]["template"]["spec"]["containers"]
    (other,) = plain["template"]["spec"]["template"]["spec"]["containers"]
    assert (container["name"], other["name"]) == ("node", "run")
    assert {**container, "name": "run"} == other
    replicated["template"]["spec"]["template"]["spec"]["containers"] = [other]
    assert found == expected


def test_a_changed_train_job_is_another_run() -> None:
    first, second = (
        objects(job(nodes=2, groups="trainJob", command=[command]))["TrainJob"]["metadata"]["name"] for command in "ab"
    )
    assert first != second


def test_a_job_set_fails_where_no_retry_can_succeed() -> None:
    inputs = [{"url": "https://a.example/b"}]
    spec = objects(job(nodes=2, inputs=inputs))["JobSet"]["spec"]
    rules = {rule["name"]: rule for rule in spec["failurePolicy"]["rules"]}
    assert list(rules) == ["timeLimit", "disruption", "permanent"]
    assert rules["permanent"]["action"] == rules["timeLimit"]["action"] == "FailJobSet"
    assert rules["disruption"]["onJobFailureMessagePatterns"] == ["has condition DisruptionTarget"]
    policy = spec["replicatedJobs"][0]["template"]["spec"]["podFailurePolicy"]["rules"]
    assert [rule["action"] for rule in policy] == ["FailJob", "FailJob"]


@pytest.mark.parametrize("groups", ["jobSet", "indexedJob", "trainJob"])
def test_torchrun_and_scripts_read_the_same_values(groups: str) -> None:
    env = variables(pod(job(nodes=3, groups=groups, resources={"gpus": 8})))
    for name in ("NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"):
        assert env[f"PET_{name}"] == {**env[name], "name": f"PET_{name}"}
    assert (env["NNODES"]["value"], env["MASTER_PORT"]["value"]) == ("3", "29500")
    assert env["NODE_RANK"]["valueFrom"] == INDEX
    assert env["PET_NPROC_PER_NODE"]["value"] == "8"


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        ({}, "1"),
        ({"gpus": 0}, "1"),
        ({"gpuType": "L4"}, "1"),
        ({"gpus": {"deviceClassName": "gpu.nvidia.com", "count": 2}}, "2"),
    ],
)
def test_one_process_for_each_gpu(resources: dict[str, Any], count: str) -> None:
    block = job(nodes=2, resources=resources)
    assert variables(pod(block))["PET_NPROC_PER_NODE"]["value"] == count


def test_the_spec_decides_the_processes_of_a_node() -> None:
    block = job(nodes=2, env={"PET_NPROC_PER_NODE": "auto"})
    env = pod(block)["containers"][0]["env"]
    assert [entry["value"] for entry in env if entry["name"] == "PET_NPROC_PER_NODE"] == ["auto"]


@pytest.mark.parametrize(
    ("profile", "kind"), [("generic", "JobSet"), ("k3s", "Job"), ("kind", "Job"), ("gke", "JobSet")]
)
def test_the_profile_decides_what_runs_several_nodes(profile: str, kind: str) -> None:
    assert kind in objects(job(nodes=2), context(profile))


@pytest.mark.parametrize(("gpus", "size"), [(1, "1Gi"), (8, "16Gi")])
def test_shared_memory_grows_with_the_gpus(gpus: int, size: str) -> None:
    made = pod(job(resources={"gpus": gpus}))
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}} in made["volumes"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in made["containers"][0]["volumeMounts"]


def test_shared_memory_of_the_spec_is_kept() -> None:
    made = pod(job(resources={"gpus": 8, "sharedMemory": "64Gi"}))
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}} in made["volumes"]


def test_one_node_has_no_rendezvous() -> None:
    assert "Service" not in objects(job())
    assert "subdomain" not in pod(job())


@pytest.mark.parametrize(
    ("output", "weights", "scratch"),
    [("/output", "/model", "/tmp"), ("/tmp", "/model", "/scratch"), ("/tmp/", "/scratch", "/var/tmp")],
)
def test_there_is_always_a_folder_to_write_to(output: str, weights: str, scratch: str) -> None:
    block = job(model={"name": "one", "mountPath": weights}, output={"volume": {"size": "1Gi", "mountPath": output}})
    container = pod(block, context(models=MODELS))["containers"][0]
    assert {"name": "scratch", "mountPath": scratch} in container["volumeMounts"]
    assert {"name": "HOME", "value": scratch} in container["env"]


def test_home_of_the_spec_is_kept() -> None:
    (home,) = [entry for entry in pod(job(env={"HOME": "/me"}))["containers"][0]["env"] if entry["name"] == "HOME"]
    assert home["value"] == "/me"


def test_variables_are_strings() -> None:
    block = job(env={"A": True, "B": False, "C": 12, "D": 9007199254740993, "E": "x"})
    env = {entry["name"]: entry["value"] for entry in pod(block)["containers"][0]["env"]}
    assert (env["A"], env["B"], env["C"], env["D"], env["E"]) == ("true", "false", "12", "9007199254740993", "x")


def test_parameters_reach_the_container_unchanged() -> None:
    """Kubernetes replaces `$(NAME)` in a variable, and takes `$$` for `$`."""
    params = {"money": "$$5 for $(HOME)", "rate": 1e-5, "flag": True, "list": [1, "a"]}
    env = {entry["name"]: entry.get("value") for entry in pod(job(params=params))["containers"][0]["env"]}
    assert env["PARAM_MONEY"] == "$$$$5 for $$(HOME)"
    assert (env["PARAM_RATE"], env["PARAM_FLAG"], env["PARAM_LIST"]) == ("0.00001", "true", '[1,"a"]')
    text = objects(job(params=params))["ConfigMap"]["data"]["params.json"]
    assert text == '{"flag":true,"list":[1,"a"],"money":"$$5 for $(HOME)","rate":0.00001}'


def test_parameters_have_variables_that_a_shell_can_read() -> None:
    params = {"num-train-epochs": 1, "lora.alpha": 16}
    env = {entry["name"]: entry.get("value") for entry in pod(job(params=params))["containers"][0]["env"]}
    assert (env["PARAM_NUM_TRAIN_EPOCHS"], env["PARAM_LORA_ALPHA"]) == ("1", "16")
    assert objects(job(params=params))["ConfigMap"]["data"]["params.json"] == ('{"lora.alpha":16,"num-train-epochs":1}')


@pytest.mark.parametrize("params", [{}, {"a": 1}])
def test_the_file_of_parameters_may_be_elsewhere_and_empty(params: dict[str, int]) -> None:
    spec = job(params=params, paramsFile="/content/params.json")
    (mount,) = (each for each in pod(spec)["containers"][0]["volumeMounts"] if each["name"] == "params")
    assert mount == {"name": "params", "mountPath": "/content/params.json", "subPath": "params.json", "readOnly": True}
    assert objects(spec)["ConfigMap"]["data"]["params.json"] == ('{"a":1}' if params else "{}")


@pytest.mark.parametrize(
    ("revision", "warned"), [("main", True), ("0" * 40, False), ("0" * 39, True), ("A" * 40, True), ("v1.0", True)]
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


def test_inputs_in_the_output_volume_are_downloaded_and_awaited_there() -> None:
    files = [
        {"url": "https://a.example/labels.txt"},
        {"wait": "90s", "path": "a/input.jpg"},
        {"wait": "1d", "path": "b.jpg", "sha256": "0" * 64},
    ]
    block = job(inputs={"files": files, "into": "output"}, output=OUTPUT)
    made = pod(block)
    fetch, wait = made["initContainers"]
    assert fetch["args"][:4] == ["fetch", "http", "--file=labels.txt=https://a.example/labels.txt", "--dest=/output"]
    assert wait["args"] == [
        "wait-files",
        "--dest=/output",
        "--file=a/input.jpg",
        "--file=b.jpg",
        f"--sha256=b.jpg={'0' * 64}",
        "--timeout=86400s",
    ]
    assert fetch["volumeMounts"] == [{"name": "output", "mountPath": "/output"}]
    assert wait["volumeMounts"] == [{"name": "output", "mountPath": "/output", "readOnly": True}]
    assert [volume["name"] for volume in made["volumes"]] == ["output", "scratch"]
    rules = objects(block)["Job"]["spec"]["podFailurePolicy"]["rules"][1:]
    assert {rule["onExitCodes"]["containerName"]: rule["onExitCodes"]["values"] for rule in rules} == {
        "fetch-inputs": [10, 13],
        "wait-for-upload": [10, 13, 20],
    }


def test_files_of_web_servers_are_weights_like_any_other() -> None:
    files = [{"url": "https://a.example/m.safetensors", "sha256": "0" * 64}]
    moved = [{"url": "https://b.example/x", "path": "m.safetensors", "sha256": "0" * 64}]
    first, second = (pod(model(source={"http": {"files": some}})) for some in (files, moved))

    def identity_of(made: Any) -> str:
        return next(str(arg) for arg in made["containers"][0]["args"] if arg.startswith("--identity="))

    assert first["containers"][0]["args"][:2] == ["fetch", "http"]
    assert identity_of(first) == identity_of(second), "where a file came from does not matter, what it is does"


def test_kueue_reads_topology_requests_from_the_pods() -> None:
    notes = {"kueue.x-k8s.io/podset-required-topology": "cloud.com/rack", "note": "a"}
    for nodes, kind in ((1, "Job"), (2, "JobSet")):
        block = job(nodes=nodes)
        block.metadata.annotations.update(notes)
        made = objects(block)[kind]
        annotations = made["metadata"]["annotations"]
        assert annotations["note"] == "a"
        assert "kueue.x-k8s.io/podset-required-topology" not in annotations
        template = made["spec"] if kind == "Job" else made["spec"]["replicatedJobs"][0]["template"]["spec"]
        assert template["template"]["metadata"]["annotations"] == notes
