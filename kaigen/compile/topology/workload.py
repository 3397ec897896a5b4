"""Which workload holds the copies of a Topology, with which pods, and how a change reaches them."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import POD_SECURITY
from kaigen.compile.builders.pods import pod_security, pull_secrets
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.topology.fields import without_effect
from kaigen.compile.topology.nodes import scheduling
from kaigen.compile.topology.pods import LWS_PLACE, PodMaker, set_place
from kaigen.compile.topology.resolution import Resolved
from kaigen.compile.topology.template import template_deployment
from kaigen.compile.topology.weights import CACHE
from kaigen.compile.topology.workloads import (
    Fleet,
    deployment,
    groups_of_sets,
    leader_worker_set,
    stateful_set,
)
from kaigen.kinds.blocks import Image
from kaigen.kinds.serving import Storage

_QUEUE = "kueue.x-k8s.io/queue-name"


def workloads(topology: Resolved) -> list[Object]:
    """What holds the pods: at least one object, the one that serves first."""
    fleet = _fleet(topology)
    if topology.spec.template is not None:
        _check_rollout(topology, "Deployment")
        return [template_deployment(topology.spec.template, fleet, topology.problems)]
    maker = _maker(topology)
    if topology.parallel.nodes == 1:
        _check_rollout(topology, "StatefulSet" if fleet.claims else "Deployment")
        pod = maker.pod("single")
        return [stateful_set(fleet, pod) if fleet.claims else deployment(fleet, pod)]
    if _by_sets(topology):
        _check_rollout(topology, "StatefulSet")
        copies = _copies(topology)
        leaders = {copy: maker.pod("leader", set_place(copy)) for copy in range(copies)}
        workers = {copy: maker.pod("worker", set_place(copy)) for copy in range(copies)}
        return groups_of_sets(fleet, topology.parallel, copies, leaders, workers)
    _check_rollout(topology, "LeaderWorkerSet")
    leader, worker = maker.pod("leader", LWS_PLACE), maker.pod("worker", LWS_PLACE)
    return [leader_worker_set(fleet, topology.parallel, leader, worker)]


def _maker(topology: Resolved) -> PodMaker:
    spec, problems = topology.spec, topology.problems
    nothing: dict[str, Tree] = {}
    images: list[Image] = [topology.image, *([spec.transfer.image] if spec.transfer.image else [])]
    pulls = list(pull_secrets(*images))
    for each in (topology.weights, *topology.adapters):
        pulls += [{"name": name} for name in each.pull_secrets if {"name": name} not in pulls]
    return PodMaker(
        spec=spec,
        engine=topology.engine,
        image=topology.image,
        image_at=topology.image_at,
        problems=problems,
        granted=topology.granted,
        parallel=topology.parallel,
        weights=topology.weights,
        adapters=topology.adapters,
        names=spec.served_names or [topology.metadata.name],
        preset=topology.sized.flags,
        preset_env=topology.sized.env,
        startup=topology.startup,
        scheduling=problems.attempt(lambda: scheduling(topology), nothing),
        security=problems.attempt(lambda: pod_security(spec.security), nothing),
        pull_secrets=pulls,
        owns_cache=spec.storage is not None,
    )


def _fleet(topology: Resolved) -> Fleet:
    spec = topology.spec
    level = spec.security.pod_security
    annotations: dict[str, str] = {POD_SECURITY: level} if level != "restricted" else {}
    for weights in (topology.weights, *topology.adapters):
        annotations |= weights.annotations
    pinned = topology.weights.pinned or any(adapter.pinned for adapter in topology.adapters)
    existing = topology.granted.has_gpu and topology.karpenter is None
    queue = spec.placement.queue
    return Fleet(
        frame=topology.frame,
        labels={_QUEUE: queue} if queue else {},
        annotations=annotations,
        replicas=None if spec.autoscale else spec.shape.replicas,
        rollout=spec.rollout,
        # A second pod of a volume of one node, or of the only GPUs that there are, would wait for the first to go.
        surge=not pinned and not existing,
        startup=topology.startup,
        claims=()
        if spec.storage is None
        else (_claim(spec.storage, topology.context.profile.storage_class),),
        retain=bool(spec.storage and spec.storage.retain),
    )


def _claim(storage: Storage, default_class: str) -> Tree:
    """The volume that each pod owns."""
    at: SpecPath = ("spec", "storage")
    name = storage.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CACHE},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": settings.text(
                "storage.storageClassName",
                default_class if name is None else name,
                "StorageClass of each pod's volume; empty for the cluster's default. Cannot change in place.",
                optional=True,
                origin=(*at, "storageClassName"),
            ),
            "resources": {
                "requests": {
                    "storage": settings.quantity(
                        "storage.size",
                        storage.size,
                        "Size of each pod's volume. Cannot change in place.",
                        origin=(*at, "size"),
                    )
                }
            },
        },
    }


def _by_sets(topology: Resolved) -> bool:
    groups = topology.spec.shape.groups
    return not topology.context.profile.leader_worker_set if groups is None else groups == "statefulSet"


def _copies(topology: Resolved) -> int:
    """How many groups of StatefulSets; they cannot be scaled, since each is an object of its own."""
    spec, problems = topology.spec, topology.problems
    hint = "use LeaderWorkerSet: `shape.groups: leaderWorkerSet`"
    if spec.autoscale is not None:
        message = "nothing can scale copies that are StatefulSets of their own"
        problems.error("KG0353", message, ("spec", "autoscale"), hint)
        return 1
    if spec.shape.replicas == 0:
        message = "no copies that are StatefulSets of their own are no objects at all"
        problems.error("KG0353", message, ("spec", "shape", "replicas"), hint)
        return 1
    return spec.shape.replicas


def _check_rollout(topology: Resolved, kind: str) -> None:
    """Tell of a rollout that the kind of the workload cannot do."""
    given, problems = topology.spec.rollout, topology.problems
    at: SpecPath = ("spec", "rollout")
    if kind == "StatefulSet":
        on = "on pods that own a volume" if topology.parallel.nodes == 1 else "on groups of StatefulSets"
        hint = "they are replaced one by one; leave it out"
        for field, name in (("max_surge", "maxSurge"), ("max_unavailable", "maxUnavailable")):
            if field in given.model_fields_set:
                without_effect(problems, name, (*at, name), on, hint)
    elif given.max_surge in (0, "0%") and given.max_unavailable in (0, "0%"):
        problems.error(
            "KG0351",
            "no pod may be added and none may go, so that no change could reach them",
            (*at, "maxUnavailable"),
            "allow one of the two",
        )
