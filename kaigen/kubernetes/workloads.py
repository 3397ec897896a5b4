"""What Kueue queues of an object: workloads with sets of pods that it admits as one.

Source: `pkg/controller/jobs` of sigs.k8s.io/kueue v0.19.2 (a Deployment is admitted pod by pod, a StatefulSet as one, a
LeaderWorkerSet replica by replica).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kaigen.catalog.catalog import Catalog
from kaigen.kubernetes.manifest import Object, entries, mapping, text, type_of
from kaigen.kubernetes.pods import PodTemplate, pod_templates
from kaigen.kubernetes.queues import POD_ANNOTATIONS, PRIORITY_LABEL, QUEUE_LABEL
from kaigen.kubernetes.ray_jobs import RAY_JOB, queued_ray_job
from kaigen.kubernetes.requests import pod_count, pod_requests
from kaigen.kubernetes.train_jobs import RUNTIME, TRAIN_JOB, runtime_key, runtimes_of, trained_runtime
from kaigen.kubernetes.workload import PodSet, Workload

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_RUNS = frozenset({"Job.batch", "JobSet.jobset.x-k8s.io", "CronJob.batch", TRAIN_JOB, RAY_JOB})
SERVING_TYPES = frozenset({"Deployment.apps", "StatefulSet.apps", "LeaderWorkerSet.leaderworkerset.x-k8s.io"})
"""Kinds of objects that run the pods of a Topology."""

QUEUED_TYPES = _RUNS | SERVING_TYPES
"""Kinds of objects whose admission by Kueue is predicted."""

POD_TYPES = QUEUED_TYPES | {RUNTIME}
"""Kinds of objects that have their pods."""


def _workload_of(
    obj: Object, namespace: str, catalog: Catalog, runtimes: Mapping[tuple[str, str], Object]
) -> Workload | None:
    """Return the workload of an object; None for one without a queue, or of a kind that kaigen does not queue.

    Args:
        obj: the object.
        namespace: that it is in.
        catalog: has the GPUs.
        runtimes: TrainingRuntimes by namespace and name: the pods of TrainJobs.
    """
    kind, spec = type_of(obj), mapping(obj.get("spec"))
    if kind not in QUEUED_TYPES:
        return None
    labels = mapping(mapping(obj.get("metadata")).get("labels"))
    if kind == "CronJob.batch":
        labels = mapping(mapping(mapping(spec.get("jobTemplate")).get("metadata")).get("labels"))
    queue = text(labels.get(QUEUE_LABEL))
    if not queue:
        return None
    copies = _replicas(spec) if kind in {"Deployment.apps", "LeaderWorkerSet.leaderworkerset.x-k8s.io"} else 1
    one = {**obj, "spec": {**spec, "replicas": 1}} if copies != 1 else obj
    if kind == TRAIN_JOB:
        runtime = runtimes.get(runtime_key(obj, namespace))
        if runtime is None:
            return None
        one = trained_runtime(runtime, obj)
    if kind == RAY_JOB:
        counted = queued_ray_job(obj)
        if counted is None:
            return None
        one = counted
    return Workload(
        namespace,
        text(obj.get("kind")),
        text(mapping(obj.get("metadata")).get("name")),
        queue,
        text(labels.get(PRIORITY_LABEL)),
        tuple(_pod_set(one, template, catalog) for template in pod_templates(one)),
        copies,
    )


def _replicas(spec: Object) -> int:
    count = spec.get("replicas", 1)
    return count if isinstance(count, int) else 1


def _pod_set(obj: Object, template: PodTemplate, catalog: Catalog) -> PodSet:
    count = pod_count(obj, template, surge=False)
    nodes = mapping(mapping(template.spec.get("affinity")).get("nodeAffinity"))
    terms = entries(mapping(nodes.get(_REQUIRED)).get("nodeSelectorTerms"))
    notes = mapping(template.metadata.get("annotations"))
    levels = (text(notes.get(f"{POD_ANNOTATIONS}{way}-topology")) for way in ("required", "preferred"))
    return PodSet(
        count,
        {name: count * amount for name, amount in pod_requests(template, catalog).items() if amount},
        mapping(template.spec.get("nodeSelector")),
        tuple(_items(term.get("matchExpressions")) for _, term in terms),
        _items(template.spec.get("tolerations")),
        next((level for level in levels if level), ""),
    )


def _items(value: object) -> tuple[Object, ...]:
    return tuple(each for _, each in entries(value))


def workloads_of(objects: Iterable[tuple[str, Object]], catalog: Catalog) -> tuple[Workload, ...]:
    """Return the workloads of objects, each with its namespace."""
    placed = list(objects)
    runtimes = runtimes_of(placed)
    found = (_workload_of(obj, namespace, catalog, runtimes) for namespace, obj in placed)
    return tuple(each for each in found if each is not None)
