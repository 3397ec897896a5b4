"""Reading objects of plain values: identity, mappings and list entries, whatever their types are."""

from __future__ import annotations

from typing import Any, NamedTuple

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
