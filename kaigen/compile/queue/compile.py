"""The compiler of the kind `Queue`: Kueue's ClusterQueue with what it needs, and the LocalQueue of a namespace."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.jobs import watching_test
from kaigen.compile.expressions import Joined, Release, Tree
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.queue.checks import check_queue
from kaigen.compile.queue.quota import FlavorQuota
from kaigen.compile.queue.resolution import QueueResolution, resolve_queue
from kaigen.core.text import series
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.queue import Preemption
from kaigen.kubernetes.quantities import canonical
from kaigen.kubernetes.requests import readable

_COMPONENT = "queue"
_TEST_TIMEOUT = "60s"


def queue_objects(resolution: QueueResolution) -> list[Object]:
    """Return the objects of a Queue."""
    spec = resolution.spec
    objects = []
    if spec.quota is not None:
        if spec.flavors_of is None:
            objects += _topology(resolution)
            objects += [_flavor(resolution, each) for each in resolution.flavors]
        objects += [_priority(resolution, name, value) for name, value in spec.priorities.items()]
        objects += _cohort(resolution)
        objects.append(_cluster_queue(resolution))
    if not resolution.local:
        return objects
    local = Object(
        role="localqueue",
        body={
            "apiVersion": resolution.api_version,
            "kind": "LocalQueue",
            "metadata": resolution.frame.metadata("", _COMPONENT),
            "spec": {"clusterQueue": _used_queue(resolution)},
        },
    )
    waiting: list[Tree] = [
        "wait",
        "--for=condition=Active",
        Joined(("localqueue/", Release())),
        f"--timeout={_TEST_TIMEOUT}",
    ]
    test = watching_test(
        resolution.frame,
        resolution.context,
        group="kueue.x-k8s.io",
        resource="localqueues",
        name=Release(),
        command=waiting,
    )
    return [*objects, local, *test]


def _used_queue(resolution: QueueResolution) -> Tree:
    """Return the name of the ClusterQueue of the LocalQueue: that of the app, or of another one."""
    if resolution.spec.cluster_queue is None:
        return Release()
    return settings.text(
        "clusterQueue",
        resolution.spec.cluster_queue,
        "ClusterQueue whose quota the namespace uses.",
        origin=("spec", "clusterQueue"),
    )


def _cluster_object(resolution: QueueResolution, role: str, kind: str, suffix: str = "", **body: Tree) -> Object:
    """Return an object that belongs to no namespace.

    Args:
        resolution: the spec.
        role: name of its file.
        kind: its kind.
        suffix: end of its name.
        body: its further fields.
    """
    metadata = resolution.frame.metadata(suffix, _COMPONENT)
    del metadata["namespace"]
    return Object(role=role, body={"apiVersion": resolution.api_version, "kind": kind, "metadata": metadata, **body})


def _topology(resolution: QueueResolution) -> list[Object]:
    if not resolution.levels:
        return []
    levels: list[Tree] = [{"nodeLabel": label} for label in resolution.levels]
    return [_cluster_object(resolution, "topology", "Topology", spec={"levels": levels})]


def _flavor(resolution: QueueResolution, flavor: FlavorQuota) -> Object:
    spec: dict[str, Tree] = {"nodeLabels": dict(flavor.labels)} if flavor.labels else {}
    if flavor.taints:
        spec["nodeTaints"] = [dict(each) for each in flavor.taints]
    if resolution.levels:
        spec["topologyName"] = Release()
    return _cluster_object(
        resolution,
        f"resourceflavor-{flavor.suffix}",
        "ResourceFlavor",
        f"-{flavor.suffix}",
        **({"spec": spec} if spec else {}),
    )


def _priority(resolution: QueueResolution, name: str, value: int) -> Object:
    text = f"Priority of the queue {resolution.metadata.name}."
    return _cluster_object(
        resolution,
        f"workloadpriorityclass-{name}",
        "WorkloadPriorityClass",
        f"-{name}",
        value=value,
        description=text,
    )


def _cohort(resolution: QueueResolution) -> list[Object]:
    """Return the Cohort with the name of the queue, if it is in another one."""
    spec = resolution.spec
    if spec.parent_cohort is None or spec.cohort is None:
        return []
    return [_cluster_object(resolution, "cohort", "Cohort", spec={"parentName": spec.parent_cohort})]


def _cluster_queue(resolution: QueueResolution) -> Object:
    spec, covered = resolution.spec, resolution.resources
    cohort = "cohortName" if resolution.api_version.endswith("v1beta2") else "cohort"
    names: list[Tree] = [*resolution.namespaces]
    body: dict[str, Tree] = {
        **({cohort: Release() if spec.parent_cohort else spec.cohort} if spec.cohort else {}),
        "namespaceSelector": {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]
        },
        "queueingStrategy": spec.strategy,
        **({"fairSharing": {"weight": spec.fair_sharing.weight}} if spec.fair_sharing else {}),
        **({"preemption": _preemption(spec.preemption)} if spec.preemption else {}),
        "resourceGroups": [
            {
                "coveredResources": [*covered],
                "flavors": [
                    {"name": _flavor_name(resolution, each), "resources": [_quota(each, name) for name in covered]}
                    for each in resolution.flavors
                ],
            }
        ],
    }
    return _cluster_object(resolution, "clusterqueue", "ClusterQueue", spec=body)


def _flavor_name(resolution: QueueResolution, flavor: FlavorQuota) -> Tree:
    if resolution.spec.flavors_of is None:
        return Release(f"-{flavor.suffix}")
    owner = settings.text(
        "flavorsOf",
        resolution.spec.flavors_of,
        "Name of the release with the ResourceFlavors, with which their names begin.",
        origin=("spec", "flavorsOf"),
    )
    return Joined((owner, f"-{flavor.suffix}"))


def _quota(flavor: FlavorQuota, resource: str) -> dict[str, Tree]:
    limits: tuple[tuple[str, Mapping[str, int]], ...] = (
        ("borrowingLimit", flavor.borrow),
        ("lendingLimit", flavor.lend),
    )
    return {
        "name": resource,
        "nominalQuota": _quantity(resource, flavor.amounts.get(resource, 0)),
        **{field: _quantity(resource, amounts[resource]) for field, amounts in limits if resource in amounts},
    }


def _quantity(resource: str, amount: int) -> str:
    """Return an amount in the form in which Kueue's webhook stores it, so that syncers see no difference."""
    return canonical(readable(resource, amount))


