"""How long runs may take."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.kubernetes.runs import run_seconds


def job_set(*deadlines: int | None, restarts: int | None = None) -> dict[str, Any]:
    specs = [{} if each is None else {"activeDeadlineSeconds": each} for each in deadlines]
    policy = {} if restarts is None else {"failurePolicy": {"maxRestarts": restarts}}
    jobs = [{"name": "a", "template": {"spec": spec}} for spec in specs]
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {**policy, "replicatedJobs": jobs}}


def job(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}


@pytest.mark.parametrize(
    ("obj", "seconds"),
    [
        (job(), 0),
        (job(activeDeadlineSeconds=60), 60),
        (job_set(60), 60),
        (job_set(60, 90, restarts=2), 270),
        (job_set(60, None, restarts=2), 0),
        (job_set(), 0),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}, None),
    ],
)
def test_the_longest_duration_counts_all_attempts(obj: dict[str, Any], seconds: int | None) -> None:
    assert run_seconds(obj) == seconds
