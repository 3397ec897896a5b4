"""The output of a Job in a bucket: the Job that uploads it, and Models that read it from there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kaigen.diagnostics.errors import InputError
from tests.unit.compile.test_job_source import Object, apps, codes, document, job, option, stored

KEYS = {"secret": {"name": "keys"}}
BUCKET = {"uri": "s3://acme/results/tune", "credentials": KEYS}
VOLUME = {"size": "1Gi"}


def uploading(name: str = "tune", **fields: Any) -> Object:
    bucket, volume = fields.pop("bucket", BUCKET), fields.pop("volume", VOLUME)
    return job(name, output={"volume": volume, "bucket": bucket}, **fields)


def jobs(item: Any) -> dict[str, Object]:
    """The Jobs of an app by their component."""
    return {
        each.body["metadata"]["labels"]["app.kubernetes.io/component"]: each.body
        for each in item.objects
        if each.body["kind"] in ("Job", "JobSet")
    }


def name_of(body: Object) -> str:
    return str(body["metadata"]["name"])


def pod(body: Object) -> Object:
    return dict(body["spec"]["template"]["spec"])


def test_a_second_job_waits_for_the_run_and_uploads_its_output(tmp_path: Path) -> None:
    found = jobs(apps(tmp_path, [uploading()])["tune"])
    run = name_of(found["run"])
    upload = pod(found["upload"])
    (gate,), (container,) = upload["initContainers"], upload["containers"]
    assert gate["args"][:3] == ["wait-job", "--kind=Job", f"--name={run}"]
    assert container["args"] == ["put", "/output", f"--dest=s3://acme/results/tune/{run}", f"--identity={run}"]
    (mount,) = container["volumeMounts"]
    assert mount == {"name": "output", "mountPath": "/output", "readOnly": True}
    (volume,) = [each for each in upload["volumes"] if each["name"] == "output"]
    assert volume["persistentVolumeClaim"] == {"claimName": "tune-output", "readOnly": True}
    assert {each["name"] for each in container["env"]} == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


def test_the_run_itself_is_that_of_a_job_without_a_bucket(tmp_path: Path) -> None:
    """No key of the bucket is in its pod, and another bucket is not a new run."""
    without = jobs(apps(tmp_path, [job("tune", output={"volume": VOLUME})])["tune"])["run"]
    assert jobs(apps(tmp_path, [uploading()])["tune"])["run"] == without


def test_another_run_has_another_folder(tmp_path: Path) -> None:
    folders = {
        option_of(jobs(apps(tmp_path, [uploading(image=image)])["tune"])["upload"]) for image in ("tune:1", "tune:2")
    }
    assert len(folders) == 2
    assert all(folder.startswith("s3://acme/results/tune/tune-") for folder in folders)


def option_of(body: Object) -> str:
    (found,) = [each for each in pod(body)["containers"][0]["args"] if each.startswith("--dest=")]
    return str(found.removeprefix("--dest="))


def test_the_uploader_may_read_that_run_and_nothing_else(tmp_path: Path) -> None:
    item = apps(tmp_path, [uploading()])["tune"]
    (role,) = [each.body for each in item.objects if each.body["kind"] == "Role"]
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in role["rules"]] == [
        (["jobs"], [name_of(jobs(item)["run"])], ["get"])
    ]
    assert pod(jobs(item)["upload"])["serviceAccountName"] == role["metadata"]["name"] == "tune-upload"
    assert pod(jobs(item)["run"])["automountServiceAccountToken"] is False


def test_the_upload_needs_neither_gpu_nor_queue(tmp_path: Path) -> None:
    spec = uploading(resources={"gpus": 1}, placement={"nodeSelector": {"disk": "nvme"}, "queue": "training"})
    upload = jobs(apps(tmp_path, [spec])["tune"])["upload"]
    assert "kueue.x-k8s.io/queue-name" not in upload["metadata"]["labels"]
    assert pod(upload)["nodeSelector"] == {"disk": "nvme"}
    assert "nvidia.com/gpu" not in str(upload)


def test_a_group_of_nodes_is_waited_for_as_a_whole(tmp_path: Path) -> None:
    volume = {**VOLUME, "accessModes": ["ReadWriteMany"]}
    found = jobs(apps(tmp_path, [uploading(nodes=2, groups="jobSet", volume=volume)])["tune"])
    gate = pod(found["upload"])["initContainers"][0]
    assert gate["args"][1:3] == ["--kind=JobSet", f"--name={name_of(found['run'])}"]


def test_the_identity_of_a_cloud_is_that_of_the_uploader_and_of_readers(tmp_path: Path) -> None:
    identity = {"serviceAccount": {"annotations": {"example.com/role": "results"}}}
    spec = uploading(bucket={"uri": "s3://acme/results", "credentials": identity})
    found = apps(tmp_path, [spec, stored("Model", "tuned", "tune")])
    accounts = {
        name_of(each.body): each.body["metadata"].get("annotations", {})
        for item in found.values()
        for each in item.objects
        if each.body["kind"] == "ServiceAccount"
    }
    assert accounts == {
        "tune-upload": {"example.com/role": "results"},
        "tuned-download": {"example.com/role": "results"},
    }


def test_a_model_reads_the_bucket_after_the_upload(tmp_path: Path) -> None:
    found = apps(tmp_path, [uploading(), stored("Model", "tuned", "tune", path="merged", exclude=["checkpoint-*/"])])
    tune, tuned = jobs(found["tune"]), jobs(found["tuned"])["download"]
    (gate,), (fetch,) = pod(tuned)["initContainers"], pod(tuned)["containers"]
    assert f"--name={name_of(tune['upload'])}" in gate["args"]
    assert fetch["args"][:4] == [
        "fetch",
        "s3",
        f"--uri=s3://acme/results/tune/{name_of(tune['run'])}/merged",
        "--exclude=checkpoint-*/",
    ]
    assert {"SOURCE_AWS_ACCESS_KEY_ID", "SOURCE_AWS_SECRET_ACCESS_KEY"} <= {e["name"] for e in fetch["env"]}
    assert [each["name"] for each in pod(tuned)["volumes"]] == ["weights", "gate-token"]
    (role,) = [each.body for each in found["tuned"].objects if each.body["kind"] == "Role"]
    names = [rule["resourceNames"] for rule in role["rules"] if "jobs" in rule["resources"]]
    assert names == [[name_of(tune["upload"])]]


def test_the_revision_is_that_of_the_run_and_not_of_the_bucket(tmp_path: Path) -> None:
    def identity(*specs: Object) -> str:
        return option(apps(tmp_path, [*specs, stored("Model", "tuned", "tune")])["tuned"], "fetch", "identity")

    first = identity(uploading())
    assert identity(uploading(bucket={**BUCKET, "uri": "s3://acme/elsewhere"})) == first
    assert identity(uploading(image="tune:2")) != first


def test_a_volume_expires_after_the_upload(tmp_path: Path) -> None:
    item = apps(tmp_path, [uploading(volume={**VOLUME, "ttl": "1h"}), stored("Model", "tuned", "tune")])["tune"]
    found = jobs(item)
    (container,) = pod(found["claim"])["containers"]
    (claim,) = [each for each in container["args"] if each.startswith("--volume=")]
    assert name_of(found["upload"]) in claim
    assert name_of(found["run"]) not in claim.replace(name_of(found["upload"]), "")


def test_a_topology_serves_the_volume_unless_it_expires(tmp_path: Path) -> None:
    chat = document("Topology", "chat", engine="transformers", model={"job": {"name": "tune"}})
    found = apps(tmp_path, [uploading(), chat])
    assert "tune-output" in str([each.body for each in found["chat"].objects])
    assert codes(tmp_path, [uploading(volume={**VOLUME, "ttl": "1h"}), chat]) == ["KG0369"]


@pytest.mark.parametrize(
    ("bucket", "expected"),
    [
        ({"uri": "gs://acme/results"}, []),
        ({"uri": "s3://acme/results", "endpoint": "https://minio.example.com"}, ["KG0317"]),
        ({"uri": "s3://acme/results"}, []),
    ],
)
def test_a_bucket_without_credentials_is_an_error_where_no_cloud_has_any(
    tmp_path: Path, bucket: Object, expected: list[str]
) -> None:
    if expected:
        assert codes(tmp_path, [uploading(bucket=bucket)]) == expected
    else:
        apps(tmp_path, [uploading(bucket=bucket)])


def test_two_jobs_do_not_share_a_folder(tmp_path: Path) -> None:
    assert codes(tmp_path, [uploading("one"), uploading("two")]) == ["KG0318"]


def test_a_tenant_needs_the_bucket_to_write_and_to_read(tmp_path: Path) -> None:
    def tenant(bucket: str) -> Object:
        granted = {"images": ["*"], "storageClasses": ["*"], "buckets": [bucket]}
        return {"folders": ["specs"], "namespaces": ["default"], **granted}

    specs = [uploading(), stored("Model", "tuned", "tune")]
    apps(tmp_path, specs, tenants={"a": tenant("s3://acme/results")})
    with pytest.raises(InputError) as error:
        apps(tmp_path, specs, tenants={"a": tenant("s3://acme/models")})
    place = r"tenant `a` is not granted the bucket `s3://acme/results/tune/tune-[0-9a-f]{8}`"
    options = [re.search(place, item.message) for item in error.value.diagnostics]
    assert len(options) == 2
    assert None not in options
