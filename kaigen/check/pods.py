"""Where the pods are: the pod templates and containers of every kind that has some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kaigen.diagnostics.field_path import FieldPath as Path

Object = dict[str, object]

# Group and kind to the places of pod templates; "*" stands for every item of a list.
TEMPLATES: dict[tuple[str, str], tuple[Path, ...]] = {
    ("", "Pod"): ((),),
    ("", "PodTemplate"): (("template",),),
    ("", "ReplicationController"): (("spec", "template"),),
    ("apps", "DaemonSet"): (("spec", "template"),),
    ("apps", "Deployment"): (("spec", "template"),),
    ("apps", "ReplicaSet"): (("spec", "template"),),
    ("apps", "StatefulSet"): (("spec", "template"),),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template"),),
    ("batch", "Job"): (("spec", "template"),),
    ("jobset.x-k8s.io", "JobSet"): (("spec", "replicatedJobs", "*", "template", "spec", "template"),),
    ("keda.sh", "ScaledJob"): (("spec", "jobTargetRef", "template"),),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
    ("ray.io", "RayCluster"): (
        ("spec", "headGroupSpec", "template"),
        ("spec", "workerGroupSpecs", "*", "template"),
    ),
    ("ray.io", "RayService"): (
        ("spec", "rayClusterConfig", "headGroupSpec", "template"),
        ("spec", "rayClusterConfig", "workerGroupSpecs", "*", "template"),
    ),
}
CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")


class PodTemplate(NamedTuple):
    """A pod, or the template of one.

    Attributes:
        path: where it stands in its object.
        metadata: its metadata, empty when it has none.
        spec: its pod spec.
    """

    path: Path
    metadata: Object
    spec: Object


class Container(NamedTuple):
    """One container of a pod.

    Attributes:
        path: where it stands in its object.
        role: the field it stands in: `initContainers`, `containers` or `ephemeralContainers`.
        name: its name, or a word for it when it has none.
        body: the container.
    """

    path: Path
    role: str
    name: str
    body: Object


def group_of(obj: Object) -> str:
    """The API group of an object; empty for the core group."""
    version = obj.get("apiVersion")
    return version.rpartition("/")[0] if isinstance(version, str) else ""


def pod_templates(obj: Object) -> list[PodTemplate]:
    """Every pod template of an object; none for kinds without pods and for parts of the wrong type."""
    places = TEMPLATES.get((group_of(obj), str(obj.get("kind"))))
    if places is None:
        return []
    found = []
    for place in places:
        for path, template in _walk(obj, place, 0):
            spec = template.get("spec")
            if isinstance(spec, dict):
                found.append(PodTemplate(path, mapping(template.get("metadata")), spec))
    return found


def _walk(value: object, place: Path, depth: int) -> Iterator[tuple[Path, Object]]:
    """Every mapping at a place of the table, with its path."""
    for step, key in enumerate(place[depth:], depth):
        if key == "*":
            for number, item in enumerate(value if isinstance(value, list) else ()):
                for path, found in _walk(item, place, step + 1):
                    yield (*place[depth:step], number, *path), found
            return
        if not isinstance(value, dict):
            return
        value = value.get(key)
    if isinstance(value, dict):
        yield place[depth:], value


def containers(template: PodTemplate) -> list[Container]:
    """The init, main and ephemeral containers of a pod."""
    found = []
    spec_path = (*template.path, "spec")
    for role in CONTAINER_FIELDS:
        listed = template.spec.get(role)
        if isinstance(listed, list):
            for number, body in enumerate(listed):
                if isinstance(body, dict):
                    name = body.get("name")
                    shown = name if isinstance(name, str) else f"{role}[{number}]"
                    found.append(Container((*spec_path, role, number), role, shown, body))
    return found


def mapping(value: object) -> Object:
    """The value when it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def names_of(value: object) -> set[str]:
    """The names of the mappings of a list."""
    found = (item.get("name") for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
    return {name for name in found if isinstance(name, str)}


def entries(value: object) -> list[tuple[int, Object]]:
    """The mappings of a list with their places; none when it is no list."""
    if not isinstance(value, list):
        return []
    return [(number, item) for number, item in enumerate(value) if isinstance(item, dict)]
