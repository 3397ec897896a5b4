"""Sizing of a Topology from the catalogues: preset, instance type, plan, and the flags that they need."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import get_gpu
from kaigen.catalog.instances import Instance, find_instance
from kaigen.catalog.presets import Preset, find_preset, nearest_presets
from kaigen.catalog.vllm_flags import nearest_version
from kaigen.compile.context import Context, SpecIndex
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.vllm_flags import Given, flag_values, problem_of
from kaigen.compile.known_model import KnownModel, model_of_facts, model_of_preset
from kaigen.compile.problems import Problems
from kaigen.compile.topology.draft import with_draft
from kaigen.compile.topology.ring import resolve_ring
from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem, ProblemError
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import GpuShare, Image
from kaigen.kinds.model import Model
from kaigen.kinds.serving import ServedModel
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.constants import has_since
from kaigen.sizing.facts import Hardware, ModelFacts, Request, hardware_of_gpu, hardware_of_instance
from kaigen.sizing.plan import Plan, arithmetic, plan
from kaigen.sizing.problem import Field, PlanError
from kaigen.sizing.ring import RingPlan

NVIDIA = "nvidia"
NO_GPUS = "none"


class Sizing(Struct, frozen=True):
    """What the catalogues know about a spec.

    Attributes:
        model: the model; None for one whose size is unknown.
        instance: the instance type; None when it is unknown.
        plan: how the model fits; None when the model or the GPUs are unknown.
        flags: engine flags that the preset or the plan requires.
        env: variables that the preset requires.
        vendor: vendor of the GPUs; `none` without GPUs.
        ring: the ring that serves; None for other engines.
        request: what the spec asks of the planner; None when the model is unknown.
        hardware: the nodes that the spec asks for; None when their GPUs are unknown.
        problems: what does not fit.
    """

    model: KnownModel | None = None
    instance: Instance | None = None
    plan: Plan | None = None
    flags: Mapping[str, Json] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    vendor: str = NVIDIA
    ring: RingPlan | None = None
    request: Request | None = None
    hardware: Hardware | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def preset(self) -> Preset | None:
        """The model's entry in the catalogue; None when it has none."""
        return self.model.preset if self.model is not None else None

    @property
    def summary(self) -> str:
        """The calculation in words; empty without a plan."""
        if self.plan is None:
            return ""
        return arithmetic(self.plan.facts, self.plan.hardware, self.plan.layout, self.plan.load)


def size(spec: TopologySpec, engine: Engine, namespace: str, context: Context, problems: Problems) -> Sizing:
    """Return what the catalogues know about a spec.

    Args:
        spec: the spec.
        engine: the engine that serves.
        namespace: namespace of the app.
        context: what it is compiled for, with the Model that the spec may serve.
        problems: collects what does not fit.
    """
    found = Problems()
    sized = _size(spec, engine, namespace, context, found)
    for problem in found.items:
        problems.add(problem)
    preset = sized.preset
    if sized.request and preset and preset.engine.trust_remote_code and not spec.trust_remote_code:
        problems.error(
            "KG0354",
            f"`{preset.name}` runs code of its repository: {preset.engine.trust_remote_code_reason}",
            model_path(spec),
            "allow it with `trustRemoteCode: true`",
        )
    return replace(sized, problems=tuple(found.items))


