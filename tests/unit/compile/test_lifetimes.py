"""How long pods and volumes of finished runs are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kaigen.kinds.block import read_block, replace_fields
from kaigen.kinds.job import Job
from tests.unit.compile.specs import app, context, job, objects, problem_paths


def _job(spec: dict[str, Any]) -> dict[str, Any]:
    return objects(job(**spec), context())["Job"]


@pytest.mark.parametrize(
    ("ttl", "completed", "failed"),
    [
        (0, "0", "0"),
        ("0s", "0", "0"),
        ("1h30m", "5400", "5400"),
        (90, "90", "90"),
        ("never", "never", "never"),
        ({"pods": "1h", "failedPods": "never"}, "3600", "never"),
        ({"pods": 0}, "0", "0"),
        ({"failedPods": "2d"}, "never", "172800"),
    ],
)
def test_lifetime_of_pods_is_in_the_annotations_of_the_job(ttl: object, completed: str, failed: str) -> None:
    metadata = _job({"ttl": ttl})["metadata"]
    assert metadata["labels"]["kaigen.dev/expires"] == "true"
    annotations = metadata["annotations"]
    assert annotations["kaigen.dev/pod-ttl"] == completed
    assert annotations["kaigen.dev/failed-pod-ttl"] == failed


def test_changed_lifetime_of_pods_starts_no_new_run() -> None:
    without, short, long = (_job(spec) for spec in ({}, {"ttl": 0}, {"ttl": {"failedPods": "7d"}}))
    assert without["metadata"]["name"] == short["metadata"]["name"] == long["metadata"]["name"]
    assert without["spec"] == short["spec"] == long["spec"]
    assert "kaigen.dev/expires" not in without["metadata"]["labels"]


def test_pods_of_a_user_template_expire() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    found = _job({"image": None, "template": template, "ttl": "1h"})
    assert found["metadata"]["annotations"]["kaigen.dev/pod-ttl"] == "3600"
    assert "kaigen.dev" not in str(found["spec"]["template"])


def test_lifetime_of_a_job_set_is_an_error() -> None:
    spec = {"nodes": 2, "ttl": "1h"}
    assert problem_paths(job(**spec, groups="jobSet"), context()) == [("KG0340", "spec.ttl")]
    assert problem_paths(job(**spec, groups="indexedJob"), context()) == []


def _volume(ttl: object, **more: object) -> dict[str, Any]:
    return {"output": {"volume": {"size": "1Gi", "ttl": ttl, **more}}}


def _made(spec: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the objects of a Job by role, and the volume that its claim Job creates."""
    found = {item.object.role: item.body for item in app(job(**spec), context()).render()}
    arguments = found["job-claim"]["spec"]["template"]["spec"]["containers"][0]["args"]
    return found, json.loads(arguments[2].removeprefix("--volume="))


@pytest.mark.parametrize(
    ("ttl", "completed", "failed"),
    [
        ("1h", "3600", "3600"),
        ("never", "never", "never"),
        ({"completed": 0, "failed": "7d"}, "0", "604800"),
        ({"failed": "1h"}, "never", "3600"),
    ],
)
def test_volume_that_expires_is_created_by_a_job(ttl: object, completed: str, failed: str) -> None:
    found, volume = _made(_volume(ttl, storageClassName="fast"))
    assert "PersistentVolumeClaim" not in {body["kind"] for body in found.values()}
    assert volume["metadata"]["annotations"] == {
        "kaigen.dev/job": found["job"]["metadata"]["name"],
        "kaigen.dev/ttl": completed,
        "kaigen.dev/failed-ttl": failed,
    }
    assert volume["metadata"]["labels"]["kaigen.dev/expires"] == "true"
    assert found["job"]["metadata"]["labels"]["kaigen.dev/expires"] == "true"
    assert volume["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    }
    claims = [each.get("persistentVolumeClaim") for each in found["job"]["spec"]["template"]["spec"]["volumes"]]
    assert {"claimName": volume["metadata"]["name"]} in claims


def test_each_run_has_a_claim_job_and_a_changed_lifetime_starts_no_run() -> None:
    first, longer, other = (
        _made({**_volume(ttl), "args": args})[0] for ttl, args in (("1h", ["a"]), ("2h", ["a"]), ("1h", ["b"]))
    )
    runs = [each["job"]["metadata"]["name"] for each in (first, longer, other)]
    claims = [each["job-claim"]["metadata"]["name"] for each in (first, longer, other)]
    assert runs[0] == runs[1] != runs[2]
    assert len(set(claims)) == 3
    assert first["role-claim"]["rules"][3]["resourceNames"] == [runs[0]]


def test_long_name_leaves_room_for_the_claim_job() -> None:
    block = job(**_volume("1h"))
    found = app(replace_fields(block, metadata=replace_fields(block.metadata, name="a" * 53)), context()).render()
    assert max(len(item.body["metadata"]["name"]) for item in found if item.body["kind"] == "Job") <= 63


def test_dollar_in_a_label_of_the_volume_is_not_expanded() -> None:
    block = read_block(
        Job,
        {
            "metadata": {"name": "j", "annotations": {"example.com/a": "$(HOME)"}},
            "spec": {"image": "i", **_volume("1h")},
        },
    )
    (claim,) = (item.body for item in app(block, context()).render() if item.object.role == "job-claim")
    assert "$$(HOME)" in claim["spec"]["template"]["spec"]["containers"][0]["args"][2]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (_volume("1h", retain=True), ("KG0369", "spec.output.volume.retain")),
        (
            {**_volume("1h", accessModes=["ReadWriteMany"]), "nodes": 2, "groups": "jobSet"},
            ("KG0340", "spec.output.volume.ttl"),
        ),
    ],
)
def test_contradiction_of_a_volume_that_expires_is_an_error(spec: dict[str, Any], problem: tuple[str, str]) -> None:
    assert problem_paths(job(**spec), context()) == [problem]


def test_volume_that_expires_need_not_be_retained() -> None:
    assert problem_paths(job(**_volume("1h", retain=False)), context()) == []
