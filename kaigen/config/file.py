"""`kaigen.yaml` as people write it, and reading of the file."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import GenericAlias, new_class
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from msgspec import Meta, field
from msgspec.structs import asdict, fields

from kaigen.config.document import read_document, validate_block
from kaigen.config.images import Images
from kaigen.config.registry import RegistryBlock, RegistryText, check_registry
from kaigen.config.settings import FILE_NAME, Format
from kaigen.core.json_types import Json
from kaigen.diagnostics.collector import Diagnostics
from kaigen.kinds.base import DNS_SUBDOMAIN, RELATIVE_PATH, Annotations, AppName, LabelName, Labels, text
from kaigen.kinds.block import Block, later
from kaigen.kinds.entry import API_VERSION, PATCHABLE, KindEntry, NullPath
from kaigen.system.lazy_import import lazy_imports
from kaigen.yaml.document import Document

with lazy_imports():
    from kaigen.config import dialects as config_dialects
    from kaigen.dialects import packages

if TYPE_CHECKING:
    from kaigen.config.allow import Allow
    from kaigen.config.cluster import ClusterVersions
    from kaigen.config.dialects import Dialects
    from kaigen.config.external import ExternalEntry
    from kaigen.config.gitops import Cluster, GitOps
    from kaigen.config.licenses import Licenses
    from kaigen.config.network import Network
    from kaigen.config.overrides import AppsOfEnvironment, OverrideEntry
    from kaigen.config.patches import PatchEntry
    from kaigen.config.publish import Publish
    from kaigen.config.registry import Builds
    from kaigen.config.secrets import Secrets
    from kaigen.config.tenants import TenantBlock, TenantChange
else:
    ClusterVersions = later("kaigen.config.cluster:ClusterVersions")
    Allow = later("kaigen.config.allow:Allow")
    Builds = later("kaigen.config.registry:Builds")
    Dialects = later("kaigen.config.dialects:Dialects")
    ExternalEntry = later("kaigen.config.external:ExternalEntry")
    Cluster = later("kaigen.config.gitops:Cluster")
    GitOps = later("kaigen.config.gitops:GitOps")
    Licenses = later("kaigen.config.licenses:Licenses")
    Network = later("kaigen.config.network:Network")
    AppsOfEnvironment = later("kaigen.config.overrides:AppsOfEnvironment")
    OverrideEntry = later("kaigen.config.overrides:OverrideEntry")
    PatchEntry = later("kaigen.config.patches:PatchEntry")
    Publish = later("kaigen.config.publish:Publish")
    Secrets = later("kaigen.config.secrets:Secrets")
    TenantBlock = later("kaigen.config.tenants:TenantBlock")
    TenantChange = later("kaigen.config.tenants:TenantChange")

Version = Annotated[str, text(r"^1\.[0-9]+$")]
RelativePath = Annotated[str, text(RELATIVE_PATH, min_length=1)]
StorageClass = Annotated[str, text(DNS_SUBDOMAIN, max_length=253)]


class SharedFields(Block):
    """The fields that the file may set for all environments, and each environment again."""

    kubernetes: Annotated[
        Version | None, Meta(description="Kubernetes version that objects are validated against.", examples=["1.36"])
    ] = None
    profile: Annotated[str | None, Meta(description="Cluster profile.", examples=["generic", "eks"])] = None
    region: Annotated[
        str | None,
        Meta(description="Region of the clusters, by its name in `carbon` of the catalog.", examples=["region-a"]),
    ] = None
    cluster: Annotated[
        ClusterVersions | None, Meta(description="Versions of the controllers that run in the clusters.")
    ] = None
    namespace: Annotated[LabelName | None, Meta(description="Namespace of specs without a namespace.")] = None
    format: Annotated[
        Format | None, Meta(description="Form of the output: `manifests`, `chart` or `both`. Default: `manifests`.")
    ] = None
    kustomizations: Annotated[
        bool | None,
        Meta(
            description="Also write a `kustomization.yaml` for each namespace, of its apps, and one for all of them, "
            "for `kubectl apply -k` and overlays. Argo CD and Flux do not read them. Default: false."
        ),
    ] = None
    registry: Annotated[
        RegistryText | RegistryBlock | None,
        Meta(description="Mirror for all images as a block, or for kaigen's own images as a text."),
    ] = None
    images: Annotated[Images, Meta(description="kaigen's own images.")] = field(default_factory=Images)
    storage_classes: Annotated[
        dict[LabelName, StorageClass],
        Meta(
            description="Names of storage classes for specs, `storageClassName: NAME`, with the class of this "
            "environment. Of a name that one environment has, each environment that uses it needs a class.",
            examples=[{"shared": "azurefile-csi-premium"}],
        ),
    ] = field(default_factory=dict)
    builds: Annotated[Builds | None, Meta(description="Defaults of images that are built in the cluster.")] = None
    network: Annotated[Network | None, Meta(description="Proxies, mirrors and authorities for all pods.")] = None
    values: Annotated[
        dict[str, dict[str, Json]],
        Meta(description="Overridden settings by app (`NAME` or `NAMESPACE/NAME`), as in the chart's `values.yaml`."),
    ] = field(default_factory=dict)
    secrets: Annotated[Secrets | None, Meta(description="How Secrets that apps refer to are created.")] = None
    overrides: Annotated[
        list[OverrideEntry],
        Meta(description="Overrides of spec fields by app, kind or label; later entries take precedence."),
    ] = field(default_factory=list)
    patches: Annotated[
        list[PatchEntry], Meta(description="Patches of the rendered objects, applied in order after everything else.")
    ] = field(default_factory=list)
    labels: Annotated[Labels, Meta(description="Labels for every object and pod.")] = field(default_factory=dict)
    annotations: Annotated[
        Annotations, Meta(description="Annotations for every object and pod. Those of a spec override them.")
    ] = field(default_factory=dict)
    external: Annotated[
        list[ExternalEntry],
        Meta(
            description="Objects that clusters have although no app makes them, such as ServiceAccounts. kaigen does "
            "not warn of references to them. Of claims, ConfigMaps, and storage, priority and runtime classes it warns "
            "only if `external` lists some of that kind."
        ),
    ] = field(default_factory=list)
    dialects: Annotated[
        Dialects | None,
        Meta(description="What the installations of other systems, whose resources are specs, were configured with."),
    ] = None

    def __post_init__(self) -> None:
        check_registry(self.registry)


class Environment(SharedFields):
    """Environment overrides."""

    apps: Annotated[
        AppsOfEnvironment | None,
        Meta(
            description="The apps that the environment has, of those whose spec does not name other environments. "
            "Default: all."
        ),
    ] = None

    follows: Annotated[
        Literal["specs", "commits"],
        Meta(
            description="What the environment compiles: the specs as they are, or each one as of the commit that was "
            "promoted to it."
        ),
    ] = "specs"

    tenants: Annotated[
        dict[LabelName, TenantChange],
        Meta(description="Fields of tenants that differ, which replace those of the file, and tenants of its own."),
    ] = field(default_factory=dict)

    clusters: Annotated[
        list[LabelName], Meta(description="Clusters to deploy to, by name. Default: the cluster that Argo CD runs in.")
    ] = field(default_factory=list)
    gitops: Annotated[
        GitOps | None,
        Meta(
            description="Merged over `gitops` of the file. With `argocd` or `flux`, the environment uses only what it "
            "names of the two."
        ),
    ] = None


class ConfigFile(SharedFields):
    """The contents of kaigen.yaml."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="API version.")] = API_VERSION
    kind: Annotated[Literal["Config"], Meta(description="The kind.")] = "Config"
    specs: Annotated[list[RelativePath], Meta(min_length=1, description="Files and folders with the specs.")] = field(
        default_factory=lambda: ["specs"]
    )
    output: Annotated[RelativePath, Meta(description="Output folder; it must contain nothing else.")] = "rendered"
    passthrough: Annotated[bool, Meta(description="Copy plain Kubernetes objects among the specs unchanged.")] = False
    kinds: Annotated[
        list[RelativePath],
        Meta(description="Folders that define your own kinds: each contains `kind.yaml`, or folders that do."),
    ] = field(default_factory=list)
    catalog: Annotated[
        RelativePath, Meta(description="Folder with presets, GPUs, instance types and prices of your own.")
    ] = "catalog"
    clusters: Annotated[dict[LabelName, Cluster], Meta(description="Clusters of the environments.")] = field(
        default_factory=dict
    )
    gitops: Annotated[GitOps | None, Meta(description="Objects for Argo CD and Flux, written next to the apps.")] = None
    environments: Annotated[dict[AppName, Environment], Meta(description="Overrides by environment.")] = field(
        default_factory=dict
    )
    promotion: Annotated[
        list[AppName],
        Meta(
            description="Environments in the order of promotion, which `kaigen promote` enforces.",
            examples=[["dev", "staging", "prod"]],
        ),
    ] = field(default_factory=list)
    licenses: Annotated[Licenses | None, Meta(description="Licences of models that may be used. Default: all.")] = None
    publish: Annotated[Publish | None, Meta(description="Defaults of `kaigen publish`.")] = None
    allow: Annotated[
        Allow | None,
        Meta(description="What specs may reach outside their own namespaces, and files of your own in the output."),
    ] = None
    tenants: Annotated[
        dict[LabelName, TenantBlock],
        Meta(description="Teams: which folders of specs own which namespaces, and what they may reach outside."),
    ] = field(default_factory=dict)


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


