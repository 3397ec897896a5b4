"""Datasets that a Job reads: mounted read-only below the folder of the inputs, after they are complete."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.compile.builders import settings
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.ignored_fields import report_ignored_field
from kaigen.compile.job.weights import JobWeights
from kaigen.compile.model.volume import (
    check_sharing,
    find_dataset,
    gates,
    model_claim,
    mount_annotations,
    warn_of_pinned_volume,
    weights_mount,
)
from kaigen.compile.problems import Problems
from kaigen.kinds.block import derived
from kaigen.kinds.job import Input, Inputs, JobSpec


def with_folders(inputs: Inputs) -> Inputs:
    """Return inputs whose Datasets have a folder: by default one with the name of the Dataset."""
    files = [
        derived(file, path=file.dataset) if file.dataset and not file.path else file for file in inputs.files
    ]
    return derived(inputs, files=files)


def input_origin(spec: JobSpec) -> SpecPath:
    """Return the spec's field with the list of inputs."""
    return ("spec", "inputs", "files") if isinstance(spec.inputs, Inputs) else ("spec", "inputs")


def _datasets(inputs: Inputs | None) -> Iterator[tuple[int, Input, str]]:
    for number, file in enumerate(inputs.files if inputs else []):
        if file.dataset:
            yield number, file, file.dataset


def job_datasets(
    spec: JobSpec,
    inputs: Inputs | None,
    namespace: str,
    context: Context,
    problems: Problems,
    *,
    has_gpu: bool,
) -> JobWeights:
    """Return how Datasets reach the container.

    Args:
        spec: the spec.
        inputs: its inputs, each Dataset with a folder.
        namespace: namespace of the app.
        context: what it is compiled for.
        problems: collects what is wrong.
        has_gpu: whether the pods have GPUs.

    Raises:
        ProblemError: a Dataset does not exist.
    """
    found = JobWeights([], [], [], {}, {})
    pods, what = max((spec.nodes, "nodes"), (spec.shards, "shards"))
    for number, file, name in _datasets(inputs):
        assert inputs is not None
        origin: SpecPath = (*input_origin(spec), number, "dataset")
        dataset = find_dataset(context, namespace, name, origin)
        check_sharing(
            dataset, problems, pods=pods, what=f"{pods} {what}", origin=origin, certain=spec.nodes > 1
        )
        warn_of_pinned_volume(dataset, problems, has_gpu=has_gpu, consumer="Job", origin=origin)
        volume, folder = f"dataset-{name}", f"{inputs.mount_path.rstrip('/')}/{file.path}"
        if any(known.get("name") == volume for known in found.mounts):
            found.mounts.append(weights_mount(dataset, volume=volume, folder=folder))
            continue
        claim: Tree = model_claim(f"datasets.{settings.key(name)}.claimName", dataset, origin)
        found.init.extend(gates(dataset, context, name=f"wait-for-{name}", volume=volume, folder=folder))
        found.mounts.append(weights_mount(dataset, volume=volume, folder=folder))
        found.volumes.append(
            {"name": volume, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
        )
        found.annotations.update(mount_annotations(dataset))
    return found


def check_datasets(spec: JobSpec, inputs: Inputs, problems: Problems) -> None:
    """Report Datasets in the output volume, and checksums that nothing compares."""
    for number, file, _ in _datasets(inputs):
        origin: SpecPath = (*input_origin(spec), number)
        if inputs.into is not None:
            problems.error(
                "KG0371",
                "a Dataset is mounted from its own volume, not stored in the output volume",
                (*origin, "dataset"),
                "use inputs without `into`",
            )
        if file.sha256:
            where = "on a Dataset, whose files have their own checksums"
            report_ignored_field(problems, "sha256", (*origin, "sha256"), where, "leave it out")
