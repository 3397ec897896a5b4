"""How many replicas of a Topology run: the scaler and the disruption budget."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.scaling import autoscaler, disruption_budget
from kaigen.compile.topology.resolution import TopologyResolution


def scaling_objects(resolution: TopologyResolution, workload: Object) -> list[Object]:
    """Return the objects that keep enough replicas of a workload running."""
    frame, objects = resolution.frame, []
    if resolution.max_replicas > 1:
        budget = disruption_budget(frame, resolution.spec.disruption, resolution.parallelism.nodes)
        objects.append(budget)
    if resolution.autoscaling is not None:
        objects.append(autoscaler(frame, resolution.autoscaling, workload, resolution.startup))
    return objects
