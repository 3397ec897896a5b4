"""The compiler of the kind `Topology`: a service that serves a model on one node or several."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.access import account_objects
from kaigen.compile.builders.devices import claim_template
from kaigen.compile.builders.job_gate import gate_access
from kaigen.compile.builders.jobs import readiness_test
from kaigen.compile.builders.monitoring import pod_monitor
from kaigen.compile.builders.nodes import node_pool
from kaigen.compile.builders.workloads import SERVE
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.topology.checks import check_topology
from kaigen.compile.topology.networking import headless_services, route_objects_of, service_objects
from kaigen.compile.topology.pod import awaited_runs, params_of
from kaigen.compile.topology.resolution import TopologyResolution, resolve_topology
from kaigen.compile.topology.scaling import scaling_objects
from kaigen.compile.topology.summary import notes, summary
from kaigen.compile.topology.workload import workload_objects
from kaigen.kinds.compat import ServingNaming


def topology_objects(resolution: TopologyResolution) -> list[Object]:
    """Return the objects of a Topology, in the order of values.yaml."""
    spec, frame, resources = resolution.spec, resolution.frame, resolution.resources
    objects = params_of(resolution).config_maps(frame, SERVE)
    if resolution.node_pool is not None:
        objects.append(node_pool(frame, resolution.node_pool))
    if resources.device_class:
        objects.append(claim_template(frame, resources.device_class, resources.device_count, SERVE))
    objects += resolution.mounted.objects
    objects += account_objects(spec, frame, SERVE)
    objects += gate_access(spec, frame, awaited_runs(resolution))
    if resolution.build is not None:
        objects.append(resolution.build.job)
    objects += service_objects(resolution)
    objects += headless_services(resolution)
    workload = workload_objects(resolution)
    objects += workload
    objects += scaling_objects(resolution, workload[0])
    if spec.monitoring is not None:
        path = resolution.engine.facts.metrics_path
        objects.append(pod_monitor(frame, SERVE, spec.monitoring, path))
    objects += route_objects_of(resolution)
    minutes = -(-resolution.startup // 60) + 10
    objects += readiness_test(frame, workload[0], resolution.context, minutes=minutes)
    return objects


def describe_topology(resolution: TopologyResolution) -> Description:
    """Return summary, version, notes, and the objects that the app refers to."""
    build = resolution.build
    return Description(
        summary=summary(resolution),
        pod_security=resolution.spec.security.pod_security,
        app_version=resolution.weights.revision,
        notes=(*([build.note] if build is not None else []), *notes(resolution)),
        external_objects=_external_objects(resolution),
        built=(build.reference,) if build is not None else (),
    )


def _external_objects(resolution: TopologyResolution) -> tuple[tuple[str, str], ...]:
    """Return kind and name of the objects that the app refers to but does not make."""
    spec = resolution.spec
    objects: list[tuple[str, str]] = []
    if spec.inference_pool is not None:
        objects.append(("Service", spec.inference_pool.endpoint_picker))
    autoscale = spec.autoscale
    if autoscale and autoscale.prometheus and autoscale.prometheus.trigger_authentication:
        objects.append(("TriggerAuthentication", autoscale.prometheus.trigger_authentication))
    return tuple(objects)


compile_topology = KindCompiler(
    resolve=resolve_topology,
    check=check_topology,
    objects=topology_objects,
    describe=describe_topology,
    default_naming=ServingNaming(),
    settings_order=(
        "image",
        "imagePullPolicy",
        "imagePullSecrets",
        "build",
        "command",
        "args",
        "engineArgs",
        "contextLength",
        "concurrency",
        "quantization",
        "env",
        "params",
        "replicas",
        "resources",
        "model",
        "download",
        "serviceAccount",
        "service",
        "route",
        "inferencePool",
        "autoscaling",
        "rollout",
        "disruption",
        "startup",
        "progressDeadlineSeconds",
        "podSpec",
    ),
)
