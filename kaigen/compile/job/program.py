"""kaigen's own programs that a Job runs in place of an image: `workload` and `tune`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kaigen.compile.builders.params import ParamsOf
from kaigen.compile.context import Context
from kaigen.compile.job import classify, tune
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Image
from kaigen.kinds.job import Inputs, JobSpec, OutputVolume


class Program(Struct, frozen=True):
    """One of kaigen's own programs with its settings.

    Attributes:
        image: its image.
        image_origin: the spec's field of the image; empty for the default image.
        arguments: its arguments.
        permanent: exit codes after which a retry cannot succeed.
        params: its settings in a file; None where all are arguments.
    """

    image: Image
    image_origin: FieldPath
    arguments: Sequence[str]
    permanent: tuple[int, ...]
    params: ParamsOf | None = None


def own_program(
    spec: JobSpec,
    inputs: Inputs | None,
    output: OutputVolume | None,
    context: Context,
    problems: Problems,
    *,
    has_gpu: bool,
) -> Program | None:
    """Return the program of a Job; None for a Job with an image of its own.

    Args:
        spec: the spec.
        inputs: files that are fetched before the run.
        output: the volume for results.
        context: its images are the defaults.
        problems: collects what the program lacks.
        has_gpu: whether the container has a GPU.
    """
    none: list[str] = []
    settings = classify.classify_settings(spec)
    if settings is not None:
        own = settings.image
        return Program(
            own if own is not None else context.config.images["classify"],
            ("spec", "classify", "image") if own is not None else (),
            problems.attempt(lambda: classify.classify_arguments(spec, inputs, output, has_gpu=has_gpu), none),
            classify.PERMANENT_EXIT_CODES,
        )
    if spec.tune is None:
        return None
    own = spec.tune.image
    return Program(
        own if own is not None else context.config.images["train"],
        ("spec", "tune", "image") if own is not None else (),
        problems.attempt(lambda: tune.tune_arguments(spec, inputs, output), none),
        tune.PERMANENT_EXIT_CODES,
        tune.tune_params(spec.tune),
    )
