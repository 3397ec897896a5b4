"""The settings of the block `gitops` of kaigen.yaml, for one environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field


class ClusterSettings(Struct, frozen=True):
    """A cluster that an environment is deployed to, as Argo CD knows it.

    Attributes:
        server: URL of its API server.
        name: its name in Argo CD.
        selector: labels of clusters in Argo CD, for all clusters that have them.
    """

    server: str | None = None
    name: str | None = None
    selector: Mapping[str, str] | None = None


class ArgoCDSettings(Struct, frozen=True):
    """How Argo CD syncs.

    Attributes:
        namespace: namespace of the Applications.
        applications: `each` for an Application per app, `set` for one ApplicationSet.
        auto_sync: sync changes automatically and correct drift.
        signature_keys: GnuPG keys of which one must have signed a commit; none to sync unsigned commits, too.
    """

    namespace: str = "argocd"
    applications: Literal["each", "set"] = "each"
    auto_sync: bool = True
    signature_keys: tuple[str, ...] = ()


class FluxSettings(Struct, frozen=True):
    """How Flux syncs.

    Attributes:
        namespace: namespace of its sources and Kustomizations.
        interval: how often the source is checked.
        timeout: time that an app may take to become healthy; None for its start budget, or an hour.
        oci: artifact that replaces the Git repository, with `{env}`; None for the repository.
        tag: tag of that artifact.
        secret: Secret with the credentials of the source.
        charts_secret: Secret with the credentials of the registry of charts; None for `secret`.
        verify_secret: Secret with the public keys that artifacts of a registry are verified with; None for none.
        service_account: account in its namespace that syncs what no tenant's account syncs; None for the controllers'.
        decrypt: decrypt files that SOPS has encrypted.
        decryption_secret: Secret with the key; None for the cloud identity.
    """

    namespace: str = "flux-system"
    interval: str = "10m"
    timeout: str | None = None
    oci: str | None = None
    tag: str = "latest"
    secret: str | None = None
    charts_secret: str | None = None
    verify_secret: str | None = None
    service_account: str | None = None
    decrypt: bool = False
    decryption_secret: str | None = None


class TenancySettings(Struct, frozen=True):
    """The objects that each namespace gets in addition to its apps.

    Attributes:
        namespaces: create the namespaces.
        quota: hard limits of a ResourceQuota.
        default_deny: directions that a NetworkPolicy denies.
        service_account: account that syncs the apps of the namespace.
        admin_service_account: account that creates namespaces and Applications, as `NAMESPACE:NAME`.
    """

    namespaces: bool = False
    quota: Mapping[str, str] = field(default_factory=dict)
    default_deny: tuple[str, ...] = ()
    service_account: str | None = None
    admin_service_account: str | None = None


class GitOpsSettings(Struct, frozen=True):
    """How Argo CD and Flux sync one environment.

    Attributes:
        repository: URL of the Git repository with the rendered tree.
        branch: its branch, with `{env}`.
        path: folder of the tree in it, with `{env}`.
        project: Argo CD project.
        charts: registry that charts are synced from, with `{env}`; None for the repository.
        labels: labels of every object for Argo CD and Flux.
        argocd: None to write nothing for Argo CD.
        flux: None to write nothing for Flux.
        tenancy: None to write nothing but the apps.
        clusters: the environment's clusters by name; empty for the cluster that Argo CD runs in.
    """

    repository: str
    branch: str
    path: str
    project: str = "kaigen"
    charts: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    argocd: ArgoCDSettings | None = None
    flux: FluxSettings | None = None
    tenancy: TenancySettings | None = None
    clusters: Mapping[str, ClusterSettings] = field(default_factory=dict)
