"""How queues share quota: the tree of cohorts, and what a member of it has left.

Source: `pkg/cache/scheduler/resource_node.go` of sigs.k8s.io/kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kaigen.kubernetes.manifest import Object, entries, text
from kaigen.kubernetes.quantities import nano

Place = tuple[str, str]
"""A flavor and a resource."""


class Quota(Struct, frozen=True):
    """The quota of one resource of a flavor, in billionths of the unit; None for no limit."""

    nominal: int
    borrow: int | None = None
    lend: int | None = None


_NOTHING = Quota(0)


class Member(Struct, frozen=True):
    """A ClusterQueue or a Cohort.

    Attributes:
        name: its name.
        parent: the cohort that it belongs to; empty for none.
        quotas: by flavor and resource.
    """

    name: str
    parent: str
    quotas: Mapping[Place, Quota]


def quotas_of(spec: Object) -> dict[Place, Quota]:
    """Return the quotas in the spec of a ClusterQueue or Cohort."""
    return {
        (text(flavor.get("name")), text(each.get("name"))): Quota(
            nano(each.get("nominalQuota")) or 0, nano(each.get("borrowingLimit")), nano(each.get("lendingLimit"))
        )
        for _, group in entries(spec.get("resourceGroups"))
        for _, flavor in entries(group.get("flavors"))
        for _, each in entries(flavor.get("resources"))
    }


class Cohorts:
    """The cohorts of a cluster, as far as objects define them. One without an object has no quota and no parent."""

    def __init__(self, queues: Iterable[Member], cohorts: Iterable[Member]) -> None:
        """Read the members.

        Args:
            queues: the ClusterQueues.
            cohorts: the Cohorts.
        """
        self._queues = {each.name: each for each in queues}
        self._cohorts = {each.name: each for each in cohorts}
        self._members: dict[str, list[tuple[Member, bool]]] = {}
        for member, is_queue in (
            *((each, True) for each in self._queues.values()),
            *((each, False) for each in self._cohorts.values()),
        ):
            self._members.setdefault(member.parent, []).append((member, is_queue))

    def above(self, cohort: str) -> list[str]:
        """Return a cohort and those above it, the nearest first. The last one is in the list before, in a cycle."""
        found: list[str] = []
        while cohort and cohort not in found:
            found.append(cohort)
            cohort = self._cohort(cohort).parent
        return [*found, cohort] if cohort else found

    def is_cycle(self, cohort: str) -> bool:
        """Return whether a cohort has no root. Kueue admits nothing in such a tree."""
        names = self.above(cohort)
        return len(set(names)) < len(names)

    def root(self, cohort: str) -> str:
        """Return the cohort at the top; empty for none."""
        return self.above(cohort)[-1] if cohort else ""

    def available(self, queue: str, place: Place, used: Mapping[str, int]) -> int:
        """Return how much a queue that is in no cycle has free, with what it can borrow.

        Args:
            queue: name of the ClusterQueue.
            place: flavor and resource.
            used: what the workloads of each ClusterQueue use of the place.
        """
        return self._available(self._queues[queue], True, place, used)

    def _cohort(self, name: str) -> Member:
        return self._cohorts.get(name) or Member(name, "", {})

    def _available(self, member: Member, is_queue: bool, place: Place, used: Mapping[str, int]) -> int:
        quota = member.quotas.get(place, _NOTHING)
        total, taken = self._sums(member, is_queue, place, used)
        if not member.parent:
            return total - taken
        shared = self._available(self._cohort(member.parent), False, place, used)
        own = _own(total, quota)
        if quota.borrow is not None:
            shared = min(shared, total - own - max(0, taken - own) + quota.borrow)
        return max(0, own - taken) + shared

    def _sums(self, member: Member, is_queue: bool, place: Place, used: Mapping[str, int]) -> tuple[int, int]:
        """Return the quota of a member and of what is below it, and how much of that is used."""
        total = member.quotas.get(place, _NOTHING).nominal
        if is_queue:
            return total, used.get(member.name, 0)
        taken = 0
        for child, child_is_queue in self._members.get(member.name, ()):
            all_of_it, used_of_it = self._sums(child, child_is_queue, place, used)
            own = _own(all_of_it, child.quotas.get(place, _NOTHING))
            total, taken = total + all_of_it - own, taken + max(0, used_of_it - own)
        return total, taken


def _own(total: int, quota: Quota) -> int:
    """Return what is never lent."""
    return 0 if quota.lend is None else max(0, total - quota.lend)
