"""Datasets that a Job reads: mounted read-only below the folder of the inputs, after they are complete."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.compile.builders import settings
from kaigen.compile.builders.mounts import Mounted, MountPoint, Readers, together
from kaigen.compile.ignored_fields import report_ignored_field
from kaigen.compile.model.volume import find_used, mount_model
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import derive_fields
from kaigen.kinds.job import Input, Inputs, JobSpec
from kaigen.kinds.model import Dataset

_FORM = "{{dataset: {name}, namespace: {namespace}}}"
"""How an input names a Dataset of another namespace."""


def with_folders(inputs: Inputs) -> Inputs:
    """Return inputs whose Datasets have a folder: by default one with the name of the Dataset."""
    files = [
        derive_fields(file, path=file.dataset) if file.dataset and not file.path else file for file in inputs.files
    ]
    return derive_fields(inputs, files=files)


def input_origin(spec: JobSpec) -> FieldPath:
    """Return the spec's field with the list of inputs."""
    return ("spec", "inputs", "files") if isinstance(spec.inputs, Inputs) else ("spec", "inputs")


def _datasets(inputs: Inputs | None) -> Iterator[tuple[int, Input, str]]:
    for number, file in enumerate(inputs.files if inputs else []):
        if file.dataset:
            yield number, file, file.dataset


def job_datasets(spec: JobSpec, inputs: Inputs | None, readers: Readers, problems: Problems) -> Mounted:
    """Return how Datasets reach the container.

    Args:
        spec: the spec.
        inputs: its inputs, each Dataset with a folder.
        readers: the pods.
        problems: collects what is wrong.

    Raises:
        ProblemError: a Dataset does not exist.
    """
    found: list[Mounted] = []
    names: set[str] = set()
    for number, file, name in _datasets(inputs):
        assert inputs is not None
        origin: FieldPath = (*input_origin(spec), number, "dataset")
        dataset = find_used(Dataset, name, file.namespace, origin, readers, _FORM)
        point = MountPoint(
            volume=f"dataset-{name}",
            folder=f"{inputs.mount_path.rstrip('/')}/{file.path}",
            gate=f"wait-for-{name}",
            settings=f"datasets.{settings.key(name)}.",
            role=f"-dataset-{name}",
        )
        mounted = mount_model(dataset, point, readers, origin, problems, file.namespace)
        # Its volume is in the pod once.
        found.append(Mounted(mounts=mounted.mounts) if name in names else mounted)
        names.add(name)
    return together(found)


def check_datasets(spec: JobSpec, inputs: Inputs, problems: Problems) -> None:
    """Report Datasets in the output volume, and checksums that nothing compares."""
    for number, file, _ in _datasets(inputs):
        origin: FieldPath = (*input_origin(spec), number)
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
    for number, file in enumerate(inputs.files):
        if file.namespace is not None and file.dataset is None:
            at: FieldPath = (*input_origin(spec), number, "namespace")
            report_ignored_field(problems, "namespace", at, "without a Dataset", "leave it out, or set `dataset`")
