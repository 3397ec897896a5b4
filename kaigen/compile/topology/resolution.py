"""What a Topology comes to before anything is made of it: all that its spec leaves open is decided here."""

from __future__ import annotations

from dataclasses import dataclass

from kaigen.catalog.engines import Engine, get_engine, startup_seconds
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.pods import Granted
from kaigen.compile.context import Context
from kaigen.compile.finish import frame_of
from kaigen.compile.problems import Problems
from kaigen.compile.topology.engine import check_arguments
from kaigen.compile.topology.fields import check_fields
from kaigen.compile.topology.parallel import Parallel, copy_spread
from kaigen.compile.topology.resources import granted_resources, pod_gpus
from kaigen.compile.topology.sizing import Sized, size
from kaigen.compile.topology.source import check_transfer, served_weights
from kaigen.compile.topology.template import template_port
from kaigen.compile.topology.weights import Consumer, Weights, adapter_weights
from kaigen.kinds.base import Metadata
from kaigen.kinds.blocks import Image
from kaigen.kinds.serving import Karpenter, Provisioning
from kaigen.kinds.topology import Topology, TopologySpec


@dataclass(frozen=True, slots=True)
class Resolved:
    """A Topology with all that it leaves open.

    Attributes:
        metadata: of the spec.
        spec: the spec.
        context: what it is compiled for.
        problems: takes what is wrong with it.
        frame: of its objects.
        namespace: of the app.
        mode: name of the engine, or `template`.
        engine: what serves.
        image: of the engine.
        image_at: where the image stands in the spec; empty for kaigen's own.
        sized: what the catalogues say of it.
        parallel: how one copy spreads.
        gpus: devices of one pod.
        granted: what the resources of a pod come to.
        weights: of the model.
        adapters: LoRA adapters.
        most: most copies that there may be.
        startup: longest time until a pod is ready, in seconds.
        port: the port that the engine listens on; of a template, the one that it says.
    """

    metadata: Metadata
    spec: TopologySpec
    context: Context
    problems: Problems
    frame: Frame
    namespace: str
    mode: str
    engine: Engine
    image: Image
    image_at: tuple[str, ...]
    sized: Sized
    parallel: Parallel
    gpus: int
    granted: Granted
    weights: Weights
    adapters: tuple[Weights, ...]
    most: int
    startup: int
    port: int

    @property
    def karpenter(self) -> Karpenter | None:
        """How Karpenter makes nodes for it; None where it runs on those that there are."""
        given = self.spec.provisioning
        if isinstance(given, Provisioning):
            return given.karpenter
        return Karpenter() if given == "karpenter" else None


def resolve(topology: Topology, context: Context, problems: Problems) -> Resolved:
    """Decide what a Topology leaves open.

    Args:
        topology: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: takes what is wrong with it.
    """
    spec, metadata = topology.spec, topology.metadata
    mode = "template" if spec.template is not None else spec.engine
    check_fields(spec, mode, problems)
    if mode in {"vllm", "transformers"}:
        check_arguments(spec, problems)
    engine = get_engine("container" if mode == "template" else spec.engine)
    sized = size(spec, mode, problems, own_image=spec.image is None)
    image, image_at = _image(spec, mode, engine, context, problems)
    gpus = pod_gpus(spec, mode, sized)
    parallel = copy_spread(spec, mode, engine, image, sized.plan, gpus, problems)
    nothing = Granted({}, {}, [], "", "", 0, False, "", "")
    granted = problems.attempt(lambda: granted_resources(spec, mode, sized, gpus, context), nothing)
    namespace = metadata.namespace or context.namespace
    most = spec.autoscale.max if spec.autoscale else spec.shape.replicas
    consumer = Consumer(
        context=context,
        problems=problems,
        namespace=namespace,
        engine=mode,
        nodes=parallel.nodes,
        replicas=most,
        has_gpu=granted.has_gpu,
        transfer=spec.transfer,
    )
    weights = problems.attempt(lambda: served_weights(spec, mode, sized.preset, consumer), Weights())
    adapters = tuple(adapter_weights(spec.adapters, consumer))
    check_transfer(spec, mode, (weights, *adapters), problems)
    given = spec.probes.startup
    return Resolved(
        metadata=metadata,
        spec=spec,
        context=context,
        problems=problems,
        frame=frame_of(metadata),
        namespace=namespace,
        mode=mode,
        engine=engine,
        image=image,
        image_at=image_at,
        sized=sized,
        parallel=parallel,
        gpus=gpus,
        granted=granted,
        weights=weights,
        adapters=adapters,
        most=most,
        startup=seconds(given) if given else startup_seconds(weights.size, weights.source),
        port=template_port(spec, problems) if mode == "template" else spec.port,
    )


def _image(
    spec: TopologySpec, mode: str, engine: Engine, context: Context, problems: Problems
) -> tuple[Image, tuple[str, ...]]:
    """The engine's image, and where it stands in the spec; nowhere for kaigen's own."""
    if spec.image is not None:
        return spec.image, ("spec", "image")
    if engine.image:
        return context.images[engine.image], ()
    if mode == "container":
        hint = "name it in `image`"
        problems.error("KG0341", "a container needs an `image`", ("spec", "engine"), hint)
    return "unknown", ()
