"""Names that kaigen.yaml takes for itself, and that no spec may use."""

from __future__ import annotations

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import ALL, identity_of, mapping
from kaigen.kubernetes.secret_fields import pod_secret_paths, secret_paths
from kaigen.kubernetes.secrets import EXTERNAL_SECRET
from kaigen.tenancy.cel import TYPE, at, matches, texts
from kaigen.tenancy.reach import PODS, TEMPLATES, Reach, Refusal, refuse_value
from kaigen.tenancy.rows.rbac import ROLE_BINDING, ROLES, SecretRights


class FreeObject(Struct, frozen=True):
    """An object that has not the name of one that kaigen writes for the namespace.

    Attributes:
        type: of what a name refers to; empty for the whole object.
    """

    type: str = ""
    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a reserved name."""
        path: FieldPath = ()
        kind, name = self.type, str(value)
        if not self.type:
            identity = identity_of(mapping(value))
            kind, name, path = identity.type, identity.name, ("metadata", "name")
        if not is_granted(f"{kind}/{name}", tenant.reserved.objects):
            return []
        return [Refusal(f"{kind.partition('.')[0]} `{name}`", path)]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the type with the name."""
        if not tenant.reserved.objects:
            return "true"
        kind, name = f"'{self.type}'", value
        if not self.type:
            kind, name = TYPE, f"{at(value, ('metadata', 'name'))}.orValue('')"
        entry = f"({kind} + '/' + {name})"
        return f"!{matches(entry, glob_pattern(tenant.reserved.objects))}"


class FreeAccount(Struct, frozen=True):
    """The name of a ServiceAccount that applies no objects."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a reserved name."""
        return refuse_value(value) if value in tenant.reserved.accounts else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare with the names."""
        return f"!({value} in {texts(tenant.reserved.accounts)})"


class FreeSecret(Struct, frozen=True):
    """The name of a Secret that Flux does not read."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a reserved name."""
        return refuse_value(value) if isinstance(value, str) and value in tenant.reserved.secrets else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare with the names."""
        return f"!({value} in {texts(tenant.reserved.secrets)})"


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
