"""Models and Datasets that a notebook reads: each mounted read-only, after its download is complete."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kaigen.compile.builders.mounts import Mounted, MountPoint, Readers
from kaigen.compile.builders.settings import key
from kaigen.compile.model.volume import find_used, mount_model
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds import notebook
from kaigen.kinds.model import Dataset, Model
from kaigen.kinds.notebook import NotebookSpec

_FORM = "{{name: {name}, namespace: {namespace}}}"
"""How a notebook names a Model or Dataset of another namespace."""


class _Source(Struct, frozen=True):
    """A field of the spec with names of Models or Datasets.

    Attributes:
        field: the field, the first part of the settings, and the parent of the folders.
        word: beginning of the names of the pod's volumes.
        kind: of what it names.
    """

    field: str
    word: str
    kind: type[Model] | type[Dataset]


def notebook_mounts(spec: NotebookSpec, readers: Readers, problems: Problems) -> Mapping[FieldPath, Mounted]:
    """Return how the files of Models and Datasets reach the container, by the spec's field of each.

    Args:
        spec: the spec.
        readers: the pod.
        problems: collects what is wrong.
    """
    found: dict[FieldPath, Mounted] = {}
    sources = (
        (_Source("models", "model", Model), spec.models),
        (_Source("datasets", "dataset", Dataset), spec.datasets),
    )
    for source, uses in sources:
        names: set[str] = set()
        for index, given in enumerate(uses):
            use = notebook.Mounted(name=given) if isinstance(given, str) else given
            at: FieldPath = ("spec", source.field, index)
            if use.name in names:
                message = f"`{source.field}` names `{use.name}` twice"
                problems.error("KG0314", message, at, "leave one of them out")
                continue
            names.add(use.name)
            origin = at if isinstance(given, str) else (*at, "name")
            try:
                model = find_used(source.kind, use.name, use.namespace, origin, readers, _FORM)
                found[at] = mount_model(model, _point(source, use), readers, origin, problems, use.namespace)
            except ProblemError as error:
                problems.add(error.problem)
    return found


def _point(source: _Source, use: notebook.Mounted) -> MountPoint:
    return MountPoint(
        volume=f"{source.word}-{use.name}",
        folder=use.mount_path or f"/{source.field}/{use.name}",
        gate=f"wait-for-{use.name}",
        settings=f"{source.field}.{key(use.name)}.",
        role=f"-{source.word}-{use.name}",
    )
