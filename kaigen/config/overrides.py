"""The block `overrides` of kaigen.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Field, JsonValue, Tag, create_model

from kaigen.config.settings import Override
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
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
    """The specs to change; they must match all of these fields as written. Without fields, every spec matches."""

    app: (
        Annotated[
            Annotated[AppGlob, Tag("one")]
            | Annotated[Annotated[list[AppGlob], Field(min_length=1)], Tag("list")],
            Discriminator(_form),
        ]
        | None
    ) = Field(
        None,
        description="Apps, `NAME` or `NAMESPACE/NAME`, one or a list, with the wildcards `*` and `?`.",
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
    labels: Labels = Field({}, description="Labels of the spec.", examples=[{"team": "search"}])


class MetadataPatch(Block):
    """Labels and annotations to add, change, or remove with null."""

    labels: dict[Annotated[str, Field(pattern=LABEL_KEY, max_length=317)], JsonValue] = Field(
        {}, description="Labels; null removes a label."
    )
    annotations: dict[Annotated[str, Field(pattern=LABEL_KEY, max_length=317)], JsonValue] = Field(
        {}, description="Annotations; null removes an annotation."
    )


class _Override(Block):
    """An override of the specs that match."""

    match: Match = Field(default_factory=dict, validate_default=True, description="The specs to change.")
    spec: Patch = Field(
        {},
        description="JSON merge patch (RFC 7396) of `spec` as written: mappings are merged, null removes a "
        "field, and any other value, including lists, replaces the field.",
        examples=[{"placement": {"spot": True}}],
    )
    metadata: MetadataPatch = Field(
        default_factory=dict, validate_default=True, description="Merge patch of labels and annotations."
    )


def _patch_field(name: str) -> tuple[Any, Any]:
    keys = " and ".join(f"`{entry.key}`" for entry in KINDS if name in entry.patchable and not entry.older)
    return Patch, Field({}, description=f"JSON merge patch of `{name}` of {keys}.")


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
    """Return the overrides of all layers in order.

    Args:
        layers: the entries of each with the path of the block that contains them.
        document: kaigen.yaml; None when there is none.
        found: receives the errors.
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
                hint = "set `spec` or `metadata`"
                found.add(Diagnostic("KG0710", "this override changes nothing", document.mark(at), hint))
            every.append(
                Override(
                    _listed(entry.match.app), _listed(entry.match.kind), dict(entry.match.labels), patch, at
                )
            )
    return tuple(every)


def _listed(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
