"""Admission policies that refuse in a cluster what the checks of tenants refuse in Git.

A tenant has two: of the objects that are created or changed, and of the other requests of its accounts, which write no
object: deletions, connections, tokens, bindings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from kaigen.config.globs import glob_pattern
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.names import SYNCER_NAMESPACES, SYSTEM_NAMESPACES
from kaigen.tenancy.cel import OBJECT, TYPE, among, at, matches, text, texts
from kaigen.tenancy.rows.rbac import CLUSTER_ROLE, ROLE_BINDING
from kaigen.tenancy.rules import Rule, kind_test, namespace, rules_of, type_of, variables

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
    skipped = [{**each, "operations": ["*"]} for each in _FREE_SUBRESOURCES]
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
            *({**each, "operations": ["CREATE", "UPDATE"]} for each in _FREE_SUBRESOURCES),
        ],
        [],
        {"account": _is_own(tenant), "not-free": _is_not_free(tenant)},
        {
            "type": f"request.operation == 'DELETE' ? {type_of(_OLD)} : ''",
            "place": f"request.operation == 'DELETE' ? ({namespace(_OLD)}) : request.?namespace.orValue('')",
        },
        _request_rules(tenant),
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


_FREE_SUBRESOURCES: tuple[dict[str, Any], ...] = (
    # Only replicas, which no rule limits: the controllers that scale are in many namespaces.
    {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/scale"]},
    # Drains of nodes, and the schedulers of groups of pods.
    {"apiGroups": [""], "apiVersions": ["*"], "resources": ["pods/eviction", "pods/binding"]},
    # Operators that get an identity for an object, in the name of its account.
    {"apiGroups": [""], "apiVersions": ["*"], "resources": ["serviceaccounts/token"]},
)
"""Subresources whose content is not an object that the rules of objects could read. Others may write them; for
accounts of the tenant they are limited here."""

_DELETED = "request.operation == 'DELETE'"
_SUBRESOURCE = "request.?subResource.orValue('')"


def _request_rules(tenant: Tenant) -> Iterator[Rule]:
    """Yield the rules of a tenant for requests of its accounts."""

    def rule(name: str, expression: str, what: str) -> Rule:
        return Rule(name, expression, f"tenant {tenant.name} is not granted {what}")

    place = "variables.place"
    free = f"({_DELETED} && {place} == '' && {TYPE} != 'Namespace')"
    yield rule("namespace", f"{among(place, tenant)} || {free}", "requests outside of its namespaces")
    # What it may not create, such as a quota, others made to limit it.
    yield rule("deletion", f"!({_DELETED}) || {kind_test(tenant)}", "the deletion of this kind")
    if reserved_entries := tenant.reserved.entries():
        entry = f"({TYPE} + '/' + oldObject.metadata.name)"
        reserved = matches(entry, glob_pattern(reserved_entries))
        yield rule("reserved", f"!({_DELETED} && {reserved})", "the deletion of kaigen's own object")
    for type_, globs in (("PersistentVolume", tenant.volumes()), (CLUSTER_ROLE, tenant.own_names())):
        name = "oldObject.metadata.name"
        own = f"{matches(name, glob_pattern(globs))}"
        expression = f"!({_DELETED} && {TYPE} == {text(type_)}) || {own}"
        yield rule(f"deleted-{type_.partition('.')[0].lower()}", expression, f"this {type_.partition('.')[0]}")
    yield rule("status", f"{_SUBRESOURCE} != 'status'", "the status of objects, which controllers write")
    yield rule("proxy", f"{_SUBRESOURCE} != 'proxy'", "connections through the API server")
    yield rule("binding", f"{_SUBRESOURCE} != 'binding'", "a node by a binding")
    if tenant.reserved.accounts:
        token = f"request.resource.resource == {text('serviceaccounts')} && {_SUBRESOURCE} == 'token'"
        named = f"request.?name.orValue('') in {texts(tenant.reserved.accounts)}"
        yield rule("token", f"!({token} && {named})", "a token of the ServiceAccount that applies objects")
