"""The resolution of a Topology: every decision that its spec leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.engines import startup_seconds
from kaigen.compile.builders.autoscaling import Autoscaling, Counter, resolve_autoscaling
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.image_build import ImageBuild, image_build
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.mounts import Mounted, together
from kaigen.compile.builders.nodes import NodePoolRequest
from kaigen.compile.builders.pods import BUILT, NO_RESOURCES, ResolvedResources, pod_security
from kaigen.compile.builders.pools import Canary, find_canary
from kaigen.compile.context import Context
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.launch import Parallelism, Weights
from kaigen.compile.engines.registry import engine_of
from kaigen.compile.expressions import Release, Tree
from kaigen.compile.finish import frame_of
from kaigen.compile.model.named import NamedSource, mount_named
from kaigen.compile.problems import Problems
from kaigen.compile.topology.hub import Consumer
from kaigen.compile.topology.nodes import karpenter_of, resolve_node_pool, scheduling_fields, template_node_pool
from kaigen.compile.topology.resources import pod_gpus, pod_resources
from kaigen.compile.topology.sizing import Sizing, size
from kaigen.compile.topology.weights import adapter_mounts, topology_weights
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.base import Metadata
from kaigen.kinds.blocks import Image
from kaigen.kinds.compat import ServingNaming
from kaigen.kinds.model import Model
from kaigen.kinds.topology import Topology, TopologySpec
from kaigen.kinds.versions import CANARY, canary_name

FURTHER = NamedSource("models", "model", Model, gate="wait-for-model-")
"""The spec's field with further Models, in addition to the one that is served."""


class Workload(Enum):
    """Which objects run the pods."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    STATEFUL_SET_GROUPS = "two StatefulSets for each replica"


class TopologyResolution(Struct, frozen=True):
    """A Topology with every decision that its spec leaves open.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        context: what it is compiled for.
        naming: names in its objects.
        frame: names and labels of its objects.
        namespace: namespace of the app.
        engine: the engine that serves.
        image: image of the engine.
        image_path: the spec's field of the image; empty when kaigen chose it.
        build: the image that the app builds; None for an existing one.
        sizing: preset, instance type and plan.
        parallelism: how one replica uses GPUs and nodes.
        gpus: GPUs of one pod.
        resources: resources of one pod; of the root in a ring.
        worker_resources: resources of a worker in a ring; None for those of every pod.
        weights: weights of the model.
        adapters: how each LoRA adapter reaches the engine's container.
        models: how each further Model reaches the engine's container, by the spec's field.
        max_replicas: greatest number of replicas.
        startup: longest time until a pod is ready, in seconds.
        port: port that the pods listen on.
        workload: which objects run the pods.
        scheduling: fields of the pods that decide where they run.
        security: security context of the pods.
        node_pool: nodes that Karpenter makes; None where the pods run on existing nodes.
        autoscaling: how replicas follow the load; None where their number is fixed.
        canary: its next version, which gets a share of the requests; None for none.
    """

    metadata: Metadata
    spec: TopologySpec
    context: Context
    naming: ServingNaming
    frame: Frame
    namespace: str
    engine: Engine
    image: Image
    image_path: FieldPath
    build: ImageBuild | None
    sizing: Sizing
    parallelism: Parallelism
    gpus: int
    resources: ResolvedResources
    worker_resources: ResolvedResources | None
    weights: Weights
    adapters: tuple[Mounted, ...]
    models: Mapping[FieldPath, Mounted]
    max_replicas: int
    startup: int
    port: int
    workload: Workload
    scheduling: Mapping[str, Tree]
    security: Mapping[str, Tree]
    node_pool: NodePoolRequest | None
    autoscaling: Autoscaling | None
    canary: Canary | None = None

    @property
    def mounted(self) -> Mounted:
        """How the weights, the adapters and further Models reach the engine's container."""
        return together((self.weights.mounted, *self.adapters, *self.models.values()))

    @property
    def has_picker(self) -> bool:
        """Whether its router asks an endpoint picker."""
        return has_picker(self.spec, self.engine)

    @property
    def can_surge(self) -> bool:
        """Whether a new replica may start before an old one stops.

        Else it would wait for the old one: for its volume on one node, the only free GPUs or other accelerators, or the
        memory of a ring.
        """
        scarce = (self.resources.has_gpu or self.resources.devices > 0) and self.node_pool is None
        return not (self.mounted.pinned or self.engine.is_ring or scarce)


def has_picker(spec: TopologySpec, engine: Engine) -> bool:
    """Whether the router of a spec asks an endpoint picker."""
    return engine.has_picker and spec.router is not None and spec.router.policy != "session"


