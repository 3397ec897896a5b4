"""The state of apps, from objects as a cluster, Argo CD and Flux write them; a real one is asked in tests/cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kaigen.cluster.clues import NOTHING, Clues
from kaigen.cluster.states import MISSING, READY, State
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import Identity
from kaigen.status.app_status import AppStatus, Run, Sync, SyncName, app_data, status_rows
from kaigen.status.batch import batch_progress
from kaigen.status.collect import Live, find_runs, object_facts, run_facts, waiting_reason
from kaigen.status.schedules import before_first_run, with_newest_runs
from kaigen.status.syncers import Syncer, find_sync, read_application, read_syncers

Object = dict[str, Any]
JOB = Identity("Job.batch", "ml", "train-12345678")
POLICY = Identity("NetworkPolicy.networking.k8s.io", "ml", "train-12345678")
CLAIM = Identity("PersistentVolumeClaim", "ml", "train-output")


def app(states: dict[Identity, State], **fields: Any) -> AppStatus:
    return AppStatus("", "ml", "train", "Job", states, **fields)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((READY, READY), "ready"),
        ((MISSING, MISSING), "missing"),
        ((READY, MISSING), "progressing"),
        ((READY, State("unknown")), "unknown"),
        ((State("progressing"), State("failed")), "failed"),
        ((State("suspended"), State("progressing")), "suspended"),
    ],
)
def test_state_of_an_app_is_the_worst_of_its_objects(states: tuple[State, State], expected: str) -> None:
    found = app(dict(zip((JOB, POLICY), states, strict=True)))
    assert found.state.name == expected
    assert found.ready is (expected == "ready")


@pytest.mark.parametrize(("sync", "ready"), [("synced", True), ("out of sync", False), ("failed", False)])
def test_app_that_is_not_synced_is_not_ready(sync: SyncName, ready: bool) -> None:
    assert app({JOB: READY}, sync=Sync("Application argocd/a", sync)).ready is ready


@pytest.mark.parametrize(
    ("operation", "name", "message"),
    [
        ({"phase": "Running"}, "progressing", ""),
        ({"phase": "Running", "finishedAt": "t", "message": "one failed. Retrying"}, "failed", "one failed. Retrying"),
        ({"phase": "Failed", "message": "one or more objects failed to apply"}, "failed", "one or more objects"),
        ({"phase": "Succeeded"}, "out of sync", ""),
    ],
)
@pytest.mark.parametrize("refused", [False, True])
def test_a_rejected_sync_shows_what_was_rejected(operation: Object, name: str, message: str, refused: bool) -> None:
    results = [{"kind": "Job", "name": "a", "status": "Synced", "message": "created"}]
    if refused:
        results.append({"kind": "Service", "name": "b", "status": "SyncFailed", "message": "field is immutable"})
        message = "Service b: field is immutable" if name == "failed" else message
    state = {**operation, "syncResult": {"resources": results}}
    status = {"sync": {"status": "OutOfSync"}, "operationState": state}
    sync = read_application({"kind": "Application", "metadata": {"name": "x"}, "status": status}).sync
    assert (sync.name, sync.message.startswith(message)) == (name, True)
    _, row = status_rows([app({JOB: READY}, sync=sync)])
    assert row[3] == ("ready" if name == "progressing" else "outdated")
    assert row[-1] == (sync.message or "-")


def test_what_may_not_be_listed_is_unknown_and_not_missing() -> None:
    live = Live(names=frozenset({POLICY}), forbidden=frozenset({("Job.batch", "ml")}))
    assert live.state(JOB).name == "unknown"
    assert live.state(POLICY).name == "ready"
    assert live.state(CLAIM).name == "missing"


def test_app_belongs_to_the_syncer_that_lists_most_of_its_objects() -> None:
    one = Syncer(Sync("one", "synced"), frozenset({JOB}))
    two = Syncer(Sync("two", "synced"), frozenset({JOB, POLICY}))
    assert find_sync([JOB, POLICY, CLAIM], [one, two]) == two.sync
    assert find_sync([CLAIM], [one, two]) is None
    assert find_sync([CLAIM], []) is None


def test_nothing_is_asked_without_syncers() -> None:
    assert read_syncers(None, None, ["ml"]) == []  # type: ignore[arg-type]


def test_facts_of_a_run_are_its_times_and_what_its_containers_report() -> None:
    status = {
        "startTime": "2026-11-01T10:00:00Z",
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-01T10:01:05Z"}],
    }
    ended = {"terminated": {"message": json.dumps({"bytes": 5, "revision": "abc", "list": [1]})}}
    plain = {"terminated": {"message": "Traceback …"}}
    pod: Object = {"status": {"containerStatuses": [{"state": ended}, {"state": plain}, {"state": {"running": {}}}]}}
    assert run_facts({"status": status}, [pod]) == {
        "started": "2026-11-01T10:00:00Z",
        "ended": "2026-11-01T10:01:05Z",
        "duration": "1m5s",
        "bytes": "5",
        "revision": "abc",
    }
    assert run_facts({"status": {}}, []) == {}


def test_facts_of_objects_are_storage_and_replicas() -> None:
    claims: list[Object] = [{"status": {"capacity": {"storage": size}}} for size in ("1Gi", "2Gi")]
    deployment: Object = {"spec": {"replicas": 2}, "status": {"readyReplicas": 1}}
    assert object_facts([*claims, deployment]) == {"storage": "1Gi+2Gi", "replicas": "1/2"}


@pytest.mark.promise("Koldun", "Step 5, status: pod phase details and endpoints")
def test_reason_why_a_pod_waits_is_its_node_or_its_container() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes: Insufficient nvidia.com/gpu"}
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    starting = {"reason": "ContainerCreating"}

    def pod(state: Object) -> Object:
        return {"status": {"containerStatuses": [{"name": "run", "state": {"waiting": state}}]}}

    assert waiting_reason([{"status": {"conditions": [unscheduled]}}]) == unscheduled["message"]
    unscheduled = {**unscheduled, "reason": "Unschedulable"}
    expected = f"Unschedulable: {unscheduled['message']}"
    assert waiting_reason([{"status": {"conditions": [unscheduled]}}]) == expected
    assert waiting_reason([pod(starting), pod(waiting)]) == "run: ImagePullBackOff: no such image"
    assert waiting_reason([pod(starting)]) == ""


def test_a_workload_says_more_than_a_volume_of_why_an_app_is_not_ready() -> None:
    states = {CLAIM: State("progressing", "waiting for a volume"), JOB: State("progressing", "no such image")}
    assert app(states).state.message == "no such image"


@pytest.mark.promise("Ephemeral GPU", "`make status`")
def test_table_shows_the_current_run_and_wide_all_runs_and_objects() -> None:
    runs = (
        Run(JOB.name, State("progressing", "running"), current=True),
        Run("train-00000000", READY, current=False, facts={"started": "t", "duration": "5s"}),
    )
    sync = Sync("Kustomization ml/train", "synced", "main@sha1:0123456789abcdef0123456789abcdef01234567")
    found = app({JOB: State("progressing", "running"), CLAIM: MISSING}, runs=runs, sync=sync)
    rows = list(status_rows([found]))
    assert [len(row) for row in rows] == [8, 8]
    assert rows[1] == ("ml", "train", "Job", "progressing", JOB.name, "synced main@01234567", "-", "running")
    wide = list(status_rows([found], wide=True))
    assert [row[3:5] for row in wide[1:3]] == [("progressing", JOB.name), ("ready", "train-00000000")]
    assert wide[2][7] == "started t, duration 5s"
    assert wide[2][8] == "-"
    assert [row[2] for row in wide[3:]] == [f"Job/{JOB.name}", f"PersistentVolumeClaim/{CLAIM.name}"]
    assert len({len(row) for row in wide}) == 1


def test_environments_have_a_column_when_there_are_several() -> None:
    apps = [AppStatus(name, "ml", "train", "Job", {JOB: READY}) for name in ("dev", "prod")]
    rows = list(status_rows(apps, wide=True))
    assert [row[0] for row in rows] == ["ENV", "dev", "prod"]
    assert app_data(apps[1])["environment"] == "prod"


def test_the_newest_run_of_a_schedule_is_the_current_one_and_its_volume_may_wait() -> None:
    schedule = Identity("CronJob.batch", "ml", "train")
    owner = {"kind": "CronJob", "name": "train"}
    live = Live(
        {
            JOB._replace(name=f"train-{number}"): {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": f"train-{number}",
                    "labels": {"app.kubernetes.io/name": "train"},
                    "ownerReferences": [owner],
                    "creationTimestamp": f"2026-11-0{number}T02:00:00Z",
                },
            }
            for number in (1, 2)
        }
    )
    found = find_runs("ml", "train", {schedule: {}}, live, [], NOTHING)
    assert [(run.name, run.current) for run in found] == [("train-2", True), ("train-1", False)]
    waiting = State("progressing", "waiting for a volume")
    assert before_first_run({CLAIM: waiting}) == {CLAIM: waiting}
    assert before_first_run({CLAIM: waiting, schedule: READY})[CLAIM].name == "ready"


SCHEDULE = Identity("CronJob.batch", "ml", "train")


def scheduled_run(number: int, **status: Any) -> Object:
    """Return the run of a schedule on a day of a month."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"train-{number}",
            "namespace": "ml",
            "ownerReferences": [{"kind": "CronJob", "name": "train"}],
            "creationTimestamp": f"2026-11-{number:02}T02:00:00Z",
        },
        "spec": {},
        "status": status,
    }


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True", "message": "Job was active longer than its deadline"}]}


