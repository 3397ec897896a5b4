"""The settings of one run, made from `kaigen.yaml`, one of its environments and that environment's pins."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from kaigen.catalog.profiles import profile_names
from kaigen.config.catalog_rows import read_catalog
from kaigen.config.checks import check_clusters, check_gitops, check_promotion
from kaigen.config.file import ConfigFile, read_file
from kaigen.config.images import given_images, own_images
from kaigen.config.layers import Layers
from kaigen.config.pins import Pins, read_pins
from kaigen.config.registry import RegistryBlock
from kaigen.config.reserved import syncer_secrets
from kaigen.config.settings import FILE_NAME, Config, Override, pins_path
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import dotted_path
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.base import matches
from kaigen.kinds.block import read_block
from kaigen.kubernetes.metadata_keys import RESERVED_LABELS
from kaigen.kubernetes.schemas import SUPPORTED_VERSIONS
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.config import allow as config_allow
    from kaigen.config import gitops as config_gitops
    from kaigen.config import overrides as config_overrides
    from kaigen.config import patches as config_patches
    from kaigen.config import secrets as config_secrets
    from kaigen.config import tenants as config_tenants


def read_config(root: Path, environment: str) -> Config:
    """Return the settings of a run.

    Raises:
        InputError: kaigen.yaml or the pins are invalid, or there is no such environment.
    """
    file, document = read_file(root)
    pins = None
    if environment:
        if environment not in file.environments:
            raise _unknown_environment(environment, sorted(file.environments))
        pins = read_pins(root, environment)
    return _merge(root, file, Layers(document, environment), pins)


def _unknown_environment(name: str, known: list[str]) -> InputError:
    listed = f"known: {', '.join(known)}" if known else "kaigen.yaml defines none"
    hint = did_you_mean(name, known) or listed
    return InputError.of("KG0702", f"no environment `{name}` in {FILE_NAME}", hint=hint)


def _merge(root: Path, written: ConfigFile, layers: Layers, pins: Pins | None) -> Config:
    """Return the settings.

    Args:
        root: the repository's folder.
        written: the file without its environment.
        layers: the file and its environment.
        pins: of the environment; None without a file.
    """
    problems = Diagnostics()
    base, environment, document = Config(), layers.environment, layers.document
    data = layers.combined()
    values, dialects = data.pop("values", ()), data.get("dialects", {})
    file = read_block(type(written), data)
    own = file.environments.get(environment)
    _check_names(layers, problems)
    _check_labels(layers, problems)
    overrides: tuple[Override, ...] = ()
    if file.overrides:
        overrides = config_overrides.override_settings(file.overrides, layers.entries("overrides"), document, problems)
    check_promotion(file, document, problems)
    if file.tenants:
        config_tenants.check_tenants(file.tenants, document, problems)
    secrets = None
    if file.secrets is not None:
        secrets = config_secrets.external_secrets_settings(file.secrets, bool(file.tenants), layers, problems)
    form = file.format or base.format
    if environment or not file.environments:
        # Without a name, a file with environments is read only for their names.
        check_gitops(file, layers, form, problems)
    check_clusters(file, layers, problems)
    catalog = read_catalog(root, file.catalog, problems)
    problems.raise_errors()
    registry = file.registry if isinstance(file.registry, str) else ""
    pinned = given_images(pins.images) if pins else {}
    images, plain = own_images(given_images(file.images), registry, pinned)
    output = f"{file.output}/{environment}" if environment else file.output
    gitops = config_gitops.resolve_gitops(file.gitops, output) if file.gitops is not None else None
    profile = file.profile or base.profile
    config = Config(
        root=root,
        environment=environment,
        kubernetes=file.kubernetes or base.kubernetes,
        profile=profile,
        namespace=file.namespace or base.namespace,
        implied_namespace=document is not None and file.namespace is None,
        images=images,
        plain_images=plain,
        named_images=tuple(given_images(own.images)) if own else (),
        pinned_images=pinned,
        values=tuple(values),
        overrides=overrides,
        pins=dict(pins.apps) if pins else {},
        promotion=tuple(file.promotion),
        origin=_digest(root, environment) if overrides or pins or file.patches else "",
        specs=tuple(file.specs),
        output=output,
        format=form,
        passthrough=file.passthrough,
        external_secrets=secrets,
        kinds=tuple(file.kinds),
        catalog_folder=file.catalog,
        catalog=catalog,
        patches=config_patches.patch_settings(file.patches, layers.entries("patches")) if file.patches else (),
        labels=file.labels,
        annotations=file.annotations,
        external=tuple(file.external),
        dialects=dialects,
        mirror=file.registry if isinstance(file.registry, RegistryBlock) else None,
        network=file.network,
        environments=tuple(file.environments),
        gitops=gitops,
        clusters={name: file.clusters[name] for name in own.clusters} if own else {},
        publish=file.publish,
        licenses=file.licenses,
        build_registry=(file.builds and file.builds.registry) or "",
        allow=config_allow.allow_settings(file.allow) if file.allow is not None else base.allow,
        syncer_secrets=syncer_secrets(gitops, file.allow.secrets if file.allow else ()),
    )
    if not file.tenants:
        return config
    tenants = config_tenants.tenant_settings(file.tenants, images, profile, file.labels, file.annotations)
    return replace(config, tenants=config_tenants.delivered_tenants(replace(config, tenants=tenants)))


def _check_names(layers: Layers, problems: Diagnostics) -> None:
    """Report Kubernetes versions and profiles that kaigen does not know."""
    for place, layer in layers.layers:
        for name, known in (("kubernetes", SUPPORTED_VERSIONS), ("profile", profile_names())):
            value = layer.get(name)
            if value is not None and value not in known:
                path = (*place, name)
                hint = did_you_mean(value, known) or "known: " + ", ".join(known)
                mark = layers.mark_of(path)
                problems.add(Diagnostic("KG0703", f"unknown `{name}` `{value}`", mark, hint, path=dotted_path(path)))


def _check_labels(layers: Layers, problems: Diagnostics) -> None:
    """Report labels that kaigen or a controller sets itself: selectors depend on them."""
    for place, layer in layers.layers:
        for key in layer.get("labels", ()):
            if matches(RESERVED_LABELS, key):
                path = (*place, "labels", key)
                message = f"the label `{key}` is set by kaigen or Kubernetes"
                mark = layers.mark_of(path, key=True)
                problems.add(Diagnostic("KG0324", message, mark, "choose another key", path=dotted_path(path)))


def _digest(root: Path, environment: str) -> str:
    """The digest of the files with overrides, pins and patches."""
    files = (root / FILE_NAME, pins_path(root, environment))
    parts = [path.read_bytes() for path in files if path.is_file()]
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
