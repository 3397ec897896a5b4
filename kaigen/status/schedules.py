"""The state of an app with a schedule: that of its newest run, and of volumes that wait for the first one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kaigen.cluster.clues import Clues
from kaigen.cluster.runs import run_state
from kaigen.cluster.states import READY, State, job_state
from kaigen.kubernetes.manifest import Identity, Object, entries, identity_of, mapping, text

SCHEDULE = "CronJob.batch"
JOB = "batch.kubernetes.io/job-name"
"""The label of a pod with the name of its Job."""


def before_first_run(states: Mapping[Identity, State]) -> dict[Identity, State]:
    """Return the states of an app's objects, with volumes that are ready although no pod has asked for them yet.

    Most storage classes make a volume when the first pod is scheduled, which is the first run of a schedule.
    """
    if not any(identity.type == SCHEDULE for identity in states):
        return dict(states)
    return {
        identity: State("ready", "waiting for the first run")
        if identity.type == "PersistentVolumeClaim" and state.name == "progressing"
        else state
        for identity, state in states.items()
    }


def with_newest_runs(
    states: Mapping[Identity, State], objects: Iterable[Object], pods: Sequence[Object], clues: Clues
) -> dict[Identity, State]:
    """Return the states of an app's objects, where a schedule has the state of its newest run.

    One that is suspended keeps its own. One whose run has pods that run is as it shall be.

    Args:
        states: by identity.
        objects: what the cluster has; the runs are among it.
        pods: those of the app, oldest first.
        clues: events, and volume claims.
    """
    runs = [each for each in objects if identity_of(each).type == "Job.batch"]
    return {
        identity: _newest_state(runs, identity, pods, clues) if is_active else state
        for identity, state in states.items()
        for is_active in [identity.type == SCHEDULE and state == READY]
    }


def _newest_state(runs: Iterable[Object], schedule: Identity, pods: Sequence[Object], clues: Clues) -> State:
    own = [run for run in runs if identity_of(run).namespace == schedule.namespace and is_started_by(run, [schedule])]
    if not own:
        return READY
    newest = max(own, key=lambda run: text(mapping(run.get("metadata")).get("creationTimestamp")))
    name = identity_of(newest).name
    of_run = [pod for pod in pods if label(pod, JOB) == name]
    state = job_state(newest, of_run or None, clues)
    is_running = run_state(newest, of_run or None, clues).phase == "Running"
    return State(state.name, state.message, wanted=True) if is_running else state


def is_started_by(run: Object, objects: Iterable[Identity]) -> bool:
    """Return whether one of the objects is the schedule that started a run."""
    owners = {text(owner.get("name")) for _, owner in entries(mapping(run.get("metadata")).get("ownerReferences"))}
    return any(identity.type == SCHEDULE and identity.name in owners for identity in objects)


def label(obj: Object, name: str) -> str:
    """Return a label of an object; empty if it has none of this name."""
    return text(mapping(mapping(obj.get("metadata")).get("labels")).get(name))
