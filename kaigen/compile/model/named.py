"""Models and Datasets that a list of a spec names, each mounted in a folder with its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.compile.builders.mounts import Mounted, MountPoint, Readers
from kaigen.compile.builders.settings import key
from kaigen.compile.model.volume import find_used, mount_model
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds import blocks
from kaigen.kinds.model import Dataset, Model

_FORM = "{{name: {name}, namespace: {namespace}}}"
"""How the list names a Model or Dataset of another namespace."""


class NamedSource(Struct, frozen=True):
    """A field of a spec with names of Models or Datasets.

    Attributes:
        field: the field, the first part of the settings, and the parent of the folders.
        word: beginning of the names of the pod's volumes.
        kind: of what it names.
        gate: beginning of the names of the containers that wait for them.
    """

    field: str
    word: str
    kind: type[Model] | type[Dataset]
    gate: str = "wait-for-"


def mount_named(
    source: NamedSource, uses: Sequence[str | blocks.Mounted], readers: Readers, problems: Problems
) -> Mapping[FieldPath, Mounted]:
    """Return how the files of Models or Datasets reach the container, by the spec's field of each.

    Args:
        source: the field of the spec.
        uses: its value.
        readers: the pods.
        problems: collects what is wrong.
    """
    found: dict[FieldPath, Mounted] = {}
    names: set[str] = set()
    for index, given in enumerate(uses):
        use = blocks.Mounted(name=given) if isinstance(given, str) else given
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


def _point(source: NamedSource, use: blocks.Mounted) -> MountPoint:
    return MountPoint(
        volume=f"{source.word}-{use.name}",
        folder=use.mount_path or f"/{source.field}/{use.name}",
        gate=f"{source.gate}{use.name}",
        settings=f"{source.field}.{key(use.name)}.",
        role=f"-{source.word}-{use.name}",
    )
