"""The block `patches` of kaigen.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, JsonValue, Tag

from kaigen.config.block_settings import ObjectPatch
from kaigen.kinds.base import NO_BLANKS, RELATIVE_PATH, Block


def _form(value: Any) -> str:
    return "file" if isinstance(value, str) else "operations" if isinstance(value, list) else "merge"


class Target(Block):
    """The objects to patch; they must match all of these fields."""

    app: Annotated[str, Field(pattern=r"^([-a-z0-9*?]+/)?[-a-z0-9*?]+$", max_length=117)] = Field(
        description="App, `NAME` or `NAMESPACE/NAME`, with the wildcards `*` and `?`.",
        examples=["qwen", "ml/*"],
    )
    kind: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)] | None = Field(
        None, description="Kind of the objects.", examples=["Deployment"]
    )
    name: Annotated[str, Field(min_length=1, max_length=253, pattern=NO_BLANKS)] | None = Field(
        None,
        description="Name of the objects, or of their files in the output, with the wildcards `*` and `?`.",
        examples=["*-weights", "job"],
    )


class PatchEntry(Block):
    """A patch of objects."""

    target: Target = Field(description="The objects to patch.")
    patch: Annotated[
        Annotated[
            str,
            Field(min_length=1, pattern=RELATIVE_PATH, description="A file that contains the patch."),
            Tag("file"),
        ]
        | Annotated[
            Annotated[list[dict[str, JsonValue]], Field(min_length=1, description="Operations (RFC 6902).")],
            Tag("operations"),
        ]
        | Annotated[dict[str, JsonValue], Field(description="A merge patch (RFC 7396)."), Tag("merge")],
        Discriminator(_form),
    ] = Field(
        description="A JSON patch (RFC 6902), which is a list of operations; a JSON merge patch (RFC 7396), which is "
        "a mapping; or a file that contains one of them.",
        examples=["patches/qwen.yaml"],
    )


def patch_settings(
    layers: Sequence[tuple[Sequence[PatchEntry], tuple[str, ...]]],
) -> tuple[ObjectPatch, ...]:
    """Return the patches of all layers in order.

    Args:
        layers: the entries of each with the path of the block that contains them.
    """
    return tuple(
        ObjectPatch(
            app=entry.target.app,
            kind=entry.target.kind,
            name=entry.target.name,
            patch=entry.patch,
            at=(*place, "patches", index),
        )
        for entries, place in layers
        for index, entry in enumerate(entries)
    )
