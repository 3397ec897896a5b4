"""Admission policies that refuse in a cluster what the checks of tenants refuse in Git."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.system_namespaces import SYNCER_NAMESPACES, SYSTEM_NAMESPACES
from kaigen.tenancy.cel import among, text
from kaigen.tenancy.rules import namespace, rules_of, variables

Engine = Literal["kubernetes", "kyverno"]

_ACCOUNT = "system:serviceaccount:"
_MATCHED = [
    {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["*", "pods/ephemeralcontainers"],
    }
]
_SKIPPED = [
    {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": ["leases"],
    },
    {"apiGroups": ["", "events.k8s.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["events"]},
]


def policies(tenants: Sequence[Tenant], engine: Engine) -> list[dict[str, Any]]:
    """Return the policies of tenants, each followed by its binding where the engine has bindings.

    Args:
        tenants: of kaigen.yaml.
        engine: `kubernetes` for ValidatingAdmissionPolicies, `kyverno` for ValidatingPolicies.
    """
    return [
        each for tenant in tenants for each in (_kubernetes if engine == "kubernetes" else _kyverno)(tenant)
    ]


def _kubernetes(tenant: Tenant) -> list[dict[str, Any]]:
    api = "admissionregistration.k8s.io/v1"
    metadata = _metadata(tenant)
    return [
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": _spec(tenant)},
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": metadata["name"], "validationActions": ["Deny"]},
        },
    ]


def _kyverno(tenant: Tenant) -> list[dict[str, Any]]:
    evaluation = {"admission": {"enabled": True}, "background": {"enabled": False}}
    spec = {"validationActions": ["Deny"], "evaluation": evaluation, **_spec(tenant)}
    return [
        {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": _metadata(tenant),
            "spec": spec,
        }
    ]


def _metadata(tenant: Tenant) -> dict[str, Any]:
    return {"name": f"kaigen-tenant-{tenant.name}", "labels": {"app.kubernetes.io/managed-by": "kaigen"}}


def _spec(tenant: Tenant) -> dict[str, Any]:
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": _MATCHED, "excludeResourceRules": _SKIPPED},
        "matchConditions": _conditions(tenant),
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in {**variables(), "place": namespace()}.items()
        ],
        "validations": [
            {"expression": rule.expression, "message": f"{rule.name}: {rule.message}"}
            for rule in rules_of(tenant)
        ],
    }


def _conditions(tenant: Tenant) -> list[dict[str, str]]:
    """Return which requests are those of the tenant.

    Controllers and nodes complete what was admitted before, and objects that are deleted must be able to lose their
    finalizers.
    """
    groups = ", ".join(text(f"system:serviceaccounts:{place}") for place in tenant.namespaces)
    user = "request.userInfo.username"
    services = text(f"^{_ACCOUNT}({SYSTEM_NAMESPACES}):")
    syncers = text(f"^{_ACCOUNT}({SYNCER_NAMESPACES}):")
    controller = (
        f"{user}.matches({text('^system:(kube-.*|node:.*|apiserver)$')})"
        f" || ({user}.matches({services}) && !{user}.matches({syncers}))"
    )
    return [
        {
            "name": "tenant",
            "expression": f"request.userInfo.?groups.orValue([]).exists(g, g in [{groups}])"
            f" || {among(f'({namespace()})', tenant)}",
        },
        {"name": "not-a-controller", "expression": f"!({controller})"},
        {"name": "not-deleted", "expression": "!object.metadata.?deletionTimestamp.hasValue()"},
    ]