@pytest.mark.parametrize(
    ("runs", "expected", "ready"),
    [
        ([], READY, True),
        ([scheduled_run(2, **COMPLETE), scheduled_run(1, **FAILED)], READY, True),
        (
            [scheduled_run(1, **COMPLETE), scheduled_run(2, **FAILED)],
            State("failed", "Job was active longer than its deadline"),
            False,
        ),
        ([scheduled_run(1, ready=1, active=1)], State("progressing", "running", wanted=True), True),
        ([scheduled_run(1)], State("progressing", "FailedCreate: exceeded quota: kaigen"), False),
    ],
)
def test_a_schedule_has_the_state_of_its_newest_run(runs: list[Object], expected: State, ready: bool) -> None:
    refused: Object = {
        "type": "Warning",
        "reason": "FailedCreate",
        "message": 'Error creating: pods "train-1-abcde" is forbidden: exceeded quota: kaigen',
        "involvedObject": {"kind": "Job", "name": "train-1", "namespace": "ml"},
    }
    found = with_newest_runs({CLAIM: READY, SCHEDULE: READY}, runs, [], Clues([refused]))
    assert found == {CLAIM: READY, SCHEDULE: expected}
    assert (app(found).state, app(found).ready) == (expected, ready)


def test_a_schedule_that_is_suspended_or_missing_keeps_its_state() -> None:
    for state in (State("ready", "no further runs start: it is suspended"), MISSING):
        assert with_newest_runs({SCHEDULE: state}, [scheduled_run(1, **FAILED)], [], NOTHING) == {SCHEDULE: state}
    of_another = {SCHEDULE._replace(name="other"): READY, SCHEDULE._replace(namespace="lab"): READY}
    assert with_newest_runs(of_another, [scheduled_run(1, **FAILED)], [], NOTHING) == of_another


