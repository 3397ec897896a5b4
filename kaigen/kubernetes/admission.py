"""Which workloads Kueue admits: the quota of ClusterQueues, what they borrow, and the flavors that pods may have.

Source: `pkg/scheduler/flavorassigner` of sigs.k8s.io/kueue v0.19.2, without preemption and the room on single nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from kaigen.kubernetes.cohorts import Cohorts, Member, Place, Quota, quotas_of
from kaigen.kubernetes.manifest import Object, entries, mapping, text, type_of
from kaigen.kubernetes.quantities import NANO
from kaigen.kubernetes.requests import readable
from kaigen.kubernetes.workload import PodSet, Workload

_PODS = "pods"
"""The resource that counts pods, where a queue has a quota of it."""

Usage = Counter[tuple[str, Place]]
"""What workloads use, by ClusterQueue and place, in billionths of the unit."""


class ClusterQueue(Struct, frozen=True):
    """A ClusterQueue.

    Attributes:
        name: its name.
        cohort: its cohort; empty for none.
        groups: the resources and the flavors of each of its groups.
        quotas: by flavor and resource.
    """

    name: str
    cohort: str
    groups: Sequence[tuple[Sequence[str], Sequence[str]]]
    quotas: Mapping[Place, Quota]


class Flavor(Struct, frozen=True):
    """A ResourceFlavor.

    Attributes:
        labels: of its nodes.
        taints: of its nodes.
        tolerations: that Kueue adds to pods.
        topology: name of its Topology; empty for none.
    """

    labels: Mapping[str, Any] = field(default_factory=dict)
    taints: Sequence[Object] = ()
    tolerations: Sequence[Object] = ()
    topology: str = ""


class Admission(Struct, frozen=True):
    """Whether a workload is admitted.

    Attributes:
        flavors: the flavor of each resource.
        usage: what it uses, by place.
        why_not: why it is not admitted, by flavor or resource; empty when it is.
    """

    flavors: Mapping[str, str] = field(default_factory=dict)
    usage: Mapping[Place, int] = field(default_factory=dict)
    why_not: Sequence[str] = ()


class Verdict(Struct, frozen=True):
    """What Kueue does with a workload when all of its queue are there at once.

    Attributes:
        workload: the workload.
        queue: the ClusterQueue.
        flavors: the flavor of each resource, where it has the queue for itself.
        never: why the queue can never hold it; empty when it can.
        waits: whether it waits for others of its priority or a higher one.
    """

    workload: Workload
    queue: str
    flavors: Mapping[str, str]
    never: Sequence[str] = ()
    waits: bool = False


class Queues:
    """The queues of a cluster, as far as objects define them."""

    def __init__(self, objects: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Read the objects of Kueue.

        Args:
            objects: the objects, each with its namespace; others are ignored.
        """
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.local: dict[tuple[str, str], str] = {}
        self.flavors: dict[str, Flavor] = {}
        self.priorities: dict[str, int] = {}
        self._levels: dict[str, tuple[str, ...]] = {}
        cohorts: list[Member] = []
        for namespace, body in objects:
            obj = dict(body)
            name, spec = text(mapping(obj.get("metadata")).get("name")), mapping(obj.get("spec"))
            match type_of(obj):
                case "ClusterQueue.kueue.x-k8s.io":
                    self.cluster_queues[name] = _cluster_queue(name, spec)
                case "Cohort.kueue.x-k8s.io":
                    cohorts.append(Member(name, text(spec.get("parentName")), quotas_of(spec)))
                case "LocalQueue.kueue.x-k8s.io":
                    self.local[namespace, name] = text(spec.get("clusterQueue"))
                case "ResourceFlavor.kueue.x-k8s.io":
                    self.flavors[name] = _flavor(spec)
                case "Topology.kueue.x-k8s.io":
                    self._levels[name] = tuple(text(level.get("nodeLabel")) for _, level in entries(spec.get("levels")))
                case "WorkloadPriorityClass.kueue.x-k8s.io":
                    value = obj.get("value")
                    self.priorities[name] = value if isinstance(value, int) else 0
        queues = self.cluster_queues.values()
        self.cohorts = Cohorts((Member(each.name, each.cohort, each.quotas) for each in queues), cohorts)

    def queue_of(self, workload: Workload) -> ClusterQueue | None:
        """Return the ClusterQueue of a workload; None when no object defines it, or not all of its flavors."""
        found = self.cluster_queues.get(self.local.get((workload.namespace, workload.queue), ""))
        known = found is not None and all(name in self.flavors for _, flavors in found.groups for name in flavors)
        return found if known else None

    def verdicts(self, workloads: Iterable[Workload]) -> list[Verdict]:
        """Return what Kueue does with workloads that are all there at once, those with a higher priority first.

        Workloads of queues that no object defines are left out.
        """
        found: list[Verdict] = []
        used: Usage = Counter()
        order = sorted(workloads, key=lambda each: (-self.priorities.get(each.priority, 0), each.key))
        for workload in order:
            queue = self.queue_of(workload)
            if queue is None:
                continue
            alone = self.admission(workload, queue)
            waits = False
            for _ in range(0 if alone.why_not else workload.copies):
                now = self.admission(workload, queue, used)
                waits = waits or bool(now.why_not)
                used.update({(queue.name, place): amount for place, amount in now.usage.items()})
            found.append(Verdict(workload, queue.name, alone.flavors, alone.why_not, waits))
        return found

    def admission(self, workload: Workload, queue: ClusterQueue, used: Usage | None = None) -> Admission:
        """Return the flavors of a workload, or why it has none.

        Args:
            workload: the workload.
            queue: its ClusterQueue.
            used: what other workloads use; nothing by default.
        """
        if self.cohorts.is_cycle(queue.cohort):
            return Admission(why_not=[f"the cohorts above {queue.name} are a cycle"])
        usage: Counter[Place] = Counter()
        assigned: dict[str, str] = {}
        for pods in workload.pod_sets:
            wanted = {name: amount for name, amount in pods.requests.items() if amount}
            covered = {name for resources, _ in queue.groups for name in resources}
            if _PODS in covered:
                wanted[_PODS] = pods.count * NANO
            missing = [f"the queue has no quota of {name}" for name in sorted(wanted.keys() - covered)]
            if missing:
                return Admission(why_not=missing)
            for resources, flavors in queue.groups:
                part = {name: wanted[name] for name in resources if name in wanted}
                reasons: list[str] = []
                for flavor in flavors if part else ():
                    why = self._mismatch(pods, flavor, queue) or self._shortage(part, flavor, queue, usage, used)
                    if not why:
                        usage.update({(flavor, name): amount for name, amount in part.items()})
                        assigned |= dict.fromkeys(part, flavor)
                        break
                    reasons.append(why)
                else:
                    if part:
                        return Admission(why_not=reasons)
        return Admission(assigned, usage)

    def _shortage(
        self, wanted: Mapping[str, int], name: str, queue: ClusterQueue, usage: Counter[Place], used: Usage | None
    ) -> str:
        """Return why a flavor has not enough; empty when it has."""
        for resource, amount in wanted.items():
            place = (name, resource)
            needed, free = usage[place] + amount, self.available(queue, place, used)
            if needed > free:
                return (
                    f"flavor {name} has {readable(resource, max(0, free))} {resource} for it, "
                    f"and it needs {readable(resource, needed)}"
                )
        return ""

    def available(self, queue: ClusterQueue, place: Place, used: Usage | None = None) -> int:
        """Return how much a queue has free, with what it can borrow, in billionths of the unit.

        Args:
            queue: the ClusterQueue.
            place: flavor and resource.
            used: what workloads use; nothing by default.
        """
        if place not in queue.quotas:
            return 0
        taken = {name: amount for (name, each), amount in (used or {}).items() if each == place}
        return self.cohorts.available(queue.name, place, taken)

    def _mismatch(self, pods: PodSet, name: str, queue: ClusterQueue) -> str:
        """Return why pods cannot be on the nodes of a flavor; empty when they can."""
        flavor = self.flavors[name]
        only_topologies = all(self.flavors[each].topology for _, flavors in queue.groups for each in flavors)
        if pods.level and pods.level not in self._levels.get(flavor.topology, ()):
            return f"flavor {name} has no topology with the level {pods.level}"
        if not pods.level and flavor.topology and not only_topologies:
            return f"flavor {name} is for pods with `placement.topology` only"
        tolerations = (*pods.tolerations, *flavor.tolerations)
        for taint in flavor.taints:
            if taint.get("effect") != "PreferNoSchedule" and not any(_tolerates(each, taint) for each in tolerations):
                return f"the pods do not tolerate the taint {taint.get('key')} of flavor {name}"
        return "" if _matches(pods, flavor.labels) else f"the nodes of flavor {name} are not those that the pods select"