def _size(spec: TopologySpec, engine: Engine, namespace: str, context: Context, problems: Problems) -> Sizing:
    name = spec.resources.instance_type
    instance = find_instance(name, context.catalog) if name else None
    vendor = _vendor(spec, engine, instance, context.catalog)
    if engine.is_ring:
        source = model_spec(spec, namespace, context.specs)
        ring = problems.attempt(lambda: resolve_ring(spec, source, context, problems), RingPlan(None, "q40", 1, 1))
        return Sizing(instance=instance, vendor=vendor, ring=ring)
    if not engine.reads_presets:
        return Sizing(instance=instance, vendor=vendor)
    model = problems.attempt(lambda: topology_model(spec, namespace, context), None)
    if model is None:
        return Sizing(instance=instance, vendor=vendor)
    if not engine.facts.planned:
        return Sizing(model, instance, vendor=vendor)
    preset = model.preset
    given = flag_values(spec)
    flags: dict[str, Json] = {}
    if preset is not None:
        _check_dtype(preset, engine, given.get("dtype"), problems)
        templates = "" if spec.has_own_image else engine.facts.templates_for(vendor)
        flags |= engine.preset_flags(preset, templates=templates)
    request = with_draft(request_of(spec, engine, context), spec, namespace, context)
    if request.quantization == "fp8" and not model.facts.quantization and has_since("namedOnline", request.version):
        problems.warning(
            "KG0361",
            "this version of vLLM deprecates `fp8` for weights that are not quantized",
            ("spec", "quantization"),
            "use `fp8_per_tensor`",
        )
    hardware, fitted = _plan(spec, model.facts, instance, request, context.catalog, problems)
    if fitted is not None:
        own = {"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "quantization"}
        if spec.context_length is not None:
            own.add("max-model-len")
        if spec.concurrency is not None:
            own.add("max-num-seqs")
        flags |= {flag: value for flag, value in fitted.flags if flag not in own}
    variables = engine.preset_env(preset) if preset is not None else {}
    env = {key: value for key, value in variables.items() if key not in spec.env}
    return Sizing(
        model=model,
        instance=instance,
        plan=fitted,
        flags={flag: value for flag, value in flags.items() if flag not in given},
        env=env,
        vendor=vendor,
        request=request,
        hardware=hardware,
    )


def _check_dtype(preset: Preset, engine: Engine, dtype: Json, problems: Problems) -> None:
    if dtype in {"float16", "half"} and preset.architecture in engine.facts.not_float16:
        problems.error(
            "KG0361",
            f"{engine.facts.title} does not run `{preset.name}` in float16, which is numerically unstable for it",
            ("spec", "engineArgs", "dtype"),
            "use a GPU of compute capability 8.0 or higher, which has bfloat16",
        )


def _vendor(spec: TopologySpec, engine: Engine, instance: Instance | None, catalog: Catalog) -> str:
    """Return the vendor of the GPUs of a pod, NVIDIA where nothing decides it; `NO_GPUS` without GPUs."""
    resources = spec.resources
    gpu = get_gpu(resources.gpu_type, catalog) if resources.gpu_type else instance.gpu if instance else None
    if resources.gpus == 0 or (resources.gpus is None and gpu is None and not engine.default_gpus):
        return NO_GPUS
    return gpu.vendor if gpu else NVIDIA


def topology_model(spec: TopologySpec, namespace: str, context: Context) -> KnownModel | None:
    """Return the model that a spec serves; None when its size is unknown.

    The facts of the Topology come first, then those of its Model, then those of the catalogue.

    Args:
        spec: the spec. It names the model by `preset`, by its repository, or by a Model with that source.
        namespace: namespace of the app.
        context: the specs of the run, and the catalogue.

    Raises:
        ProblemError: there is no such preset, or facts are wrong.
    """
    repo, catalog = model_repository(spec, namespace, context.specs), context.catalog
    preset = _preset(spec.preset, catalog) if spec.preset is not None else find_preset(repo, catalog) if repo else None
    name = preset.name if preset is not None else repo or "the model"
    own = spec.model.facts if isinstance(spec.model, ServedModel) else None
    if own is not None:
        return model_of_facts(own, name, preset, ("spec", "model", "facts"))
    model = model_spec(spec, namespace, context.specs)
    if model is not None and model.spec.facts is not None:
        try:
            return model_of_facts(model.spec.facts, name, preset, ("spec", "facts"))
        except ProblemError as error:
            message = f"`facts` of Model `{model.metadata.name}`: {error}"
            raise ProblemError(error.problem.code, message, ("spec", "model"), error.hint) from None
    return model_of_preset(preset) if preset is not None else None


def model_repository(spec: TopologySpec, namespace: str, specs: SpecIndex) -> str:
    """Return the repository on the Hub of the model that a spec serves; empty for none."""
    model = spec.model
    if isinstance(model, ServedModel) and model.hugging_face is not None:
        return model.hugging_face.repo
    found = model_spec(spec, namespace, specs)
    source = found.spec.source.hugging_face if found is not None else None
    return source.repo if source is not None else ""


def model_spec(spec: TopologySpec, namespace: str, specs: SpecIndex) -> Model | None:
    """Return the Model that a spec serves; None when it names none, or one that does not exist."""
    name = spec.model.name if isinstance(spec.model, ServedModel) else spec.model
    given = spec.model.namespace if isinstance(spec.model, ServedModel) else None
    return specs.find(Model, given or namespace, name) if name else None


def why_unknown(spec: TopologySpec, namespace: str, specs: SpecIndex) -> str:
    """Return why kaigen does not know the size of the model that a spec serves, and what to do, in one sentence."""
    repo = model_repository(spec, namespace, specs)
    what = f"the catalogue does not have `{repo}`" if repo else "kaigen does not know which model it serves"
    model = model_spec(spec, namespace, specs)
    can_be_locked = bool(repo) or (model is not None and model.spec.source.s3 is not None)
    way = "record it with `kaigen lock`, " if can_be_locked else ""
    way += "describe it with `facts`, or compute its GPUs with `kaigen plan --config config.json --weights GIB`"
    return f"{what}; {way}"


def model_path(spec: TopologySpec) -> FieldPath:
    """Return the spec's field that names the model."""
    return ("spec", "preset") if spec.preset is not None else ("spec", "model")


def _preset(name: str, catalog: Catalog) -> Preset:
    preset = find_preset(name, catalog)
    if preset is None:
        near = nearest_presets(name, catalog)
        hint = f"did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else ""
        raise ProblemError(
            "KG1101",
            f"unknown preset `{name}`",
            ("spec", "preset"),
            hint or "list the presets with `kaigen presets`, or set `model` for any other model",
        )
    return preset


def _hardware(spec: TopologySpec, instance: Instance | None, catalog: Catalog) -> Hardware | None:
    """Return the nodes that a spec asks for; None when their GPUs are unknown.

    Raises:
        PlanError: the GPU has no such slice.
    """
    resources = spec.resources
    gpus = resources.gpus
    gpu = get_gpu(resources.gpu_type, catalog) if resources.gpu_type else None
    if isinstance(gpus, GpuShare) and gpus.profile is not None:
        gpu = gpu or (instance.gpu if instance else None)
        return hardware_of_gpu(gpu, gpus.count, gpus.profile) if gpu else None
    count = gpus.count if isinstance(gpus, GpuShare) else gpus
    if instance is not None:
        return hardware_of_instance(instance, count) if count != 0 else None
    return hardware_of_gpu(gpu, count if count is not None else 1) if gpu and count != 0 else None


def request_of(spec: TopologySpec, engine: Engine, context: Context) -> Request:
    """Return what a spec asks of the planner, including its engine flags.

    Args:
        spec: the spec.
        engine: the engine that serves.
        context: what it is compiled for, with the image of the engine.
    """
    image: Image = spec.image or ("" if spec.build else context.config.images.get(engine.facts.image, ""))
    shape, given = spec.shape, flag_values(spec)
    utilization = given.get("gpu-memory-utilization")
    dtype = given.get("dtype")
    cache = given.get("kv-cache-dtype")
    version = engine.version(spec, image)
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
        engine_fits_context=engine.facts.fits_context(version),
        version=version,
        step_tokens=_whole(given.get("max-num-batched-tokens")),
        prefix_caching=_switch(given, "enable-prefix-caching"),
    )