def resolve_topology(
    topology: Topology, context: Context, problems: Problems, naming: ServingNaming
) -> TopologyResolution:
    """Decide what a Topology leaves open.

    Args:
        topology: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: collects what cannot be decided.
        naming: names in its objects.
    """
    spec, metadata = topology.spec, topology.metadata
    engine = engine_of(spec)
    namespace = metadata.namespace or context.config.namespace
    frame = frame_of(
        metadata,
        context,
        spec,
        pod_labels={name: value or Release() for name, value in naming.pod_labels.items()},
        headless_suffix=naming.headless_suffix,
    )
    sizing = size(spec, engine, namespace, context, problems)
    build = image_build(spec.build if engine.builds_pods else None, frame, context)
    image: Image
    image_path: FieldPath
    image, image_path = (
        (build.reference, BUILT) if build is not None else _image(spec, engine, sizing, context, problems)
    )
    gpus = pod_gpus(spec, engine, sizing)
    parallelism = (
        Parallelism(nodes=sizing.ring.nodes, gpus=gpus)
        if sizing.ring is not None
        else engine.parallelism(spec, image, sizing.plan, gpus, problems)
    )
    resources = problems.attempt(lambda: pod_resources(spec, engine, sizing, parallelism, context), NO_RESOURCES)
    max_replicas = spec.autoscale.max if spec.autoscale else spec.shape.replicas
    # Only the root of a ring reads weights.
    nodes = 1 if engine.is_ring else parallelism.nodes
    consumer = Consumer(
        kind="Topology",
        context=context,
        frame=frame,
        namespace=namespace,
        engine=engine,
        pods=nodes * max_replicas,
        noun="replicas" if nodes == 1 else "nodes" if max_replicas <= 1 else "pods",
        spread=nodes > 1,
        has_gpu=resources.has_gpu,
        transfer=spec.transfer,
        folders=naming.folders,
    )
    weights = problems.attempt(lambda: topology_weights(spec, sizing.model, consumer, problems), Weights())
    if sizing.ring is not None and sizing.ring.file:
        weights = replace(weights, size=sizing.ring.file)
    karpenter = karpenter_of(spec.provisioning)
    startup = spec.probes.startup
    nothing: dict[str, Tree] = {}
    return TopologyResolution(
        metadata=metadata,
        spec=spec,
        context=context,
        naming=naming,
        frame=frame,
        namespace=namespace,
        engine=engine,
        image=image,
        image_path=image_path,
        build=build,
        sizing=sizing,
        parallelism=parallelism,
        gpus=gpus,
        resources=resources,
        worker_resources=_worker_resources(spec, engine, sizing, parallelism, context),
        weights=weights,
        adapters=tuple(adapter_mounts(spec.adapters, consumer, problems)),
        models=mount_named(FURTHER, spec.models, consumer, problems) if engine.understands("models") else {},
        max_replicas=max_replicas,
        startup=seconds(startup) if startup else startup_seconds(weights.size, weights.source),
        port=engine.port(spec, problems),
        workload=_workload(spec, engine, parallelism, context),
        scheduling=problems.attempt(
            lambda: scheduling_fields(topology, frame, context, resources, parallelism, spread=engine.is_ring), nothing
        )
        if engine.builds_pods
        else nothing,
        security=problems.attempt(lambda: pod_security(spec.security), nothing) if engine.builds_pods else nothing,
        node_pool=problems.attempt(
            lambda: (
                resolve_node_pool(topology, karpenter, context, resources, parallelism)
                if engine.builds_pods
                else template_node_pool(topology, karpenter, context)
            ),
            None,
        )
        if karpenter
        else None,
        autoscaling=problems.attempt(lambda: _autoscaling(spec, engine), None),
        canary=problems.attempt(lambda: _canary(topology, namespace, context), None),
    )


def _image(
    spec: TopologySpec, engine: Engine, sizing: Sizing, context: Context, problems: Problems
) -> tuple[Image, FieldPath]:
    """Return the engine's image and its field of the spec; an empty path when kaigen chose the image."""
    if spec.image is not None:
        return spec.image, ("spec", "image")
    name = engine.facts.image_for(sizing.vendor)
    if name in context.config.images:
        return context.config.images[name], ()
    if engine.requires_image:
        hint = f"set `image`, or `images.{name}` in kaigen.yaml" if name else "set `image`"
        problems.error("KG0341", f"{engine.label} requires `image`", ("spec", "engine"), hint)
    return "unknown", ()


def _canary(topology: Topology, namespace: str, context: Context) -> Canary | None:
    canary = topology.spec.canary
    # Without a pool, the document was not lowered, and there is no other spec.
    if canary is None or canary.pool is None:
        return None
    return find_canary(context, namespace, canary_name(topology), canary.weight, CANARY)


def _worker_resources(
    spec: TopologySpec, engine: Engine, sizing: Sizing, parallelism: Parallelism, context: Context
) -> ResolvedResources | None:
    """Return the resources of a worker in a ring; None for other engines, and for those that cannot be resolved."""
    if sizing.ring is None:
        return None
    try:
        return pod_resources(spec, engine, sizing, parallelism, context, worker=True)
    except ProblemError:
        # The resources of the root have the same problem.
        return None


def _workload(spec: TopologySpec, engine: Engine, parallelism: Parallelism, context: Context) -> Workload:
    if parallelism.nodes == 1:
        owns_volume = spec.storage is not None and engine.builds_pods
        return Workload.STATEFUL_SET if owns_volume else Workload.DEPLOYMENT
    groups = spec.shape.groups
    by_sets = not context.profile.leader_worker_set if groups is None else groups == "statefulSet"
    return Workload.STATEFUL_SET_GROUPS if by_sets else Workload.LEADER_WORKER_SET


def _autoscaling(spec: TopologySpec, engine: Engine) -> Autoscaling | None:
    if spec.autoscale is None:
        return None
    held: Counter = ""
    if spec.router is not None:
        held = "picker" if has_picker(spec, engine) else "envoy"
    return resolve_autoscaling(spec.autoscale, engine.facts.metrics or {}, engine.label, held=held)
