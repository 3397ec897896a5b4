"""`tune`: the container of kaigen's own trainer, its settings, and what they require."""

from __future__ import annotations

from msgspec.structs import replace

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import Gpu, get_gpu
from kaigen.catalog.instances import find_instance
from kaigen.compile.builders.params import FOLDER, KEY, ParamsOf
from kaigen.compile.builders.pods import gpu_count
from kaigen.compile.context import Context
from kaigen.compile.known_model import KnownModel, model_of_facts, model_of_repository
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath, Json
from kaigen.core.text import plural
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.blocks import GpuShare
from kaigen.kinds.job import Inputs, JobSpec, ModelUse, OutputVolume
from kaigen.kinds.model import Model
from kaigen.kinds.tune import Columns, Tune
from kaigen.sizing.training import Training, least_gpu_memory, node_memory, parameters, peak_gpu_memory

ENTRY = ("kaigen-train",)
"""Entry point of its image (source: runtimes/train/Dockerfile)."""

PERMANENT_EXIT_CODES = (2, 13)
"""Exit codes of kaigen-train after which a retry cannot succeed (source: its README)."""

_AT: FieldPath = ("spec", "tune")
_ADAPTER_DEFAULTS = {"rank": 16, "alpha": 32.0, "dropout": 0.0}
_ADAPTER_FIELDS = (*_ADAPTER_DEFAULTS, "target_modules", "merge")
_LEARNING_RATES = {"lora": 2e-4, "qlora": 2e-4, "full": 1e-5}
_NOT_SETTINGS = ("image", "dataset", "output")


def tune_params(tune: Tune) -> ParamsOf:
    """Return the settings of the program as a file, each with its default."""
    found: dict[str, Json] = {}
    for name in type(tune).__struct_fields__:
        adapter = name in _ADAPTER_FIELDS
        if name in _NOT_SETTINGS or (adapter and tune.method == "full"):
            continue
        value = getattr(tune, name)
        if value is None:
            value = _LEARNING_RATES[tune.method] if name == "learning_rate" else _ADAPTER_DEFAULTS.get(name)
        if isinstance(value, Columns):
            value = {each: getattr(value, each) for each in value.__struct_fields__ if getattr(value, each)}
        if value is not None:
            found[document_name(tune, name)] = value
    return ParamsOf(found, "Settings of the training.", origin=_AT, exported=False)


def tune_arguments(spec: JobSpec, inputs: Inputs | None, output: OutputVolume | None) -> list[str]:
    """Return the arguments of kaigen-train.

    Args:
        spec: a spec with `tune`.
        inputs: files that are fetched before the run, and Datasets.
        output: the volume for results.

    Raises:
        ProblemError: the model, the samples or the place of the result are not known.
    """
    assert spec.tune is not None
    dataset = spec.tune.dataset or (inputs.mount_path if inputs is not None else None)
    if spec.model is None:
        hint = "set `model` to the name of a Model"
        raise ProblemError("KG0374", "there is no model to train", _AT, hint)
    if dataset is None:
        raise ProblemError(
            "KG0374",
            "there are no samples to train on",
            _AT,
            "add `inputs`, such as `[{dataset: NAME}]`, or set `tune.dataset` to a folder of a volume",
        )
    own = spec.tune.output
    if output is None and own is None:
        hint = "add `output.volume` for the result and the checkpoints"
        raise ProblemError("KG0374", "the result would be lost with the pod", _AT, hint)
    folder = spec.model.mount_path if isinstance(spec.model, ModelUse) else "/model"
    return [
        f"--model={folder}",
        f"--dataset={dataset}",
        f"--output={own or (output.mount_path if output is not None else '')}",
        *(["--flat"] if own else []),
        f"--params={FOLDER}/{KEY}",
    ]


def job_model(spec: JobSpec, namespace: str, context: Context) -> KnownModel | None:
    """Return the model that is trained; None when its size is unknown, or its weights are quantized.

    Args and raises: as `used_model`.
    """
    found = used_model(spec, namespace, context)
    return found if found is not None and not found.facts.quantization else None


def used_model(spec: JobSpec, namespace: str, context: Context) -> KnownModel | None:
    """Return the model that a Job uses; None when its size is unknown.

    Args:
        spec: the spec.
        namespace: namespace of the app.
        context: has the Model that the spec names.

    Raises:
        ProblemError: the Model's facts are wrong.
    """
    use = spec.model
    source = use.source if isinstance(use, ModelUse) else None
    hub = source.hugging_face if source is not None else None
    name, place = (use.name, use.namespace) if isinstance(use, ModelUse) else (use, None)
    model = context.specs.find(Model, place or namespace, name) if name else None
    if model is not None and model.spec.facts is not None:
        return model_of_facts(model.spec.facts, model.metadata.name, None, ("spec", "model"))
    hub = model.spec.source.hugging_face if model is not None else hub
    return model_of_repository(hub.repo, context.catalog) if hub is not None else None


def tune_memory(spec: JobSpec, namespace: str, context: Context) -> str | None:
    """Return the memory that a pod needs; None where kaigen does not know the model, or nothing is trained.

    Raises:
        ProblemError: the Model's facts are wrong.
    """
    tune = spec.tune
    model = job_model(spec, namespace, context) if tune is not None else None
    if tune is None or model is None:
        return None
    return f"{node_memory(model.facts, _training(tune, gpu_count(spec.resources)))}Gi"


