"""The kind `Topology`: what serves, behind a Service, on one node or many."""

from __future__ import annotations

from kaigen.compile.app import App, Object, collect_settings
from kaigen.compile.builders.devices import claim_template
from kaigen.compile.builders.jobs import readiness_test
from kaigen.compile.builders.monitoring import pod_monitor
from kaigen.compile.context import Context
from kaigen.compile.finish import finish
from kaigen.compile.problems import Problems
from kaigen.compile.topology.networking import entrance, pod_names, routes
from kaigen.compile.topology.nodes import node_pools
from kaigen.compile.topology.resolution import Resolved, resolve
from kaigen.compile.topology.scaling import scaling
from kaigen.compile.topology.summary import notes, summary
from kaigen.compile.topology.workload import workloads
from kaigen.compile.topology.workloads import SERVE
from kaigen.kinds.compat import ServingNaming
from kaigen.kinds.topology import Topology

_ORDER = (
    "image",
    "imagePullPolicy",
    "imagePullSecrets",
    "command",
    "args",
    "engineArgs",
    "contextLength",
    "concurrency",
    "quantization",
    "env",
    "replicas",
    "resources",
    "model",
    "download",
    "service",
    "route",
    "inferencePool",
    "autoscaling",
    "rollout",
    "disruption",
    "startup",
    "progressDeadlineSeconds",
    "podSpec",
)


def compile_topology(
    topology: Topology, context: Context, problems: Problems, naming: ServingNaming | None = None
) -> App:
    """The app of a Topology.

    Args:
        topology: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: takes what is wrong with it.
        naming: names of a foreign system.
    """
    resolved = resolve(topology, context, problems)
    objects = _objects(resolved)
    app = finish(
        "Topology",
        resolved.metadata,
        resolved.frame,
        context,
        objects,
        collect_settings(objects, _ORDER),
        problems,
        pod_security=resolved.spec.security.pod_security,
        summary=summary(resolved),
        app_version=resolved.weights.revision,
        notes=notes(resolved),
        elsewhere=_elsewhere(resolved),
    )
    if naming is None:
        return app
    from kaigen.compile.topology.naming import renamed

    return renamed(app, naming)


def _objects(topology: Resolved) -> list[Object]:
    """All that it comes to, in the order in which it is told."""
    spec, frame, granted = topology.spec, topology.frame, topology.granted
    objects = node_pools(topology)
    if granted.device_class:
        objects.append(claim_template(frame, granted.device_class, granted.device_count, SERVE))
    objects += entrance(topology)
    running = workloads(topology)
    objects += pod_names(topology, running)
    objects += running
    objects += scaling(topology, running[0])
    if spec.monitoring is not None:
        objects.append(pod_monitor(frame, SERVE, spec.monitoring, topology.engine.metrics_path))
    objects += routes(topology)
    minutes = -(-topology.startup // 60) + 10
    objects += readiness_test(frame, running[0], topology.context, minutes=minutes)
    return objects


def _elsewhere(topology: Resolved) -> tuple[tuple[str, str], ...]:
    """Objects that it refers to and others make: kind and name."""
    spec = topology.spec
    found: list[tuple[str, str]] = []
    if spec.inference_pool is not None:
        found.append(("Service", spec.inference_pool.endpoint_picker))
    autoscale = spec.autoscale
    if autoscale and autoscale.prometheus and autoscale.prometheus.trigger_authentication:
        found.append(("TriggerAuthentication", autoscale.prometheus.trigger_authentication))
    return tuple(found)
