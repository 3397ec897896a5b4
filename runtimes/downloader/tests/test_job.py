"""`wait-job`: blocks until a Job has completed, against an API server over TLS."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from api import Api
from runs import FAST, Runner, finish, start, until

ARGV = ["wait-job", "--name", "tune-1a2b", "--timeout", "30s"]
PATH = "apis/batch/v1/namespaces/models/jobs/tune-1a2b"
SET = "apis/jobset.x-k8s.io/v1alpha2/namespaces/models/jobsets/tune-1a2b"


def job(condition: str = "", *, suspend: bool = False, **status: Any) -> dict[str, Any]:
    """A Job with a condition that is true."""
    conditions = [{"type": "Suspended", "status": "False"}]
    if condition:
        conditions.append({"type": condition, "status": "True", "reason": "Why", "message": "It says so"})
    return {"metadata": {}, "spec": {"suspend": suspend}, "status": {"conditions": conditions, **status}}


@contextlib.contextmanager
def later(change: Any, seconds: float = 0.3) -> Iterator[None]:
    """Change what the API server has while the program waits."""
    timer = threading.Timer(seconds, change)
    timer.start()
    yield
    timer.join()


def test_a_completed_job_ends_the_wait_at_once(run: Runner, api: Api) -> None:
    api.objects[PATH] = job("Complete")
    done = run(*ARGV, **api.env)
    assert (done.code, done.err) == (0, "ready: Job models/tune-1a2b has completed\n")
    assert api.calls == [("GET", f"/{PATH}")]


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (None, "Job models/tune-1a2b does not exist yet"),
        (job(suspend=True), "is suspended; it may be in a queue"),
        (job(active=1, ready=0, failed=2), "has not completed: 1 active pod, none is ready, 2 failed pods"),
        (job(active=1, ready=1), "has not completed: 1 active pod\n"),
        (job("SuccessCriteriaMet"), "has not completed\n"),
        (job("Complete") | {"metadata": {"deletionTimestamp": "2026-11-22T10:00:00Z"}}, "is being deleted"),
    ],
)
def test_the_wait_says_what_it_waits_for(run: Runner, api: Api, before: dict[str, Any] | None, line: str) -> None:
    if before is not None:
        api.objects[PATH] = before
    with later(lambda: api.objects.update({PATH: job("Complete")})):
        done = run(*ARGV, **api.env)
    assert done.code == 0
    assert line in done.err
    assert done.err.splitlines()[-1] == "ready: Job models/tune-1a2b has completed"


def test_a_failed_job_ends_the_wait_with_what_to_do(run: Runner, api: Api) -> None:
    api.objects[PATH] = job("Failed")
    done = run(*ARGV, **api.env)
    assert done.code == 14
    (line,) = done.err.splitlines()
    assert line.startswith("error: Job models/tune-1a2b failed (Why: It says so); read `kubectl logs")
    assert line.endswith("which starts a new run, or delete the Job, so that it runs again")


def test_a_train_job_is_awaited(run: Runner, api: Api) -> None:
    path = "apis/trainer.kubeflow.org/v1alpha1/namespaces/models/trainjobs/tune-1a2b"
    api.objects[path] = job("Suspended")
    with later(lambda: api.objects.update({path: job("Complete")})):
        done = run(*ARGV, "--kind", "TrainJob", **api.env)
    assert done.code == 0
    assert done.err.splitlines()[-1] == "ready: TrainJob models/tune-1a2b has completed"


def test_a_job_set_has_conditions_of_its_own(run: Runner, api: Api) -> None:
    argv = [*ARGV, "--kind", "JobSet"]
    api.objects[SET] = job(restarts=2)
    with later(lambda: api.objects.update({SET: job("Completed")})):
        done = run(*argv, **api.env)
    assert done.code == 0
    assert "JobSet models/tune-1a2b has not completed: 2 restarts" in done.err
    api.objects[SET] = job("Failed")
    done = run(*argv, **api.env)
    assert done.code == 14
    assert "-l jobset.sigs.k8s.io/jobset-name=tune-1a2b" in done.err


@pytest.mark.parametrize(
    ("statuses", "line"),
    [
        ([403], "the API server answers 403 to get: not now (a newer version of the app may wait"),
        ([401], "the API server answers 401 to get: not now"),
        ([500, 500, 500], "the API server answers 500 to get: not now"),
        ([404], "the cluster has no Job of batch/v1: install its controller"),
    ],
)
def test_the_wait_survives_the_errors_of_the_api_server(run: Runner, api: Api, statuses: list[int], line: str) -> None:
    api.objects[PATH] = job("Complete")
    api.statuses = statuses
    done = run(*ARGV, **api.env)
    assert done.code == 0
    assert line in done.err


def test_the_wait_survives_an_api_server_that_is_away(run: Runner, api: Api) -> None:
    done = run(*ARGV[:-1], "1.5", **(api.env | {"KUBERNETES_SERVICE_PORT": "1"}))
    assert done.code == 20
    assert "waiting for 1" in done.err
    assert "error: waited 2" in done.err
    assert "the API server cannot be reached; a NetworkPolicy may deny it (asking 127.0.0.1:1: " in done.err


def test_the_wait_ends_when_its_time_is_over(run: Runner, api: Api) -> None:
    begin = time.monotonic()
    done = run(*ARGV[:-1], "0.3", KAIGEN_PROGRESS="60", **api.env)
    assert done.code == 20
    assert time.monotonic() - begin < 10
    assert done.err.splitlines()[-1] == "error: waited 0.3s: Job models/tune-1a2b does not exist yet"
    assert done.err.count("waiting for") == 1


def test_a_pod_without_a_token_ends(run: Runner, api: Api) -> None:
    (api.mount / "namespace").unlink()
    done = run(*ARGV, **api.env)
    assert done.code == 20
    assert "no service account token is mounted" in done.err


@pytest.mark.parametrize("name", ["../secrets/x", "Tune", ""])
def test_a_name_that_is_none_is_rejected(run: Runner, name: str) -> None:
    done = run("wait-job", "--name", name)
    assert done.code == 13
    assert "not a valid name of an object" in done.err


def test_a_waiting_pod_ends_at_once_on_sigterm(api: Api) -> None:
    process = start(ARGV, **api.env, **FAST)
    until(lambda: api.calls)
    process.terminate()
    assert finish(process).code == 143
