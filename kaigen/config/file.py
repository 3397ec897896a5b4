"""`kaigen.yaml` as people write it: its fields, its problems, and how environments lie over the rest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, JsonValue

from kaigen.catalog.profiles import profile_names
from kaigen.config.gitops import Cluster, GitOps, GitOpsOverrides
from kaigen.config.overrides import PATCHABLE, OverrideEntry, merged_overrides
from kaigen.config.patches import PatchEntry, plain_patches
from kaigen.config.publish import Publish, publish_settings
from kaigen.config.secrets import Secrets, settled_secrets
from kaigen.config.settings import FILE_NAME, Config, Format, pins_path
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, InputError, Mark
from kaigen.environments.files import read_document, validated
from kaigen.environments.images import Images, own_images
from kaigen.environments.pins import Pins, read_pins
from kaigen.kinds.base import RELATIVE_PATH, AppName, Block, LabelName
from kaigen.kinds.entry import API_VERSION, KindEntry, NullPath

if TYPE_CHECKING:
    from kaigen.emit.values import Overrides
    from kaigen.yaml.document import Document

Version = Annotated[str, Field(pattern=r"^1\.[0-9]+$")]
RelativePath = Annotated[str, Field(min_length=1, pattern=RELATIVE_PATH)]


class Surroundings(Block):
    """What the output is for; every field may be set for all, and again by an environment."""

    kubernetes: Version | None = Field(
        None, description="Kubernetes version that objects are checked against.", examples=["1.36"]
    )
    profile: str | None = Field(None, description="Kind of cluster.", examples=["generic", "eks"])
    namespace: LabelName | None = Field(None, description="Namespace of specs that name none.")
    registry: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.:/_-]*[a-z0-9]$")] | None = Field(
        None, description="Mirror that kaigen's own images are pulled from instead of their registries."
    )
    images: Images = Field(
        default_factory=dict, validate_default=True, description="Images that kaigen puts into pods itself."
    )
    values: dict[str, dict[str, JsonValue]] = Field(
        {},
        description="Settings to override, by app (`NAME` or `NAMESPACE/NAME`), as in the chart's `values.yaml`.",
    )
    secrets: Secrets | None = Field(None, description="What is written for the Secrets that apps refer to.")
    overrides: list[OverrideEntry] = Field(
        [],
        description="Fields of specs to override, by app, kind or label; later entries lie over earlier ones.",
    )
    patches: list[PatchEntry] = Field(
        [], description="Changes of the objects that apps come to, in their order, after everything else."
    )


class Environment(Surroundings):
    """What one environment has otherwise."""

    clusters: list[LabelName] = Field(
        [], description="Clusters it goes to, by name; the one that Argo CD runs in when there are none."
    )
    gitops: GitOpsOverrides | None = Field(None, description="What it has otherwise in `gitops`.")


class ConfigFile(Surroundings):
    """The whole file."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Config"] = Field("Config", description="The kind.")
    specs: Annotated[list[RelativePath], Field(min_length=1)] = Field(
        ["specs"], description="Files and folders that hold the specs."
    )
    output: RelativePath = Field(
        "rendered", description="Folder that is rendered into; it must hold nothing else."
    )
    format: Format = Field("manifests", description="What is written: `manifests`, `chart` or `both`.")
    passthrough: bool = Field(
        False, description="Let plain Kubernetes objects among the specs through, untouched."
    )
    kinds: list[RelativePath] = Field(
        [], description="Folders that define kinds of your own: each holds `kind.yaml`, or folders that do."
    )
    clusters: dict[LabelName, Cluster] = Field({}, description="Clusters that environments go to.")
    gitops: GitOps | None = Field(None, description="Objects for Argo CD and Flux, written beside the apps.")
    environments: dict[AppName, Environment] = Field({}, description="Overrides by environment.")
    promotion: list[AppName] = Field(
        [],
        description="Environments in the order in which changes reach them; `kaigen promote` keeps to it.",
        examples=[["dev", "staging", "prod"]],
    )
    publish: Publish | None = Field(None, description="Where `kaigen publish` goes to.")


_NULLABLE: tuple[NullPath, ...] = (
    ("values",),  # null removes a default.
    *(("overrides", "*", part) for part in ("metadata", *PATCHABLE)),  # null removes a field.
    ("patches", "*", "patch"),
)
"""Where kaigen.yaml and its environments may have null."""

