"""Why Jobs wait and fail, from statuses and events with the texts of Kubernetes 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.cluster.clues import Clues
from kaigen.cluster.runs import RunState, run_state
from kaigen.cluster.waits import Waiting, fetching, waiting

Object = dict[str, Any]
TAIL = 'starting\n{"done": 1}\nerror: o/n is not on https://hub.example, or HF_TOKEN is invalid (status 401)\n'
SAID = (
    "init container fetch-model: exit code 10: o/n is not on https://hub.example, or HF_TOKEN is invalid (status 401)"
)
BY_POLICY = "Container fetch-model for pod ml/train-x failed with exit code 10 matching FailJob rule at index 1"


def job(condition: str = "", message: str = "", *, limit: int = 2, **status: Any) -> Object:
    conditions = [{"type": "Failed", "status": "True", "reason": condition, "message": message}] if condition else []
    spec = {"backoffLimit": limit, "parallelism": 1, "completions": 1}
    return {
        "metadata": {"name": "train", "uid": "1"},
        "spec": spec,
        "status": {"conditions": conditions, **status},
    }


def container(name: str, before: Object | None = None, **state: Object) -> Object:
    return {"name": name, "state": state, **({"lastState": {"terminated": before}} if before else {})}


def pod(*containers: Object, init: tuple[Object, ...] = (), phase: str = "Pending", **spec: Any) -> Object:
    metadata = {"name": "train-x", "uid": "2", "namespace": "ml"}
    status = {"phase": phase, "initContainerStatuses": list(init), "containerStatuses": list(containers)}
    return {"metadata": metadata, "spec": spec, "status": status}


def event(about: Object, reason: str, message: str, *, type_: str = "Warning", at: str = "10:00:00") -> Object:
    named = {"name": about["metadata"]["name"], "uid": about["metadata"]["uid"]}
    time = f"2026-11-22T{at}Z"
    return {"involvedObject": named, "reason": reason, "message": message, "type": type_, "lastTimestamp": time}


INIT_FAILED = pod(
    container("run", waiting={"reason": "PodInitializing"}),
    init=(container("fetch-model", terminated={"exitCode": 10, "reason": "Error", "message": TAIL}),),
    phase="Failed",
)
KILLED = pod(
    container("run", terminated={"exitCode": 137, "reason": "OOMKilled"}),
    container("side", terminated={"exitCode": 0, "reason": "Completed"}),
    phase="Failed",
)
LOW = "The node was low on resource: memory."
EVICTED: Object = {"status": {"phase": "Failed", "reason": "Evicted", "message": LOW}}
RUNNING = pod(container("run", running={}), phase="Running")


@pytest.mark.parametrize(
    ("found", "pods", "expected"),
    [
        (job("PodFailurePolicy", BY_POLICY), [INIT_FAILED], RunState("Failed", SAID, "fetch-model")),
        (
            job("BackoffLimitExceeded", "Job has reached the specified backoff limit", failed=3),
            [INIT_FAILED],
            RunState("Failed", f"{SAID} (3 attempts)", "fetch-model"),
        ),
        (job("BackoffLimitExceeded", "limit"), [KILLED], RunState("Failed", "container run: exit code 137: OOMKilled")),
        (
            job("BackoffLimitExceeded", "limit"),
            [EVICTED],
            RunState("Failed", f"Evicted: {LOW}"),
        ),
        (
            job("DeadlineExceeded", "Job was active longer than specified deadline"),
            [INIT_FAILED],
            RunState(
                "Failed", f"Job was active longer than specified deadline; the last failure: {SAID}", "fetch-model"
            ),
        ),
        (
            job("PodFailurePolicy", BY_POLICY),
            [],
            RunState(
                "Failed",
                "container fetch-model: exit code 10; its pods were deleted, and with them what they said",
            ),
        ),
        (job("PodFailurePolicy", BY_POLICY), None, RunState("Failed", "container fetch-model: exit code 10")),
        (
            job(active=1, ready=1, failed=1),
            [INIT_FAILED, RUNNING],
            RunState("Running", f"attempt 2 of 3; attempt 1 failed: {SAID}"),
        ),
        (job(failed=1), [INIT_FAILED], RunState("Pending", f"attempt 1 of 3 failed: {SAID}")),
        (job(failed=1, limit=0), [INIT_FAILED], RunState("Pending", f"attempt 1 of 1 failed: {SAID}")),
        (job(failed=2), [], RunState("Pending", "attempt 2 of 3 failed")),
    ],
)
def test_a_job_says_which_container_failed_and_which_attempt_it_is(
    found: Object, pods: list[Object] | None, expected: RunState
) -> None:
    assert run_state(found, pods) == expected


PULL = 'failed to pull and unpack image "r.example/a:1": failed to resolve reference "r.example/a:1": r.example/a:1: '
CRASHED = {"exitCode": 1, "reason": "Error", "message": "no such file"}
FILES: Object = {"args": ["wait-files", "--dest=/artifacts", "--file=input.jpg", "--file=b", "--timeout=7200s"]}
GATE = container("gate", running={})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            pod(container("run", waiting={"reason": "ErrImagePull", "message": f"{PULL}not found"})),
            Waiting("ErrImagePull", f"{PULL}not found", "run"),
        ),
        (
            pod(
                container(
                    "run",
                    waiting={
                        "reason": "ImagePullBackOff",
                        "message": f'Back-off pulling image "r.example/a:1": ErrImagePull: {PULL}not found',
                    },
                )
            ),
            Waiting("ErrImagePull", f"{PULL}not found", "run"),
        ),
        (
            pod(init=(container("fetch", CRASHED, waiting={"reason": "CrashLoopBackOff", "message": "back-off 10s"}),)),
            Waiting("CrashLoopBackOff", "exit code 1: no such file", "fetch"),
        ),
        (
            pod(init=(GATE,), initContainers=[{"name": "gate", **FILES}]),
            Waiting("", "waits for /artifacts/input.jpg, /artifacts/b"),
        ),
        (
            pod(init=(GATE,), initContainers=[{"name": "gate", "args": ["wait-job", "--kind=Job", "--name=build"]}]),
            Waiting("", "waits for Job build"),
        ),
        (
            pod(init=(GATE,), initContainers=[{"name": "gate", "args": ["wait", "--dest=/models/a", "--identity=a"]}]),
            Waiting("", "waits for the files of /models/a"),
        ),
        (pod(init=(GATE,), initContainers=[{"name": "gate", "restartPolicy": "Always", **FILES}]), None),
        (pod(init=(GATE,), initContainers=[{"name": "gate", "command": ["sh"], **FILES}]), None),
        (
            pod(init=(container("gate", CRASHED, running={}),), initContainers=[{"name": "gate"}]),
            Waiting("", "init container gate: exit code 1: no such file"),
        ),
        (pod(container("run", waiting={"reason": "ContainerCreating"})), None),
    ],
)
def test_a_pod_says_what_it_waits_for(found: Object, expected: Waiting | None) -> None:
    assert waiting(found) == expected


CLAIM: Object = {"metadata": {"name": "data", "namespace": "ml", "uid": "3"}, "status": {"phase": "Pending"}}
NO_CLASS = 'storageclass.storage.k8s.io "longhorn" not found'
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."


def unscheduled(message: str = UNBOUND) -> Object:
    found = pod(volumes=[{"persistentVolumeClaim": {"claimName": "data"}}])
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    found["status"]["conditions"] = [condition]
    return found


def test_the_events_of_its_volume_say_why_a_pod_has_no_node() -> None:
    failed = event(CLAIM, "ProvisioningFailed", NO_CLASS)
    expected = Waiting("ProvisioningFailed", f"PersistentVolumeClaim data: {NO_CLASS}")
    assert waiting(unscheduled(), Clues([failed], [CLAIM])) == expected
    scheduler = Waiting("Unschedulable", UNBOUND)
    elsewhere = {**CLAIM, "metadata": {**CLAIM["metadata"], "namespace": "other"}}
    bound = {**CLAIM, "status": {"phase": "Bound"}}
    for claim in (elsewhere, bound):
        assert waiting(unscheduled(), Clues([failed], [claim])) == scheduler
    # An older claim of that name, and a failure that is over.
    assert waiting(unscheduled(), Clues([{**failed, "involvedObject": {"name": "data"}}], [CLAIM])) == scheduler
    later = event(CLAIM, "Provisioning", "provisions", type_="Normal", at="10:00:01")
    assert waiting(unscheduled(), Clues([failed, later], [CLAIM])) == scheduler
    # Events of this type are Normal, and say it all the same.
    none = event(CLAIM, "FailedBinding", "no storage class is set", type_="Normal")
    found = waiting(unscheduled(), Clues([none], [CLAIM]))
    assert found is not None
    assert found.line == "FailedBinding: PersistentVolumeClaim data: no storage class is set"


def test_the_events_of_a_pod_and_of_a_job_say_what_is_missing() -> None:
    starting = pod(container("run", waiting={"reason": "ContainerCreating"}))
    mount = 'MountVolume.SetUp failed for volume "token" : secret "hf-token" not found'
    assert waiting(starting, Clues([event(starting, "FailedMount", mount)])) == Waiting("FailedMount", mount)
    creating = 'Error creating: pods "train-abcde" is forbidden: pod rejected: RuntimeClass "nvidia" not found'
    refused = event(job(), "FailedCreate", creating)
    expected = RunState("Pending", 'FailedCreate: pod rejected: RuntimeClass "nvidia" not found')
    assert run_state(job(), [], Clues([refused])) == expected
    combined = {**refused, "message": f"(combined from similar events): {creating}"}
    assert run_state(job(), [], Clues([combined])) == expected
    # A pod exists by now.
    assert run_state(job(active=1), [starting], Clues([refused])).message == "its pods are starting"


def test_a_download_that_is_tried_again_says_why() -> None:
    line = "https://hub.example: connection refused; attempt 2 of 8 follows in 3s"
    found = pod(
        init=(container("fetch-model", running={}),), initContainers=[{"name": "fetch-model", "args": ["fetch"]}]
    )
    clues = Clues(lines={"ml/train-x": line})
    assert waiting(found, clues) == Waiting("", f"init container fetch-model: {line}")
    assert waiting(found, Clues(lines={"ml/other": line})) is None
    # The download of a Model has no init container.
    runs = pod(container("fetch", running={}), phase="Running", containers=[{"name": "fetch", "args": ["fetch"]}])
    assert run_state(job(active=1), [runs], clues) == RunState("Running", line)
    assert [fetching(each) for each in (found, runs, pod())] == ["fetch-model", "fetch", ""]
    assert waiting(found) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Waiting("ErrImagePull", f"{PULL}not found"), True),
        (Waiting("ErrImagePull", "pull access denied, repository does not exist"), True),
        (Waiting("ErrImagePull", "dial tcp 10.0.0.1:443: connect: connection refused"), False),
        (Waiting("ProvisioningFailed", NO_CLASS), True),
        (Waiting("Unschedulable", '0/1 nodes are available: persistentvolumeclaim "data" not found.'), True),
        (Waiting("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."), False),
        (Waiting("CreateContainerConfigError", 'secret "hf-token" not found'), True),
        (Waiting("", "waits for /artifacts/input.jpg"), False),
    ],
)
def test_waiting_is_hopeless_for_what_does_not_exist(found: Waiting, expected: bool) -> None:
    assert found.is_hopeless is expected


def test_what_containers_say_does_not_control_a_terminal() -> None:
    ended = {"exitCode": 1, "message": "a\x1b[2Jb\nc"}
    found = run_state(job("BackoffLimitExceeded"), [pod(container("run", terminated=ended), phase="Failed")])
    assert found.message == "exit code 1: a�[2Jb\nc"
