"""`run --once`, as a CronJob runs it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_cluster import Cluster, Server
from kaigen_reaper import cli
from kaigen_reaper.cli import main
from objects import CLAIMS, add_job, add_pod, add_volume, rfc3339

Run = Callable[..., int]
NOW = time.time()


@pytest.fixture
def once(server: Server, cluster: Cluster) -> Run:
    """Run it at a high rate. The server's clock shows `NOW`, however long the tests take."""
    cluster.time = NOW
    return lambda *arguments: main(["run", "--once", "--rate=1000", *arguments], server.env)


@pytest.mark.promise("Ephemeral GPU", "`ttlSecondsAfterFinished`: the pod is deleted at once, or after N seconds")
def test_finished_pods_and_expired_volumes_are_deleted(
    once: Run, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    old = add_job(cluster, "old", ended=NOW - 7200, pod_ttl="3600", failed_pod_ttl="never")
    new = add_job(cluster, "new", ended=NOW - 60, pod_ttl="3600")
    failed = add_job(cluster, "failed", ended=NOW - 7200, failed=True, pod_ttl="0", failed_pod_ttl="never")
    running = add_job(cluster, "running", pod_ttl="0")
    foreign = add_job(cluster, "foreign", ended=NOW - 7200, labels={}, pod_ttl="0")
    for job in (old, new, failed, running, foreign):
        add_pod(cluster, f"{job['metadata']['name']}-0", job)
    add_pod(cluster, "old-1", old, phase="Failed")
    add_pod(cluster, "tracked", old, annotations={"argocd.argoproj.io/tracking-id": "x"})
    add_pod(cluster, "single")
    add_volume(cluster, "expired", job="old", ttl="3600")
    add_volume(cluster, "kept", job="failed", ttl="0", failed_ttl="never")
    add_volume(cluster, "by-time", expires_at=rfc3339(NOW - 1))
    add_volume(cluster, "unknown-job", job="gone", ttl="0")
    add_volume(cluster, "in-use", job="old", ttl="0")
    add_pod(cluster, "user", phase="Pending", claim="in-use")
    assert once() == 0
    assert sorted(cluster.deleted()) == ["by-time", "expired", "old-0", "old-1"]
    printed = capsys.readouterr().err
    assert "deleted 2 finished pods of Job models/old, which completed 2h00m ago" in printed
    assert "looked at 4 Jobs and 5 volumes that expire; deleted 2 pods and 2 volumes" in printed


def test_a_volume_goes_with_the_finished_pods_of_its_job(once: Run, cluster: Cluster) -> None:
    """Kubernetes keeps a volume as long as a pod mounts it, be it a finished one."""
    job, other = add_job(cluster, "old", ended=NOW - 7200), add_job(cluster, "other", ended=NOW - 7200)
    add_volume(cluster, "output", job="old", ttl="3600")
    add_pod(cluster, "holds", job, claim="output")
    add_pod(cluster, "holds-nothing", job)
    add_pod(cluster, "of-another-job", other, claim="output")
    add_pod(cluster, "of-a-syncer", job, claim="output", annotations={"argocd.argoproj.io/tracking-id": "x"})
    assert once("--dry-run") == 0
    assert cluster.deleted() == []
    assert once() == 0
    assert sorted(cluster.deleted()) == ["holds", "output"]


def test_events_name_what_was_deleted(once: Run, cluster: Cluster) -> None:
    job = add_job(cluster, ended=NOW - 7200, pod_ttl="0")
    add_pod(cluster, "tune-0", job)
    add_volume(cluster, expires_at=rfc3339(NOW - 3600))
    once()
    events = {obj["reason"]: obj for (plural, *_), obj in cluster.objects.items() if plural == "events"}
    assert set(events) == {"FinishedPodsDeleted", "ExpiredVolumeDeleted"}
    found = events["FinishedPodsDeleted"]
    assert found["note"].endswith("which completed 2h00m ago: tune-0")
    assert found["regarding"]["uid"] == job["metadata"]["uid"]
    assert found["metadata"]["namespace"] == "models"


def test_a_dry_run_writes_nothing(once: Run, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    add_pod(cluster, "tune-0", add_job(cluster, ended=NOW - 7200, pod_ttl="0"))
    add_volume(cluster, expires_at=rfc3339(NOW - 3600))
    assert once("--dry-run") == 0
    assert {call.method for call in cluster.calls} == {"GET"}
    printed = capsys.readouterr().err
    assert "would delete 1 finished pod of Job models/tune" in printed
    assert "would delete PersistentVolumeClaim models/output" in printed


def test_only_the_named_namespaces_are_read(once: Run, cluster: Cluster) -> None:
    for namespace in ("a", "b", "c"):
        job = add_job(cluster, namespace=namespace, ended=NOW - 60, pod_ttl="0")
        add_pod(cluster, f"{namespace}-0", job, namespace=namespace)
    assert once("--namespace=a", "--namespace=b") == 0
    assert sorted(cluster.deleted()) == ["a-0", "b-0"]
    assert once("--all-namespaces") == 0
    assert cluster.deleted()[2:] == ["c-0"]


def test_lists_are_read_in_pages_and_again_after_they_expired(once: Run, cluster: Cluster) -> None:
    job = add_job(cluster, ended=NOW - 60, pod_ttl="0")
    for number in range(25):
        add_pod(cluster, f"tune-{number:02}", job)
    cluster.expired = 2
    assert once("--page=4") == 0
    assert len(cluster.deleted()) == 25
    assert max(call.path.count("limit=4") for call in cluster.calls) == 1


def test_the_clock_is_that_of_the_api_server(once: Run, cluster: Cluster) -> None:
    cluster.time = NOW - 86400
    add_pod(cluster, "tune-0", add_job(cluster, ended=NOW - 86400 - 60, pod_ttl="3600"))
    once()
    assert not cluster.deleted()
    cluster.time = NOW - 86400 + 3600
    once()
    assert cluster.deleted() == ["tune-0"]


def test_an_object_that_changed_in_between_is_kept(once: Run, cluster: Cluster) -> None:
    add_pod(cluster, "tune-0", add_job(cluster, ended=NOW - 60, pod_ttl="0"))

    def change(method: str, path: str) -> None:
        if method == "DELETE":
            cluster.put("pods", cluster.objects["pods", "models", "tune-0"])

    cluster.before = change
    assert once() == 0
    assert cluster.names("pods") == {"tune-0"}


def test_a_refusal_of_one_namespace_does_not_stop_the_others(
    once: Run, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    add_pod(cluster, "b-0", add_job(cluster, namespace="b", ended=NOW - 60, pod_ttl="0"), namespace="b")
    cluster.statuses = [403]
    assert once("--namespace=a", "--namespace=b") == 20
    assert cluster.deleted() == ["b-0"]
    assert "error: the API server answers 403 to list /apis/batch/v1/namespaces/a/jobs" in (capsys.readouterr().err)


def test_a_refused_deletion_is_an_error_at_the_end(once: Run, cluster: Cluster) -> None:
    job = add_job(cluster, ended=NOW - 60, pod_ttl="0")
    for name in ("a", "b"):
        add_pod(cluster, name, job)

    def refuse(method: str, path: str) -> None:
        if path.endswith("/a"):
            cluster.statuses = [403]

    cluster.before = refuse
    assert once() == 20
    assert cluster.deleted() == ["b"]


@pytest.mark.parametrize(("status", "rotated"), [(500, False), (429, False), (503, False), (0, True)])
def test_it_survives_errors_and_a_new_token(
    once: Run, cluster: Cluster, server: Server, status: int, rotated: bool
) -> None:
    add_pod(cluster, "tune-0", add_job(cluster, ended=NOW - 60, pod_ttl="0"))
    done: list[str] = []

    def fail(method: str, path: str) -> None:
        if path.partition("?")[0] not in done:
            done.append(path.partition("?")[0])
            cluster.statuses = [status]
            if rotated:
                server.rotate(f"token-{len(done) + 1}")

    cluster.before = fail
    assert once() == 0
    assert cluster.deleted() == ["tune-0"]


def test_invalid_lifetimes_keep_everything(once: Run, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    add_pod(cluster, "tune-0", add_job(cluster, ended=NOW - 60, pod_ttl="0", failed_pod_ttl="1h"))
    add_volume(cluster, "output", job="tune", ttl="-1")
    assert once() == 0
    assert not cluster.deleted()
    printed = capsys.readouterr().err
    assert "Job models/tune is kept: kaigen.dev/failed-pod-ttl: not a number of seconds" in printed
    assert "PersistentVolumeClaim models/output is kept: kaigen.dev/ttl: not a number" in printed


def test_a_volume_waits_for_the_job_as_it_is_now(once: Run, cluster: Cluster) -> None:
    add_job(cluster, ended=NOW - 7200)
    add_volume(cluster, job="tune", ttl="60")

    def run_again(method: str, path: str) -> None:
        if "/pods" in path:
            add_job(cluster)

    cluster.before = run_again
    assert once() == 0
    assert cluster.names(CLAIMS) == {"output"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rate=0"],
        ["--page=0"],
        ["--namespace=A"],
        ["--namespace=a", "--all-namespaces"],
        ["--resync=x"],
        ["--port=70000"],
    ],
)
def test_invalid_arguments_are_refused(arguments: list[Any]) -> None:
    assert main(["run", "--once", *arguments], {}) == 13


def test_outside_a_cluster_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--once"], {}) == 20
    assert "not in a cluster: KUBERNETES_SERVICE_HOST is not set" in capsys.readouterr().err


def test_a_bug_shows_a_traceback_and_is_the_termination_message(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "run_once", broken)
    log = tmp_path / "termination-log"
    log.touch()
    assert main(["run", "--once"], {**server.env, "KAIGEN_TERMINATION_LOG": str(log)}) == 1
    message = "error: this is a bug in kaigen-reaper: ZeroDivisionError: a bug"
    assert log.read_text() == message
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert message in printed
