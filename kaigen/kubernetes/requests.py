"""What the pods and claims of an object request, in all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import gpu_of_share, is_gpu_resource
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.cluster_needs import claim_templates
from kaigen.kubernetes.manifest import Object, entries, mapping, text, type_of
from kaigen.kubernetes.metadata_keys import SCALED_BY
from kaigen.kubernetes.pods import PodTemplate, containers, pod_templates
from kaigen.kubernetes.quantities import NANO, nano
from kaigen.kubernetes.runs import job_set_spec

STORAGE = "storage"
_SIDECAR = "Always"
_KEDA_MOST = 100
"""Replicas and Jobs that KEDA makes at most without `maxReplicaCount`."""

_PAUSED = "autoscaling.keda.sh/paused-replicas"
"""Annotation of a ScaledObject with the replicas that KEDA sets while it is paused, whatever its limits."""

_BINARY = ((1024**4, "Ti"), (1024**3, "Gi"), (1024**2, "Mi"), (1024, "Ki"))


def requests_of(obj: Object, catalog: Catalog, most: int | None = None, *, surge: bool = True) -> Counter[str]:
    """Return what an object requests in billionths of the unit: cores and bytes of its pods, devices, storage.

    Args:
        obj: the object.
        catalog: has the GPUs.
        most: replicas that an autoscaler may set, if they are more than the object's own; None without one.
        surge: whether to count the replicas that a rollout starts before it stops old ones.
    """
    total: Counter[str] = Counter()
    for template in pod_templates(obj):
        count = pod_count(obj, template, most, surge=surge)
        for name, amount in pod_requests(template, catalog).items():
            total[name] += count * amount
        for path, claim in claim_templates(obj):
            if path[: len(template.path)] == template.path or path[:2] == ("spec", "volumeClaimTemplates"):
                total[STORAGE] += count * _storage(claim)
    if type_of(obj) == "PersistentVolumeClaim":
        total[STORAGE] += _storage(mapping(obj.get("spec")))
    volume = created_volume(obj)
    if volume is not None:
        total[STORAGE] += _storage(mapping(volume.body.get("spec")))
    return total


def scaled_replicas(obj: Object) -> tuple[str, str, int] | None:
    """Return kind and name of what an autoscaler scales, and the most replicas; None for any other object."""
    spec = mapping(obj.get("spec"))
    target = mapping(spec.get("scaleTargetRef"))
    match type_of(obj):
        case "HorizontalPodAutoscaler.autoscaling":
            most = _count(spec, "maxReplicas")
        case "ScaledObject.keda.sh":
            paused = text(mapping(mapping(obj.get("metadata")).get("annotations")).get(_PAUSED))
            most = _count(spec, "maxReplicaCount", _KEDA_MOST)
            most = max(most, int(paused)) if re.fullmatch("[0-9]{1,9}", paused) else most
        case _:
            return None
    return str(target.get("kind") or "Deployment"), str(target.get("name")), most


def least_replicas(objects: Iterable[tuple[str, Object]]) -> dict[tuple[str, str, str], int]:
    """Return the fewest replicas that autoscalers set, as `most_replicas` returns the most.

    A workload that stops when it is idle has none then.

    Sources of the defaults: Kubernetes API, autoscaling/v2; https://keda.sh/docs/2.18/reference/scaledobject-spec
    """
    least: dict[tuple[str, str, str], int] = {}
    for namespace, obj in objects:
        if scaled := scaled_replicas(obj):
            keda = type_of(obj) == "ScaledObject.keda.sh"
            spec = mapping(obj.get("spec"))
            least[namespace, scaled[0], scaled[1]] = (
                _count(spec, "minReplicaCount", 0) if keda else _count(spec, "minReplicas")
            )
        elif is_scaled_live(obj):
            least[namespace, str(obj.get("kind")), text(mapping(obj.get("metadata")).get("name"))] = 0
    return least


def is_scaled_live(obj: Object) -> bool:
    """Return whether a program of kaigen's sets the replicas of an object, and Git does not have them."""
    return SCALED_BY in mapping(mapping(obj.get("metadata")).get("annotations"))


def most_replicas(objects: Iterable[tuple[str, Object]]) -> dict[tuple[str, str, str], int]:
    """Return the most replicas that autoscalers set, by namespace, kind and name of what they scale.

    Args:
        objects: the objects, each with its namespace.
    """
    most: dict[tuple[str, str, str], int] = {}
    for namespace, obj in objects:
        if scaled := scaled_replicas(obj):
            key = (namespace, *scaled[:2])
            most[key] = max(most.get(key, 0), scaled[2])
    return most


def why_unlimited(obj: Object) -> str:
    """Return why an object may make any number of pods, as a sentence; empty for one with a limit."""
    spec = mapping(obj.get("spec"))
    match type_of(obj):
        case "DaemonSet.apps":
            return "a DaemonSet runs a pod on every node"
        case "CronJob.batch" if spec.get("concurrencyPolicy", "Allow") == "Allow":
            return "a CronJob with `concurrencyPolicy: Allow` starts a run while others run"
        case "RayCluster.ray.io" | "RayService.ray.io" | "RayJob.ray.io":
            cluster = mapping(spec.get("rayClusterConfig")) or mapping(spec.get("rayClusterSpec")) or spec
            groups = [group for _, group in entries(cluster.get("workerGroupSpecs"))]
            if cluster.get("enableInTreeAutoscaling") and not all("maxReplicas" in group for group in groups):
                return "a worker group of Ray that scales has no `maxReplicas`"
    if any(template.by_form for template in pod_templates(obj)):
        return f"kaigen does not know how many pods a {obj.get('kind')} runs"
    return ""


