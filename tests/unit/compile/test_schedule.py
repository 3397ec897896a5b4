"""Jobs that run at fixed times, and Topologies with more replicas at some times."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kaigen.compile.context import SpecIndex
from tests.unit.compile.specs import SOURCE, app, context, job, model, objects, pod, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, KEDA

OUTPUT = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}
NIGHTLY = "0 2 * * *"
MODELS = {"one": model()}


def _cron_job(**spec: Any) -> dict[str, Any]:
    return objects(job(**spec), context(models=MODELS))["CronJob"]


def test_a_cron_expression_is_in_utc_and_leaves_out_runs_that_overlap_or_are_late() -> None:
    found = _cron_job(schedule=NIGHTLY)
    assert found["metadata"]["name"] == "j"
    assert {key: value for key, value in found["spec"].items() if key != "jobTemplate"} == {
        "schedule": NIGHTLY,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "suspend": False,
    }


def test_every_field_of_a_schedule_has_its_effect() -> None:
    schedule = {
        "cron": "@daily",
        "timeZone": "Asia/Kolkata",
        "concurrency": "Replace",
        "startingDeadline": "10m",
        "keep": {"completed": 7, "failed": 1},
        "suspend": True,
    }
    spec = _cron_job(schedule=schedule)["spec"]
    del spec["jobTemplate"]
    assert list(spec.values()) == ["@daily", "Asia/Kolkata", "Replace", 600, 7, 1, True]


@pytest.mark.parametrize(
    "more",
    [
        {"nodes": 2, "groups": "indexedJob"},
        {"shards": 3},
        {"template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}, "image": None},
        {
            "image": None,
            "workload": "classify",
            "classify": {"weights": {"path": "/weights"}},
            "inputs": [{"url": "https://a.example/cat.jpg"}],
            "output": OUTPUT,
        },
        {"image": None, "tune": {"method": "lora", "dataset": "/data"}, "model": "one", "output": OUTPUT},
    ],
)
def test_every_kind_of_job_runs_by_a_schedule_as_it_runs_once(more: dict[str, Any]) -> None:
    once = objects(job(**more), context(models=MODELS))["Job"]["spec"]
    run = _cron_job(**more, schedule=NIGHTLY)["spec"]["jobTemplate"]["spec"]
    for each in (once, run):
        for container in each["template"]["spec"]["containers"]:
            container["env"] = [found for found in container.get("env", []) if found["name"] != "JOB_NAME"]
            for mount in container.get("volumeMounts", []):
                mount.pop("subPathExpr", None)
    assert run == once


def test_a_run_is_the_job_that_the_spec_would_be_without_a_schedule() -> None:
    more = {"model": "one", "placement": {"queue": "team"}, "retries": 5, "deadline": "1h", "ttl": "1h"}
    once = objects(job(**more), context(models=MODELS))["Job"]
    template = _cron_job(**more, schedule=NIGHTLY)["spec"]["jobTemplate"]
    assert template["metadata"]["labels"] == once["metadata"]["labels"]
    assert template["metadata"]["annotations"].items() <= once["metadata"]["annotations"].items()
    assert template["metadata"]["annotations"]["kaigen.dev/pod-ttl"] == "3600"
    run, single = template["spec"]["template"]["spec"], once["spec"]["template"]["spec"]
    assert [item["name"] for item in run["initContainers"]] == ["wait-for-model"]
    for container in run["containers"]:
        container["env"] = [variable for variable in container["env"] if variable["name"] != "JOB_NAME"]
    assert run == single
    del template["spec"]["template"], once["spec"]["template"]
    assert template["spec"] == once["spec"]


def test_each_run_writes_to_the_folder_of_its_name() -> None:
    template = _cron_job(schedule=NIGHTLY, output=OUTPUT)["spec"]["jobTemplate"]["spec"]["template"]
    container = template["spec"]["containers"][0]
    mount = next(mount for mount in container["volumeMounts"] if mount["name"] == "output")
    assert mount["subPathExpr"] == "$(JOB_NAME)"
    name = next(variable for variable in container["env"] if variable["name"] == "JOB_NAME")
    assert name["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['batch.kubernetes.io/job-name']"
    assert "subPathExpr" not in str(pod(job(output=OUTPUT), context()))


def test_runs_on_several_nodes_are_indexed_jobs() -> None:
    found = _cron_job(schedule=NIGHTLY, nodes=2)["spec"]["jobTemplate"]["spec"]
    assert (found["completionMode"], found["completions"]) == ("Indexed", 2)
    names = [variable["name"] for variable in found["template"]["spec"]["containers"][0]["env"]]
    assert names.count("JOB_NAME") == 1


RESULTS = {"uri": "s3://acme-results/x"}
BUCKET = {**OUTPUT, "bucket": RESULTS}


def test_the_results_of_each_run_are_uploaded_by_a_job_of_the_same_minute() -> None:
    made = app(job(schedule={"cron": NIGHTLY, "startingDeadline": "10m", "keep": 7}, output=BUCKET), context())
    found = [item.body for item in made.render()]
    run, uploader = [item for item in found if item["kind"] == "CronJob"]
    assert (run["metadata"]["name"], uploader["metadata"]["name"]) == ("j", "j-upload")
    times, template = dict(uploader["spec"]), uploader["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert times.pop("concurrencyPolicy") == "Allow"
    assert {key: times[key] for key in times if key != "jobTemplate"} == {
        key: value for key, value in run["spec"].items() if key not in ("jobTemplate", "concurrencyPolicy")
    }
    (container,) = template["containers"]
    assert container["args"] == [
        "put",
        "/output",
        "--dest=s3://acme-results/x",
        "--run-of=j",
        "--left-out-after=660s",
        "--identity=j",
    ]
    assert container["env"][0]["name"] == "JOB_NAME"
    assert "subPathExpr" not in str(container["volumeMounts"])
    assert "initContainers" not in template
    (rule,) = next(item for item in found if item["kind"] == "Role")["rules"]
    assert rule == {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"output": OUTPUT}, []),
        ({"template": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}, "image": None}, []),
        ({"output": BUCKET}, []),
        (
            {"output": {**OUTPUT, "bucket": {**RESULTS, "skipIfComplete": True}}, "command": ["a"]},
            [("KG0338", "spec.output.bucket.skipIfComplete")],
        ),
        ({"output": {"volume": {"size": "1Gi", "ttl": "1h"}}}, [("KG0338", "spec.output.volume.ttl")]),
        ({"groups": "jobSet", "nodes": 2}, [("KG0338", "spec.groups")]),
        ({"env": {"JOB_NAME": "x"}}, [("KG0313", "spec.env.JOB_NAME")]),
        (
            {"inputs": {"files": [{"wait": "1h", "path": "b"}], "into": "output"}, "output": OUTPUT},
            [("KG0338", "spec.inputs.files.0.wait")],
        ),
        (
            {"model": {"source": SOURCE, "mountPath": "/output/m"}, "output": OUTPUT},
            [("KG0338", "spec.model.source")],
        ),
        (
            {"schedule": {"cron": NIGHTLY, "startingDeadline": "9s"}},
            [("KG0338", "spec.schedule.startingDeadline")],
        ),
    ],
)
def test_what_belongs_to_one_run_is_an_error(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert problem_paths(job(**{"schedule": NIGHTLY, **spec}), context()) == expected


def test_nothing_can_wait_for_the_output_of_a_schedule() -> None:
    specs = SpecIndex({("Job", "default", "j"): job(schedule=NIGHTLY, output=OUTPUT)})
    served = topology(model={"job": {"name": "j"}})
    assert problem_paths(served, replace(context(), specs=specs)) == [("KG0338", "spec.model.job.name")]


TICKETS = {"uri": "s3://acme-tickets/curated", "include": ["*.jsonl"], "modifiedWithin": "25h", "newest": 100}


def test_each_run_downloads_the_newest_files_to_its_own_folder() -> None:
    inputs = {"into": "output", "files": [{"s3": TICKETS}, {"url": "https://a.example/labels.txt"}]}
    found = _cron_job(schedule=NIGHTLY, inputs=inputs, output=OUTPUT)["spec"]["jobTemplate"]["spec"]
    web, bucket = found["template"]["spec"]["initContainers"]
    *arguments, identity = bucket["args"]
    assert arguments == [
        "fetch",
        "s3",
        "--uri=s3://acme-tickets/curated",
        "--include=*.jsonl",
        "--modified-within=90000s",
        "--newest=100",
        "--dest=/output/curated",
    ]
    assert identity.startswith("--identity=")
    (container,) = found["template"]["spec"]["containers"]
    (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "output"]
    assert mount["subPathExpr"] == "$(JOB_NAME)"
    for each in (web, bucket):
        assert each["volumeMounts"] == [mount]
        assert each["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['batch.kubernetes.io/job-name']"
    rules = found["podFailurePolicy"]["rules"][1:]
    assert [rule["onExitCodes"]["containerName"] for rule in rules] == ["fetch-inputs", "fetch-bucket"]


def test_files_of_several_buckets_have_folders_and_keys_of_their_own() -> None:
    keys = {"secret": {"name": "keys"}}
    files = [{"s3": {"uri": "gs://acme-a", "credentials": keys}}, {"s3": TICKETS, "path": "in/tickets"}]
    made = pod(job(inputs=files), context())
    first, second = made["initContainers"]
    assert (first["name"], second["name"]) == ("fetch-bucket", "fetch-bucket-2")
    assert "--dest=/inputs/acme-a" in first["args"]
    assert "--dest=/inputs/in/tickets" in second["args"]
    assert {variable["name"] for variable in first["env"]} == {
        "SOURCE_AWS_ACCESS_KEY_ID",
        "SOURCE_AWS_SECRET_ACCESS_KEY",
    }
    assert "env" not in second
    assert made["containers"][0]["env"] == [{"name": "HOME", "value": "/tmp"}]


def test_another_choice_of_files_is_another_run() -> None:
    def name(**more: Any) -> str:
        inputs = [{"s3": {"uri": "s3://acme/b", **more}}]
        return str(objects(job(inputs=inputs), context())["Job"]["metadata"]["name"])

    assert len({name(), name(newest=1), name(newest=2), name(modifiedWithin="1h")}) == 4


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"shards": 2, "inputs": [{"s3": TICKETS}]}, [("KG0371", "spec.inputs.0.s3.newest")]),
        (
            {"nodes": 2, "inputs": [{"s3": {"uri": "s3://acme/b", "modifiedWithin": "1h"}}]},
            [("KG0371", "spec.inputs.0.s3.modifiedWithin")],
        ),
        ({"shards": 2, "inputs": {"into": "output", "files": [{"s3": TICKETS}]}, "output": OUTPUT}, []),
        ({"shards": 2, "inputs": [{"s3": {"uri": "s3://acme/b"}}]}, []),
        (
            {"inputs": [{"s3": {**TICKETS, "revision": f"1:2:{'0' * 64}"}}]},
            [("KG0340", "spec.inputs.0.s3.revision")],
        ),
        (
            {
                "inputs": [
                    {"s3": {"uri": "s3://acme/b", "credentials": {"serviceAccount": {"annotations": {"a": "b"}}}}}
                ]
            },
            [("KG0317", "spec.inputs.0.s3.credentials.serviceAccount")],
        ),
        ({"inputs": [{"s3": TICKETS, "sha256": "0" * 64}]}, [("KG0340", "spec.inputs.0.sha256")]),
        (
            {"inputs": [{"s3": TICKETS}, {"url": "https://a.example/curated"}]},
            [("KG0329", "spec.inputs.1")],
        ),
    ],
)
def test_files_of_a_bucket_are_the_same_in_all_pods_of_a_run(
    spec: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert problem_paths(job(**spec), context()) == expected


DAY = {"start": "0 6 * * MON-FRI", "end": "0 20 * * MON-FRI", "timeZone": "Asia/Kolkata", "replicas": 2}
CRON = {
    "type": "cron",
    "metadata": {
        "timezone": "Asia/Kolkata",
        "start": "0 6 * * MON-FRI",
        "end": "0 20 * * MON-FRI",
        "desiredReplicas": "2",
    },
}


def _scaled(**autoscale: Any) -> dict[str, Any]:
    spec: dict[str, Any] = objects(topology(model="many", autoscale=autoscale), CONTEXT)["ScaledObject"]["spec"]
    return spec


def test_replicas_follow_a_schedule_alone() -> None:
    spec = _scaled(min=0, max=2, schedule=[DAY])
    assert spec["minReplicaCount"] == 0
    assert spec["triggers"] == [CRON]


def test_replicas_follow_the_load_above_those_of_the_schedule() -> None:
    without, scheduled = _scaled(**KEDA), _scaled(**KEDA, min=0, schedule=[DAY])
    assert scheduled["triggers"] == [*without["triggers"], CRON]


@pytest.mark.parametrize(
    ("autoscale", "expected"),
    [
        ({"scaler": "hpa"}, ("KG0348", "spec.autoscale.schedule")),
        ({"schedule": [DAY, {**DAY, "replicas": 3}]}, ("KG0348", "spec.autoscale.schedule.1.replicas")),
        ({"schedule": [{**DAY, "end": DAY["start"]}]}, ("KG0348", "spec.autoscale.schedule.0.end")),
        ({"metric": "running"}, ("KG0348", "spec.autoscale")),
    ],
)
def test_windows_that_keda_refuses_are_errors(autoscale: dict[str, Any], expected: tuple[str, str]) -> None:
    block = topology(model="many", autoscale={"max": 2, "schedule": [DAY], **autoscale})
    assert problem_paths(block, CONTEXT) == [expected]
