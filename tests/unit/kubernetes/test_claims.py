"""Volumes that Jobs create."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.check.references import check_references
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.cluster_needs import cluster_needs
from kaigen.kubernetes.quantities import NANO
from kaigen.kubernetes.requests import requests_of
from tests.rendering import objects_of, of_kind

SPEC = """
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: work, namespace: ml, annotations: {example.com/a: "$(HOME)"}}
spec: {image: "i:1", output: {volume: {size: 3Gi, storageClassName: quick, ttl: 1h}}}
"""


def claim_job() -> dict[str, Any]:
    (found,) = (each for each in of_kind(objects_of(SPEC), "Job") if "claim" in each["metadata"]["name"])
    return found


def test_volume_of_a_claim_job_is_read() -> None:
    volume: Any = created_volume(claim_job())
    assert volume.body["metadata"]["name"] == "work-output"
    assert volume.body["metadata"]["annotations"]["example.com/a"] == "$(HOME)"


def test_storage_class_and_size_of_the_volume_count() -> None:
    job = claim_job()
    assert "quick" in {need.name for need in cluster_needs(job) if need.kind == "StorageClass"}
    assert requests_of(job, BUILT_IN)["storage"] == 3 * 1024**3 * NANO


def test_job_may_mount_the_volume() -> None:
    assert check_references(objects_of(SPEC)) == []


@pytest.mark.parametrize("arguments", [["claim", "--volume=no JSON"], ["--volume={}"], ["claim"], "claim"])
def test_another_job_creates_no_volume(arguments: object) -> None:
    job = claim_job()
    job["spec"]["template"]["spec"]["containers"][0]["args"] = arguments
    assert created_volume(job) is None
