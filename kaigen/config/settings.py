"""The settings of one run: `kaigen.yaml` with one environment's overrides merged in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct, field

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.images import default_images
from kaigen.config.block_settings import Allowed, ChosenApps, ExternalSecretsSettings, ObjectPatch
from kaigen.config.reserved import SyncerSecrets
from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath, Json
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    # An unchanged render imports only the blocks that kaigen.yaml has.
    from kaigen.config import cluster as config_cluster
    from kaigen.config import external as config_external
    from kaigen.config import gitops as config_gitops
    from kaigen.config import licenses as config_licenses
    from kaigen.config import network as config_network
    from kaigen.config import publish as config_publish
    from kaigen.config import registry as config_registry

FILE_NAME = "kaigen.yaml"
PINS_FOLDER = "pins"
LOCK_NAME = "kaigen.lock"

CHARTS_IN_ARTIFACT = "Flux cannot install charts from the artifact in `gitops.flux.oci`"
CHARTS_HINT = "set `gitops.charts` to the registry of the charts, or `format` to `manifests`"

Format = Literal["manifests", "chart", "both"]


class Override(Struct, frozen=True):
    """A change of the specs that match all of its conditions.

    Attributes:
        apps: names or globs, `NAME` or `NAMESPACE/NAME`; any app when empty.
        kinds: as `kaigen kinds` lists them; any kind when empty.
        labels: labels that the spec must have.
        patch: a JSON merge patch of the whole document.
        at: the entry's path in its file.
        file: path of a file next to the specs, relative to the repository; empty for kaigen.yaml.
        folder: the folder whose specs it changes, relative to the repository; empty for all.
    """

    apps: tuple[str, ...]
    kinds: tuple[str, ...]
    labels: Mapping[str, str]
    patch: Mapping[str, Json]
    at: FieldPath
    file: str = ""
    folder: str = ""

    @property
    def environment(self) -> str:
        """The environment that the override belongs to; empty for one that all environments share."""
        if self.file:
            return PurePosixPath(self.file).stem
        return str(self.at[1]) if self.at[0] == "environments" else ""


class LockRef(Struct, frozen=True):
    """The lock of a repository, which is parsed when it is needed.

    Attributes:
        digest: of the content; empty without a lock.
        content: what applies in place of the file; None for the file.
    """

    digest: str = ""
    content: bytes | None = None


class Config(Struct, frozen=True, omit_defaults=True):
    """The settings of one run.

    Attributes:
        root: the repository's folder; paths are relative to it.
        environment: its name; empty for none.
        kubernetes: target version.
        profile: name of the profile.
        region: of the clusters, by its name in the catalogue; empty for none.
        cluster: versions of the controllers in the clusters; None for those that kaigen assumes.
        namespace: namespace of specs that name none.
        implied_namespace: kaigen.yaml sets no namespace for the environment; `namespace` is the default.
        images: kaigen's own images by name.
        plain_images: the same without the mirror.
        named_images: names of the images that the environment sets in kaigen.yaml.
        pinned_images: images that were promoted to the environment.
        fixed_images: names of the images that kaigen.yaml or the pins set, so that a new kaigen does not change them.
        storage_classes: storage classes by the names that specs use; empty for one that only other environments have.
        values: overridden settings by app; the environment's layer follows the file's.
        overrides: overridden fields of specs; the environment's follow the file's.
        pins: promoted values by app, as `environments.match.pin_name` names it, and dotted field.
        promotion: names of environments in the order of promotion; empty for any order.
        origin: digest of the files with overrides and pins, whose lines messages name; empty without.
        follows_commits: whether each spec is compiled as of a commit.
        commits: the commits, by app as `environments.match.pin_name` names it; None if none was promoted yet.
        repository: a folder of the Git repository with the commits; None for `root`.
        apps: the apps that the environment has, as far as kaigen.yaml chooses them.
        specs: files and folders with the specs.
        output: folder that is rendered into, the environment's name included.
        format: the form of the output.
        kustomizations: whether each namespace and the output have a kustomization.
        passthrough: copy plain Kubernetes objects unchanged.
        external_secrets: how ExternalSecrets are written; None to write none.
        kinds: folders that define kinds of the user's own.
        catalog_folder: folder of the repository's own rows of the catalogue.
        catalog: kaigen's tables with those rows.
        patches: changes of objects; the environment's follow the file's.
        labels: labels of every object and pod.
        annotations: annotations of every object and pod.
        external: objects that no app makes but clusters have.
        dialects: settings of other systems by dialect, as in kaigen.yaml.
        network: how pods reach servers outside the cluster; None for no setting.
        mirror: where all images are pulled from; None for where their names say.
        environments: names of all environments in kaigen.yaml.
        gitops: how Argo CD and Flux sync; None to write nothing for them.
        clusters: the environment's clusters by name; empty for the cluster that Argo CD runs in.
        publish: defaults of `kaigen publish`; None without the block.
        allow: what specs may reach outside their own namespaces.
        tenants: teams with folders of specs and namespaces of their own.
        syncer_secrets: the Secrets that Flux reads, which no spec may name.
        lock: the lock of the repository.
        licenses: the licences of models that may be used; None for all.
        build_registry: registry of images whose `build` names no repository; empty for none.
    """

    root: Path = Path()
    environment: str = ""
    kubernetes: str = "1.36"
    profile: str = "generic"
    region: str = ""
    cluster: config_cluster.ClusterVersions | None = None
    namespace: str = "default"
    implied_namespace: bool = False
    images: Mapping[str, str] = field(default_factory=default_images)
    plain_images: Mapping[str, str] = field(default_factory=dict)
    named_images: tuple[str, ...] = ()
    pinned_images: Mapping[str, str] = field(default_factory=dict)
    fixed_images: tuple[str, ...] = ()
    storage_classes: Mapping[str, str] = field(default_factory=dict)
    values: tuple[Mapping[str, Mapping[str, Json]], ...] = ()
    overrides: tuple[Override, ...] = ()
    pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    promotion: tuple[str, ...] = ()
    origin: str = ""
    follows_commits: bool = False
    commits: Mapping[str, str] | None = None
    repository: Path | None = None
    apps: ChosenApps = ChosenApps()
    specs: tuple[str, ...] = ("specs",)
    output: str = "rendered"
    format: Format = "manifests"
    kustomizations: bool = False
    passthrough: bool = False
    external_secrets: ExternalSecretsSettings | None = None
    kinds: tuple[str, ...] = ()
    catalog_folder: str = "catalog"
    catalog: Catalog = Catalog()
    patches: tuple[ObjectPatch, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    external: tuple[config_external.ExternalEntry, ...] = ()
    dialects: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    network: config_network.Network | None = None
    mirror: config_registry.RegistryBlock | None = None
    gitops: config_gitops.GitOps | None = None
    clusters: Mapping[str, config_gitops.Cluster] = field(default_factory=dict)
    environments: tuple[str, ...] = ()
    publish: config_publish.Publish | None = None
    allow: Allowed = Allowed()
    tenants: tuple[Tenant, ...] = ()
    syncer_secrets: SyncerSecrets = SyncerSecrets()
    lock: LockRef = LockRef()
    licenses: config_licenses.Licenses | None = None
    build_registry: str = ""

    @property
    def has_argocd(self) -> bool:
        """Whether Argo CD syncs the output."""
        return self.gitops is not None and self.gitops.argocd is not None

    @property
    def controllers(self) -> Mapping[str, str]:
        """The versions of controllers in the clusters, by name."""
        return self.cluster.versions if self.cluster else {}

    @property
    def digest_in_version(self) -> bool:
        """Whether the version of a chart ends in a digest of its content.

        Flux upgrades a release whose chart is in Git when the version of the chart changes.
        """
        gitops = self.gitops
        has_flux = gitops is not None and gitops.flux is not None and gitops.charts is None
        return (has_flux and self.format == "chart") or (self.publish is not None and self.publish.version_suffix)

    @property
    def only_flux(self) -> bool:
        """Whether Flux syncs the environment and Argo CD does not."""
        return self.gitops is not None and self.gitops.flux is not None and self.gitops.argocd is None

    @property
    def output_base(self) -> str:
        """The folder with the trees of all environments, relative to the repository."""
        return self.output.removesuffix(f"/{self.environment}") if self.environment else self.output

    @property
    def trees(self) -> tuple[str, ...]:
        """The names of the trees in that folder; an empty one for the folder itself."""
        return self.environments or ("",)

    @property
    def patch_files(self) -> tuple[str, ...]:
        """The files that contain patches."""
        return tuple(patch.file for patch in self.patches if patch.file is not None)


def paths_without_specs(config: Config) -> list[Path]:
    """Return the files and folders that are never read as specs: the output, the catalogue, kinds and patches."""
    # The trees of all environments are siblings.
    return [
        config.root / path for path in (config.output_base, config.catalog_folder, *config.kinds, *config.patch_files)
    ]


def pins_path(root: Path, environment: str) -> Path:
    """Return the file with the values promoted to an environment."""
    return root / PINS_FOLDER / f"{environment}.yaml"