def _training(tune: Tune, gpus: int) -> Training:
    rank = tune.rank or int(_ADAPTER_DEFAULTS["rank"])
    return Training(tune.method, tune.batch_size, tune.max_length, gpus, tune.merge, rank, tune.gradient_checkpointing)


def check_tune(spec: JobSpec, namespace: str, context: Context, problems: Problems) -> None:
    """Report settings of `tune` that contradict each other, and GPUs that cannot train the model.

    Args:
        spec: the spec.
        namespace: namespace of the app.
        context: has the Model that the spec names.
        problems: collects the problems.
    """
    tune = spec.tune
    if tune is None:
        return
    if spec.shards > 1:
        hint = "use `nodes` or several GPUs"
        report_ignored_field(problems, "shards", ("spec", "shards"), "next to `tune`", hint)
    _check_output(spec, tune, problems)
    if tune.columns is not None and (tune.columns.prompt is None) != (tune.columns.completion is None):
        problems.error(
            "KG0374",
            "`prompt` and `completion` are two columns of a sample",
            (*_AT, "columns"),
            "name both, or only `text` or `messages`",
        )
    if tune.method == "full":
        for name in (name for name in _ADAPTER_FIELDS if name in set_fields(tune)):
            field = document_name(tune, name)
            hint = "leave it out, or set `method: lora`"
            report_ignored_field(problems, field, (*_AT, field), "with `method: full`", hint)
    gpu = gpu_of(spec, context.catalog)
    if tune.method == "qlora" and not gpu_count(spec.resources):
        problems.error(
            "KG0376",
            "`method: qlora` needs an NVIDIA GPU for its 4-bit weights",
            (*_AT, "method"),
            "set `resources.gpus`, or `method: lora`",
        )
    elif gpu is not None and gpu.vendor != "nvidia" and tune.image is None:
        problems.error(
            "KG0376",
            f"kaigen's image trains on NVIDIA GPUs and CPUs, and {gpu.name} is neither",
            ("spec", "resources"),
            "set `tune.image` to an image with `kaigen-train` and PyTorch for this GPU, or another GPU",
        )
    elif gpu is not None:
        _check_gpu_memory(
            spec, tune, gpu, problems.attempt(lambda: job_model(spec, namespace, context), None), problems
        )


def _check_output(spec: JobSpec, tune: Tune, problems: Problems) -> None:
    """Report a folder for the result that is in no volume, or next to another one."""
    if tune.output is None:
        return
    if spec.output is not None:
        problems.error(
            "KG0374", "the result has two places", (*_AT, "output"), "keep `output` of the Job or `tune.output`"
        )
    folders = [volume.mount_path for volume in spec.volumes.values() if volume.mount_path and not volume.read_only]
    if not any(f"{tune.output}/".startswith(folder.rstrip("/") + "/") for folder in folders):
        problems.error(
            "KG0374",
            f"no volume that can be written to is mounted at `{tune.output}`, so the result would be lost with the pod",
            (*_AT, "output"),
            "add a claim with that `mountPath` to `volumes`",
        )


def gpu_of(spec: JobSpec, catalog: Catalog) -> Gpu | None:
    """Return the GPU model of the nodes; None without GPUs, or where nothing decides it.

    Raises:
        ProblemError: the catalogue does not have it.
    """
    resources = spec.resources
    if not gpu_count(resources):
        return None
    if resources.gpu_type is not None:
        return get_gpu(resources.gpu_type, catalog)
    instance = find_instance(resources.instance_type, catalog) if resources.instance_type else None
    return instance.gpu if instance is not None else None


def _check_gpu_memory(spec: JobSpec, tune: Tune, gpu: Gpu, model: KnownModel | None, problems: Problems) -> None:
    share = spec.resources.gpus
    profile = share.profile if isinstance(share, GpuShare) else None
    usable = gpu.mig.get(profile) if profile else gpu.usable or gpu.memory
    if model is None or usable is None:
        return
    least = least_gpu_memory(model.facts, tune.method)
    if least <= usable:
        _check_peak(tune, gpu, usable, model, problems)
        return
    what = "weights, gradients and optimizer" if tune.method == "full" else "weights"
    smaller = {"full": "`method: lora` or ", "lora": "`method: qlora` or "}.get(tune.method, "")
    problems.error(
        "KG1107",
        f"the {what} of {model.name} ({parameters(model.facts) * 2**30 / 1e9:.1f} billion parameters) take "
        f"{least:.0f} GiB of each GPU with `method: {tune.method}`, and {gpu.name} has {usable:.0f} GiB",
        (*_AT, "method"),
        f"use {smaller}a larger GPU; several GPUs do not share one copy of a model that is trained",
    )


def _check_peak(tune: Tune, gpu: Gpu, usable: float, model: KnownModel, problems: Problems) -> None:
    """Warn of a pass that takes more memory than a GPU has, for samples of the full length."""
    training = _training(tune, 1)
    peak = peak_gpu_memory(model.facts, training)
    if peak <= usable:
        return
    one = peak_gpu_memory(model.facts, replace(training, batch_size=1))
    each = (peak - one) / max(1, tune.batch_size - 1)
    fitting = int((usable - one) / each) + 1 if one <= usable and each else 0
    problems.warning(
        "KG1107",
        f"a pass of {plural(tune.batch_size, 'sample')} of {tune.max_length} tokens takes {peak:.0f} GiB of each GPU, "
        f"and {gpu.name} has {usable:.0f} GiB",
        (*_AT, "batchSize"),
        f"use `batchSize: {fitting}`, and more `gradientAccumulation`" if fitting else "use a smaller `maxLength`",
    )
