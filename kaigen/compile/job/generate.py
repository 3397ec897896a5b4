"""The workload `generate`: vLLM, kaigen's program that asks it about lines, and what its settings require."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.engines import Version, engine_facts, parse_version, tag_version
from kaigen.catalog.vllm_flags import flags_of, minor_of, nearest_version
from kaigen.compile.builders.params import FOLDER, KEY, ParamsOf
from kaigen.compile.builders.pods import gpu_count, image_ref
from kaigen.compile.context import Context
from kaigen.compile.engines.arguments import MANAGED_FLAGS
from kaigen.compile.engines.vllm import CPU_CACHE, CPU_CACHE_VARIABLE, Vllm
from kaigen.compile.engines.vllm_flags import Given, list_flags, problem_of
from kaigen.compile.field_expressions import flags
from kaigen.compile.job.tables import reads_tables, tables_folder
from kaigen.compile.job.tune import gpu_of, job_model, used_model
from kaigen.compile.known_model import KnownModel
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath, Json
from kaigen.core.text import plural
from kaigen.diagnostics.diagnostic import Severity
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.blocks import GpuShare, Image
from kaigen.kinds.generate import Generate
from kaigen.kinds.job import Inputs, JobSpec, ModelUse, OutputVolume
from kaigen.programs.files import program
from kaigen.sizing.facts import Hardware, Request, hardware_of_gpu

PERMANENT_EXIT_CODES = (2, 10, 11)
"""Exit codes after which a retry cannot succeed (source: kaigen/programs/generate.py)."""

COMMAND = ("python3", program("generate.py"))

_AT: FieldPath = ("spec", "generate")
_PARAMS = (
    *("task", "format", "results", "prompt", "system", "parameters"),
    *("concurrency", "checkpoint_lines", "max_failures"),
)
_MANAGED = {
    **dict.fromkeys(MANAGED_FLAGS, ""),
    **dict.fromkeys(("host", "uds", "runner", "ssl-certfile", "ssl-keyfile", "root-path"), ""),
    "max-model-len": "generate.contextLength",
    "model": "model",
}
_FREE = {
    *("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"),
    *("max-num-seqs", "quantization", "trust-remote-code"),
}
"""Flags that a Topology has fields for, and that `engineArgs` sets here."""

_ACCESS_LOG = {f"{each}-uvicorn-access-log" for each in ("disable", "enable", "no-disable")}


def generate_settings(spec: JobSpec) -> Generate:
    """Return the settings of the workload `generate`."""
    return spec.generate if spec.generate is not None else Generate()


def generate_image(spec: JobSpec, context: Context) -> Image:
    """Return the image of the container: that of the spec, else vLLM's for the GPUs."""
    own = generate_settings(spec).image
    if own is not None:
        return own
    # A GPU that the catalogue does not have is a problem of `resources`.
    gpu = Problems().attempt(lambda: gpu_of(spec, context.catalog), None)
    vendor = "none" if not gpu_count(spec.resources) else gpu.vendor if gpu is not None else "nvidia"
    return context.config.images[engine_facts(Vllm.name).image_for(vendor)]


def generate_params(spec: JobSpec) -> ParamsOf:
    """Return the settings of the program as a file."""
    settings = generate_settings(spec)
    values = {document_name(settings, name): getattr(settings, name) for name in _PARAMS}
    found: dict[str, Json] = {name: value for name, value in values.items() if value is not None}
    return ParamsOf(found, "Settings of the batch.", origin=_AT, exported=False)


def generate_environment(spec: JobSpec, cache: str) -> Mapping[str, str]:
    """Return the variables of vLLM, which writes to a folder of the pod and reaches nothing."""
    return {
        "USER": "kaigen",
        "KAIGEN_TABLES": program("kaigen_tables.py"),
        **({"KAIGEN_PYARROW": tables_folder(cache)} if reads_tables(generate_settings(spec)) else {}),
        "HF_HOME": f"{cache}/huggingface",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CACHE_ROOT": f"{cache}/vllm",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
        "TRITON_CACHE_DIR": f"{cache}/triton",
        "VLLM_NO_USAGE_STATS": "1",
        **({} if gpu_count(spec.resources) else {CPU_CACHE_VARIABLE: str(CPU_CACHE)}),
    }