def _switch(given: Mapping[str, Json], name: str) -> bool | None:
    """Return what a spec says about a switch of the engine; None for nothing."""
    if f"no-{name}" in given:
        return False
    value = given.get(name)
    return value if isinstance(value, bool) else None


def _whole(value: Json) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number >= 1 else None


def _plan(
    spec: TopologySpec,
    facts: ModelFacts,
    instance: Instance | None,
    request: Request,
    catalog: Catalog,
    problems: Problems,
) -> tuple[Hardware | None, Plan | None]:
    hardware = None
    try:
        hardware = _hardware(spec, instance, catalog)
        return hardware, plan(facts, request, hardware) if hardware else None
    except PlanError as error:
        if not _is_unknown_name(error, request):
            problems.add(plan_problem(error, spec))
        return hardware, None


def _is_unknown_name(error: PlanError, request: Request) -> bool:
    """Return whether an error is about a name that the engine's parser refuses, which the check of flags reports."""
    flag, value = {
        Field.QUANTIZATION: ("quantization", request.quantization),
        Field.KV_CACHE_DTYPE: ("kv-cache-dtype", request.kv_cache_dtype),
    }.get(error.field, ("", None))
    return value is not None and problem_of(Given(flag, value, ()), nearest_version(request.version)) is not None


def plan_problem(error: PlanError, spec: TopologySpec) -> Problem:
    """Return why a spec's model does not fit; a warning when the spec does not name a preset.

    A spec that names the repository or a Model can serve what the calculation refuses, such as with layers in the
    memory of the node.
    """
    severity = Severity.ERROR if spec.preset is not None else Severity.WARNING
    return Problem(error.problem.code, str(error), field_path(error.field, spec), error.hint, severity)


def _number(value: Json) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


_FIELD_PATHS: Mapping[Field, FieldPath] = {
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


def field_path(what: Field, spec: TopologySpec) -> FieldPath:
    """Return the spec's field that a planning error is about."""
    if what is Field.HARDWARE:
        for name in ("instanceType", "gpuType", "gpus"):
            if {"instanceType": "instance_type", "gpuType": "gpu_type"}.get(name, name) in set_fields(spec.resources):
                return ("spec", "resources", name)
    return _FIELD_PATHS.get(what, model_path(spec))
