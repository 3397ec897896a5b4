"""RayJobs in a queue that the webhook of Kueue refuses; `tests/cluster/test_ray_jobs.py` asks the webhook itself."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check.ray_rules import ray_job_findings

ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}


def ray_job(annotations: dict[str, str] | None = None, **spec: object) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    spec = {"shutdownAfterJobFinishes": True, "rayClusterSpec": {}, **spec}
    return {"metadata": {"labels": labels, "annotations": annotations or {}}, "spec": spec}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (ray_job(), []),
        (ray_job(shutdownAfterJobFinishes=False), ["spec.shutdownAfterJobFinishes"]),
        (ray_job(rayClusterSpec=None), ["spec"]),
        (ray_job(rayClusterSpec=None, clusterSelector={"a": "b"}), []),
        (ray_job(clusterSelector={"a": "b"}), ["spec.clusterSelector"]),
        (
            ray_job(rayClusterSpec={"enableInTreeAutoscaling": True}),
            ["spec.rayClusterSpec.enableInTreeAutoscaling"],
        ),
        (ray_job(ELASTIC, rayClusterSpec={"enableInTreeAutoscaling": True}), []),
        (
            ray_job(rayClusterSpec={"workerGroupSpecs": [{"groupName": "a"}, {"groupName": "head"}]}),
            ["spec.rayClusterSpec.workerGroupSpecs.1"],
        ),
    ],
)
def test_what_kueue_refuses_is_found_at_its_place(job: dict[str, Any], expected: list[str]) -> None:
    assert [".".join(map(str, found.path)) for found in ray_job_findings(job)] == expected
    job["metadata"]["labels"] = {}
    assert not list(ray_job_findings(job))
