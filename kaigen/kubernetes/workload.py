"""What Kueue admits as one: data that the cache stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field


class PodSet(Struct, frozen=True, array_like=True):
    """Pods of one template.

    Attributes:
        count: how many.
        requests: of all of them, in billionths of the unit.
        node_selector: labels that their nodes must have.
        terms: expressions about labels of nodes, by term; the nodes satisfy all expressions of one term.
        tolerations: of the pods.
        level: node label of the level of the network that they are placed by; empty for none.
    """

    count: int
    requests: Mapping[str, int]
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    terms: Sequence[Sequence[Mapping[str, Any]]] = ()
    tolerations: Sequence[Mapping[str, Any]] = ()
    level: str = ""


class Workload(Struct, frozen=True, array_like=True):
    """What Kueue admits as one.

    Attributes:
        namespace: of the object.
        kind: of the object.
        name: of the object.
        queue: its LocalQueue.
        priority: its WorkloadPriorityClass; empty for none.
        pod_sets: its pods.
        copies: how many of them the object is.
    """

    namespace: str
    kind: str
    name: str
    queue: str
    priority: str
    pod_sets: Sequence[PodSet]
    copies: int = 1

    @property
    def key(self) -> tuple[str, str, str]:
        """Namespace, kind and name of the object."""
        return (self.namespace, self.kind, self.name)

    @property
    def requests(self) -> dict[str, int]:
        """What all pods of one copy request, in billionths of the unit."""
        total: dict[str, int] = {}
        for pods in self.pod_sets:
            for name, amount in pods.requests.items():
                total[name] = total.get(name, 0) + amount
        return total