CONFIG_ENTRY = KindEntry(
    API_VERSION,
    "Config",
    "kaigen.config.file:ConfigFile",
    "settings of a repository",
    nullable=(*_NULLABLE, *(("environments", "*", *path) for path in _NULLABLE)),
)


def read_config_file(root: Path, environment: str) -> Config:
    """The settings of a run, from the file of a folder.

    Raises:
        InputError: when the file is wrong, or has no such environment.
    """
    path = root / FILE_NAME
    found = Diagnostics()
    file, document = _read(path, found) if os.path.lexists(path) else (ConfigFile(), None)
    found.raise_errors()
    assert file is not None
    layers: list[tuple[Surroundings, tuple[str, ...]]] = [(file, ())]
    pins = None
    if environment:
        if environment not in file.environments:
            from kaigen.diagnostics.suggest import did_you_mean

            known = sorted(file.environments)
            hint = did_you_mean(environment, known) or (
                f"known: {', '.join(known)}" if known else "kaigen.yaml names none"
            )
            raise InputError.of("KG0702", f"no environment `{environment}` in {FILE_NAME}", hint=hint)
        layers.append((file.environments[environment], ("environments", environment)))
        pins = read_pins(root, environment)
    return _merge(root, environment, file, layers, document, pins)


def value_layers(config: Config) -> list[Overrides]:
    """The overrides of kaigen.yaml, which find their places there when they are asked."""
    from kaigen.emit.values import Layer

    return [Layer(values, _ValuePlaces(config, values)) for values in config.values]


class _ValuePlaces:
    """Where the overrides of kaigen.yaml stand; the file is read again when that is asked."""

    def __init__(self, config: Config, values: Overrides) -> None:
        self._config = config
        self._values = values

    def __call__(self, path: tuple[str | int, ...], *, key: bool) -> Mark | None:
        """The place of a path in these overrides; None when the file is another by now."""
        _, document = _read(self._config.root / FILE_NAME, Diagnostics())
        for start in ((), ("environments", self._config.environment)):
            node: Any = document.data if document else None
            for step in (*start, "values"):
                node = node.get(step) if isinstance(node, dict) else None
            if node == self._values:
                mark: Mark = document.mark((*start, "values", *path), key=key)
                return mark
        return None


def _read(path: Path, found: Diagnostics) -> tuple[ConfigFile | None, Any]:
    document = read_document(path, "KG0701", found)
    if document is None:
        return (None if found.has_errors else ConfigFile()), None
    model = validated(document, CONFIG_ENTRY, found)
    return (model if isinstance(model, ConfigFile) else None), document


def _check_promotion(file: ConfigFile, document: Document | None, found: Diagnostics) -> None:
    """The order of promotion names environments that there are, each once."""
    from kaigen.diagnostics.suggest import did_you_mean

    known = sorted(file.environments)
    for index, name in enumerate(file.promotion):
        assert document is not None
        mark = document.mark(("promotion", index))
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known) or 'none'}"
            found.add(Diagnostic("KG0702", f"no environment `{name}` in {FILE_NAME}", mark, hint))
        elif name in file.promotion[:index]:
            found.add(
                Diagnostic("KG0714", f"`{name}` is in the order of promotion twice", mark, "delete one")
            )


def _digest(root: Path, environment: str) -> str:
    from hashlib import sha256

    parts = [path.read_bytes() for path in (root / FILE_NAME, pins_path(root, environment)) if path.is_file()]
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()


