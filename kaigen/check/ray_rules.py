"""What the webhook of Kueue refuses of RayJobs in a queue (source: sigs.k8s.io/kueue v0.19.2, pkg/controller/jobs)."""

from __future__ import annotations

from kaigen.check.webhook_problems import Findings, conflict
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.queues import ELASTIC_ANNOTATION, QUEUE_LABEL

_HEAD = "head"


def ray_job_findings(obj: Object) -> Findings:
    """Follow `validateCreate` of RayJobs and `ValidateCreate` of their clusters."""
    metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
    if not mapping(metadata.get("labels")).get(QUEUE_LABEL):
        return
    cluster = spec.get("rayClusterSpec")
    if spec.get("clusterSelector"):
        # Kueue leaves one alone that only selects a cluster.
        if cluster is not None:
            yield conflict("must not be set in a queue next to `rayClusterSpec`", ("spec", "clusterSelector"))
        return
    if not isinstance(cluster, dict):
        yield conflict("needs `rayClusterSpec` in a queue", ("spec",))
        return
    if spec.get("shutdownAfterJobFinishes") is not True:
        place: FieldPath = ("spec", "shutdownAfterJobFinishes") if "shutdownAfterJobFinishes" in spec else ("spec",)
        yield conflict("needs `shutdownAfterJobFinishes: true` in a queue: the cluster would keep its quota", place)
    elastic = mapping(metadata.get("annotations")).get(ELASTIC_ANNOTATION) == "true"
    if cluster.get("enableInTreeAutoscaling") is True and not elastic:
        path = ("spec", "rayClusterSpec", "enableInTreeAutoscaling")
        yield conflict(f'needs the annotation `{ELASTIC_ANNOTATION}: "true"` in a queue', path)
    for number, group in entries(cluster.get("workerGroupSpecs")):
        if group.get("groupName") == _HEAD:
            yield conflict("must not be `head` in a queue", ("spec", "rayClusterSpec", "workerGroupSpecs", number))
