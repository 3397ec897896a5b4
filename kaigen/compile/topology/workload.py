"""The workload of a Topology: which objects run its pods, and how a change reaches them."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import POD_SECURITY
from kaigen.compile.builders.queueing import near_annotations, queue_labels
from kaigen.compile.builders.workloads import (
    SERVE,
    WorkloadSettings,
    deployment,
    leader_worker_set,
    stateful_set,
    stateful_set_groups,
)
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.pod_template import pod_template
from kaigen.compile.topology.hub import CACHE_VOLUME
from kaigen.compile.topology.nodes import on_node_pool
from kaigen.compile.topology.pod import members, pod_spec
from kaigen.compile.topology.resolution import TopologyResolution, Workload
from kaigen.kinds.serving import Storage


def workload_objects(resolution: TopologyResolution) -> list[Object]:
    """Return the objects that run the pods, the one that serves first."""
    common = _common_settings(resolution)
    nodes = resolution.parallelism.nodes
    if not resolution.engine.builds_pods:
        return [_template_deployment(resolution, common)]
    if resolution.workload is Workload.STATEFUL_SET_GROUPS:
        groups = [
            [pod_spec(resolution, member) for member in members(resolution, replica)]
            for replica in range(_group_count(resolution))
        ]
        leaders, workers = [pods[0] for pods in groups], [pods[1] for pods in groups]
        return stateful_set_groups(common, nodes, leaders, workers)
    pods = [pod_spec(resolution, member) for member in members(resolution)]
    if resolution.workload is Workload.LEADER_WORKER_SET:
        leader, worker = pods
        return [leader_worker_set(common, nodes, leader, worker)]
    make = stateful_set if resolution.workload is Workload.STATEFUL_SET else deployment
    return [make(common, pods[0])]


def _group_count(resolution: TopologyResolution) -> int:
    """Return the number of groups of StatefulSets; one where the checks reject the number."""
    spec = resolution.spec
    return 1 if spec.autoscale is not None else max(1, spec.shape.replicas)


def _template_deployment(resolution: TopologyResolution, common: WorkloadSettings) -> Object:
    """Return a Deployment of the user's pod template, with the app's labels added."""
    template = resolution.spec.template
    assert template is not None
    if resolution.node_pool is not None and isinstance(template.get("spec"), dict):
        template = on_node_pool(template, resolution.node_pool)
    base = deployment(common, {})
    whole = pod_template(template, common.frame, SERVE, common.annotations, defaults={}, doc="Spec of the pods.")
    body = dict(base.body)
    body["spec"] = {**body["spec"], "template": whole}  # type: ignore[dict-item]
    return Object(role=base.role, body=body, wave=base.wave)


def _common_settings(resolution: TopologyResolution) -> WorkloadSettings:
    spec = resolution.spec
    level = spec.security.pod_security
    near = near_annotations(
        spec.placement, resolution.context.profile, one_group=resolution.workload is Workload.LEADER_WORKER_SET
    )
    annotations = {**({POD_SECURITY: level} if level != "restricted" else {}), **resolution.mounted.annotations, **near}
    return WorkloadSettings(
        frame=resolution.frame,
        labels=queue_labels(spec.placement),
        annotations=annotations,
        replicas=spec.autoscale.min if spec.autoscale else spec.shape.replicas,
        scaled=spec.autoscale is not None,
        rollout=spec.rollout,
        surge=resolution.can_surge,
        startup=resolution.startup,
        claims=() if spec.storage is None else (_claim_template(spec.storage, resolution.context),),
        retain=bool(spec.storage and spec.storage.retain),
    )


def _claim_template(storage: Storage, context: Context) -> Tree:
    """Return the template of the volume that each pod owns."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CACHE_VOLUME},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": settings.storage_class(
                "storage.storageClassName",
                storage.storage_class_name,
                context,
                "each pod's volume",
                origin=("spec", "storage"),
            ),
            "resources": {
                "requests": {
                    "storage": settings.quantity(
                        "storage.size",
                        storage.size,
                        "Size of each pod's volume. Cannot be changed in place.",
                        origin=("spec", "storage", "size"),
                    )
                }
            },
        },
    }
