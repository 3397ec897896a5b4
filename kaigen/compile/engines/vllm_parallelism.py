"""How one replica of vLLM uses several GPUs and nodes."""

from __future__ import annotations

from msgspec.structs import replace

from kaigen.catalog.engines import EngineFacts, NodeSupport, Version, parse_version, tag_version
from kaigen.compile.builders.pods import image_ref
from kaigen.compile.engines.launch import Parallelism
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.core.text import plural
from kaigen.kinds.blocks import GpuShare, Image, Resources
from kaigen.kinds.serving import Shape
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.plan import Plan

_AT: FieldPath = ("spec", "shape")


def vllm_parallelism(
    spec: TopologySpec, image: Image, plan: Plan | None, gpus: int, facts: EngineFacts, problems: Problems
) -> Parallelism:
    """Return the plan's parallelism, else what the spec asks for.

    Args:
        spec: the spec.
        image: image of the engine.
        plan: how the model fits; None when the model or the GPUs are unknown.
        gpus: GPUs of each pod.
        facts: which versions support several nodes.
        problems: collects what does not fit.
    """
    shape = spec.shape
    if plan is not None:
        layout = plan.layout
        parallelism = Parallelism(layout.nodes, gpus, layout.tp, layout.pp, layout.dp)
    else:
        parallelism = _requested(shape, spec.resources, gpus, problems)
    if parallelism.nodes == 1:
        for field in ("executor", "groups"):
            if getattr(shape, field) is not None:
                report_ignored_field(problems, field, (*_AT, field), "on one node", "leave it out")
        return parallelism
    version = vllm_version(spec, image)
    support = facts.support_of(version)
    if support is None:
        problems.error(
            "KG0343",
            f"vLLM {_shown(version)} runs a replica on one node only",
            (*_AT, "nodes"),
            "use vLLM 0.6 or later",
        )
        return parallelism
    return replace(parallelism, ray=_uses_ray(parallelism, shape, support, version, problems))


def vllm_version(spec: TopologySpec, image: Image) -> Version | None:
    """Return the version that the spec gives, else the image's tag; None when neither does."""
    if spec.engine_version is not None:
        return parse_version(spec.engine_version)
    return tag_version(image_ref(image))


def _shown(version: Version | None) -> str:
    return ".".join(map(str, version or ()))


def _requested(shape: Shape, resources: Resources, gpus: int, problems: Problems) -> Parallelism:
    """Return the parallelism that a spec asks for, or that follows from its nodes and GPUs.

    The default is tensor parallel inside a node and pipeline parallel across nodes: layers are split over the fast
    links of one node, stages over the network. Pods without GPUs use tensor parallel, because vLLM's build for the CPU
    cannot run pipeline stages.

    Args:
        shape: what the spec asks for.
        resources: resources of each pod.
        gpus: GPUs of each pod.
        problems: collects what does not fit.
    """
    nodes = shape.nodes or 1
    data = shape.data_parallel or 1
    # A pod without a GPU is one rank, which computes on its CPU.
    total = nodes * max(gpus, 1)
    tensor, pipeline = shape.tensor_parallel, shape.pipeline_parallel
    if pipeline is None:
        across = tensor is not None and data * tensor == total
        pipeline = 1 if across or not gpus else nodes
    if tensor is None:
        tensor = max(1, total // (pipeline * data))
    if gpus and tensor * pipeline * data != total:
        problems.error(
            "KG0344",
            f"tensor {tensor} × pipeline {pipeline} × data {data} is {tensor * pipeline * data} GPUs, but "
            f"{plural(nodes, 'node')} with {plural(gpus, 'GPU')} each {'have' if nodes > 1 else 'has'} {total}",
            (*_AT, _degree_field(shape)),
            "make the product of the three equal to the GPUs of a replica",
        )
    share = resources.gpus
    if isinstance(share, GpuShare) and share.profile is not None and tensor * pipeline > 1:
        problems.error(
            "KG0345",
            f"MIG slices cannot work together, but this needs {tensor * pipeline}",
            ("spec", "resources", "gpus"),
            "use one slice that is large enough, or whole GPUs",
        )
    return Parallelism(nodes, gpus, tensor, pipeline, data)


def _degree_field(shape: Shape) -> str:
    """Return the first degree that the spec sets."""
    degrees = {
        "tensorParallel": shape.tensor_parallel,
        "pipelineParallel": shape.pipeline_parallel,
        "dataParallel": shape.data_parallel,
    }
    return next((name for name, degree in degrees.items() if degree), "nodes")


def _uses_ray(
    parallelism: Parallelism, shape: Shape, support: NodeSupport, version: Version | None, problems: Problems
) -> bool:
    """Return whether the pods of several nodes find each other by Ray.

    Args:
        parallelism: how one replica uses GPUs and nodes.
        shape: what the spec asks for.
        support: what the engine's version supports.
        version: the engine's version; None for the newest.
        problems: collects what cannot work.
    """
    if shape.executor == "native" and not support.native:
        problems.error(
            "KG0343",
            f"vLLM {_shown(version)} supports several nodes by Ray only",
            (*_AT, "executor"),
            "leave it out, or use vLLM 0.12 or later",
        )
    if shape.executor == "ray" and not support.ray:
        problems.warning(
            "KG0343",
            "images of vLLM 0.18 and later do not contain Ray",
            (*_AT, "executor"),
            "leave it out, or set an `image` that contains both",
        )
    ray = not support.native if shape.executor is None else shape.executor == "ray"
    if ray and parallelism.data > 1:
        problems.error(
            "KG0343",
            "data parallel on several nodes does not work by Ray",
            (*_AT, "dataParallel"),
            "use vLLM 0.12 or later without `executor: ray`",
        )
    return ray
