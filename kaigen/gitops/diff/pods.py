"""The pods that an object makes, wherever its kind keeps their template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kaigen.gitops.diff.model import Json
from kaigen.gitops.diff.objects import JsonMap, Obj, get, get_map, get_text

_TEMPLATES: dict[str, tuple[str, ...]] = {
    # Dotted ways to pod templates; `[]` steps into each element of a list.
    "Deployment.apps": ("spec.template",),
    "StatefulSet.apps": ("spec.template",),
    "DaemonSet.apps": ("spec.template",),
    "ReplicaSet.apps": ("spec.template",),
    "Job.batch": ("spec.template",),
    "CronJob.batch": ("spec.jobTemplate.spec.template",),
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": (
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
    "JobSet.jobset.x-k8s.io": ("spec.replicatedJobs.[].template.spec.template",),
    "RayCluster.ray.io": ("spec.headGroupSpec.template", "spec.workerGroupSpecs.[].template"),
    "RayService.ray.io": (
        "spec.rayClusterConfig.headGroupSpec.template",
        "spec.rayClusterConfig.workerGroupSpecs.[].template",
    ),
    "ScaledJob.keda.sh": ("spec.jobTargetRef.template",),
}


class PodTemplate(NamedTuple):
    """A pod template of an object.

    Attributes:
        role: tells the templates of one object apart: `leader`, `worker`, a replicated job's name; or empty.
        data: `metadata` and `spec`.
    """

    role: str
    data: JsonMap

    @property
    def spec(self) -> JsonMap:
        """The pod's spec."""
        return get_map(self.data, "spec")

    @property
    def annotations(self) -> JsonMap:
        """The pod's annotations."""
        return get_map(self.data, "metadata", "annotations")

    def containers(self) -> Iterator[tuple[str, JsonMap]]:
        """Every container with its name, init containers first."""
        for field in ("initContainers", "containers"):
            items = get(self.spec, field)
            for item in items if isinstance(items, list) else []:
                if isinstance(item, dict):
                    yield get_text(item, "name") or "?", item


def pod_templates(obj: Obj | None) -> dict[str, PodTemplate]:
    """Every pod template of an object by its role; empty for a kind that makes no pods."""
    if obj is None:
        return {}
    if obj.type == "Pod":
        return {"": PodTemplate("", obj.data)}
    found: dict[str, PodTemplate] = {}
    for way in _TEMPLATES.get(obj.type, ()):
        steps = way.split(".")
        role = _ROLES.get(steps[-1], _ROLES.get(steps[-2], ""))
        for name, item in _walk(obj.data, steps, role):
            if isinstance(item, dict):
                found[name] = PodTemplate(name, item)
    return found


_ROLES = {"leaderTemplate": "leader", "workerTemplate": "worker", "headGroupSpec": "head"}


def _walk(item: Json, steps: list[str], role: str) -> Iterator[tuple[str, Json]]:
    for number, step in enumerate(steps):
        if step == "[]":
            for index, child in enumerate(item if isinstance(item, list) else []):
                name = get_text(child, "name") or get_text(child, "groupName") or str(index)
                yield from _walk(child, steps[number + 1 :], name)
            return
        if not isinstance(item, dict):
            return
        item = item.get(step)
    yield role, item
