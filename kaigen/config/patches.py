"""The block `patches` of kaigen.yaml."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from kaigen.config.block_settings import ObjectPatch
from kaigen.core.json_types import FieldPath, Json
from kaigen.kinds.base import NO_BLANKS, RELATIVE_PATH, check_text, listable_text, text
from kaigen.kinds.block import Block


class Target(Block):
    """The objects to patch; they must match all of these fields."""

    app: Annotated[
        str,
        text(
            r"^([-a-z0-9*?]+/)?[-a-z0-9*?]+$",
            max_length=117,
            description="App, `NAME` or `NAMESPACE/NAME`, with the wildcards `*` and `?`.",
            examples=["qwen", "ml/*"],
        ),
    ]
    kind: Annotated[
        Annotated[str, text(r"^[A-Z][A-Za-z0-9]*$", max_length=63)] | None,
        Meta(description="Kind of the objects.", examples=["Deployment"]),
    ] = None
    name: Annotated[
        Annotated[str, text(NO_BLANKS, min_length=1, max_length=253)] | None,
        Meta(
            description="Name of the objects, or of their files in the output, with the wildcards `*` and `?`.",
            examples=["*-weights", "job"],
        ),
    ] = None


class PatchEntry(Block):
    """A patch of objects."""

    target: Annotated[Target, Meta(description="The objects to patch.")]
    patch: Annotated[
        Annotated[str, listable_text(RELATIVE_PATH, min_length=1, description="A file that contains the patch.")]
        | Annotated[list[dict[str, Json]], Meta(min_length=1, description="Operations (RFC 6902).")]
        | Annotated[dict[str, Json], Meta(description="A merge patch.")],
        Meta(
            description="A JSON patch (RFC 6902), which is a list of operations; a merge patch, which is a mapping, "
            "and merges containers, environment variables, volumes and ports by their names as kustomize does; or a "
            "file that contains one of them.",
            examples=["patches/qwen.yaml"],
        ),
    ]

    def __post_init__(self) -> None:
        check_text(RELATIVE_PATH, self.patch)


def patch_settings(entries: Iterable[PatchEntry], paths: Iterable[FieldPath]) -> tuple[ObjectPatch, ...]:
    """Return the patches in order.

    Args:
        entries: of all layers.
        paths: of the entries in kaigen.yaml.
    """
    return tuple(
        ObjectPatch(app=entry.target.app, kind=entry.target.kind, name=entry.target.name, patch=entry.patch, at=at)
        for entry, at in zip(entries, paths, strict=True)
    )
