"""The pods of TrainJobs: those of their TrainingRuntimes, with the nodes and resources that a TrainJob sets.

Source: github.com/kubeflow/trainer/v2 v2.2.1, pkg/runtime/core/trainingruntime.go and
pkg/runtime/framework/plugins/jobset/builder.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kaigen.kubernetes.manifest import Object, entries, mapping, text, type_of

TRAIN_JOB, RUNTIME = "TrainJob.trainer.kubeflow.org", "TrainingRuntime.trainer.kubeflow.org"

_STEP, _TRAINER = "trainer.kubeflow.org/trainjob-ancestor-step", "trainer"
_CONTAINER = "node"


def runtimes_of(objects: Iterable[tuple[str, Object]]) -> dict[tuple[str, str], Object]:
    """Return the TrainingRuntimes by namespace and name.

    Args:
        objects: objects with their namespaces.
    """
    return {(namespace, _name(obj)): obj for namespace, obj in objects if type_of(obj) == RUNTIME}


def runtime_key(train_job: Object, namespace: str) -> tuple[str, str]:
    """Return namespace and name of the TrainingRuntime of a TrainJob."""
    return namespace, text(mapping(mapping(train_job.get("spec")).get("runtimeRef")).get("name"))


def trained_runtime(runtime: Object, train_job: Object) -> Object:
    """Return a TrainingRuntime with what a TrainJob changes of its pods: how many there are, and what each requests."""
    trainer = mapping(mapping(train_job.get("spec")).get("trainer"))
    nodes, resources = trainer.get("numNodes"), trainer.get("resourcesPerNode")
    if nodes is None and resources is None:
        return runtime
    spec = mapping(runtime.get("spec"))
    template = mapping(spec.get("template"))
    jobs = mapping(template.get("spec"))
    changed = [_trained_job(job, nodes, resources) for _, job in entries(jobs.get("replicatedJobs"))]
    template = {**template, "spec": {**jobs, "replicatedJobs": changed}}
    return {**runtime, "spec": {**spec, "template": template}}


def with_trained(objects: Sequence[tuple[str, Object]]) -> list[tuple[str, Object]]:
    """Return objects with the TrainingRuntime of each TrainJob in place of those that TrainJobs name.

    Args:
        objects: objects with their namespaces.
    """
    runtimes = runtimes_of(objects)
    jobs = [(namespace, obj) for namespace, obj in objects if type_of(obj) == TRAIN_JOB]
    used = {key for namespace, obj in jobs if (key := runtime_key(obj, namespace)) in runtimes}
    found = [each for each in objects if type_of(each[1]) != RUNTIME or (each[0], _name(each[1])) not in used]
    for namespace, obj in jobs:
        if (key := runtime_key(obj, namespace)) in used:
            found.append((namespace, trained_runtime(runtimes[key], obj)))
    return found


def _trained_job(job: Object, nodes: object, resources: object) -> Object:
    template = mapping(job.get("template"))
    if mapping(mapping(template.get("metadata")).get("labels")).get(_STEP) != _TRAINER:
        return job
    spec = mapping(template.get("spec"))
    if isinstance(nodes, int):
        spec = {**spec, "parallelism": nodes, "completions": nodes}
    if isinstance(resources, dict):
        pod = mapping(spec.get("template"))
        pod_spec = mapping(pod.get("spec"))
        containers = [
            {**each, "resources": resources} if each.get("name") == _CONTAINER else each
            for _, each in entries(pod_spec.get("containers"))
        ]
        spec = {**spec, "template": {**pod, "spec": {**pod_spec, "containers": containers}}}
    return {**job, "template": {**template, "spec": spec}}


def _name(obj: Object) -> str:
    return text(mapping(obj.get("metadata")).get("name"))
