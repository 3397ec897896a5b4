"""How one copy of a model spreads over GPUs and nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kaigen.catalog.engines import Engine, parse_version
from kaigen.compile.builders.pods import image_ref
from kaigen.compile.expressions import SpecPath
from kaigen.compile.problems import Problems
from kaigen.compile.topology.fields import without_effect
from kaigen.kinds.blocks import GpuShare, Image, Resources
from kaigen.kinds.serving import Shape
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.result import Plan

_AT: SpecPath = ("spec", "shape")


@dataclass(frozen=True, slots=True)
class Parallel:
    """The spread of one copy.

    Attributes:
        nodes: pods, one a node.
        gpus: of each pod; 0 for none.
        tensor: GPUs that share each layer.
        pipeline: stages.
        data: whole models in one engine.
        ray: processes on several nodes find each other by Ray.
    """

    nodes: int = 1
    gpus: int = 0
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    ray: bool = False

    @property
    def words(self) -> str:
        """What it is, for readers."""
        parts = [f"tensor parallel {self.tensor}"]
        parts += [f"pipeline parallel {self.pipeline}"] if self.pipeline > 1 else []
        parts += [f"data parallel {self.data}"] if self.data > 1 else []
        over = (
            f"{self.nodes} nodes with {_count(self.gpus, 'GPU')} each"
            if self.nodes > 1
            else _count(self.gpus, "GPU")
        )
        return f"{', '.join(parts)} over {over}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def gpus_of(resources: Resources, default: int) -> int:
    """Devices of one pod that a `resources` block asks for; `default` when it says nothing of GPUs."""
    gpus = resources.gpus
    if isinstance(gpus, GpuShare):
        return gpus.count
    if gpus is None:
        return 1 if resources.gpu_type is not None else default
    return gpus


def engine_version(given: str | None, image: Image) -> tuple[int, ...] | None:
    """Version of an engine: as the spec says, else as its image's tag does; None when neither tells."""
    import re

    if given is not None:
        return parse_version(given)
    ref = image_ref(image).partition("@")[0]
    tag = ref.rpartition(":")[2] if ":" in ref.rpartition("/")[2] else ""
    match = re.match(r"v?([0-9]+(?:\.[0-9]+){1,2})(?![0-9.])", tag)
    return parse_version(match[1]) if match else None


def copy_spread(
    spec: TopologySpec,
    mode: str,
    engine: Engine,
    image: Image,
    plan: Plan | None,
    gpus: int,
    problems: Problems,
) -> Parallel:
    """How one copy of a Topology spreads: as the plan says, else as the spec does.

    Args:
        spec: the spec.
        mode: name of the engine, or `template`.
        engine: what serves.
        image: of the engine.
        plan: how the model fits; None when that is not known.
        gpus: of each pod.
        problems: takes what does not fit.
    """
    shape = spec.shape
    if mode == "template":
        return Parallel()
    if mode != "vllm":
        if (shape.nodes or 1) > 1:
            choose_ray(Parallel(nodes=2), shape, engine, None, problems)
        return Parallel(gpus=gpus)
    if plan is not None:
        layout = plan.layout
        found = Parallel(layout.nodes, gpus, layout.tp, layout.pp, layout.dp)
    else:
        found = spread(shape, spec.resources, gpus, problems)
    version = engine_version(spec.engine_version, image)
    ray = choose_ray(found, shape, engine, version, problems)
    if found.nodes == 1 and shape.groups is not None:
        without_effect(problems, "groups", (*_AT, "groups"), "on one node", "leave it out")
    return replace(found, ray=ray)


def spread(shape: Shape, resources: Resources, gpus: int, problems: Problems) -> Parallel:
    """The parallelism that a spec asks for, or that follows from its nodes and GPUs.

    Tensor parallel inside of a node and pipeline parallel across nodes, unless the spec says otherwise: layers are
    shared over the fast links of one node, stages over the network.

    Args:
        shape: what the spec says.
        resources: of each pod.
        gpus: of each pod.
        problems: takes what does not fit.
    """
    nodes = shape.nodes or 1
    data = shape.data_parallel or 1
    total = nodes * gpus
    tensor, pipeline = shape.tensor_parallel, shape.pipeline_parallel
    if pipeline is None:
        across = tensor is not None and data * tensor == total
        pipeline = 1 if across else nodes
    if tensor is None:
        tensor = max(1, total // (pipeline * data))
    found = Parallel(nodes, gpus, tensor, pipeline, data)
    if gpus and tensor * pipeline * data != total:
        given = (
            "tensorParallel"
            if shape.tensor_parallel
            else "pipelineParallel"
            if shape.pipeline_parallel
            else None
        )
        given = given or ("dataParallel" if shape.data_parallel else "nodes")
        problems.error(
            "KG0344",
            f"tensor {tensor} × pipeline {pipeline} × data {data} is {tensor * pipeline * data} GPUs, but "
            f"{_count(nodes, 'node')} with {_count(gpus, 'GPU')} each {'have' if nodes > 1 else 'has'} {total}",
            (*_AT, given),
            "the three must make up all GPUs of a copy",
        )
    share = resources.gpus
    if isinstance(share, GpuShare) and share.profile is not None and tensor * pipeline > 1:
        problems.error(
            "KG0345",
            f"slices of MIG cannot work together, and {tensor * pipeline} would have to",
            ("spec", "resources", "gpus"),
            "take one slice that is large enough, or whole GPUs",
        )
    return found


def choose_ray(
    parallel: Parallel, shape: Shape, engine: Engine, version: tuple[int, ...] | None, problems: Problems
) -> bool:
    """Whether the processes of several nodes find each other by Ray, as the engine's version needs.

    Args:
        parallel: the spread.
        shape: what the spec says.
        engine: the engine.
        version: of it; the newest for None.
        problems: takes what cannot be.
    """
    if parallel.nodes == 1:
        if shape.executor is not None:
            problems.error(
                "KG0340", "`executor` has no effect on one node", (*_AT, "executor"), "leave it out"
            )
        return False
    way = engine.spread(version)
    if way is None:
        problems.error(
            "KG0343",
            f"engine `{engine.name}` of this version serves from one node only",
            (*_AT, "nodes"),
            "vLLM spreads over several",
        )
        return False
    shown = ".".join(map(str, version or ()))
    if shape.executor == "native" and not way.native:
        problems.error(
            "KG0343",
            f"vLLM {shown} spreads over nodes by Ray only",
            (*_AT, "executor"),
            "leave it out, or use vLLM 0.12 or later",
        )
    if shape.executor == "ray" and not way.ray:
        problems.warning(
            "KG0343",
            "images of vLLM since 0.19 hold no Ray",
            (*_AT, "executor"),
            "leave it out, or name an `image` that has both",
        )
    ray = not way.native if shape.executor is None else shape.executor == "ray"
    if ray and parallel.data > 1:
        problems.error(
            "KG0343",
            "data parallel over several nodes needs vLLM's own means, not Ray",
            (*_AT, "dataParallel"),
            "use vLLM 0.12 or later without `executor: ray`",
        )
    return ray