def _preemption(block: Preemption) -> dict[str, Tree]:
    borrowing = block.borrow_within_cohort
    found: dict[str, Tree] = {
        "withinClusterQueue": block.within_cluster_queue,
        "reclaimWithinCohort": block.reclaim_within_cohort,
    }
    if borrowing is not None:
        found["borrowWithinCohort"] = {
            document_name(borrowing, name): getattr(borrowing, name) for name in sorted(set_fields(borrowing))
        }
    return found


def describe_queue(resolution: QueueResolution) -> Description:
    """Return the summary."""
    if resolution.spec.quota is None:
        return Description(summary=f"Pods of this namespace may use the ClusterQueue {resolution.spec.cluster_queue}.")
    flavors = (
        ", ".join(
            f"{readable(name, amount)} {name} of {resolution.flavor_name(each)}"
            for name, amount in each.amounts.items()
            if "/" in name or len(each.amounts) <= len(("cpu", "memory"))
        )
        for each in resolution.flavors
    )
    names = series(resolution.namespaces)
    return Description(summary=f"Gives the pods of {names} a quota: {'; '.join(flavors)}.")


compile_queue = KindCompiler(
    resolve=resolve_queue,
    check=check_queue,
    objects=queue_objects,
    describe=describe_queue,
    default_naming=None,
    settings_order=("clusterQueue", "flavorsOf"),
)
