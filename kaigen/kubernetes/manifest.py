"""Reading objects of plain values, whatever their types are: identity, entries, paths to values, paths in the API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kaigen.core.json_types import FieldPath

Object = dict[str, object]
"""A Kubernetes object, or a mapping inside one, that is read: it may contain anything."""

Manifest = dict[str, Any]
"""A Kubernetes object, or a mapping inside one, as kaigen writes it or the API server sends it."""


class Identity(NamedTuple):
    """What makes an object unique in a cluster.

    Attributes:
        type: kind and group, as in `Service` and `Job.batch`.
        namespace: empty for an object of the cluster, or where the deployment chooses it.
        name: empty when it has none.
    """

    type: str
    namespace: str
    name: str

    @property
    def kind(self) -> str:
        """The kind without its group."""
        return self.type.partition(".")[0]


def identity_of(obj: Object) -> Identity:
    """Return the identity of an object."""
    metadata = mapping(obj.get("metadata"))
    return Identity(type_of(obj), str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def group_of(obj: Object) -> str:
    """Return the API group of an object; empty for the core group."""
    version = obj.get("apiVersion")
    return version.rpartition("/")[0] if isinstance(version, str) else ""


def type_of(obj: Object) -> str:
    """Return kind and group of an object, as in `Service` and `Job.batch`."""
    return join_type(group_of(obj), str(obj.get("kind")))


def join_type(group: str, kind: str) -> str:
    """Return the type of a group and a kind, as in `Service` and `Job.batch`."""
    return f"{kind}.{group}" if group else kind


def mapping(value: object) -> Object:
    """Return the value when it is a mapping, or else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return the value when it is a string, or else an empty one."""
    return value if isinstance(value, str) else ""


def entries(value: object) -> list[tuple[int, Object]]:
    """Return the mappings of a list with their indices; none when the value is not a list."""
    if not isinstance(value, list):
        return []
    return [(number, item) for number, item in enumerate(value) if isinstance(item, dict)]


def names_of(value: object) -> set[str]:
    """Return the names of the mappings of a list."""
    found = (item.get("name") for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
    return {name for name in found if isinstance(name, str)}


ALL = "[]"
"""A step of a path: every item of a list."""

VALUES = "{}"
"""A step of a path: every value of a mapping."""

Step = tuple[str, ...]


def steps_of(path: str) -> Step:
    """Return the steps of a dotted path, in which `[]` is every item of a list; none of an empty one."""
    return tuple(step for step in path.replace("[]", ".[]").split(".") if step)


def values_at(
    node: object, steps: Sequence[str], default: str | None = None, at: FieldPath = ()
) -> Iterator[tuple[FieldPath, object]]:
    """Yield the values at the end of a path with their places, or the default where there is none.

    Args:
        node: the value that the path starts at.
        steps: the path.
        default: what a missing value means; None for nothing.
        at: the place of the value that the path starts at.
    """
    if not steps:
        yield at, node
        return
    step, rest = steps[0], steps[1:]
    if step == ALL:
        items = node if isinstance(node, list) else []
        if not items and not rest and default is not None:
            yield at, default
        for number, item in enumerate(items):
            yield from values_at(item, rest, default, (*at, number))
    elif step == VALUES:
        for key, item in mapping(node).items():
            yield from values_at(item, rest, default, (*at, str(key)))
    elif isinstance(node, dict) and node.get(step) is not None:
        yield from values_at(node[step], rest, default, (*at, step))
    elif default is not None and ALL not in rest[:-1]:
        yield at, default


def resource_of(kind: str) -> str:
    """Return the plural of a kind in the API, by the default rule of Kubernetes."""
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


def api_path(kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of an object of a namespaced kind, or of all its objects.

    Args:
        kind: API version and kind, as in `v1/Pod` and `batch/v1/Job`.
        namespace: namespace of the objects; empty for all namespaces.
        name: name of the object; empty for all objects.
        subresource: `log`, `exec` and others; empty for the object itself.
    """
    version, _, name_of_kind = kind.rpartition("/")
    parts = ["apis" if "/" in version else "api", version]
    if namespace:
        parts += ["namespaces", namespace]
    return "/".join(["", *parts, *(part for part in (resource_of(name_of_kind), name, subresource) if part)])