def _merge(
    root: Path,
    environment: str,
    file: ConfigFile,
    layers: list[tuple[Surroundings, tuple[str, ...]]],
    document: Any,
    pins: Pins | None,
) -> Config:
    from kaigen.diagnostics.suggest import did_you_mean
    from kaigen.kubernetes.versions import SUPPORTED_VERSIONS

    found = Diagnostics()
    base = Config()
    kubernetes, profile, namespace, registry = base.kubernetes, base.profile, base.namespace, ""
    named: dict[str, str] = {}
    for layer, place in layers:
        for name, value, known in (
            ("kubernetes", layer.kubernetes, SUPPORTED_VERSIONS),
            ("profile", layer.profile, profile_names()),
        ):
            if value is not None and value not in known:
                mark = document.mark((*place, name))
                hint = did_you_mean(value, known) or "known: " + ", ".join(known)
                found.add(
                    Diagnostic(
                        "KG0703", f"unknown `{name}` `{value}`", mark, hint, path=".".join((*place, name))
                    )
                )
        kubernetes = layer.kubernetes or kubernetes
        profile = layer.profile or profile
        namespace = layer.namespace or namespace
        registry = layer.registry or registry
        named |= layer.images.model_dump(by_alias=True, exclude_none=True)
    overrides = merged_overrides([(layer.overrides, place) for layer, place in layers], document, found)
    _check_promotion(file, document, found)
    secrets = settled_secrets([(layer.secrets, place) for layer, place in layers], document, found)
    found.raise_errors()
    pinned = pins.images.model_dump(by_alias=True, exclude_none=True) if pins else {}
    images, plain = own_images(named, registry, pinned)
    return Config(
        root=root,
        environment=environment,
        kubernetes=kubernetes,
        profile=profile,
        namespace=namespace,
        images=images,
        plain_images=plain,
        named_images=tuple(layers[-1][0].images.model_dump(by_alias=True, exclude_none=True))
        if environment
        else (),
        pinned_images=pinned,
        values=tuple(layer.values for layer, _ in layers if layer.values),
        overrides=overrides,
        pins=dict(pins.apps) if pins else {},
        promotion=tuple(file.promotion),
        origin=_digest(root, environment)
        if overrides or pins or any(layer.patches for layer, _ in layers)
        else "",
        specs=tuple(file.specs),
        output=f"{file.output}/{environment}" if environment else file.output,
        format=file.format,
        passthrough=file.passthrough,
        secrets=secrets,
        kinds=tuple(file.kinds),
        patches=plain_patches([(layer.patches, place) for layer, place in layers]),
        environments=tuple(file.environments),
        gitops=_gitops(file, environment, document),
        publish=publish_settings(file.publish, file.environments),
    )


def _gitops(file: ConfigFile, environment: str, document: Any) -> dict[str, Any] | None:
    """The description of what Argo CD and Flux read, for one environment.

    Raises:
        InputError: the environment goes to a cluster that is not there, or to one it cannot.
    """
    from kaigen.config.gitops import settled
    from kaigen.diagnostics.suggest import did_you_mean

    own = file.environments[environment] if environment else None
    found = Diagnostics()
    for index, name in enumerate(own.clusters if own else ()):
        place = ("environments", environment, "clusters", index)
        if name not in file.clusters:
            known = sorted(file.clusters)
            hint = did_you_mean(name, known) or (
                "known: " + ", ".join(known) if known else "`clusters` names none"
            )
            found.add(Diagnostic("KG0720", f"no cluster `{name}`", document.mark(place), hint))
        elif file.clusters[name].selector and file.gitops and not _finds_clusters(file.gitops):
            found.add(
                Diagnostic(
                    "KG0720",
                    f"cluster `{name}` is chosen by labels, and only an ApplicationSet can do that",
                    document.mark(place),
                    "set `gitops.argocd.applications: set`, or name its `server`",
                )
            )
    tenancies = [(("gitops",), file.gitops), (("environments", environment, "gitops"), own and own.gitops)]
    for where, block in tenancies:
        tenancy = block.tenancy if block else None
        if not (tenancy and tenancy.service_account and file.gitops and file.gitops.argocd):
            continue
        if not tenancy.admin_service_account:
            found.add(
                Diagnostic(
                    "KG0721",
                    "Argo CD syncs in the name of an account everywhere or nowhere",
                    document.mark((*where, "tenancy", "serviceAccount")),
                    "name in `adminServiceAccount` the account that makes namespaces and Applications",
                )
            )
    if file.gitops and not file.environments:
        for path, text in (
            (("branch",), file.gitops.branch),
            (("path",), file.gitops.path),
            (("charts",), file.gitops.charts),
            (("flux", "oci"), file.gitops.flux and file.gitops.flux.oci),
        ):
            if "{env}" in (text or ""):
                mark = document.mark(("gitops", *path))
                hint = "leave it out, or name `environments`"
                found.add(
                    Diagnostic("KG0722", "`{env}` stands for an environment, and there is none", mark, hint)
                )
    found.raise_errors()
    output = f"{file.output}/{environment}" if environment else file.output
    clusters = {name: file.clusters[name] for name in own.clusters} if own else {}
    return settled(file.gitops, output, clusters, own.gitops if own else None)


def _finds_clusters(gitops: GitOps) -> bool:
    return gitops.argocd is None or gitops.argocd.applications == "set"
