"""Models and Datasets that a notebook reads: each mounted read-only, after its download is complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from kaigen.compile.builders.settings import key
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.model.volume import (
    find_dataset,
    find_model,
    gates,
    model_claim,
    mount_annotations,
    warn_of_pinned_volume,
    weights_mount,
)
from kaigen.compile.problems import Problems
from kaigen.kinds.model import Dataset, Model
from kaigen.kinds.notebook import Mounted, NotebookSpec


class StoredMount(Struct, frozen=True):
    """How the files of one Model or Dataset reach the container.

    Attributes:
        origin: the spec's field of it.
        init: containers that run before it.
        mounts: volume mounts of the container.
        volumes: volumes of the pod.
        annotations: annotations that the pod needs to mount them.
    """

    origin: SpecPath
    init: Sequence[Mapping[str, Tree]] = ()
    mounts: Sequence[Mapping[str, Tree]] = ()
    volumes: Sequence[Tree] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


class _Source(Struct, frozen=True):
    """A field of the spec with names of Models or Datasets.

    Attributes:
        field: the field, the first part of the settings, and the parent of the folders.
        word: beginning of the names of the pod's volumes.
        find: returns the Model or Dataset of a name.
    """

    field: str
    word: str
    find: Callable[[Context, str, str, SpecPath], Model | Dataset]


def stored_mounts(
    spec: NotebookSpec, namespace: str, context: Context, problems: Problems, *, has_gpu: bool
) -> tuple[StoredMount, ...]:
    """Return how the files of Models and Datasets reach the container.

    Args:
        spec: the spec.
        namespace: namespace of the app.
        context: what it is compiled for.
        problems: collects what is wrong.
        has_gpu: whether the pod has a GPU.
    """
    found: list[StoredMount] = []
    sources = (
        (_Source("models", "model", find_model), spec.models),
        (_Source("datasets", "dataset", find_dataset), spec.datasets),
    )
    for source, uses in sources:
        names: set[str] = set()
        for index, given in enumerate(uses):
            use = Mounted(name=given) if isinstance(given, str) else given
            origin: SpecPath = ("spec", source.field, index)
            if use.name in names:
                message = f"`{source.field}` names `{use.name}` twice"
                problems.error("KG0314", message, origin, "leave one of them out")
                continue
            names.add(use.name)
            at = origin if isinstance(given, str) else (*origin, "name")
            found.append(
                problems.attempt(
                    lambda source=source, use=use, at=at: _mount(  # type: ignore[misc]
                        source, use, namespace, context, problems, has_gpu=has_gpu, origin=at
                    ),
                    StoredMount(origin),
                )
            )
    return tuple(found)


def _mount(
    source: _Source,
    use: Mounted,
    namespace: str,
    context: Context,
    problems: Problems,
    *,
    has_gpu: bool,
    origin: SpecPath,
) -> StoredMount:
    name, volume = use.name, f"{source.word}-{use.name}"
    folder = use.mount_path or f"/{source.field}/{name}"
    stored = source.find(context, namespace, name, origin)
    warn_of_pinned_volume(stored, problems, has_gpu=has_gpu, consumer="Notebook", origin=origin)
    claim = model_claim(f"{source.field}.{key(name)}.claimName", stored, origin)
    return StoredMount(
        origin=origin,
        init=gates(stored, context, name=f"wait-for-{name}", volume=volume, folder=folder),
        mounts=[weights_mount(stored, volume=volume, folder=folder)],
        volumes=[{"name": volume, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}],
        annotations=mount_annotations(stored),
    )
