"""States of Jobs, ages, lifetimes and names as the live commands show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from kaigen.cli.live.flavor import EGPU, KAIGEN
from kaigen.cli.live.session import age, lifetime, size_text
from kaigen.cli.live.show import _described
from kaigen.cluster.runs import RunState, run_state
from kaigen.config.settings import Config
from kaigen.dialects.ephemeral_gpu.lower import COMMAND
from kaigen.dialects.ephemeral_gpu.model import DEFAULT_IMAGE
from kaigen.kubernetes.runs import expiry, tracked_by
from kaigen.ops.build import Claim, Run, helper_pod, mounts_of, run_objects
from kaigen.ops.jobs import artifact_of, row_of
from kaigen.pipeline.run import Run as Rendering

END = "2026-11-22T10:00:00Z"


def job(condition: str = "", **status: Any) -> dict[str, Any]:
    conditions = [{"type": condition, "status": "True", "lastTransitionTime": END}] if condition else []
    return {"spec": {}, "status": {"conditions": conditions, **status}}


def waiting(reason: str, message: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"status": {"phase": "Pending", "containerStatuses": [{"state": state}]}}


FAILED_POD = {
    "status": {
        "phase": "Failed",
        "containerStatuses": [{"state": {"terminated": {"exitCode": 7, "message": "no image\n"}}}],
    }
}


@pytest.mark.promise("Ephemeral GPU", "Status `phase` and `message`")
@pytest.mark.parametrize(
    ("found", "pods", "expected"),
    [
        (job(), [], RunState("Pending", "waiting for its pods")),
        (job(), [waiting("ImagePullBackOff", "no such image")], RunState("Pending", "ImagePullBackOff: no such image")),
        (job(active=1, ready=1), [], RunState("Running")),
        (job(active=1), [{"status": {"phase": "Succeeded"}}], RunState("Running")),
        (job("Complete"), [], RunState("Succeeded", "Job completed successfully")),
        (job("Failed"), [FAILED_POD], RunState("Failed", "exit code 7: no image")),
        ({"spec": {"suspend": True}}, [], RunState("Suspended", "the Job is suspended")),
    ],
)
def test_state_of_a_job(found: dict[str, Any], pods: list[dict[str, Any]], expected: RunState) -> None:
    assert run_state(found, pods) == expected


@pytest.mark.parametrize(
    ("annotations", "args", "expected"),
    [
        ({"kaigen.dev/artifact": "/a/x"}, ["--output=/a/y"], "/a/x"),
        ({}, ["--model", "m", "--output", "/a/y"], "/a/y"),
        ({}, ["--output=/a/y"], "/a/y"),
        ({}, ["--output"], ""),
        ({}, None, ""),
    ],
)
def test_the_result_is_where_the_job_or_its_argument_says(
    annotations: dict[str, str], args: list[str] | None, expected: str
) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "run", "args": args}]}}}
    assert artifact_of({"metadata": {"annotations": annotations}, "spec": spec}) == expected


@pytest.mark.promise("Ephemeral GPU", "Status `startedAt`, `finishedAt`, `podName`, `artifactPath`")
def test_a_job_is_described_with_its_times_pods_and_result() -> None:
    template = {"spec": {"containers": [{"name": "run", "args": ["--output=/artifacts/output.json"]}]}}
    found = job("Complete", startTime="2026-11-22T09:58:30Z")
    found |= {"metadata": {"name": "cat-1a2b", "namespace": "ml"}, "spec": {"template": template}}
    pods = [{"metadata": {"name": "cat-1a2b-x7k2p"}}]
    described = dict(line.split(maxsplit=1) for line in _described(row_of(found), pods))
    assert (described["Started:"], described["Finished:"]) == ("2026-11-22T09:58:30Z", f"{END} (90s)")
    assert (described["Pods:"], described["Artifact:"]) == ("cat-1a2b-x7k2p", "/artifacts/output.json")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(5, "5s"), (119, "119s"), (130, "2m10s"), (1800, "30m"), (12600, "3h30m"), (100000, "27h"), (260000, "3d")],
)
def test_age_is_written_as_by_kubectl(seconds: int, expected: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert age(now - timedelta(seconds=seconds), now) == expected


@pytest.mark.parametrize(("given", "expected"), [("90", "90"), ("1h30m", "5400"), ("never", "never"), ("", "")])
def test_lifetimes_are_seconds(given: str, expected: str) -> None:
    option = click.Option(["--ttl"])
    assert lifetime(click.Context(click.Command("x")), option, given) == expected


@pytest.mark.parametrize(("count", "expected"), [(0, "0 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")])
def test_sizes_have_a_unit(count: int, expected: str) -> None:
    assert size_text(count) == expected


def claim(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"kaigen.dev/{key.replace('_', '-')}": v for key, v in annotations.items()}}}


@pytest.mark.parametrize(
    ("found", "run", "expected"),
    [
        (claim(job="a", ttl="60"), job("Complete"), "2026-11-22T10:01:00+00:00"),
        (claim(job="a", ttl="60"), job("Failed"), "2026-11-22T10:01:00+00:00"),
        (claim(job="a", ttl="60", failed_ttl="3600"), job("Failed"), "2026-11-22T11:00:00+00:00"),
        (claim(job="a", ttl="60", failed_ttl="never"), job("Failed"), "it never expires"),
        (claim(job="a", ttl="60"), job(), "Job a has not ended"),
        (claim(job="a", ttl="60"), None, "there is no Job a"),
        (claim(expires_at="2026-01-01T00:00:00Z"), None, "2026-01-01T00:00:00+00:00"),
        (claim(job="a", ttl="soon"), job("Complete"), "kaigen.dev/ttl is not a number of seconds"),
    ],
)
def test_expiry_of_a_volume(found: dict[str, Any], run: dict[str, Any] | None, expected: str) -> None:
    moment = expiry(found, run)
    assert (moment if isinstance(moment, str) else moment.isoformat()) == expected


def test_objects_of_argo_cd_and_flux_are_recognized() -> None:
    assert tracked_by({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "x"}}}) == "Argo CD"
    assert tracked_by({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "x"}}}) == "Flux"
    assert tracked_by({"metadata": {"labels": {"app.kubernetes.io/instance": "x"}}}) == ""


SPEC = {"image": "python:3.13-slim", "command": ["true"], "ttl": {"pods": 0}}


@pytest.mark.promise("Ephemeral GPU", "`egpu create --pvc-ttl 86400` keeps the PVC that long")
def test_names_and_lifetimes_of_egpu() -> None:
    run = Run("cat", "default", EGPU.job("cat"), Claim("artifacts-cat", ttl="3600"), SPEC, dict(EGPU.labels("cat")))
    found = run_objects(run, Config())
    name = "ephemeralaccelerationjob-cat"
    assert found.job["metadata"]["name"] == name
    labels = found.job["spec"]["template"]["metadata"]["labels"]
    assert (labels["app"], labels["ephemeralaccelerationjob"]) == ("gpu-job", "cat")
    assert found.job["metadata"]["annotations"]["kaigen.dev/pod-ttl"] == "0"
    assert "kaigen.dev" not in str(found.job["spec"]["template"])
    assert found.claim["metadata"]["name"] == "artifacts-cat"
    assert found.claim["metadata"]["labels"]["kaigen.dev/expires"] == "true"
    assert found.claim["metadata"]["annotations"] == {"kaigen.dev/job": name, "kaigen.dev/ttl": "3600"}
    assert mounts_of(found.job) == {"artifacts-cat": "/artifacts"}


def test_a_volume_without_a_lifetime_does_not_expire() -> None:
    found = run_objects(Run("cat", "ml", KAIGEN.job("cat"), Claim("data"), SPEC), Config())
    assert found.job["metadata"]["name"] == "cat"
    assert "kaigen.dev/expires" not in found.claim["metadata"]["labels"]
    assert found.claim["metadata"]["annotations"] == {"kaigen.dev/job": "cat"}


def test_pods_of_commands_are_restricted() -> None:
    pod = helper_pod("copy-1", "ml", Claim("data", "/mnt"), Config(), seconds=60, node="n1")
    (container,) = pod["spec"]["containers"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["spec"]["activeDeadlineSeconds"] == 60
    assert pod["spec"]["nodeName"] == "n1"
    assert {"name": "output", "mountPath": "/mnt"} in container["volumeMounts"]


def test_egpu_knows_the_operators_image_and_command() -> None:
    assert EGPU.command == COMMAND
    assert EGPU.replaced_image == DEFAULT_IMAGE


@pytest.mark.promise("Ephemeral GPU", "`egpu list` shows resources that were not made by `egpu create`")
def test_egpu_lists_what_a_resource_of_git_becomes() -> None:
    spec = {"model": "resnet50", "input": {"path": "/artifacts/a.jpg"}, "output": {"path": "/artifacts/a.json"}}
    document = {"apiVersion": "gpu.yourdomain.io/v1alpha1", "kind": "EphemeralAccelerationJob"}
    (app,) = Rendering.load([{**document, "metadata": {"name": "cat"}, "spec": spec}], use_cache=False).apps()
    jobs = [item.body for item in app.objects if item.body["kind"] == "Job"]
    assert jobs
    assert all(EGPU.lists(body) for body in jobs)
