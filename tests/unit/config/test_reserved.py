"""Names that `gitops` takes for itself: accounts, objects, and the Secrets that Flux reads."""

from __future__ import annotations

import pytest

from kaigen.config.gitops import ArgoCD, Decryption, Flux, GitOps, Tenancy, resolve_gitops
from kaigen.config.reserved import Reserved, SyncerSecrets, reserved_names, syncer_secrets

ALL = Flux(
    namespace="flux",
    secret="git",
    charts_secret="charts",
    verify_secret="keys",
    decryption=Decryption(secret="age"),
)
FIELDS = {
    "git": "gitops.flux.secret",
    "charts": "gitops.flux.chartsSecret",
    "keys": "gitops.flux.verifySecret",
    "age": "gitops.flux.decryption.secret",
}


@pytest.mark.parametrize(
    ("gitops", "free", "secrets"),
    [
        (None, (), SyncerSecrets()),
        (GitOps(argocd=ArgoCD()), (), SyncerSecrets()),
        (GitOps(flux=Flux()), (), SyncerSecrets({}, "flux-system")),
        (GitOps(flux=Flux(decryption=Decryption())), (), SyncerSecrets({}, "flux-system")),
        (GitOps(flux=ALL), (), SyncerSecrets(FIELDS, "flux")),
        (GitOps(flux=ALL), ("charts", "keys", "age"), SyncerSecrets({"git": "gitops.flux.secret"}, "flux")),
        (GitOps(flux=ALL, tenancy=Tenancy(namespaces=True)), (), SyncerSecrets(FIELDS, "flux")),
        (GitOps(flux=ALL, tenancy=Tenancy(service_account="a")), (), SyncerSecrets(FIELDS, "")),
    ],
)
def test_flux_reads_its_secrets_in_its_namespace_or_as_an_account_of_each(
    gitops: GitOps | None, free: tuple[str, ...], secrets: SyncerSecrets
) -> None:
    assert syncer_secrets(gitops, free) == secrets


@pytest.mark.parametrize(("namespace", "found"), [("", True), ("a", True), ("b", False)])
def test_a_secret_is_read_in_one_namespace_or_in_every_one(namespace: str, found: bool) -> None:
    fields = {"git": "gitops.flux.secret"}
    assert SyncerSecrets(fields, namespace).within(["a", "c"]) == (fields if found else {})


QUOTA = (
    "ResourceQuota/kaigen",
    "NetworkPolicy.networking.k8s.io/default-deny",
    "NetworkPolicy.networking.k8s.io/allow-dns",
    "NetworkPolicy.networking.k8s.io/allow-network",
)
RBAC = "rbac.authorization.k8s.io"
ACCOUNT = ("ServiceAccount/sync", f"Role.{RBAC}/sync", f"RoleBinding.{RBAC}/sync")
KINDS = (
    "GitRepository.source.toolkit.fluxcd.io",
    "HelmRelease.helm.toolkit.fluxcd.io",
    "Kustomization.kustomize.toolkit.fluxcd.io",
    "OCIRepository.source.toolkit.fluxcd.io",
)


def of_flux(project: str, *globs: str) -> tuple[str, ...]:
    names = (project, *globs)
    charts = tuple(f"HelmChart.source.toolkit.fluxcd.io/{name}-*" for name in ("a", "b"))
    return (*(f"{kind}/{name}" for kind in KINDS for name in names), *charts)


@pytest.mark.parametrize(
    ("gitops", "environment", "reserved"),
    [
        (None, "prod", Reserved()),
        (GitOps(), "", Reserved()),
        (GitOps(argocd=ArgoCD()), "", Reserved(appliers=("argocd:*",))),
        (GitOps(argocd=ArgoCD(namespace="a")), "", Reserved()),
        (GitOps(flux=Flux(service_account="x")), "", Reserved(appliers=("flux-system:*",))),
        (GitOps(flux=Flux(service_account="x", namespace="b")), "", Reserved(accounts=("x",))),
        (GitOps(argocd=ArgoCD(), flux=Flux()), "", Reserved(appliers=("argocd:*", "flux-system:*"))),
        (GitOps(tenancy=Tenancy()), "", Reserved(objects=QUOTA)),
        (
            GitOps(tenancy=Tenancy(namespaces=True)),
            "",
            Reserved(objects=(*QUOTA, "Namespace/a", "Namespace/b")),
        ),
        (
            GitOps(tenancy=Tenancy(service_account="sync", admin_service_account="ops:admin")),
            "",
            Reserved(accounts=("sync",), objects=(*QUOTA, *ACCOUNT), appliers=("ops:admin",)),
        ),
        (
            GitOps(tenancy=Tenancy(service_account="sync", admin_service_account="b:admin")),
            "",
            Reserved(accounts=("sync", "admin"), objects=(*QUOTA, *ACCOUNT), appliers=("b:admin",)),
        ),
        (
            GitOps(tenancy=Tenancy(service_account="sync"), flux=Flux(namespace="a", service_account="sync")),
            "",
            Reserved(accounts=("sync",), objects=(*QUOTA, *ACCOUNT, *of_flux("kaigen", "a.*", "b.*"))),
        ),
        (
            GitOps(project="team", tenancy=Tenancy(service_account="sync"), flux=Flux(namespace="a")),
            "prod",
            Reserved(accounts=("sync",), objects=(*QUOTA, *ACCOUNT, *of_flux("team-prod", "prod.a.*", "prod.b.*"))),
        ),
    ],
)
def test_the_names_of_what_gitops_writes_are_reserved(
    gitops: GitOps | None, environment: str, reserved: Reserved
) -> None:
    assert reserved_names(gitops, environment, ("a", "b"), SyncerSecrets({}, "")) == reserved


def test_secrets_that_flux_reads_in_its_namespaces_are_entries_too() -> None:
    secrets = SyncerSecrets({"git": "gitops.flux.secret"}, "a")
    found = reserved_names(GitOps(tenancy=Tenancy()), "", ("a",), secrets)
    assert found.entries() == (*QUOTA, "Secret/git")
    assert reserved_names(GitOps(), "", ("b",), secrets).entries() == ()


def test_a_long_name_of_flux_is_reserved_by_its_start() -> None:
    gitops = GitOps(tenancy=Tenancy(service_account="sync"), flux=Flux())
    objects = reserved_names(gitops, "e" * 30, ("n" * 40,), SyncerSecrets()).objects
    assert f"{KINDS[0]}/{'e' * 30}.{'n' * 19}*" in objects


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (None, None),
        (GitOps(), None),
        (GitOps(path="a"), None),
        (GitOps(repository="r"), "rendered/prod"),
        (GitOps(repository="r", path="a"), "a"),
    ],
)
def test_the_folder_in_the_repository_is_the_output_by_default(block: GitOps | None, path: str | None) -> None:
    found = resolve_gitops(block, "rendered/prod")
    assert (found and found.path) == path
    assert found is None or found.repository == "r"
