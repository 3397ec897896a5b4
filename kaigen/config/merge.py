"""The settings of one run, made from `kaigen.yaml`, one of its environments and that environment's pins."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import gpu_resources
from kaigen.catalog.profiles import profile_names
from kaigen.config.block_settings import ChosenApps
from kaigen.config.catalog_rows import read_catalog
from kaigen.config.file import ConfigFile, read_file
from kaigen.config.images import given_images, own_images
from kaigen.config.layers import Layers
from kaigen.config.pins import Pins, read_pins
from kaigen.config.registry import RegistryBlock
from kaigen.config.reserved import syncer_secrets
from kaigen.config.settings import CHARTS_HINT, CHARTS_IN_ARTIFACT, FILE_NAME, Config, Format, Override, pins_path
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
from kaigen.yaml.document import Document

if TYPE_CHECKING:
    from kaigen.config.gitops import GitOps

with lazy_imports():
    from kaigen.config import allow as config_allow
    from kaigen.config import gitops as config_gitops
    from kaigen.config import overrides as config_overrides
    from kaigen.config import patches as config_patches
    from kaigen.config import secrets as config_secrets
    from kaigen.config import tenant_checks, tenant_lists


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
    if environment and written.environments[environment].tenants:
        tenant_checks.check_environment(layers, problems)
        problems.raise_errors()
    file = read_block(type(written), data)
    own = file.environments.get(environment)
    _check_names(layers, problems)
    _check_labels(layers, problems)
    overrides: tuple[Override, ...] = ()
    if file.overrides:
        overrides = config_overrides.override_settings(file.overrides, layers.entries("overrides"), document, problems)
    check_promotion(file, document, problems)
    if file.tenants:
        # Without a name, a file with environments is read only for their names.
        creates = file.gitops.tenancy is not None if file.gitops is not None else False
        tenant_checks.check_tenants(
            file.tenants, layers, problems, creates=creates or not (environment or not file.environments)
        )
    secrets = None
    if file.secrets is not None:
        secrets = config_secrets.external_secrets_settings(file.secrets, bool(file.tenants), layers, problems)
    form = file.format or base.format
    if environment or not file.environments:
        # Without a name, a file with environments is read only for their names.
        check_gitops(file, layers, form, problems)
    check_clusters(file, layers, problems)
    catalog = read_catalog(root, file.catalog, problems)
    _check_region(layers, catalog, problems)
    problems.raise_errors()
    registry = file.registry if isinstance(file.registry, str) else ""
    pinned = given_images(pins.images) if pins else {}
    given = given_images(file.images)
    images, plain = own_images(given, registry, pinned)
    output = f"{file.output}/{environment}" if environment else file.output
    gitops = config_gitops.resolve_gitops(file.gitops, output) if file.gitops is not None else None
    profile = file.profile or base.profile
    config = Config(
        root=root,
        environment=environment,
        kubernetes=file.kubernetes or base.kubernetes,
        profile=profile,
        region=file.region or "",
        cluster=file.cluster,
        namespace=file.namespace or base.namespace,
        implied_namespace=document is not None and file.namespace is None,
        images=images,
        plain_images=plain,
        named_images=tuple(given_images(own.images)) if own else (),
        pinned_images=pinned,
        fixed_images=tuple(sorted({**given, **pinned})),
        storage_classes={
            **{name: "" for each in written.environments.values() for name in each.storage_classes},
            **file.storage_classes,
        },
        values=tuple(values),
        overrides=overrides,
        pins=dict(pins.apps) if pins else {},
        promotion=tuple(file.promotion),
        origin=_digest(root, environment) if overrides or pins or file.patches else "",
        follows_commits=own is not None and own.follows == "commits",
        commits=pins.commits if pins else None,
        apps=ChosenApps(tuple(own.apps.include), tuple(own.apps.exclude)) if own and own.apps else base.apps,
        specs=tuple(file.specs),
        output=output,
        format=form,
        kustomizations=bool(file.kustomizations),
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
    tenants = tenant_lists.tenant_settings(
        file.tenants, images, profile, file.labels, file.annotations, gpus=gpu_resources(catalog)
    )
    return replace(config, tenants=tenant_lists.delivered_tenants(replace(config, tenants=tenants)))


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


def _check_region(layers: Layers, catalog: Catalog, problems: Diagnostics) -> None:
    """Report regions that are not in the table of carbon, where there is one."""
    for place, layer in layers.layers:
        region = layer.get("region")
        if region is not None and catalog.carbon and region not in catalog.carbon:
            hint = did_you_mean(region, catalog.carbon) or f"add it to `carbon`, which has {', '.join(catalog.carbon)}"
            mark, path = layers.mark_of((*place, "region")), dotted_path((*place, "region"))
            problems.add(
                Diagnostic("KG0703", f"the catalog has no carbon of the region `{region}`", mark, hint, path=path)
            )


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


def check_promotion(file: ConfigFile, document: Document | None, problems: Diagnostics) -> None:
    """Report names in `promotion` that are not environments, or are listed twice."""
    known = sorted(file.environments)
    for index, name in enumerate(file.promotion):
        assert document is not None
        mark = document.mark(("promotion", index))
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known) or 'none'}"
            problems.add(Diagnostic("KG0702", f"no environment `{name}` in {FILE_NAME}", mark, hint))
        elif name in file.promotion[:index]:
            message = f"`promotion` lists `{name}` twice"
            problems.add(Diagnostic("KG0714", message, mark, "delete one of them"))


def check_clusters(file: ConfigFile, layers: Layers, problems: Diagnostics) -> None:
    """Report clusters of the environment that are not defined, or that Argo CD could not select."""
    own = file.environments[layers.environment].clusters if layers.environment else []
    for index, name in enumerate(own):
        mark = layers.mark_of(("environments", layers.environment, "clusters", index))
        if name not in file.clusters:
            known = sorted(file.clusters)
            listed = "known: " + ", ".join(known) if known else "`clusters` defines none"
            hint = did_you_mean(name, known) or listed
            problems.add(Diagnostic("KG0720", f"no cluster `{name}`", mark, hint))
        elif file.clusters[name].selector and file.gitops and not _selects_clusters(file.gitops):
            message = f"cluster `{name}` is selected by labels, which only an ApplicationSet can do"
            hint = "set `gitops.argocd.applications: set`, or set the cluster's `server`"
            problems.add(Diagnostic("KG0720", message, mark, hint))


def _selects_clusters(gitops: GitOps) -> bool:
    """Whether clusters can be selected by labels, or Argo CD is not used."""
    return gitops.argocd is None or gitops.argocd.applications == "set"


def check_gitops(file: ConfigFile, layers: Layers, form: Format, problems: Diagnostics) -> None:
    """Report a block that lacks the repository, or contains fields that contradict each other.

    Args:
        file: kaigen.yaml with the fields of the environment.
        layers: where the fields are.
        form: the form of the output.
        problems: receives the errors.
    """
    gitops = file.gitops
    if gitops is None:
        return
    if gitops.repository is None:
        hint = "set `gitops.repository` to the URL of the Git repository with the rendered tree"
        problems.add(Diagnostic("KG0724", "`gitops` has no `repository`", layers.mark("gitops", key=True), hint))
    elif gitops.flux is not None and gitops.flux.oci is None and not config_gitops.is_flux_url(gitops.repository):
        message = f"Flux reads a Git repository by https://, http:// or ssh://, not `{gitops.repository}`"
        hint = config_gitops.flux_url_hint(gitops.repository)
        problems.add(Diagnostic("KG0726", message, layers.mark("gitops", "repository"), hint))
    tenancy = gitops.tenancy
    if tenancy and tenancy.service_account and gitops.argocd and not tenancy.admin_service_account:
        problems.add(
            Diagnostic(
                "KG0721",
                "`serviceAccount` requires `adminServiceAccount` with Argo CD",
                layers.mark("gitops", "tenancy", "serviceAccount"),
                "set `adminServiceAccount` to the account that creates namespaces and Applications",
            )
        )
    if form == "chart" and gitops.flux and gitops.flux.oci is not None and gitops.charts is None:
        problems.add(Diagnostic("KG0723", CHARTS_IN_ARTIFACT, layers.mark("gitops", "flux", "oci"), CHARTS_HINT))
    if gitops.flux and gitops.flux.verify_secret and not (gitops.flux.oci or gitops.charts):
        problems.add(
            Diagnostic(
                "KG0725",
                "`verifySecret` verifies artifacts of a registry, and Flux reads none",
                layers.mark("gitops", "flux", "verifySecret"),
                "set `flux.oci` or `gitops.charts`, or delete `verifySecret`",
            )
        )
    if not file.environments:
        _check_placeholders(gitops, layers, problems)


def _check_placeholders(gitops: GitOps, layers: Layers, problems: Diagnostics) -> None:
    """Report `{env}` in `gitops` of a file without environments."""
    for path, text in (
        (("branch",), gitops.branch),
        (("path",), gitops.path),
        (("charts",), gitops.charts),
        (("flux", "oci"), gitops.flux and gitops.flux.oci),
    ):
        if "{env}" in (text or ""):
            message = "`{env}` is the name of an environment, and kaigen.yaml defines none"
            hint = "delete `{env}`, or define `environments`"
            problems.add(Diagnostic("KG0722", message, layers.mark("gitops", *path), hint))
