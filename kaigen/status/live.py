"""Reads the objects of apps from a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaigen.cluster.errors import Forbidden
from kaigen.cluster.states import MISSING, State, has_state, live_state
from kaigen.kubernetes.manifest import Identity, Object, identity_of

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

_CALLS = 4
"""Requests at the same time."""

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


def read_live(cluster: Cluster, wanted: Mapping[Identity, Object]) -> Live:
    """Return what the cluster has of the kinds of objects, in their namespaces. Values of Secrets are not read.

    Args:
        cluster: the cluster.
        wanted: rendered objects by identity.

    Raises:
        SystemFailure: the cluster cannot be reached.
    """
    stateful = {(each.type, each.namespace): has_state(body) for each, body in wanted.items()}

    def read(place: Place) -> Live:
        try:
            if stateful[place]:
                return Live({identity_of(item): item for item in cluster.objects_of_type(*place)})
            return Live(names=frozenset(Identity(*place, name) for name in cluster.names_of_type(*place)))
        except Forbidden:
            return Live(forbidden=frozenset({place}))

    with ThreadPoolExecutor(_CALLS) as pool:
        found = list(pool.map(read, sorted(stateful)))
    return Live(
        {identity: body for each in found for identity, body in each.objects.items()},
        frozenset().union(*(each.names for each in found)),
        frozenset().union(*(each.forbidden for each in found)),
    )
