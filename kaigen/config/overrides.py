"""`overrides` of kaigen.yaml as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Field, JsonValue, Tag, create_model

from kaigen.config.settings import Override
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics
from kaigen.dialects.registry import KINDS
from kaigen.kinds.base import LABEL_KEY, NO_BLANKS, Block, Labels
from kaigen.yaml.document import Document


def _form(value: Any) -> str:
    return "list" if isinstance(value, list) else "one"


AppGlob = Annotated[str, Field(pattern=r"^([-a-z0-9*?]+/)?[-a-z0-9*?]+$", max_length=117)]
KindName = Annotated[str, Field(min_length=1, max_length=100, pattern=NO_BLANKS)]
Patch = dict[str, JsonValue]
PATCHABLE = tuple(dict.fromkeys(["spec", *(name for entry in KINDS for name in entry.patchable)]))
"""Top-level fields besides `metadata` that an override may patch."""


class Match(Block):
    """Which specs are meant: those that all of this fits, as they are written; without any of it, every spec."""

    app: (
        Annotated[
            Annotated[AppGlob, Tag("one")]
            | Annotated[Annotated[list[AppGlob], Field(min_length=1)], Tag("list")],
            Discriminator(_form),
        ]
        | None
    ) = Field(
        None,
        description="Apps, `NAME` or `NAMESPACE/NAME`, one or a list; `*` and `?` stand for any characters.",
        examples=["qwen", "ml/*"],
    )
    kind: (
        Annotated[
            Annotated[KindName, Tag("one")]
            | Annotated[Annotated[list[KindName], Field(min_length=1)], Tag("list")],
            Discriminator(_form),
        ]
        | None
    ) = Field(
        None,
        description="Kinds, as `kaigen kinds` lists them, one or a list.",
        examples=["Model", "ai-operator.Job"],
    )
    labels: Labels = Field({}, description="Labels that the spec has.", examples=[{"team": "search"}])


class MetadataPatch(Block):
    """Labels and annotations to add, change or, by null, take away."""

    labels: dict[Annotated[str, Field(pattern=LABEL_KEY, max_length=317)], JsonValue] = Field(
        {}, description="Labels; null takes one away."
    )
    annotations: dict[Annotated[str, Field(pattern=LABEL_KEY, max_length=317)], JsonValue] = Field(
        {}, description="Annotations; null takes one away."
    )


class _Override(Block):
    """A change of the specs that match."""

    match: Match = Field(default_factory=dict, validate_default=True, description="Which specs are changed.")
    spec: Patch = Field(
        {},
        description="JSON merge patch (RFC 7396) of `spec` as the spec's author wrote it: mappings are merged, null "
        "takes a field away, anything else, lists too, replaces what was there.",
        examples=[{"placement": {"spot": True}}],
    )
    metadata: MetadataPatch = Field(
        default_factory=dict, validate_default=True, description="Labels and annotations, patched likewise."
    )


def _patch_field(name: str) -> tuple[Any, Any]:
    keys = " and ".join(f"`{entry.key}`" for entry in KINDS if name in entry.patchable and not entry.older)
    return Patch, Field({}, description=f"JSON merge patch of `{name}` of {keys}, likewise.")


if TYPE_CHECKING:
    OverrideEntry = _Override
else:
    OverrideEntry = create_model(
        "OverrideEntry",
        __base__=_Override,
        __doc__=_Override.__doc__,
        **{name: _patch_field(name) for name in PATCHABLE if name != "spec"},
    )


def merged_overrides(
    layers: Sequence[tuple[Sequence[_Override], tuple[str, ...]]],
    document: Document | None,
    found: Diagnostics,
) -> tuple[Override, ...]:
    """The overrides of all layers in their order.

    Args:
        layers: the entries of each with the path of the block that holds them.
        document: kaigen.yaml; None when there is none.
        found: takes what is wrong.
    """
    every = []
    for entries, place in layers:
        for index, entry in enumerate(entries):
            at: tuple[str | int, ...] = (*place, "overrides", index)
            metadata = {
                name: values
                for name, values in (
                    ("labels", entry.metadata.labels),
                    ("annotations", entry.metadata.annotations),
                )
                if values
            }
            parts = {"metadata": metadata, **{name: getattr(entry, name) for name in PATCHABLE}}
            patch = {name: value for name, value in parts.items() if value}
            if not patch and document is not None:
                hint = "write `spec` or `metadata` with what is to be another"
                found.add(Diagnostic("KG0710", "this override changes nothing", document.mark(at), hint))
            every.append(
                Override(
                    _listed(entry.match.app), _listed(entry.match.kind), dict(entry.match.labels), patch, at
                )
            )
    return tuple(every)


def _listed(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
