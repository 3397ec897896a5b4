"""Names that kaigen.yaml takes for itself: the objects and accounts of `gitops`, and the Secrets that Flux reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from kaigen.config.gitops import Flux, GitOps

QUOTA = "kaigen"
"""The ResourceQuota of a namespace."""

DEFAULT_DENY = "default-deny"
ALLOW_DNS = "allow-dns"
ALLOW_NETWORK = "allow-network"
"""The NetworkPolicies of a namespace."""

RBAC = "rbac.authorization.k8s.io"
_FLUX_KINDS = (
    "GitRepository.source.toolkit.fluxcd.io",
    "HelmRelease.helm.toolkit.fluxcd.io",
    "Kustomization.kustomize.toolkit.fluxcd.io",
    "OCIRepository.source.toolkit.fluxcd.io",
)
_NAME_START = 50
"""Characters of a long name of Flux's objects that come before its hash, or fewer."""


class SyncerSecrets(Struct, frozen=True):
    """The Secrets that Flux reads, with which it gets and decrypts what it applies.

    Attributes:
        fields: the field of kaigen.yaml that names each of them.
        namespace: where Flux reads them; empty for every namespace.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""

    def within(self, namespaces: Collection[str]) -> Mapping[str, str]:
        """Return those that Flux reads in one of some namespaces."""
        return self.fields if not self.namespace or self.namespace in namespaces else {}


class Reserved(Struct, frozen=True):
    """What no spec of a tenant may name.

    Attributes:
        accounts: ServiceAccounts in the tenant's namespaces that apply objects.
        objects: globs of objects, `TYPE/NAME`.
        secrets: Secrets that Flux reads, each with the field of kaigen.yaml.
        appliers: who applies these objects: globs of `NAMESPACE:NAME` of ServiceAccounts.
    """

    accounts: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    appliers: tuple[str, ...] = ()

    def entries(self) -> tuple[str, ...]:
        """Return globs of all objects that only these accounts apply, `TYPE/NAME`, with the Secrets that Flux reads."""
        return (*self.objects, *(f"Secret/{name}" for name in self.secrets))


def syncer_secrets(gitops: GitOps | None, free: Collection[str] = ()) -> SyncerSecrets:
    """Return the Secrets that Flux reads.

    Args:
        gitops: how Argo CD and Flux sync; None for nothing.
        free: the names of Secrets that specs may use too.
    """
    if gitops is None or gitops.flux is None:
        return SyncerSecrets()
    fields = {name: place for name, place in _flux_secrets(gitops.flux) if name not in free}
    tenancy = gitops.tenancy
    everywhere = tenancy is not None and tenancy.service_account
    return SyncerSecrets(fields, "" if everywhere else gitops.flux.namespace)


def _flux_secrets(flux: Flux) -> Iterator[tuple[str, str]]:
    for name, place in (
        (flux.verify_secret, "verifySecret"),
        (flux.charts_secret, "chartsSecret"),
        (flux.secret, "secret"),
        (flux.decryption and flux.decryption.secret, "decryption.secret"),
    ):
        if name:
            yield name, f"gitops.flux.{place}"


def reserved_names(
    gitops: GitOps | None, environment: str, namespaces: Collection[str], secrets: SyncerSecrets
) -> Reserved:
    """Return the names that a tenant's specs may not use.

    Args:
        gitops: how Argo CD and Flux sync; None for nothing.
        environment: its name; empty for none.
        namespaces: of the tenant.
        secrets: the Secrets that Flux reads.
    """
    if gitops is None:
        return Reserved()
    tenancy = gitops.tenancy
    account = (tenancy.service_account or "") if tenancy else ""
    admin = (tenancy.admin_service_account or "") if tenancy else ""
    flux = gitops.flux
    accounts = [account] if account else []
    if admin and admin.partition(":")[0] in namespaces:
        accounts.append(admin.partition(":")[2])
    if flux is not None and flux.service_account and flux.namespace in namespaces:
        accounts.append(flux.service_account)
    homes = [syncer.namespace for syncer in (gitops.argocd, flux) if syncer is not None]
    objects = [*_tenancy_objects(gitops, account, namespaces)] if tenancy else []
    if flux is not None and account:
        objects += _flux_objects(gitops, environment, namespaces)
    return Reserved(
        tuple(dict.fromkeys(accounts)),
        tuple(objects),
        secrets.within(namespaces),
        (*([admin] if admin else []), *(f"{home}:*" for home in homes if home not in namespaces)),
    )


def _tenancy_objects(gitops: GitOps, account: str, namespaces: Collection[str]) -> Iterator[str]:
    """Yield the objects of `_tenant`, those that kaigen.yaml does not ask for yet included."""
    yield f"ResourceQuota/{QUOTA}"
    for name in (DEFAULT_DENY, ALLOW_DNS, ALLOW_NETWORK):
        yield f"NetworkPolicy.networking.k8s.io/{name}"
    if gitops.tenancy is not None and gitops.tenancy.namespaces:
        yield from (f"Namespace/{name}" for name in namespaces)
    if account:
        for kind in ("ServiceAccount", f"Role.{RBAC}", f"RoleBinding.{RBAC}"):
            yield f"{kind}/{account}"


def _flux_objects(gitops: GitOps, environment: str, namespaces: Collection[str]) -> Iterator[str]:
    """Yield the objects by which Flux syncs the apps of a namespace as its account."""
    project = "-".join(part for part in (gitops.project, environment) if part)
    for kind in _FLUX_KINDS:
        yield f"{kind}/{project}"
        for namespace in namespaces:
            start = f"{environment}.{namespace}." if environment else f"{namespace}."
            yield f"{kind}/{start[:_NAME_START]}*"
    # helm-controller makes it for a release whose chart is in the repository: NAMESPACE-RELEASE.
    yield from (f"HelmChart.source.toolkit.fluxcd.io/{namespace}-*" for namespace in namespaces)