class _ConfigEntry(KindEntry, frozen=True):
    """kaigen.yaml with settings of packages' dialects.

    Attributes:
        settings: their blocks, by dialect.
    """

    settings: tuple[tuple[str, type[Block]], ...] = ()

    def model(self) -> type[Block]:
        """Return the model of the file."""
        return _model_with(self.settings)


def config_entry(settings: Mapping[str, type[Block]]) -> KindEntry:
    """Return kaigen.yaml with the settings of dialects of installed packages.

    Args:
        settings: their blocks in `dialects`, by dialect.
    """
    return _ConfigEntry(**asdict(CONFIG_ENTRY), settings=(*settings.items(),)) if settings else CONFIG_ENTRY


@cache
def _model_with(settings: tuple[tuple[str, type[Block]], ...]) -> type[Block]:
    """Return the model of the file where it and its environments have these settings."""
    block: Any = config_dialects.with_settings(dict(settings)) | None
    environment = _with_field(Environment, "dialects", block)
    return _with_field(
        _with_field(ConfigFile, "dialects", block), "environments", GenericAlias(dict, (AppName, environment))
    )


def _with_field(model: type[Block], name: str, kind: Any) -> type[Block]:
    """Return a model where a field has another type."""
    known = next(item for item in fields(model) if item.name == name)
    described = get_type_hints(model, include_extras=True)[name].__metadata__
    default = (
        field(default_factory=known.default_factory)
        if callable(known.default_factory)
        else field(default=known.default)
    )
    members = {
        "__module__": model.__module__,
        "__doc__": model.__doc__,
        "__annotations__": {name: Annotated[kind, *described]},
        name: default,
    }
    return new_class(model.__name__, (model,), exec_body=lambda body: body.update(members))


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
    model = None
    if document is not None:
        entry = CONFIG_ENTRY
        if named := _dialects_of_packages(document):
            found = packages.package_dialects()
            entry = config_entry(found.settings)
            problems.extend(() if named <= found.settings.keys() else found.diagnostics)
        model = validate_block(document, entry, problems)
    problems.raise_errors()
    return (model if isinstance(model, ConfigFile) else ConfigFile()), document


def _dialects_of_packages(document: Document) -> set[str]:
    """Return the names in the blocks `dialects` of the file and its environments that are none of kaigen's."""
    data: Any = document.data
    environments = data.get("environments")
    blocks = [data, *(environments.values() if isinstance(environments, dict) else ())]
    found = [block.get("dialects") for block in blocks if isinstance(block, dict)]
    names = {name for block in found if isinstance(block, dict) for name in block}
    return config_dialects.names_of_packages(names) if names else names
