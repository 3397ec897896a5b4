"""Names that kaigen.yaml takes for itself, and that no spec may use."""

from __future__ import annotations

from kaigen.kubernetes.manifest import ALL
from kaigen.kubernetes.secret_fields import pod_secret_paths, secret_paths
from kaigen.kubernetes.secrets import EXTERNAL_SECRET
from kaigen.tenancy.conditions.reserved import FreeAccount, FreeObject, FreeSecret
from kaigen.tenancy.conditions.rights import SecretRights
from kaigen.tenancy.reach import PODS, TEMPLATES, Reach
from kaigen.tenancy.rows.rbac import ROLE_BINDING, ROLES

_ACCOUNT = "kubernetes.io/service-account.name"
"""The annotation of a Secret that gets a token of the account (source: Kubernetes, well-known annotations)."""

RESERVED_REACHES: tuple[Reach, ...] = (
    Reach("reserved", "the name of kaigen's own", (), ((),), FreeObject()),
    Reach("bound-role", "a binding to kaigen's own", (ROLE_BINDING,), (("roleRef", "name"),), FreeObject(ROLES[0])),
    Reach("account", "the ServiceAccount", (PODS,), (("serviceAccountName",), ("serviceAccount",)), FreeAccount()),
    Reach(
        "account-token",
        "a token of the ServiceAccount",
        ("Secret",),
        (("metadata", "annotations", _ACCOUNT),),
        FreeAccount(),
    ),
    Reach("template-token", "a token of the ServiceAccount", (TEMPLATES,), (("annotations", _ACCOUNT),), FreeAccount()),
    Reach(
        "scaler-account",
        "a token of the ServiceAccount",
        ("TriggerAuthentication.keda.sh", "ClusterTriggerAuthentication.keda.sh"),
        (
            ("spec", "boundServiceAccountToken", ALL, "serviceAccountName"),
            ("spec", "hashiCorpVault", "credential", "serviceAccountName"),
        ),
        FreeAccount(),
    ),
    Reach(
        "syncer-account",
        "the ServiceAccount",
        (
            "GitRepository.source.toolkit.fluxcd.io",
            "OCIRepository.source.toolkit.fluxcd.io",
            "Bucket.source.toolkit.fluxcd.io",
            "HelmRelease.helm.toolkit.fluxcd.io",
            "Kustomization.kustomize.toolkit.fluxcd.io",
        ),
        (("spec", "serviceAccountName"), ("spec", "decryption", "serviceAccountName")),
        FreeAccount(),
    ),
)
"""Rules for tenants."""

RESERVED_SECRET_REACHES: tuple[Reach, ...] = (
    Reach("syncer-secret-pod", "the Secret", (PODS,), pod_secret_paths(), FreeSecret()),
    *(
        Reach(f"syncer-secret-{type_.partition('.')[0].lower()}", "the Secret", (type_,), paths, FreeSecret())
        for type_, paths in secret_paths().items()
    ),
    # Without a name of the target, the Secret has that of the ExternalSecret.
    Reach("syncer-secret-made", "the Secret", (EXTERNAL_SECRET,), (("metadata", "name"),), FreeSecret()),
    Reach("syncer-secret-right", "rights to the Secret", ROLES, (("rules", ALL),), SecretRights()),
)
"""Rules for every spec: Secrets that Flux reads."""
