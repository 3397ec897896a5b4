"""Where the pods are: the pod templates and containers of every kind that has some."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, Path, mapping
from kaigen.kubernetes.object_kind import PodPath

CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


class PodTemplate(NamedTuple):
    """A pod, or the template of one.

    Attributes:
        path: its place in its object.
        metadata: its metadata, empty when it has none.
        spec: its pod spec.
        role: distinguishes the templates of one object: `leader`, `worker`, the name of a replicated job; empty for
            the only one.
    """

    path: Path
    metadata: Object
    spec: Object
    role: str = ""


class Container(NamedTuple):
    """One container of a pod.

    Attributes:
        path: its place in its object.
        field: the field that lists it: `initContainers`, `containers` or `ephemeralContainers`.
        name: its name; the place in its list when it has none.
        body: the container.
    """

    path: Path
    field: str
    name: str
    body: Object


def pod_templates(obj: Object) -> list[PodTemplate]:
    """Return every pod template of an object; none for kinds without pods and for values of the wrong type."""
    found = []
    for place in kind_of(obj).pods:
        for path, template, role in _find(obj, _steps(place), place.role):
            spec = template.get("spec")
            if isinstance(spec, dict):
                found.append(PodTemplate(path, mapping(template.get("metadata")), spec, role))
    return found


@lru_cache(maxsize=256)
def _steps(place: PodPath) -> tuple[str, ...]:
    return tuple(place.path.replace("[]", ".[]").split(".")) if place.path else ()


def _find(value: object, steps: tuple[str, ...], role: str) -> Iterator[tuple[Path, Object, str]]:
    """Yield every mapping at the end of the steps, with its path and role."""
    for depth, step in enumerate(steps):
        if step == "[]":
            for number, item in enumerate(value if isinstance(value, list) else ()):
                own = mapping(item)
                item_role = str(own.get("name") or own.get("groupName") or number)
                for path, found, found_role in _find(item, steps[depth + 1 :], item_role):
                    yield (*steps[:depth], number, *path), found, found_role
            return
        if not isinstance(value, dict):
            return
        value = value.get(step)
    if isinstance(value, dict):
        yield steps, value, role


def containers(template: PodTemplate) -> list[Container]:
    """Return the init, main and ephemeral containers of a pod."""
    found = []
    spec_path = (*template.path, "spec")
    for field in CONTAINER_FIELDS:
        listed = template.spec.get(field)
        if isinstance(listed, list):
            for number, body in enumerate(listed):
                if isinstance(body, dict):
                    name = body.get("name")
                    shown = name if isinstance(name, str) else f"{field}[{number}]"
                    found.append(Container((*spec_path, field, number), field, shown, body))
    return found
