"""Admission policies that refuse in a cluster what the checks of tenants refuse in Git.

A tenant has two: of the objects that are created or changed, and of the other requests of its accounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from kaigen.config.globs import glob_pattern
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.names import SYNCER_NAMESPACES, SYSTEM_NAMESPACES
from kaigen.tenancy.cel import OBJECT, at, matches, text, texts
from kaigen.tenancy.requests import FREE_SUBRESOURCES, request_rules
from kaigen.tenancy.rows.rbac import ROLE_BINDING
from kaigen.tenancy.rules import Rule, namespace, rules_of, type_of, variables

Engine = Literal["kubernetes", "kyverno"]

_ACCOUNT = "system:serviceaccount:"
_EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"]}
_FREE = ("events", "leases")
_OLD = "oldObject"
_USER = "request.userInfo.username"
_GROUPS = "request.userInfo.?groups.orValue([])"


class _Policy(NamedTuple):
    """A policy without its engine.

    Attributes:
        name: of the policy.
        matched: the requests that it is asked for.
        skipped: those of them that it is not asked for.
        conditions: expressions that all must be true for the rules to apply, by name.
        variables: expressions that rules use, by name.
        rules: what is refused.
    """

    name: str
    matched: list[dict[str, Any]]
    skipped: list[dict[str, Any]]
    conditions: dict[str, str]
    variables: dict[str, str]
    rules: Iterable[Rule]


def policies(tenants: Sequence[Tenant], engine: Engine) -> list[dict[str, Any]]:
    """Return the policies of tenants, each followed by its binding where the engine has bindings.

    Args:
        tenants: of kaigen.yaml.
        engine: `kubernetes` for ValidatingAdmissionPolicies, `kyverno` for ValidatingPolicies.
    """
    write = _kubernetes if engine == "kubernetes" else _kyverno
    return [body for tenant in tenants for policy in (_objects(tenant), _requests(tenant)) for body in write(policy)]


def _kubernetes(policy: _Policy) -> list[dict[str, Any]]:
    api = "admissionregistration.k8s.io/v1"
    metadata = _metadata(policy)
    return [
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": _spec(policy)},
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": metadata["name"], "validationActions": ["Deny"]},
        },
    ]


def _kyverno(policy: _Policy) -> list[dict[str, Any]]:
    evaluation = {"admission": {"enabled": True}, "background": {"enabled": False}}
    spec = {"validationActions": ["Deny"], "evaluation": evaluation, **_spec(policy)}
    return [
        {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": _metadata(policy),
            "spec": spec,
        }
    ]


def _metadata(policy: _Policy) -> dict[str, Any]:
    return {"name": policy.name, "labels": {"app.kubernetes.io/managed-by": "kaigen"}}


def _spec(policy: _Policy) -> dict[str, Any]:
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": policy.matched, "excludeResourceRules": policy.skipped},
        "matchConditions": _named(policy.conditions),
        "variables": _named(policy.variables),
        "validations": [
            {"expression": rule.expression, "message": f"{rule.name}: {rule.message}"} for rule in policy.rules
        ],
    }


def _named(expressions: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _objects(tenant: Tenant) -> _Policy:
    """Return the policy of objects that are created or changed, with the status and other subresources."""
    settled = f"request.?subResource.orValue('') == 'status' && {OBJECT}.kind != 'Namespace' && !({_is_own(tenant)})"
    skipped = [{**each, "operations": ["*"]} for each in FREE_SUBRESOURCES]
    return _Policy(
        f"kaigen-tenant-{tenant.name}",
        [{**_EVERYTHING, "operations": ["CREATE", "UPDATE"], "resources": ["*/*"]}],
        skipped,
        _conditions(tenant),
        {**variables(), "place": namespace(), "settled": settled},
        rules_of(tenant),
    )


def _requests(tenant: Tenant) -> _Policy:
    """Return the policy of deletions, connections and the subresources that are not objects of their own."""
    return _Policy(
        f"kaigen-tenant-{tenant.name}-requests",
        [
            {**_EVERYTHING, "operations": ["DELETE", "CONNECT"], "resources": ["*/*"]},
            {**_EVERYTHING, "operations": ["UPDATE"], "resources": ["*/status"]},
            *({**each, "operations": ["CREATE", "UPDATE"]} for each in FREE_SUBRESOURCES),
        ],
        [],
        {"account": _is_own(tenant), "not-free": _is_not_free(tenant)},
        {
            "type": f"request.operation == 'DELETE' ? {type_of(_OLD)} : ''",
            "place": f"request.operation == 'DELETE' ? ({namespace(_OLD)}) : request.?namespace.orValue('')",
        },
        request_rules(tenant),
    )


def _is_not_free(tenant: Tenant) -> str:
    """Return the expression that a request is not about Events or Leases of the tenant's namespaces."""
    places = texts(tenant.namespaces)
    free = f"request.resource.resource in {texts(_FREE)} && request.?namespace.orValue('') in {places}"
    return f"!({free})"


