"""Problems of the router of a Topology."""

from __future__ import annotations

from kaigen.compile.problems import Problems
from kaigen.compile.topology.resolution import TopologyResolution
from kaigen.compile.topology.router import held_seconds
from kaigen.compile.topology.scaling import POLLING, scrape_seconds
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import set_fields
from kaigen.kinds.exposure import Router


def check_router(resolution: TopologyResolution, problems: Problems) -> None:
    """Report a router with another one in front of it, and one that has nothing to choose from or runs once."""
    spec, router = resolution.spec, resolution.spec.router
    if router is None:
        return
    path: FieldPath = ("spec", "router")
    if spec.inference_pool is not None:
        has = "has an InferencePool and a picker" if resolution.has_picker else "chooses the replica"
        message = f"`router` and `inferencePool` exclude each other: the router {has}"
        problems.error("KG0443", message, ("spec", "inferencePool"), "leave one of them out")
    if resolution.max_replicas <= 1 and not held_seconds(resolution, router):
        message = "the router has one replica to choose from, and holds no requests"
        problems.warning("KG0444", message, path, "set more replicas, `hold`, or leave `router` out")
    if router.replicas == 1:
        message = "no request is answered while the only pod of the router is replaced or its node is drained"
        problems.warning("KG0444", message, (*path, "replicas"), "set `replicas: 2`")
    _check_session(router, problems)
    _check_hours(resolution, router, problems)
    _check_hold(resolution, router, problems)
    if not resolution.has_picker:
        _check_plain(resolution, router, problems)


def _check_hold(resolution: TopologyResolution, router: Router, problems: Problems) -> None:
    """Report requests that are given up before the replica that they start can be ready."""
    autoscale = resolution.spec.autoscale
    if router.hold is None or autoscale is None or autoscale.min > 0 or not held_seconds(resolution, router):
        return
    needed = resolution.startup + POLLING + scrape_seconds(resolution)
    if held_seconds(resolution, router) < needed:
        message = (
            f"requests are held for {router.hold}, but until KEDA has started a pod and it is ready, "
            f"up to {needed} s pass"
        )
        problems.warning("KG0335", message, ("spec", "router", "hold"), "leave `hold` out, or set `probes.startup`")


def _check_hours(resolution: TopologyResolution, router: Router, problems: Problems) -> None:
    """Report requests that wait for a replica outside of the hours in which a schedule runs one."""
    autoscaling, held = resolution.autoscaling, held_seconds(resolution, router)
    if autoscaling is None or autoscaling.spec.min > 0 or autoscaling.by_load or autoscaling.held or not held:
        return
    message = f"outside of the hours of `schedule`, requests wait for {held} s for a replica that nothing starts"
    hint = "set `target`, so that KEDA counts the requests of the router, too"
    problems.warning("KG0336", message, ("spec", "autoscale", "schedule"), hint)


def _check_session(router: Router, problems: Problems) -> None:
    """Report fields that the policy does not use."""
    given, path = set_fields(router), ("spec", "router")
    if router.policy != "session" and "session_header" in given:
        message = "only `policy: session` reads `sessionHeader`"
        problems.error("KG0340", message, (*path, "sessionHeader"), "set `policy: session`, or leave it out")
    if router.policy == "session" and "failure_mode" in given:
        message = "`policy: session` has no picker that fails"
        problems.error("KG0340", message, (*path, "failureMode"), "leave it out")


def _check_plain(resolution: TopologyResolution, router: Router, problems: Problems) -> None:
    """Report what a router cannot do without an endpoint picker."""
    path: FieldPath = ("spec", "router")
    if router.policy == "prefix" and "policy" in set_fields(router):
        message = f"the endpoint picker does not know which prompts {resolution.engine.label} has in its cache"
        problems.error("KG0445", message, (*path, "policy"), "set `policy: load` or `session`, or leave it out")