def _cluster_queue(name: str, spec: Object) -> ClusterQueue:
    groups = []
    for _, group in entries(spec.get("resourceGroups")):
        covered, flavors = group.get("coveredResources"), entries(group.get("flavors"))
        resources = tuple(map(str, covered)) if isinstance(covered, list) else ()
        groups.append((resources, tuple(text(flavor.get("name")) for _, flavor in flavors)))
    cohort = text(spec.get("cohortName")) or text(spec.get("cohort"))
    return ClusterQueue(name, cohort, tuple(groups), quotas_of(spec))


def _flavor(spec: Object) -> Flavor:
    return Flavor(
        mapping(spec.get("nodeLabels")),
        tuple(each for _, each in entries(spec.get("nodeTaints"))),
        tuple(each for _, each in entries(spec.get("tolerations"))),
        text(spec.get("topologyName")),
    )


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Follow `ToleratesTaint` of k8s.io/api/core/v1, without the operators for numbers."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and text(toleration.get("value")) == text(taint.get("value"))


def _matches(pods: PodSet, labels: Mapping[str, Any]) -> bool:
    """Return whether nodes with these labels are among those of pods. Other labels may have any value."""
    if any(labels[key] != value for key, value in pods.node_selector.items() if key in labels):
        return False
    terms = [[each for each in term if each.get("key") in labels] for term in pods.terms]
    return not all(terms) or not terms or any(all(_holds(each, labels) for each in term) for term in terms)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    value, values = str(labels[expression["key"]]), expression.get("values")
    listed = [str(each) for each in values] if isinstance(values, list) else []
    match expression.get("operator"):
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return True
        case "DoesNotExist":
            return False
        case "Gt" | "Lt" as operator:
            if not (value.isdecimal() and listed and listed[0].isdecimal()):
                return False
            return int(value) > int(listed[0]) if operator == "Gt" else int(value) < int(listed[0])
    return False


def shares_nothing(queues: Queues) -> Iterator[ClusterQueue]:
    """Yield the queues of cohorts that no other queue of the tree of cohorts has a flavor in common with."""
    roots = {queue.name: queues.cohorts.root(queue.cohort) for queue in queues.cluster_queues.values()}
    for queue in queues.cluster_queues.values():
        others = [
            each
            for each in queues.cluster_queues.values()
            if roots[each.name] == roots[queue.name] and each.name != queue.name
        ]
        if queue.cohort and others and not any(queue.quotas.keys() & each.quotas.keys() for each in others):
            yield queue