def _is_own(tenant: Tenant) -> str:
    """Return the expression that an account of one of the tenant's namespaces asks."""
    groups = ", ".join(text(f"system:serviceaccounts:{place}") for place in tenant.namespaces)
    return f"{_GROUPS}.exists(g, g in [{groups}])"


def _conditions(tenant: Tenant) -> dict[str, str]:
    """Return which requests are those of the tenant.

    Controllers and nodes complete what was admitted before. Objects that are deleted must be able to lose their
    finalizers. The objects by which kaigen protects a namespace are applied by the platform's accounts.
    """
    services = text(f"^{_ACCOUNT}({SYSTEM_NAMESPACES}):")
    syncers = text(f"^{_ACCOUNT}({SYNCER_NAMESPACES}):")
    controller = (
        f"{_USER}.matches({text('^system:(kube-.*|node:.*|apiserver)$')})"
        f" || ({_USER}.matches({services}) && !{_USER}.matches({syncers}))"
    )
    own = _is_own(tenant)
    places = " || ".join(f"({namespace()}) == {text(place)}" for place in tenant.namespaces)
    same = f"{OBJECT}.all(k, k in ['metadata', 'status'] || (k in {_OLD} && {OBJECT}[k] == {_OLD}[k]))"
    noted = " && ".join(
        f"{at(OBJECT, ('metadata', field))} == {at(_OLD, ('metadata', field))}" for field in ("annotations", "labels")
    )
    updated = f"request.operation == 'UPDATE' && {same} && {noted}"
    deleted = f"{at(OBJECT, ('metadata', 'deletionTimestamp'))}.hasValue() && {updated}"
    found = {
        "tenant": f"{own} || {places}",
        "not-a-controller": f"!({controller})",
        "not-deleted": f"!({deleted}) || {own}",
        "not-free": _is_not_free(tenant),
        "not-of-an-administrator": f"!('system:masters' in {_GROUPS} && ({_limits_or_binds_people()}))",
    }
    if entries := tenant.reserved.entries():
        name = f"{at(OBJECT, ('metadata', 'name'))}.orValue('')"
        entry = f"({type_of(OBJECT)} + '/' + {name})"
        reserved = matches(entry, glob_pattern(entries))
        found["not-of-the-tenancy"] = f"!({reserved} && ({_is_applier(tenant)}))"
    return found


def _limits_or_binds_people() -> str:
    """Return the expression that an object limits a namespace, or gives people rights in it.

    No rule grants a tenant these, so an administrator writes them, and not a syncer with the tenant's objects. Every
    other object of an administrator is judged: a syncer may log in as one.
    """
    subjects = f"{at(OBJECT, ('subjects',))}.orValue([])"
    name = "s.?name.orValue('')"
    people = f"{subjects}.all(s, s.?kind.orValue('') in ['User', 'Group'] && !{name}.startsWith('system:'))"
    type_ = type_of(OBJECT)
    return f"{type_} in ['LimitRange', 'ResourceQuota'] || ({type_} == {text(ROLE_BINDING)} && {people})"


def _is_applier(tenant: Tenant) -> str:
    """Return the expression that an account asks which applies the objects of namespaces, or an administrator."""
    accounts = f"{_ACCOUNT}({SYNCER_NAMESPACES}):[^:]*"
    globs = glob_pattern(f"{_ACCOUNT}{applier}" for applier in tenant.reserved.appliers)
    return f"{matches(_USER, f'{accounts}|{globs}')} || 'system:masters' in {_GROUPS}"
