"""The settings of one run, made from `kaigen.yaml`, one of its environments and that environment's pins."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from kaigen.catalog.profiles import profile_names
from kaigen.config.allow import allow_settings
from kaigen.config.catalog_rows import read_catalog
from kaigen.config.checks import GitOpsPlace, check_clusters, check_gitops, check_promotion
from kaigen.config.dialects import dialect_settings
from kaigen.config.external import external_objects
from kaigen.config.file import ConfigFile, SharedFields, read_file
from kaigen.config.gitops import GitOps, environment_gitops, gitops_settings
from kaigen.config.images import given_images, own_images
from kaigen.config.licenses import license_policy
from kaigen.config.network import network_settings
from kaigen.config.overrides import merged_overrides
from kaigen.config.patches import patch_settings
from kaigen.config.pins import Pins, read_pins
from kaigen.config.publish import publish_settings
from kaigen.config.registry import image_mirror, own_registry
from kaigen.config.reserved import syncer_secrets
from kaigen.config.secrets import external_secrets_settings
from kaigen.config.settings import FILE_NAME, Config, pins_path
from kaigen.config.tenants import check_tenants, delivered_tenants, tenant_settings
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.field_path import dotted_path
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.base import matches
from kaigen.kubernetes.metadata_keys import RESERVED_LABELS
from kaigen.kubernetes.versions import SUPPORTED_VERSIONS
from kaigen.yaml.document import Document

Layers = list[tuple[SharedFields, tuple[str, ...]]]
"""The file and its environment, each with its path in kaigen.yaml; later layers override earlier ones."""


def read_config(root: Path, environment: str) -> Config:
    """Return the settings of a run.

    Raises:
        InputError: kaigen.yaml or the pins are invalid, or there is no such environment.
    """
    file, document = read_file(root)
    layers: Layers = [(file, ())]
    pins = None
    if environment:
        if environment not in file.environments:
            raise _unknown_environment(environment, sorted(file.environments))
        layers.append((file.environments[environment], ("environments", environment)))
        pins = read_pins(root, environment)
    return _merge(root, environment, file, layers, document, pins)


def _unknown_environment(name: str, known: list[str]) -> InputError:
    listed = f"known: {', '.join(known)}" if known else "kaigen.yaml defines none"
    hint = did_you_mean(name, known) or listed
    return InputError.of("KG0702", f"no environment `{name}` in {FILE_NAME}", hint=hint)


def _merge(
    root: Path, environment: str, file: ConfigFile, layers: Layers, document: Document | None, pins: Pins | None
) -> Config:
    problems = Diagnostics()
    base = Config()
    own = file.environments[environment] if environment else None
    _check_names(layers, document, problems)
    _check_labels(layers, document, problems)
    overrides = merged_overrides([(layer.overrides, place) for layer, place in layers], document, problems)
    check_promotion(file, document, problems)
    check_tenants(file.tenants, document, problems)
    secrets = external_secrets_settings(
        [(layer.secrets, place) for layer, place in layers], bool(file.tenants), document, problems
    )
    form = file.environments[environment].format if environment else None
    form = form or file.format or base.format
    gitops = _gitops(document, environment)
    if document and gitops and (environment or not file.environments):
        # Without a name, a file with environments is read only for their names.
        check_gitops(GitOpsPlace(gitops, document, environment), file, form, problems)
    check_clusters(file, environment, gitops, document, problems)
    catalog = read_catalog(root, file.catalog, problems)
    problems.raise_errors()
    registries = [layer.registry for layer, _ in layers]
    named: dict[str, str] = {}
    for layer, _ in layers:
        named |= given_images(layer.images)
    pinned = given_images(pins.images) if pins else {}
    images, plain = own_images(named, own_registry(registries), pinned)
    output = f"{file.output}/{environment}" if environment else file.output
    clusters = {name: file.clusters[name] for name in own.clusters} if own else {}
    labels = {key: value for layer, _ in layers for key, value in layer.labels.items()}
    annotations = {key: value for layer, _ in layers for key, value in layer.annotations.items()}
    profile = _last(layers, "profile") or base.profile
    has_places = bool(overrides or pins or any(layer.patches for layer, _ in layers))
    config = Config(
        root=root,
        environment=environment,
        kubernetes=_last(layers, "kubernetes") or base.kubernetes,
        profile=profile,
        namespace=_last(layers, "namespace") or base.namespace,
        implied_namespace=document is not None and not _last(layers, "namespace"),
        images=images,
        plain_images=plain,
        named_images=tuple(given_images(own.images)) if own else (),
        pinned_images=pinned,
        values=tuple(layer.values for layer, _ in layers if layer.values),
        overrides=overrides,
        pins=dict(pins.apps) if pins else {},
        promotion=tuple(file.promotion),
        origin=_digest(root, environment) if has_places else "",
        specs=tuple(file.specs),
        output=output,
        format=form,
        passthrough=file.passthrough,
        external_secrets=secrets,
        kinds=tuple(file.kinds),
        catalog_folder=file.catalog,
        catalog=catalog,
        patches=patch_settings([(layer.patches, place) for layer, place in layers]),
        labels=labels,
        annotations=annotations,
        external=external_objects(layer.external for layer, _ in layers),
        dialects=dialect_settings([place for _, place in layers], document),
        mirror=image_mirror(registries),
        network=network_settings(layer.network for layer, _ in layers),
        environments=tuple(file.environments),
        gitops=(delivery := gitops_settings(gitops, output, clusters)),
        publish=publish_settings(file.publish),
        licenses=license_policy(file.licenses),
        build_registry=_build_registry(layers),
        allow=allow_settings(file.allow),
        tenants=tenant_settings(file.tenants, images, profile, labels, annotations),
        syncer_secrets=syncer_secrets(delivery, file.allow.secrets if file.allow else ()),
    )
    return replace(config, tenants=delivered_tenants(config))


def _gitops(document: Document | None, environment: str) -> GitOps | None:
    data = document.data if document else None
    return environment_gitops(data, environment) if isinstance(data, dict) else None


def _last(layers: Layers, field: str) -> str:
    """The value of the last layer that gives one; empty when none does."""
    values: list[str | None] = [getattr(layer, field) for layer, _ in layers]
    return next((value for value in reversed(values) if value), "")


def _build_registry(layers: Layers) -> str:
    named = [layer.builds.registry for layer, _ in layers if layer.builds is not None]
    return next((registry for registry in reversed(named) if registry), "")


def _check_names(layers: Layers, document: Document | None, problems: Diagnostics) -> None:
    """Report Kubernetes versions and profiles that kaigen does not know."""
    for layer, place in layers:
        for name, value, known in (
            ("kubernetes", layer.kubernetes, SUPPORTED_VERSIONS),
            ("profile", layer.profile, profile_names()),
        ):
            if value is not None and value not in known:
                assert document is not None
                mark = document.mark((*place, name))
                hint = did_you_mean(value, known) or "known: " + ", ".join(known)
                path = ".".join((*place, name))
                problems.add(Diagnostic("KG0703", f"unknown `{name}` `{value}`", mark, hint, path=path))


def _check_labels(layers: Layers, document: Document | None, problems: Diagnostics) -> None:
    """Report labels that kaigen or a controller sets itself: selectors depend on them."""
    for layer, place in layers:
        for key in layer.labels:
            if matches(RESERVED_LABELS, key):
                assert document is not None
                path = (*place, "labels", key)
                message = f"the label `{key}` is set by kaigen or Kubernetes"
                mark = document.mark(path, key=True)
                problems.add(Diagnostic("KG0324", message, mark, "choose another key", path=dotted_path(path)))


def _digest(root: Path, environment: str) -> str:
    """The digest of the files with overrides, pins and patches."""
    files = (root / FILE_NAME, pins_path(root, environment))
    parts = [path.read_bytes() for path in files if path.is_file()]
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
