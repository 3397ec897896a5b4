"""`kaigen.yaml` as people write it, and reading of the file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from kaigen.config.deferred import Deferred
from kaigen.config.document import read_document, validated
from kaigen.config.gitops import Cluster, GitOps, GitOpsOverrides
from kaigen.config.images import Images
from kaigen.config.overrides import PATCHABLE, OverrideEntry
from kaigen.config.patches import PatchEntry
from kaigen.config.publish import Publish
from kaigen.config.secrets import Secrets
from kaigen.config.settings import FILE_NAME, Format
from kaigen.diagnostics.collector import Diagnostics
from kaigen.kinds.base import RELATIVE_PATH, AppName, Block, LabelName
from kaigen.kinds.entry import API_VERSION, KindEntry, NullPath
from kaigen.yaml.document import Document

Version = Annotated[str, Field(pattern=r"^1\.[0-9]+$")]
RelativePath = Annotated[str, Field(min_length=1, pattern=RELATIVE_PATH)]


class SharedFields(Block):
    """The fields that the file may set for all environments, and each environment again."""

    kubernetes: Version | None = Field(
        None, description="Kubernetes version that objects are validated against.", examples=["1.36"]
    )
    profile: str | None = Field(None, description="Cluster profile.", examples=["generic", "eks"])
    namespace: LabelName | None = Field(None, description="Namespace of specs without a namespace.")
    registry: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.:/_-]*[a-z0-9]$")] | None = Field(
        None, description="Mirror for kaigen's own images."
    )
    images: Images = Field(default_factory=dict, validate_default=True, description="kaigen's own images.")
    values: dict[str, dict[str, JsonValue]] = Field(
        {},
        description="Overridden settings by app (`NAME` or `NAMESPACE/NAME`), as in the chart's `values.yaml`.",
    )
    secrets: Annotated[Secrets | None, Deferred()] = Field(
        None, description="How Secrets that apps refer to are created."
    )
    overrides: Annotated[list[OverrideEntry], Deferred()] = Field(
        [],
        description="Overrides of spec fields by app, kind or label; later entries take precedence.",
    )
    patches: Annotated[list[PatchEntry], Deferred()] = Field(
        [], description="Patches of the rendered objects, applied in order after everything else."
    )


class Environment(SharedFields):
    """Environment overrides."""

    clusters: list[LabelName] = Field(
        [], description="Clusters to deploy to, by name. Default: the cluster that Argo CD runs in."
    )
    gitops: Annotated[GitOpsOverrides | None, Deferred()] = Field(None, description="Overrides of `gitops`.")


class ConfigFile(SharedFields):
    """The contents of kaigen.yaml."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="API version.")
    kind: Literal["Config"] = Field("Config", description="The kind.")
    specs: Annotated[list[RelativePath], Field(min_length=1)] = Field(
        ["specs"], description="Files and folders with the specs."
    )
    output: RelativePath = Field("rendered", description="Output folder; it must contain nothing else.")
    format: Format = Field("manifests", description="Form of the output: `manifests`, `chart` or `both`.")
    passthrough: bool = Field(False, description="Copy plain Kubernetes objects among the specs unchanged.")
    kinds: list[RelativePath] = Field(
        [], description="Folders that define your own kinds: each contains `kind.yaml`, or folders that do."
    )
    clusters: Annotated[dict[LabelName, Cluster], Deferred()] = Field(
        {}, description="Clusters of the environments."
    )
    gitops: Annotated[GitOps | None, Deferred()] = Field(
        None, description="Objects for Argo CD and Flux, written next to the apps."
    )
    environments: Annotated[dict[AppName, Environment], Deferred()] = Field(
        {}, description="Overrides by environment."
    )
    promotion: list[AppName] = Field(
        [],
        description="Environments in the order of promotion, which `kaigen promote` enforces.",
        examples=[["dev", "staging", "prod"]],
    )
    publish: Annotated[Publish | None, Deferred()] = Field(None, description="Defaults of `kaigen publish`.")


_NULLABLE: tuple[NullPath, ...] = (
    ("values",),  # null removes a default.
    *(("overrides", "*", part) for part in ("metadata", *PATCHABLE)),  # null removes a field.
    ("patches", "*", "patch"),
)
"""Paths in kaigen.yaml and its environments where null is allowed."""

CONFIG_ENTRY = KindEntry(
    API_VERSION,
    "Config",
    "kaigen.config.file:ConfigFile",
    "settings of a repository",
    nullable=(*_NULLABLE, *(("environments", "*", *path) for path in _NULLABLE)),
)


def read_file(root: Path) -> tuple[ConfigFile, Document | None]:
    """Return the `kaigen.yaml` of a folder with its places; the defaults and None without the file.

    Raises:
        InputError: the file is invalid.
    """
    path = root / FILE_NAME
    if not os.path.lexists(path):
        return ConfigFile(), None
    problems = Diagnostics()
    document = read_document(path, "KG0701", problems)
    model = validated(document, CONFIG_ENTRY, problems) if document is not None else None
    problems.raise_errors()
    return (model if isinstance(model, ConfigFile) else ConfigFile()), document
