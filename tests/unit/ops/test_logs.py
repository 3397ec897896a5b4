"""`logs -f` over connections that break: every line once, and in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError
from kaigen.diagnostics.errors import CheckFailed
from kaigen.ops import jobs as ops_jobs
from kaigen.ops import logs as ops_logs
from kaigen.ops.logs import logs
from tests.unit.ops import log_server as log_server_module
from tests.unit.ops.log_server import JOB, Connection, log_server

LINES = [
    "2026-01-01T10:00:00.000000001Z a",
    "2026-01-01T10:00:01.000000000Z b",
    # Twice the same line at the same time, and one of standard error that is late.
    "2026-01-01T10:00:01.500000000Z c",
    "2026-01-01T10:00:01.500000000Z c",
    "2026-01-01T10:00:02.000000000Z d",
    "2026-01-01T10:00:01.900000000Z late",
    "2026-01-01T10:00:02.000000000Z ",
    "2026-01-01T10:00:09.000000000Z e f",
]
ALL = [line.partition(" ")[2] for line in LINES]
DONE = Connection(len(LINES), ended=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_logs, "POLL_S", 0.0)


def followed(folder: Path, *connections: Connection, chunked: bool = True) -> list[str]:
    with log_server(folder, LINES, *connections) as server:
        server.chunked = chunked
        return [line.decode() for line in logs(Cluster(str(server.kubeconfig)), JOB, follow=True)]


@pytest.mark.parametrize("until", range(len(LINES) + 1))
def test_no_line_is_lost_or_repeated_wherever_the_connection_breaks(tmp_path: Path, until: int) -> None:
    size = sum(len(line) + 1 for line in LINES[:until])
    # In the middle of a line, at its end, and an answer that ends early without an error.
    for cut in (max(size - 3, 0), size, None):
        for chunked in (True, False):
            assert followed(tmp_path, Connection(until, cut), DONE, chunked=chunked) == ALL


def test_lines_that_a_short_connection_sends_again_are_printed_once(tmp_path: Path) -> None:
    assert followed(tmp_path, *(Connection(count) for count in (3, 3, 4, 6)), DONE) == ALL


def test_the_last_lines_are_asked_for_once(tmp_path: Path) -> None:
    with log_server(tmp_path, LINES, Connection(3), DONE) as server:
        found = [line.decode() for line in logs(Cluster(str(server.kubeconfig)), JOB, follow=True, tail=2)]
        assert found == ALL[1:]
        assert [query.get("tailLines") for query in server.queries] == [["2"], None]
        assert server.queries[1]["sinceTime"] == ["2026-01-01T10:00:01Z"]


def test_lines_are_not_lost_when_none_of_the_old_ones_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_server_module, "DATE", "Thu, 01 Jan 2026 10:00:02 GMT")
    with log_server(tmp_path, LINES, Connection(4, cut=0), DONE) as server:
        found = [line.decode() for line in logs(Cluster(str(server.kubeconfig)), JOB, follow=True, tail=0)]
    assert found == ["d", "", "e f"]


def test_a_container_that_starts_and_a_busy_server_are_waited_for(tmp_path: Path) -> None:
    waits = Connection(status=400, message='container "run" in pod "job-x" is waiting to start: Pulling')
    busy = Connection(status=503, message="the server is busy")
    assert followed(tmp_path, waits, busy, Connection(2), busy, DONE) == ALL


def test_a_server_that_stays_away_and_a_refusal_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ApiError, match="may not read logs"):
        followed(tmp_path, Connection(2), Connection(status=403, message="you may not read logs"))
    monkeypatch.setattr(ops_logs, "PATIENCE_S", 0.05)
    with pytest.raises(ApiError, match="is busy"):
        followed(tmp_path, Connection(2), Connection(status=503, message="the server is busy"))


def pod(*, phase: str = "Pending", init: dict[str, Any] | None = None) -> dict[str, Any]:
    waits = {"waiting": {"reason": "PodInitializing"}}
    return {
        "metadata": {"name": "job-x", "namespace": "ml", "uid": "2", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "restartPolicy": "Never",
            "nodeName": "n",
            "initContainers": [{"name": "fetch-model", "args": ["fetch"]}, {"name": "wait-for-upload"}],
            "containers": [{"name": "run"}],
        },
        "status": {
            "phase": phase,
            "initContainerStatuses": [{"name": "fetch-model", "state": init or waits}],
            "containerStatuses": [{"name": "run", "state": waits}],
        },
    }


FAILED = pod(phase="Failed", init={"terminated": {"exitCode": 10, "reason": "Error", "message": "error: no bucket\n"}})
CREATING = {
    "involvedObject": {"name": "job", "uid": "1"},
    "type": "Warning",
    "reason": "FailedCreate",
    "message": 'Error creating: pods "job-ab" is forbidden: pod rejected: RuntimeClass "nvidia" not found',
    "lastTimestamp": "2026-01-01T00:00:00Z",
    "metadata": {},
}


def refused(folder: Path, *, follow: bool = False, container: str = "", **found: Any) -> CheckFailed:
    """Return why there is no log."""
    with log_server(folder, LINES, Connection(status=400, message="is waiting to start: PodInitializing")) as server:
        for name, value in found.items():
            setattr(server, name, value)
        lines = logs(
            Cluster(str(server.kubeconfig)),
            {**JOB, "spec": {}},
            follow=follow,
            container=container,
            command=lambda *words: " ".join(("egpu", *words)),
        )
        with pytest.raises(CheckFailed) as failure:
            list(lines)
    return failure.value


@pytest.mark.parametrize("follow", [False, True])
def test_a_job_without_a_log_says_which_init_container_failed(tmp_path: Path, follow: bool) -> None:
    error = refused(tmp_path, follow=follow, pods=[FAILED])
    assert str(error) == 'container "run" did not run: init container fetch-model: exit code 10: no bucket'
    assert error.hint == "read what it printed: egpu logs job -c fetch-model"


def test_the_names_of_containers_are_listed_nearest_first(tmp_path: Path) -> None:
    error = refused(tmp_path, container="fetch-modl", pods=[FAILED])
    assert str(error) == 'pod job-x has no container "fetch-modl"'
    assert error.hint == "its containers are fetch-model, run, wait-for-upload"


def test_a_job_that_waits_says_what_it_waits_for(tmp_path: Path) -> None:
    error = refused(tmp_path, pods=[pod(init={"running": {}})])
    assert str(error) == 'container "run" has not started: init container fetch-model runs'
    assert error.hint == "wait for it with: egpu logs job -f"
    job = {**JOB, "spec": {}, "status": {}}
    error = refused(tmp_path, pods=[], job=job, events=[CREATING])
    assert str(error) == 'Job job has no pods yet: FailedCreate: pod rejected: RuntimeClass "nvidia" not found'


@pytest.mark.parametrize(
    ("annotations", "kind", "message", "hint"),
    [
        (
            {"kaigen.dev/pod-ttl": "60"},
            "Complete",
            "the pods of Job job expired at 2026-01-01T00:01:00Z",
            "the results stay in its volume: egpu fetch job",
        ),
        (
            {"kaigen.dev/pod-ttl": "60", "kaigen.dev/failed-pod-ttl": "never"},
            "Failed",
            "has no pods any more; it failed: Limit",
            "",
        ),
        ({}, "Complete", "Job job has no pods any more", "the results stay in its volume: egpu fetch job"),
    ],
)
def test_pods_that_expired_are_not_said_to_be_missing(
    tmp_path: Path, annotations: dict[str, str], kind: str, message: str, hint: str
) -> None:
    condition = {"type": kind, "status": "True", "reason": "Limit", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    metadata = {**JOB["metadata"], "annotations": annotations}
    error = refused(tmp_path, pods=[], job={"metadata": metadata, "spec": {}, "status": {"conditions": [condition]}})
    assert str(error).endswith(message)
    assert error.hint == hint


def test_a_watch_knows_why_a_job_failed_whose_pods_are_deleted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    running = {**JOB, "spec": {"backoffLimit": 0}, "status": {"active": 1}}
    with log_server(tmp_path, LINES, DONE) as server:
        server.pods, server.job = [FAILED], running

        def end(*_arguments: object, downloads: bool) -> None:
            assert not downloads
            server.pods, server.job = [], {**running, "status": {"conditions": [failed]}}

        monkeypatch.setattr(ops_jobs, "_await_change", end)
        states = list(ops_jobs.changes(Cluster(str(server.kubeconfig)), running, None))
    why = "init container fetch-model: exit code 10: no bucket"
    assert [state.message for state in states] == [f"attempt 1 of 1 failed: {why}", why]
