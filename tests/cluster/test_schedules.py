"""Schedules under Argo CD and Flux: the runs of a CronJob are its own, and a change runs nothing at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from kaigen.gitops.flux import UNUSED_CLAIM
from tests.cluster.apps import CLAIM, JOB, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.syncers import FluxSyncer, Syncer
from tests.cluster.test_gitops_safe import RECONCILIATIONS, syncer, uids

__all__ = ["syncer"]

CRON_JOB = "batch/v1/CronJob"


def evaluation(**schedule: Any) -> Object:
    """Return the spec of a Job whose schedule is never due during a test."""
    return spec(
        "Job",
        "evaluate",
        image="registry.example.com/evaluate:1",
        schedule={"cron": "0 0 29 2 *", **schedule},
        output={"volume": {"size": "1Gi"}},
    )


def test_runs_are_left_alone_and_a_change_waits_for_the_next_one(
    plane: Plane, syncer: Syncer, namespace: str, tmp_path: Path
) -> None:
    before = compiled(tmp_path / "specs", [evaluation()], namespace)
    is_flux = isinstance(syncer, FluxSyncer)
    if isinstance(syncer, FluxSyncer):
        syncer.checks = [dict(UNUSED_CLAIM)]
    revision = syncer.begin(before)
    if is_flux:
        # Ready without any run, although the volume waits for the first one.
        syncer.wait("evaluate", revision)
        assert uids(plane, JOB, namespace) == {}
    wait_until(lambda: plane.client.find(CRON_JOB, "evaluate", namespace) is not None, "the schedule exists")
    # As docs/schedules.md says; the run has the CronJob as its owner, as one that its controller starts.
    plane.run("kubectl", "create", "job", "--from=cronjob/evaluate", "evaluate-now", "--namespace", namespace)
    (owner,) = plane.client.get(JOB, "evaluate-now", namespace)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "evaluate", True)
    syncer.wait("evaluate", revision)
    plane.client.wait(JOB, "evaluate-now", namespace, partial(is_true, condition="Complete"), "complete")
    runs, claims = uids(plane, JOB, namespace), uids(plane, CLAIM, namespace)
    mark = plane.audit.mark()
    syncer.let_pass(before, RECONCILIATIONS)
    assert syncer.writes(mark) == []
    assert (uids(plane, JOB, namespace), uids(plane, CLAIM, namespace)) == (runs, claims)

    after = compiled(tmp_path / "specs", [evaluation(suspend=True, timeZone="Asia/Kolkata")], namespace)
    mark = plane.audit.mark()
    syncer.publish(after)
    live = plane.client.get(CRON_JOB, "evaluate", namespace)["spec"]
    assert (live["suspend"], live["timeZone"]) == (True, "Asia/Kolkata")
    assert {write.rpartition("/")[2] for write in syncer.writes(mark)} == {"evaluate"}
    assert uids(plane, JOB, namespace) == runs

    syncer.remove("evaluate")
    plane.client.wait_gone(CRON_JOB, "evaluate", namespace)
    plane.client.wait_gone(JOB, "evaluate-now", namespace)
    assert uids(plane, CLAIM, namespace) == claims, "results are kept"