def generate_memory(spec: JobSpec, namespace: str, context: Context) -> str:
    """Return the memory that a pod needs by default.

    Raises:
        ProblemError: the Model's facts are wrong.
    """
    model = job_model(spec, namespace, context)
    gpus = gpu_count(spec.resources)
    return f"{Vllm().default_resources(gpus, model.weights_bytes if model is not None else 0)[1]}Gi"


def generate_arguments(
    spec: JobSpec, inputs: Inputs | None, output: OutputVolume | None, context: Context, problems: Problems
) -> list[str]:
    """Return the arguments of the program, the last of which are the command line of vLLM; none after an error.

    Args:
        spec: a spec with the workload `generate`.
        inputs: files that are fetched before the run, and Datasets.
        output: the volume for results.
        context: has the images.
        problems: receives that the model, the lines or the place of the results are missing.
    """
    settings = generate_settings(spec)
    at: FieldPath = ("spec", "workload")
    source = settings.input or (inputs.mount_path if inputs is not None else None)
    if spec.model is None:
        problems.error("KG0430", "there is no model to ask", at, "set `model` to the name of a Model")
    if source is None:
        hint = "add `inputs`, such as `[{dataset: NAME}]`, or set `generate.input` to a file or folder of a volume"
        problems.error("KG0430", "there are no lines to ask about", at, hint)
    if output is None:
        hint = "add `output.volume` for the results and for what is done"
        problems.error("KG0430", "the results would be lost with the pod", at, hint)
    if spec.model is None or source is None or output is None:
        return []
    use = spec.model
    folder = use.mount_path if isinstance(use, ModelUse) else "/model"
    name = (use.name if isinstance(use, ModelUse) else use) or "model"
    version = _version(spec, generate_image(spec, context))
    own = [folder, f"--served-model-name={name}", "--host=127.0.0.1", "--port=8000"]
    if settings.context_length is not None:
        own.append(f"--max-model-len={settings.context_length}")
    if settings.task in ("embed", "classify") and "runner" in flags_of(nearest_version(version)):
        own.append("--runner=pooling")
    gpus, given = gpu_count(spec.resources), {_flag(name) for name in settings.engine_args}
    # A line for each request would hide the progress.
    if not given & _ACCESS_LOG and "disable-uvicorn-access-log" in flags_of(nearest_version(version)):
        own.append("--disable-uvicorn-access-log")
    if gpus > 1 and not given & {"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size"}:
        own.append(f"--tensor-parallel-size={gpus}")
    own += [str(each) for each in flags(settings.engine_args, list_flags(version))]
    files = [f"{FOLDER}/{KEY}", source, output.mount_path]
    return [*files, name, folder, "--", *engine_facts(Vllm.name).command, *own]


class Sized(Struct, frozen=True):
    """What a shard needs of its GPUs.

    Attributes:
        gpus: number of them.
        gpu: their model; empty when the spec does not say so.
        model: the model; None when its size is unknown.
        hardware: the GPUs of a shard; None when they are unknown.
        request: what the shard asks of them; None when the model is unknown.
        why: what is unknown.
    """

    gpus: int
    gpu: str = ""
    model: KnownModel | None = None
    hardware: Hardware | None = None
    request: Request | None = None
    why: str = ""


def generate_size(spec: JobSpec, namespace: str, context: Context) -> Sized:
    """Return what a shard needs of its GPUs: vLLM keeps one sequence of the context, and as many as fit.

    Args:
        spec: a spec with the workload `generate`.
        namespace: namespace of the app.
        context: has the Model that the spec names.
    """
    gpus = gpu_count(spec.resources)
    if not gpus:
        return Sized(0, why="it runs on CPUs")
    model = Problems().attempt(lambda: used_model(spec, namespace, context), None)
    gpu = Problems().attempt(lambda: gpu_of(spec, context.catalog), None)
    if gpu is None:
        why = "the spec does not say which GPUs the nodes have; set `resources.gpuType`"
        return Sized(gpus, why=why)
    if model is None:
        return Sized(gpus, gpu.name, why="kaigen does not know the size of the model; run `kaigen lock` or set `facts`")
    settings = generate_settings(spec)
    given = {_flag(name): value for name, value in settings.engine_args.items()}
    share = spec.resources.gpus
    profile = share.profile if isinstance(share, GpuShare) else None
    sizes = {name: _size(given.get(f"{name}-parallel-size")) for name in ("tensor", "pipeline", "data")}
    request = Request(
        context_length=settings.context_length or model.facts.max_context,
        # vLLM splits the model over all GPUs of a pod, unless a flag says otherwise.
        tensor_parallel=sizes["tensor"] or (gpus if gpus > 1 and not any(sizes.values()) else None),
        pipeline_parallel=sizes["pipeline"],
        data_parallel=sizes["data"],
        utilization=_share(given.get("gpu-memory-utilization")),
        kv_cache_dtype=_name(given.get("kv-cache-dtype")),
        quantization=_name(given.get("quantization")),
        nodes=1,
        engine_fits_context=False,
        version=_version(spec, generate_image(spec, context)),
    )
    hardware = hardware_of_gpu(gpu, gpus, profile or "")
    return Sized(gpus, hardware.gpu, model, hardware, request)