def test_an_app_that_is_suspended_on_purpose_is_shown_so_and_waited_for_no_longer() -> None:
    workload, volume = Identity("StatefulSet.apps", "ml", "lab"), Identity("PersistentVolumeClaim", "ml", "lab-home")
    asleep = State("suspended", "idle, stopped at noon", wanted=True)
    found = app({volume: State("ready"), workload: asleep})
    assert (found.state, found.ready) == (asleep, True)
    assert app({volume: State("progressing", "waiting"), workload: asleep}).state.name == "progressing"
    assert not app({workload: State("suspended", "the Job is suspended")}).ready


class Logs:
    """A cluster that has the logs of pods: lines by the name of the pod."""

    def __init__(self, lines: dict[str, list[bytes]]) -> None:
        self.lines = lines
        self.asked: list[str] = []

    def stream(self, path: str, query: object = (), timeout: float | None = None) -> list[bytes]:
        pod = path.split("/")[-2]
        self.asked.append(pod)
        if pod not in self.lines:
            raise SystemFailure("no log")
        return self.lines[pod]


def batch_pod(name: str, program: str = "generate.py", state: str = "running") -> Object:
    """Return a pod of the Job `answers` whose container runs one of kaigen's programs."""
    return {
        "metadata": {"name": name, "namespace": "ml", "labels": {"batch.kubernetes.io/job-name": "answers-1"}},
        "spec": {"containers": [{"name": "run", "command": ["python3", f"/etc/kaigen-programs/{program}"]}]},
        "status": {"containerStatuses": [{"name": "run", "state": {state: {}}}]},
    }


def test_the_progress_of_a_batch_is_the_newest_sum_in_the_logs_of_its_pods() -> None:
    cluster = Logs(
        {
            "a": [
                b"shard 0: 10 of 50 lines, 0 failed, 1.0 lines/s; 40 of 200 lines of all shards\n",
                b"INFO the engine says something of 3 of 4 lines of all shards\n",
            ],
            "b": [
                b"shard 1: 9 of 50 lines, 0 failed, 1.0 lines/s; 30 of 200 lines of all shards\n",
                b"shard 1: 40 of 50 lines, 2 failed, 1.0 lines/s; 71 of 200 lines of all shards\n",
            ],
            "c": [
                b"starting\n",
                b"shard 2: 0 of 0 lines, 0 failed, 1.0 lines/s; 0 of 0 lines of all shards\n",
                b"shard 2: 0 of 0 lines, 0 failed, 1.0 lines/s; " + b"9" * 5000 + b" of 200 lines of all shards\n",
            ],
            "ended": [b"shard 3: 50 of 50 lines, 0 failed, 1.0 lines/s; 200 of 200 lines of all shards\n"],
            "other": [b"shard 3: 50 of 50 lines, 0 failed, 1.0 lines/s; 200 of 200 lines of all shards\n"],
        }
    )
    pods = [*map(batch_pod, "abc"), batch_pod("lost"), batch_pod("ended", state="terminated")]
    progress = batch_progress(cluster, [*pods, batch_pod("other", "gate.py")])  # type: ignore[arg-type]
    assert progress == {("ml", "answers-1"): "35% (71 of 200 lines)"}
    assert sorted(cluster.asked) == ["a", "b", "c", "lost"]
    identity = Identity("Job.batch", "ml", "answers-1")
    job: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "answers-1"}, "status": {}}
    (run,) = find_runs("ml", "answers", {identity: job}, Live({identity: job}), [], NOTHING, progress)
    assert run.facts == {"progress": "35% (71 of 200 lines)"}
