"""Sizing of a Topology from the catalogues: preset, instance type, plan, and the flags that they need."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from kaigen.catalog.gpus import get_gpu
from kaigen.catalog.instances import Instance, find_instance
from kaigen.catalog.presets import Preset, find_preset, nearest_presets
from kaigen.compile.engines.base import Engine
from kaigen.compile.expressions import Json, SpecPath
from kaigen.compile.problems import Problems
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import GpuShare
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.facts import Hardware, Request, facts_of, hardware_of_gpu, hardware_of_instance
from kaigen.sizing.plan import arithmetic, plan
from kaigen.sizing.problem import Field, PlanError
from kaigen.sizing.result import Plan

GIB = 2**30


class Sizing(Struct, frozen=True):
    """What the catalogues know about a spec.

    Attributes:
        preset: the model; None without a preset.
        instance: the instance type; None when it is unknown.
        plan: how the model fits; None when the model or the GPUs are unknown.
        flags: engine flags that the preset or the plan requires.
        env: variables that the preset requires.
    """

    preset: Preset | None = None
    instance: Instance | None = None
    plan: Plan | None = None
    flags: Mapping[str, Json] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The calculation in words; empty without a plan."""
        if self.plan is None:
            return ""
        return arithmetic(self.plan.facts, self.plan.hardware, self.plan.layout, self.plan.load)


def size(spec: TopologySpec, engine: Engine, problems: Problems) -> Sizing:
    """Return what the catalogues know about a spec.

    Args:
        spec: the spec.
        engine: the engine that serves.
        problems: collects what does not fit.
    """
    name = spec.resources.instance_type
    instance = find_instance(name) if name else None
    if spec.preset is None or not engine.reads_presets:
        return Sizing(instance=instance)
    preset = problems.attempt(lambda: _preset(spec), None)
    if preset is None:
        return Sizing(instance=instance)
    if not engine.facts.planned:
        return Sizing(preset, instance)
    if preset.engine.trust_remote_code and not spec.trust_remote_code:
        problems.error(
            "KG0354",
            f"`{preset.name}` runs code of its repository: {preset.engine.trust_remote_code_reason}",
            ("spec", "preset"),
            "allow it with `trustRemoteCode: true`",
        )
    given = _given_flags(spec)
    flags = dict(engine.preset_flags(preset, own_image=spec.image is None))
    fitted = problems.attempt(lambda: _plan(spec, preset, instance), None)
    if fitted is not None:
        own = {"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "quantization"}
        if spec.context_length is not None:
            own.add("max-model-len")
        flags |= {flag: value for flag, value in fitted.flags if flag not in own}
    env = {key: value for key, value in engine.preset_env(preset).items() if key not in spec.env}
    return Sizing(preset, instance, fitted, {k: v for k, v in flags.items() if k not in given}, env)


def _preset(spec: TopologySpec) -> Preset:
    assert spec.preset is not None
    preset = find_preset(spec.preset)
    if preset is None:
        near = nearest_presets(spec.preset)
        hint = f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""
        raise ProblemError(
            "KG1101",
            f"unknown preset `{spec.preset}`",
            ("spec", "preset"),
            hint or "list the presets with `kaigen presets`, or set `model` for any other model",
        )
    return preset


def _given_flags(spec: TopologySpec) -> dict[str, Json]:
    """Return the spec's own flags by name; of a list, those that begin with two dashes."""
    if isinstance(spec.engine_args, dict):
        return {name.replace("_", "-"): value for name, value in spec.engine_args.items()}
    flags: dict[str, Json] = {}
    for argument in spec.engine_args:
        if argument.startswith("--"):
            name, _, value = argument.removeprefix("--").partition("=")
            flags[name.replace("_", "-")] = value or True
    return flags


def _hardware(spec: TopologySpec, instance: Instance | None) -> Hardware | None:
    """Return the nodes that a spec asks for; None when their GPUs are unknown.

    Raises:
        PlanError: the GPU has no such slice.
    """
    resources = spec.resources
    gpus = resources.gpus
    gpu = get_gpu(resources.gpu_type) if resources.gpu_type else None
    if isinstance(gpus, GpuShare) and gpus.profile is not None:
        gpu = gpu or (instance.gpu if instance else None)
        return hardware_of_gpu(gpu, gpus.count, gpus.profile) if gpu else None
    count = gpus.count if isinstance(gpus, GpuShare) else gpus
    if instance is not None:
        return hardware_of_instance(instance, count) if count != 0 else None
    return hardware_of_gpu(gpu, count if count is not None else 1) if gpu and count != 0 else None


def request_of(spec: TopologySpec) -> Request:
    """Return what a spec asks of the planner, including its engine flags."""
    shape, given = spec.shape, _given_flags(spec)
    utilization = given.get("gpu-memory-utilization")
    dtype = given.get("dtype")
    cache = given.get("kv-cache-dtype")
    return Request(
        context_length=spec.context_length,
        concurrency=spec.concurrency,
        dtype=dtype if dtype in ("bfloat16", "float16") else None,
        quantization=spec.quantization,
        kv_cache_dtype=cache if isinstance(cache, str) else None,
        utilization=_number(utilization),
        tensor_parallel=shape.tensor_parallel,
        pipeline_parallel=shape.pipeline_parallel,
        data_parallel=shape.data_parallel,
        nodes=shape.nodes,
        replicas=max(1, spec.autoscale.max if spec.autoscale else shape.replicas),
    )


def _plan(spec: TopologySpec, preset: Preset, instance: Instance | None) -> Plan | None:
    try:
        nodes = _hardware(spec, instance)
        return plan(facts_of(preset), request_of(spec), nodes) if nodes else None
    except PlanError as error:
        raise ProblemError(
            error.problem.code, str(error), field_path(error.field, spec), error.hint
        ) from None


def _number(value: Json) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


_FIELD_PATHS: Mapping[Field, SpecPath] = {
    Field.MIG: ("spec", "resources", "gpus"),
    Field.CONTEXT_LENGTH: ("spec", "contextLength"),
    Field.CONCURRENCY: ("spec", "concurrency"),
    Field.DTYPE: ("spec", "engineArgs"),
    Field.QUANTIZATION: ("spec", "quantization"),
    Field.KV_CACHE_DTYPE: ("spec", "engineArgs"),
    Field.UTILIZATION: ("spec", "engineArgs"),
    Field.TENSOR_PARALLEL: ("spec", "shape", "tensorParallel"),
    Field.PIPELINE_PARALLEL: ("spec", "shape", "pipelineParallel"),
    Field.DATA_PARALLEL: ("spec", "shape", "dataParallel"),
    Field.NODES: ("spec", "shape", "nodes"),
    Field.REPLICAS: ("spec", "shape", "replicas"),
}


def field_path(what: Field, spec: TopologySpec) -> SpecPath:
    """Return the spec's field that a planning error is about."""
    if what is Field.HARDWARE:
        for name in ("instanceType", "gpuType", "gpus"):
            if {"instanceType": "instance_type", "gpuType": "gpu_type"}.get(name, name) in (
                spec.resources.model_fields_set
            ):
                return ("spec", "resources", name)
    return _FIELD_PATHS.get(what, ("spec", "preset"))


def preset_bytes(preset: Preset) -> int:
    """Return the size of a preset's weights in its repository, in bytes."""
    return int(preset.weights_gib * GIB)
