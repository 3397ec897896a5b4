"""Jobs, pods and volumes for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fake_cluster import Cluster, Object

EXPIRES = {"kaigen.dev/expires": "true"}
CLAIMS = "persistentvolumeclaims"


def rfc3339(when: float) -> str:
    """Return a Unix time as Kubernetes writes it."""
    return datetime.fromtimestamp(int(when), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def add_job(
    cluster: Cluster,
    name: str = "tune",
    *,
    ended: float | None = None,
    failed: bool = False,
    namespace: str = "models",
    labels: dict[str, str] = EXPIRES,
    **annotations: str,
) -> Object:
    """Create or replace a Job. Annotations are without prefix, with `_` for `-`."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": dict(labels)}
    metadata["annotations"] = {f"kaigen.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    if (old := cluster.get("jobs", name, namespace)) is not None:
        metadata["uid"] = old["metadata"]["uid"]
    conditions = [{"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": rfc3339(0)}]
    if ended is not None:
        type_ = "Failed" if failed else "Complete"
        conditions += [{"type": type_, "status": "True", "lastTransitionTime": rfc3339(ended)}]
    return cluster.put("jobs", {"metadata": metadata}, conditions=conditions)


def add_pod(
    cluster: Cluster,
    name: str,
    job: Object | None = None,
    *,
    phase: str = "Succeeded",
    claim: str = "",
    namespace: str = "models",
    **metadata: Any,
) -> Object:
    """Create a pod, controlled by a Job if one is given."""
    found: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {}, "annotations": {}} | metadata
    if job is not None:
        uid = job["metadata"]["uid"]
        found["labels"]["batch.kubernetes.io/controller-uid"] = uid
        found["labels"]["batch.kubernetes.io/job-name"] = job["metadata"]["name"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": uid}
        found["ownerReferences"] = [{**owner, "controller": True}]
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return cluster.put("pods", {"metadata": found, "spec": {"volumes": volumes}}, phase=phase)


def add_volume(cluster: Cluster, name: str = "output", *, namespace: str = "models", **annotations: str) -> Object:
    """Create or replace a volume that expires."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": dict(EXPIRES)}
    metadata["annotations"] = {f"kaigen.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return cluster.put(CLAIMS, {"metadata": metadata, "spec": {}})
