"""The block `overrides` of kaigen.yaml, and the same list in files next to the specs."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.config.settings import Override
from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.kinds.base import NO_BLANKS, LabelKey, Labels, check_text, listable_text, text
from kaigen.kinds.block import Block
from kaigen.kinds.entry import API_VERSION, PATCHABLE, KindEntry
from kaigen.yaml.document import Document

APP_GLOB = r"^([-a-z0-9*?]+/)?[-a-z0-9*?]+$"
AppGlob = Annotated[str, text(APP_GLOB, max_length=117)]
KindName = Annotated[str, text(NO_BLANKS, min_length=1, max_length=100)]
Patch = dict[str, Json]


class Match(Block):
    """The specs to change; they must match all of these fields as written. Without fields, every spec matches."""

    app: Annotated[
        Annotated[str, listable_text(APP_GLOB, max_length=117)] | Annotated[list[AppGlob], Meta(min_length=1)] | None,
        Meta(
            description="Apps, `NAME` or `NAMESPACE/NAME`, one or a list, with the wildcards `*` and `?`.",
            examples=["qwen", "ml/*"],
        ),
    ] = None
    kind: Annotated[
        Annotated[str, listable_text(NO_BLANKS, min_length=1, max_length=100)]
        | Annotated[list[KindName], Meta(min_length=1)]
        | None,
        Meta(description="Kinds, as `kaigen kinds` lists them, one or a list.", examples=["Model", "ai-operator.Job"]),
    ] = None
    labels: Annotated[Labels, Meta(description="Labels of the spec.", examples=[{"team": "search"}])] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        check_text(APP_GLOB, self.app)
        check_text(NO_BLANKS, self.kind)


class MetadataPatch(Block):
    """Labels and annotations to add, change, or remove with null."""

    labels: Annotated[dict[LabelKey, Json], Meta(description="Labels; null removes a label.")] = field(
        default_factory=dict
    )
    annotations: Annotated[dict[LabelKey, Json], Meta(description="Annotations; null removes an annotation.")] = field(
        default_factory=dict
    )


class OverrideEntry(Block):
    """An override of the specs that match."""

    match: Annotated[Match, Meta(description="The specs to change.")] = field(default_factory=Match)
    spec: Annotated[
        Patch,
        Meta(
            description="JSON merge patch (RFC 7396) of `spec` as written: mappings are merged, null removes a "
            "field, and any other value, including lists, replaces the field.",
            examples=[{"placement": {"spot": True}}],
        ),
    ] = field(default_factory=dict)
    metadata: Annotated[MetadataPatch, Meta(description="Merge patch of labels and annotations.")] = field(
        default_factory=MetadataPatch
    )
    resource: Annotated[Patch, Meta(description="JSON merge patch of `resource` of `kaito.Workspace`.")] = field(
        default_factory=dict
    )
    inference: Annotated[Patch, Meta(description="JSON merge patch of `inference` of `kaito.Workspace`.")] = field(
        default_factory=dict
    )
    tuning: Annotated[Patch, Meta(description="JSON merge patch of `tuning` of `kaito.Workspace`.")] = field(
        default_factory=dict
    )


class AppsOfEnvironment(Block):
    """The apps that an environment has."""

    include: Annotated[
        list[AppGlob],
        Meta(
            description="Apps, `NAME` or `NAMESPACE/NAME`, with the wildcards `*` and `?`. Default: all.",
            examples=[["qwen", "search/*"]],
        ),
    ] = field(default_factory=list)
    exclude: Annotated[
        list[AppGlob],
        Meta(description="Apps that the environment does not have, in the same form.", examples=[["rerank"]]),
    ] = field(default_factory=list)


class FolderOverrides(Block):
    """Overrides of the specs of a folder in one environment: the file `FOLDER/overrides/ENVIRONMENT.yaml`."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")]
    kind: Annotated[Literal["Overrides"], Meta(description="The kind.")]
    overrides: Annotated[
        list[OverrideEntry],
        Meta(
            min_length=1,
            description="Overrides of spec fields by app, kind or label; later entries take precedence, and those of "
            "kaigen.yaml over these.",
        ),
    ]


OVERRIDES_ENTRY = KindEntry(
    API_VERSION,
    "Overrides",
    "kaigen.config.overrides:FolderOverrides",
    "overrides of a folder's specs in one environment",
    nullable=tuple(("overrides", "*", part) for part in ("metadata", *PATCHABLE)),
)


def override_settings(
    entries: Iterable[OverrideEntry],
    paths: Iterable[FieldPath],
    document: Document | None,
    found: Diagnostics,
) -> tuple[Override, ...]:
    """Return the overrides in order.

    Args:
        entries: of all layers.
        paths: of the entries in their file.
        document: the file; None when there is none.
        found: receives the errors.
    """
    every = []
    for entry, at in zip(entries, paths, strict=True):
        metadata = {
            name: values
            for name, values in (("labels", entry.metadata.labels), ("annotations", entry.metadata.annotations))
            if values
        }
        parts = {"metadata": metadata, **{name: getattr(entry, name) for name in PATCHABLE}}
        patch = {name: value for name, value in parts.items() if value}
        if not patch and document is not None:
            hint = "set `spec` or `metadata`"
            found.add(Diagnostic("KG0710", "this override changes nothing", document.mark(at), hint))
        match = entry.match
        every.append(Override(_listed(match.app), _listed(match.kind), dict(match.labels), patch, at))
    return tuple(every)


def _listed(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
