"""Where the pods are: the pod templates and containers of every kind that has some.

The table of object kinds says where kinds have pods. In objects of kinds that kaigen has no schema of, pods are also
found by their form, because a controller may run what it finds there:

- a *pod* is a mapping in which `containers`, `initContainers` or `ephemeralContainers` is a list, and an item of it is
  a mapping with a string as `image` or `name`;
- a *single container* is any other mapping with a string as `image` and one of `CONTAINER_LISTS` or
  `CONTAINER_MAPPINGS`, and not an item of such a list: KServe's `predictor.model`, a `container` of Argo Workflows.

In the custom resources that kaigen has schemas of, only places that run containers have these forms, and the table has
each of them: `tests/unit/kubernetes/test_pod_forms.py` reads the schemas.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.schemas import is_cluster_scoped

CONTAINER_FIELDS = ("initContainers", "containers", "ephemeralContainers")
CONTAINER_LISTS = ("args", "command", "env", "envFrom", "volumeMounts")
CONTAINER_MAPPINGS = ("resources", "securityContext")
"""Fields of containers that are lists and mappings (source: the type Container of core/v1)."""
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


class PodTemplate(Struct, frozen=True):
    """A pod, or the template of one.

    Attributes:
        path: its place in its object.
        metadata: its metadata, empty when it has none.
        spec: its pod spec; that of a single container lists only this one.
        role: distinguishes the templates of one object: `leader`, `worker`, the name of a replicated job; empty for
            the only one.
        steps: where its spec is below its place.
        single: it is a single container, whose pod a controller makes.
        by_form: the table of object kinds does not have its place.
    """

    path: FieldPath
    metadata: Object
    spec: Object
    role: str = ""
    steps: FieldPath = ("spec",)
    single: bool = False
    by_form: bool = False

    @property
    def spec_path(self) -> FieldPath:
        """The place of its spec in its object; that of the container for a single one."""
        return (*self.path, *self.steps)

    def place(self, path: FieldPath) -> FieldPath:
        """Return the place in the object of a path in the spec."""
        if self.single and path[:1] == ("containers",):
            path = path[2:]
        return (*self.spec_path, *path)


class Container(Struct, frozen=True):
    """One container of a pod.

    Attributes:
        path: its place in its object.
        field: the field that lists it: `initContainers`, `containers` or `ephemeralContainers`.
        name: its name; the place in its list when it has none.
        body: the container.
    """

    path: FieldPath
    field: str
    name: str
    body: Object


def pod_templates(obj: Object) -> list[PodTemplate]:
    """Return every pod template of an object; none for kinds without pods and for values of the wrong type."""
    found = []
    for place in kind_of(obj).pods:
        for path, template, role in _find(obj, _steps(place.path), place.role):
            if place.single:
                found.append(_single(path, template, role, place.joins and _spec_at(obj, place.joins)))
            elif isinstance(spec := template.get("spec"), dict):
                found.append(PodTemplate(path, mapping(template.get("metadata")), spec, role))
    if is_searched(obj):
        known = {template.spec_path for template in found}
        found += (template for template in _by_form(obj, (), None) if template.spec_path not in known)
    return found


def is_searched(obj: Object) -> bool:
    """Return whether pods of an object are found by their form: kaigen has no schema that would exclude others."""
    return is_cluster_scoped(str(obj.get("apiVersion")), str(obj.get("kind"))) is None


def _single(path: FieldPath, container: Object, role: str, pod: object, *, by_form: bool = False) -> PodTemplate:
    """Return the template of a single container, with the security context of the pod that it joins."""
    context = mapping(pod).get("securityContext")
    spec: Object = {"containers": [container]}
    if context is not None:
        spec["securityContext"] = context
    return PodTemplate(path, {}, spec, role, (), single=True, by_form=by_form)


def _spec_at(obj: Object, dotted: str) -> object:
    value: object = obj
    for step in (*dotted.split("."), "spec"):
        value = mapping(value).get(step)
    return value


def _by_form(value: object, path: FieldPath, holder: Object | None) -> Iterator[PodTemplate]:
    """Yield the pods below a value by their form.

    Args:
        value: the value.
        path: its place.
        holder: the mapping that it is a value of; None for an item of a list.
    """
    if isinstance(value, list):
        for number, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from _by_form(item, (*path, number), None)
        return
    if not isinstance(value, dict):
        return
    role = ".".join(map(str, path))
    listed = [field for field in CONTAINER_FIELDS if _lists_containers(value.get(field))]
    if listed:
        if path[-1:] == ("spec",) and holder is not None:
            yield PodTemplate(path[:-1], mapping(holder.get("metadata")), value, role, by_form=True)
        else:
            yield PodTemplate(path, {}, value, role, (), by_form=True)
    elif is_single_container(value):
        yield _single(path, value, role, None, by_form=True)
    for key, item in value.items():
        if key not in listed and isinstance(item, dict | list):
            yield from _by_form(item, (*path, str(key)), value)


def _lists_containers(value: object) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, dict) and (isinstance(item.get("image"), str) or isinstance(item.get("name"), str))
        for item in value
    )


def is_single_container(value: Object) -> bool:
    """Return whether a mapping has the form of a container."""
    return isinstance(value.get("image"), str) and (
        any(isinstance(value.get(field), list) for field in CONTAINER_LISTS)
        or any(isinstance(value.get(field), dict) for field in CONTAINER_MAPPINGS)
    )


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.replace("[]", ".[]").split(".")) if path else ()


def _find(value: object, steps: tuple[str, ...], role: str) -> Iterator[tuple[FieldPath, Object, str]]:
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
    for field in CONTAINER_FIELDS:
        listed = template.spec.get(field)
        if isinstance(listed, list):
            for number, body in enumerate(listed):
                if isinstance(body, dict):
                    name = body.get("name")
                    path = template.place((field, number))
                    unnamed = template.role if template.single else f"{field}[{number}]"
                    found.append(Container(path, field, name if isinstance(name, str) else unnamed, body))
    return found