def max_surge(obj: Object) -> tuple[int, int]:
    """Return by how many replicas, and by what share of them in percent, a rollout exceeds the number of replicas.

    One of the two is 0. Sources: Kubernetes, Deployment, `maxSurge`: 25% by default; LeaderWorkerSet API,
    `rolloutStrategy`: 0 by default.
    """
    spec = mapping(obj.get("spec"))
    match type_of(obj):
        case "Deployment.apps":
            strategy, field, default = mapping(spec.get("strategy")), "rollingUpdate", "25%"
        case "LeaderWorkerSet.leaderworkerset.x-k8s.io":
            strategy, field, default = mapping(spec.get("rolloutStrategy")), "rollingUpdateConfiguration", "0"
        case _:
            return 0, 0
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0, 0
    surge = str(mapping(strategy.get(field)).get("maxSurge", default))
    if not re.fullmatch("[0-9]{1,9}%?", surge):
        return 0, 0
    return (0, int(surge[:-1])) if surge.endswith("%") else (int(surge), 0)


def surge_of(replicas: int, surge: tuple[int, int]) -> int:
    """Return how many replicas a rollout adds; a share of them is rounded up, as Kubernetes does.

    Args:
        replicas: the number of replicas.
        surge: as `max_surge` returns it.
    """
    number, percent = surge
    return (number if replicas else 0) - (-replicas * percent // 100)


def readable(resource: str, amount: int) -> str:
    """Return billionths of a unit as a quantity that people read: `1500m`, `96Gi`, `8`."""
    if resource == "cpu":
        milli = -(-amount // 10**6)
        return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"
    whole = -(-amount // NANO)
    if resource in {"memory", "ephemeral-storage", STORAGE} or resource.startswith("hugepages-"):
        for size, unit in _BINARY:
            if whole >= size and whole % size == 0:
                return f"{whole // size}{unit}"
            if whole >= 10 * size:
                return f"{-(-whole // size)}{unit}"
    return str(whole)


def pod_count(obj: Object, template: PodTemplate, most: int | None = None, *, surge: bool = True) -> int:
    """Return how many pods an object makes from a template at most; the arguments are those of `requests_of`."""
    spec = mapping(obj.get("spec"))
    replicas = max(_count(spec, "replicas"), most or 0)
    if surge:
        replicas += surge_of(replicas, max_surge(obj))
    match type_of(obj):
        case "Job.batch":
            return _job(spec)
        case "CronJob.batch":
            return _job(mapping(mapping(spec.get("jobTemplate")).get("spec")))
        case "ScaledJob.keda.sh":
            return _count(spec, "maxReplicaCount", _KEDA_MOST) * _job(mapping(spec.get("jobTargetRef")))
        case "JobSet.jobset.x-k8s.io" | "TrainingRuntime.trainer.kubeflow.org":
            spec, _ = job_set_spec(obj)
            return sum(
                _count(job, "replicas") * _job(mapping(mapping(job.get("template")).get("spec")))
                for _, job in entries(spec.get("replicatedJobs"))
                if job.get("name") == template.role
            )
        case "LeaderWorkerSet.leaderworkerset.x-k8s.io":
            group = mapping(spec.get("leaderWorkerTemplate"))
            size = _count(group, "size")
            has_leader = "leaderTemplate" in group
            return replicas * (1 if template.role == "leader" else size - has_leader)
        case "Deployment.apps" | "ReplicaSet.apps" | "StatefulSet.apps":
            return replicas
        case "RayCluster.ray.io" | "RayService.ray.io" | "RayJob.ray.io" if "workerGroupSpecs" in template.path:
            return _ray(_holder(obj, template))
    return 1


def _holder(obj: Object, template: PodTemplate) -> Object:
    """Return the mapping that has a template as a field."""
    value: Any = obj
    for step in template.path[:-1]:
        value = value[step]
    return mapping(value)


def _ray(group: Object) -> int:
    replicas = max(_count(group, "replicas"), _count(group, "minReplicas", 0), _count(group, "maxReplicas"))
    return replicas * _count(group, "numOfHosts")


def _job(spec: Object) -> int:
    return min(_count(spec, "parallelism"), _count(spec, "completions") if "completions" in spec else 10**9)


def _count(holder: Object, field: str, default: int = 1) -> int:
    value = holder.get(field, default)
    return value if isinstance(value, int) and value >= 0 else default


def pod_requests(template: PodTemplate, catalog: Catalog) -> Counter[str]:
    """Return the requests of a pod in billionths of the unit: of its containers together, of an init container or of
    the pod itself if these request more.

    https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
    """
    running: Counter[str] = Counter()
    highest: Counter[str] = Counter()
    for container in containers(template):
        own = _container(container.body, catalog)
        if container.field == "initContainers" and container.body.get("restartPolicy") != _SIDECAR:
            highest |= running + own
        else:
            running += own
    return running | highest | _container(template.spec, catalog)


def _container(body: Object, catalog: Catalog) -> Counter[str]:
    resources = mapping(body.get("resources"))
    given: Mapping[str, object] = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
    found = Counter({name: nano(value) or 0 for name, value in given.items()})
    if not any(is_gpu_resource(name, catalog) for name, amount in found.items() if amount):
        # A share of a GPU without a number of GPUs is one of one GPU (source: HAMi and Volcano, `defaultGPUNum`).
        found.update({gpu: NANO for name in given if (gpu := gpu_of_share(name)) and found[name]})
    return found


def _storage(spec: Object) -> int:
    """Return the size of the volume that a claim makes; 0 for a claim of a volume that exists."""
    if spec.get("volumeName") or spec.get("storageClassName") == "":
        return 0
    return nano(mapping(mapping(spec.get("resources")).get("requests")).get("storage")) or 0
