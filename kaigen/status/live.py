"""Reads the objects of apps from a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, field

from kaigen.kubectl.runner import Forbidden, Kubectl
from kaigen.kubernetes.live_state import MISSING, State, has_state, live_state
from kaigen.kubernetes.manifest import Identity, Object, identity_of

_CALLS = 4
"""Calls of kubectl at the same time."""

_NOT_ALLOWED = State("unknown", "not allowed to read it")

Place = tuple[str, str]
"""Type of objects, and their namespace; empty for objects of the cluster."""


class Live(Struct, frozen=True):
    """What a cluster has of some kinds.

    Attributes:
        objects: objects of kinds that have a state, by identity.
        names: objects of all other kinds.
        forbidden: what the user may not list.
    """

    objects: Mapping[Identity, Object] = field(default_factory=dict)
    names: frozenset[Identity] = frozenset()
    forbidden: frozenset[Place] = frozenset()

    def state(self, identity: Identity) -> State:
        """Return the state of an object."""
        if identity in self.objects:
            return live_state(self.objects[identity])
        if (identity.type, identity.namespace) in self.forbidden:
            return _NOT_ALLOWED
        return State("ready") if identity in self.names else MISSING


def read_live(kubectl: Kubectl, wanted: Mapping[Identity, Object]) -> Live:
    """Return what the cluster has of the kinds of objects, in their namespaces. Values of Secrets are not read.

    Args:
        kubectl: the cluster.
        wanted: rendered objects by identity.

    Raises:
        SystemFailure: kubectl is missing or cannot reach the cluster.
    """
    stateful = {(each.type, each.namespace): has_state(body) for each, body in wanted.items()}
    objects: dict[Identity, Object] = {}
    names: set[Identity] = set()
    forbidden: set[Place] = set()

    def read(place: Place) -> Iterable[Object] | None:
        try:
            if stateful[place]:
                return list_objects(kubectl, *place)
            return [{"name": name} for name in _names(kubectl, *place)]
        except Forbidden:
            return None

    with ThreadPoolExecutor(_CALLS) as pool:
        for place, found in zip(sorted(stateful), pool.map(read, sorted(stateful)), strict=True):
            if found is None:
                forbidden.add(place)
            elif stateful[place]:
                objects |= {identity_of(item): item for item in found}
            else:
                names |= {Identity(*place, str(item["name"])) for item in found}
    return Live(objects, frozenset(names), frozenset(forbidden))


def list_objects(kubectl: Kubectl, type_: str, namespace: str, *options: str) -> list[Object]:
    """Return the objects of a type; none when the cluster does not have the type.

    Args:
        kubectl: the cluster.
        type_: kind and group.
        namespace: of the objects; empty for objects of the cluster.
        options: of `kubectl get`.

    Raises:
        Forbidden: the user may not list them.
        SystemFailure: kubectl is missing or cannot reach the cluster.
    """
    where = (f"--namespace={namespace}",) if namespace else ()
    return kubectl.items(type_.lower(), *where, *options)


def _names(kubectl: Kubectl, type_: str, namespace: str) -> list[str]:
    where = (f"--namespace={namespace}",) if namespace else ()
    out = kubectl.run("get", type_.lower(), "--output=name", *where)
    return [line.partition("/")[2] for line in out.splitlines()]
