"""The workload `classify`: the container of kaigen's own image, and what its settings require."""

from __future__ import annotations

from kaigen.catalog.classifiers import classifier_weights
from kaigen.compile.builders.pods import gpu_count
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.classify import Classify
from kaigen.kinds.job import Inputs, JobSpec, ModelUse, OutputVolume

ENTRY = ("kaigen-classify",)
"""Entry point of its image (source: runtimes/classify/Dockerfile)."""

PERMANENT_EXIT_CODES = (2, 10, 11, 12, 13)
"""Exit codes of kaigen-classify after which a retry cannot succeed (source: its README)."""

_AT: FieldPath = ("spec", "classify")
_WEIGHTS_FILE = "model.safetensors"
_RESULT_FILE = "output.json"


def classify_settings(spec: JobSpec) -> Classify | None:
    """Return the settings of the workload `classify`; None for a Job with another container."""
    if spec.workload != "classify":
        return None
    return spec.classify if spec.classify is not None else Classify()


def classify_arguments(
    spec: JobSpec, inputs: Inputs | None, output: OutputVolume | None, *, has_gpu: bool
) -> list[str]:
    """Return the arguments of kaigen-classify.

    Args:
        spec: a spec with the workload `classify`.
        inputs: files that are fetched before the run.
        output: the volume for results.
        has_gpu: whether the container has a GPU.

    Raises:
        ProblemError: the weights, the images or the place of the result are not known.
    """
    settings = classify_settings(spec)
    assert settings is not None
    weights = settings.weights
    return [
        f"--model={settings.model}",
        f"--weights={_weights_path(spec, settings)}",
        *([f"--weights-version={weights.version}"] if weights.version else []),
        *([f"--weights-sha256={weights.sha256}"] if weights.sha256 else []),
        f"--input={_input_path(settings, inputs, output)}",
        f"--output={_result_path(settings, output)}",
        f"--top-k={settings.top_k}",
        f"--batch-size={settings.batch_size}",
        f"--precision={settings.precision}",
        f"--device={'cuda' if has_gpu else 'cpu'}",
    ]


def _weights_path(spec: JobSpec, settings: Classify) -> str:
    weights, use = settings.weights, spec.model
    if weights.path is not None:
        return weights.path
    if use is None:
        raise ProblemError(
            "KG0364",
            f"there are no weights for {settings.model}",
            ("spec", "workload") if spec.classify is None else ("spec", "classify", "model"),
            f"set {classifier_weights(settings.model).advice()}, or `classify.weights.path` to a file in the image",
        )
    folder = use.mount_path if isinstance(use, ModelUse) else "/model"
    return f"{folder.rstrip('/')}/{weights.file or _WEIGHTS_FILE}"


def _input_path(settings: Classify, inputs: Inputs | None, output: OutputVolume | None) -> str:
    if settings.input is not None:
        return settings.input
    if inputs is None:
        raise ProblemError(
            "KG0365",
            "there are no images to classify",
            ("spec", "workload"),
            "set `classify.input` to an image, a folder or a list of images, or add `inputs`",
        )
    return inputs.mount_path


def _result_path(settings: Classify, output: OutputVolume | None) -> str:
    root = output.mount_path.rstrip("/") + "/" if output else ""
    if output is None:
        raise ProblemError(
            "KG0366",
            "the result would be lost with the pod",
            ("spec", "workload"),
            "add `output.volume` for the result",
        )
    path = settings.output or f"{root}{_RESULT_FILE}"
    if not path.startswith(root) or path == root or "/../" in f"{path}/":
        raise ProblemError(
            "KG0366",
            f"the result would be lost with the pod: `{path}` is not inside `{output.mount_path}`",
            (*_AT, "output"),
            f"set a path inside `{output.mount_path}`, or another `output.volume.mountPath`",
        )
    return path


def check_classify(spec: JobSpec, problems: Problems) -> None:
    """Report values that the program cannot use."""
    settings = classify_settings(spec)
    if settings is None:
        return
    shards = "use `shards` for more GPUs"
    if spec.nodes > 1:
        report_ignored_field(problems, "nodes", ("spec", "nodes"), "on `workload: classify`", shards)
    if gpu_count(spec.resources) > 1:
        message = f"a pod with `workload: classify` requests {gpu_count(spec.resources)} GPUs and uses one"
        problems.warning("KG0328", message, ("spec", "resources", "gpus"), f"set 1; {shards}")
    weights = settings.weights
    if weights.path is not None:
        for name in set_fields(weights) & {"file"}:
            path: FieldPath = (*_AT, "weights", document_name(weights, name))
            report_ignored_field(problems, name, path, "next to `path`", "keep one of the two")
    if (settings.model, weights.version) == ("mobilenet_v3_small", "IMAGENET1K_V2"):
        problems.error(
            "KG0367",
            "mobilenet_v3_small has no weights `IMAGENET1K_V2`",
            (*_AT, "weights", "version"),
            "use `IMAGENET1K_V1`",
        )
