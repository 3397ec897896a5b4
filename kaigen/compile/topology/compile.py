"""The compiler of the kind `Topology`: a service that serves a model on one node or several."""

from __future__ import annotations

from kaigen.compile.app import Note, Object
from kaigen.compile.builders.access import account_objects
from kaigen.compile.builders.egress import Server, hub_server, trace_servers
from kaigen.compile.builders.job_gate import gate_access
from kaigen.compile.builders.jobs import readiness_test
from kaigen.compile.builders.nodes import node_pool
from kaigen.compile.builders.pools import waiting_job
from kaigen.compile.builders.resources import claim_template
from kaigen.compile.builders.workloads import SERVE
from kaigen.compile.connections import Connections
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.topology.checks import ETHERNET, check_topology, stops_the_only_replica, uses_ethernet
from kaigen.compile.topology.monitoring import monitoring_objects
from kaigen.compile.topology.networking import headless_services, route_objects_of, service_objects
from kaigen.compile.topology.pod import awaited_runs, params_of
from kaigen.compile.topology.resolution import TopologyResolution, resolve_topology
from kaigen.compile.topology.router import router_objects
from kaigen.compile.topology.scaling import scaling_objects
from kaigen.compile.topology.sizing import model_path, why_unknown
from kaigen.compile.topology.workload import workload_objects
from kaigen.kinds.compat import ServingNaming
from kaigen.kinds.exposure import EVERY_REQUEST
from kaigen.sizing.constants import GIB
from kaigen.sizing.format import context_limit
from kaigen.sizing.ring import ring_text


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
    objects += router_objects(resolution)
    workload = workload_objects(resolution)
    objects += workload
    objects += scaling_objects(resolution, workload[0])
    objects += monitoring_objects(resolution, objects)
    objects += waiting_job(frame, resolution.context, resolution.canary)
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
    if resolution.canary is not None and resolution.canary.weight == EVERY_REQUEST:
        # It selects the pods of the canary, which are those of another app.
        objects.append(("Service", resolution.metadata.name))
    if spec.inference_pool is not None:
        objects.append(("Service", spec.inference_pool.endpoint_picker))
    autoscale = spec.autoscale
    if autoscale and autoscale.prometheus and autoscale.prometheus.trigger_authentication:
        objects.append(("TriggerAuthentication", autoscale.prometheus.trigger_authentication))
    return tuple(objects)


def connections_of(resolution: TopologyResolution) -> Connections:
    """Return the collector of traces, and the Hub where the engine downloads the weights itself."""
    monitoring, pulled = resolution.spec.monitoring, resolution.weights.pulled
    hub = [Server(hub_server(pulled.endpoint, resolution.context), ("spec", "model"))] if pulled is not None else []
    traces = trace_servers(monitoring.traces if monitoring is not None else None)
    return Connections(servers=(*traces, *hub))


compile_topology = KindCompiler(
    resolve=resolve_topology,
    check=check_topology,
    objects=topology_objects,
    describe=describe_topology,
    connections=connections_of,
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
        "models",
        "download",
        "serviceAccount",
        "service",
        "route",
        "canary",
        "inferencePool",
        "router",
        "autoscaling",
        "rollout",
        "disruption",
        "startup",
        "progressDeadlineSeconds",
        "podSpec",
    ),
)


def summary(resolution: TopologyResolution) -> str:
    """Return what the app does, in one sentence."""
    if not resolution.engine.builds_pods:
        return "Serves the containers of its pod template behind a Service."
    text = f"Serves a model with {resolution.engine.facts.title} behind a Service."
    if resolution.parallelism.nodes == 1:
        return text
    if resolution.sizing.ring is not None:
        return f"{text} Each replica is a ring of {resolution.parallelism.nodes} nodes."
    slow = ETHERNET if uses_ethernet(resolution) else ""
    return f"{text} Each replica uses {resolution.parallelism.summary}{slow}."


def notes(resolution: TopologyResolution) -> tuple[Note, ...]:
    """Return what kaigen decided where the spec leaves it open, each with the field that overrides it."""
    if not resolution.engine.builds_pods:
        return ()
    items, sizing = [], resolution.sizing
    if resolution.engine.facts.planned and resolution.gpus:
        items.append(Note(f"Each replica uses {resolution.parallelism.summary}.", ("spec", "shape")))
    if sizing.plan is not None:
        model = model_path(resolution.spec)
        items.append(Note(f"It fits: {sizing.summary}.", model))
        context = f"{sizing.plan.load.context} tokens{context_limit(sizing.plan)}"
        items.append(Note(f"The longest context of a request is {context}.", ("spec", "contextLength")))
        items += [Note(f"{_sentence(text)}.", model) for text in sizing.plan.notes]
    elif resolution.engine.facts.planned and sizing.model is None:
        why = why_unknown(resolution.spec, resolution.namespace, resolution.context.specs)
        items.append(Note(f"It is not known whether the model fits: {why}.", model_path(resolution.spec)))
    items += _ring_notes(resolution)
    size = resolution.weights.size
    exact = sizing.model is not None or sizing.ring is not None
    most = "" if exact else "at most "
    known = f"{most}{size / GIB:.1f} GiB of weights" if size else "weights of unknown size"
    why = "as set in the spec" if resolution.spec.probes.startup else f"for {known}"
    minutes = resolution.startup // 60
    items.append(Note(f"A pod may take {minutes} minutes to become ready, {why}.", ("spec", "probes")))
    if stops_the_only_replica(resolution):
        text = "A change stops the only replica before it starts the next, so the service is down until that is ready."
        items.append(Note(text, ("spec", "rollout")))
    return tuple(items)


def _ring_notes(resolution: TopologyResolution) -> list[Note]:
    """Return what a ring needs of its nodes."""
    ring = resolution.sizing.ring
    if ring is None:
        return []
    items = [
        Note(f"The longest context of a request is {ring.context} tokens.", ("spec", "contextLength")),
        Note(
            "The image must be built for the processors of the nodes: distributed-llama is compiled for those of the "
            "machine that builds it, and is fast only with AVX2, AVX-512 or NEON.",
            ("spec", "placement", "nodeSelector"),
        ),
    ]
    if ring.shape is not None:
        items.insert(0, Note(f"It fits: {ring_text(ring)}.", ("spec", "shape", "nodes")))
    return items


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
