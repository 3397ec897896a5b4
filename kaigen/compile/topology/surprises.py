"""Warnings about a resolved Topology: decisions that work, but not as a reader of the spec may expect."""

from __future__ import annotations

from kaigen.compile.problems import Problems
from kaigen.compile.topology.resolution import TopologyResolution, Workload
from kaigen.compile.topology.sizing import model_path
from kaigen.core.json_types import FieldPath

ETHERNET = ", and its pipeline stages talk over Ethernet"
_SPEC: FieldPath = ("spec",)


def warn_of_surprises(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn of metrics that nothing collects or nobody reaches, and of nodes that the spec does not ask for."""
    _warn_of_metrics(resolution, problems)
    _warn_of_blocked_metrics(resolution, problems)
    _warn_of_nodes(resolution, problems)


def _warn_of_metrics(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn where the scaler follows a metric of the engine, and the app makes nobody collect it."""
    autoscaling, spec = resolution.autoscaling, resolution.spec
    if autoscaling is None or not autoscaling.metric_name or spec.monitoring is not None:
        return
    if autoscaling.spec.pod_metric is None:
        problems.warning(
            "KG0357",
            f"the scaler follows `{autoscaling.metric_name}` of the pods, and no object of the app makes Prometheus "
            "collect it",
            (*_SPEC, "autoscale"),
            "set `monitoring: {}` for a PodMonitor, or configure Prometheus to collect it",
        )


def _warn_of_blocked_metrics(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn where the NetworkPolicy admits only pods of the app's namespace: Prometheus is rarely there."""
    spec = resolution.spec
    peers = spec.service.allow_from
    if spec.monitoring is None or not peers:
        return
    if not any("namespaceSelector" in peer or "ipBlock" in peer for peer in peers):
        problems.warning(
            "KG0363",
            "`allowFrom` admits only pods of this namespace, so a Prometheus in another one cannot read the metrics",
            (*_SPEC, "service", "allowFrom"),
            "add `namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}` with the namespace of "
            "Prometheus",
        )


def _warn_of_nodes(resolution: TopologyResolution, problems: Problems) -> None:
    """Warn of nodes, and of pipeline stages over Ethernet, that the plan chose and the spec does not mention."""
    shape, parallelism = resolution.spec.shape, resolution.parallelism
    slow = uses_ethernet(resolution)
    chosen = shape.nodes is None or (slow and shape.pipeline_parallel is None)
    if resolution.sizing.plan is None or parallelism.nodes == 1 or not chosen:
        return
    accept = f"`shape.nodes: {parallelism.nodes}`"
    if slow:
        accept += f" and `shape.pipelineParallel: {parallelism.pipeline}`"
    problems.warning(
        "KG0358",
        f"a replica uses {parallelism.summary}{ETHERNET if slow else ''}",
        model_path(resolution.spec),
        f"use larger nodes or more GPUs of a node; a Topology accepts it with {accept}",
    )


def uses_ethernet(resolution: TopologyResolution) -> bool:
    """Whether pipeline stages are on nodes without a fast network that the catalogue knows."""
    plan = resolution.sizing.plan
    return plan is not None and plan.layout.nodes > 1 and plan.layout.pp > 1 and not plan.hardware.network


def stops_the_only_replica(resolution: TopologyResolution) -> bool:
    """Whether a change stops the only replica before the next one starts."""
    spec, rollout = resolution.spec, resolution.spec.rollout
    if not resolution.engine.builds_pods or (spec.autoscale.min if spec.autoscale else spec.shape.replicas) != 1:
        return False
    if resolution.workload in {Workload.STATEFUL_SET, Workload.STATEFUL_SET_GROUPS}:
        return True
    if rollout.max_surge is not None:
        return rollout.max_surge in (0, "0%")
    return not resolution.can_surge or rollout.max_unavailable not in (None, 0, "0%")