def _size(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _share(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value <= 1 else None


def _name(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _version(spec: JobSpec, image: Image) -> Version | None:
    given = generate_settings(spec).engine_version
    return parse_version(given) if given is not None else tag_version(image_ref(image))


def _flag(written: str) -> str:
    return written.lstrip("-").replace("_", "-")


def check_generate(spec: JobSpec, namespace: str, context: Context, problems: Problems) -> None:
    """Report values that the program or vLLM cannot use.

    Args:
        spec: the spec.
        namespace: namespace of the app.
        context: has the Model that the spec names.
        problems: collects the problems.
    """
    settings = generate_settings(spec)
    if spec.nodes > 1:
        hint = "use `shards` for more GPUs: each has a copy of the model"
        report_ignored_field(problems, "nodes", ("spec", "nodes"), "on `workload: generate`", hint)
    set_here = set_fields(settings)
    if settings.format == "openai":
        for name in ("prompt", "system", "parameters"):
            if name in set_here:
                hint = "leave it out: each line has its whole request"
                report_ignored_field(problems, name, (*_AT, name), "with `format: openai`", hint)
        if settings.results == "parquet":
            hint = "leave it out, or use `format: rows`"
            problems.error("KG0468", "OpenAI's batch files are JSON lines", (*_AT, "results"), hint)
    elif settings.system is not None and settings.task != "chat":
        hint = "leave it out, or set `task: chat`"
        report_ignored_field(problems, "system", (*_AT, "system"), f"with `task: {settings.task}`", hint)
    for name in ("model", "messages", "prompt", "input", "stream"):
        if name in settings.parameters:
            path: FieldPath = (*_AT, "parameters", name)
            message = f"kaigen sets `{name}` of each request"
            problems.error("KG0347", message, path, "leave it out")
    _check_flags(spec, generate_image(spec, context), problems)
    _check_gpus(spec, problems.attempt(lambda: job_model(spec, namespace, context), None), context, problems)


def _check_flags(spec: JobSpec, image: Image, problems: Problems) -> None:
    version = _version(spec, image)
    table = nearest_version(version)
    exact = version is not None and minor_of(version) == table
    for written, value in generate_settings(spec).engine_args.items():
        path: FieldPath = (*_AT, "engineArgs", written)
        name = _flag(written)
        field = None if name in _FREE else _MANAGED.get(name, _MANAGED.get(name.removeprefix("no-")))
        if field is not None:
            hint = f"set `{field}` instead" if field else "leave it out"
            problems.error("KG0347", f"the flag `--{name}` is set by kaigen for `workload: generate`", path, hint)
            continue
        found = problem_of(Given(name, value, path), table)
        if found is not None:
            problems.add(found if exact else replace(found, severity=Severity.WARNING))


def _check_gpus(spec: JobSpec, model: KnownModel | None, context: Context, problems: Problems) -> None:
    """Report weights that are larger than the memory of all GPUs of a pod."""
    known = Problems().attempt(lambda: gpu_of(spec, context.catalog), None)
    share, gpus = spec.resources.gpus, gpu_count(spec.resources)
    profile = share.profile if isinstance(share, GpuShare) else None
    if known is None or model is None or not gpus:
        return
    usable = known.mig.get(profile) if profile else known.usable or known.memory
    weights = model.facts.weights
    if usable is not None and weights > usable * gpus:
        problems.error(
            "KG1107",
            f"the weights of {model.name} take {weights:.0f} GiB, and {plural(gpus, known.name)} "
            f"{'has' if gpus == 1 else 'have'} {usable * gpus:.0f} GiB",
            ("spec", "resources"),
            "use more or larger GPUs",
        )
