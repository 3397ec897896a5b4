"""How many copies of a Topology there are at a time: the scaler, and how many may be away at once."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.scaling import Target, disruption_budget, scaler
from kaigen.compile.topology.fields import without_effect
from kaigen.compile.topology.resolution import Resolved


def scaling(topology: Resolved, workload: Object) -> list[Object]:
    """What keeps enough copies of a workload, and no more."""
    spec, frame, problems = topology.spec, topology.frame, topology.problems
    made = []
    if topology.most > 1:
        made.append(disruption_budget(frame, spec.disruption, topology.parallel.nodes))
    elif spec.disruption is not None:
        on = "on one replica, whose node could not be drained"
        hint = "leave it out, or ask for more replicas"
        without_effect(problems, "disruption", ("spec", "disruption"), on, hint)
    autoscale = spec.autoscale
    if autoscale is not None:
        if "replicas" in spec.shape.model_fields_set:
            at = ("spec", "shape", "replicas")
            hint = "say `autoscale.min` instead"
            without_effect(problems, "replicas", at, "where a scaler decides", hint)
        target = Target(str(workload.body["apiVersion"]), workload.kind, topology.engine)
        found = problems.attempt(lambda: scaler(frame, autoscale, target), None)
        made += [found] if found else []
    return made
