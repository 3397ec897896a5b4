"""What the rights of a tenant's accounts reach, and the conditions of rights and of who gets them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import prod

from msgspec import Struct

from kaigen.config.globs import entry_pattern, is_entry_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import ALL, mapping
from kaigen.kubernetes.rights import (
    CUSTOM_RIGHT,
    GRANTABLE_RIGHTS,
    HARMLESS_RIGHTS,
    KUBERNETES_RIGHT,
    is_harmless_right,
    right_name,
)
from kaigen.tenancy.cel import among, at, matches, texts
from kaigen.tenancy.conditions.references import OwnName
from kaigen.tenancy.conditions.values import Granted, Missing, NoKeys
from kaigen.tenancy.reach import Reach, Refusal

HARMLESS = tuple(
    f"{right_name(right.group, right.resource)}={verb}" for right in HARMLESS_RIGHTS for verb in right.verbs
)
"""The rights that need no grant, as `RESOURCE[.GROUP]=VERB`."""

_MOST_RIGHTS = 10_000
"""Combinations in one rule of a Role; each is judged."""

_GRANTABLE = frozenset(GRANTABLE_RIGHTS)


class Rights(Struct, frozen=True):
    """A rule of a Role in which each combination of group, resource and verb is harmless or granted."""

    grant: str = "roles"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each resource, with the verbs that are not granted, and all URLs."""
        rule = mapping(value)
        if rule.get("nonResourceURLs"):
            yield Refusal("", ("nonResourceURLs",), "a right to URLs of the API server", can_be_granted=False)
        sizes = [len(_texts(rule.get(field))) for field in ("apiGroups", "resources", "verbs")]
        if prod(sizes) > _MOST_RIGHTS:
            what = f"a rule with more than {_MOST_RIGHTS:,} combinations of group, resource and verb"
            yield Refusal("", ("resources",), what, can_be_granted=False)
            return
        granted = tenant.granted(self.grant)
        verbs = [*_texts(rule.get("verbs"))]
        for number, resource in enumerate(_texts(rule.get("resources"))):
            for group in _texts(rule.get("apiGroups")):
                name = right_name(group, resource)
                refused = [
                    verb
                    for verb in verbs
                    if not is_harmless_right(group, resource, verb) and not _is_granted(name, verb, granted)
                ]
                if refused:
                    yield Refusal(
                        f"to {', '.join(refused)} `{name}`",
                        ("resources", number),
                        can_be_granted=all(_can_be_granted(f"{name}={verb}") for verb in refused),
                    )

    def passes(self, value: str, tenant: Tenant) -> str:
        """Look each combination up, and match it with the globs where there are any."""
        entry = "((g == '' ? r : r + '.' + g) + '=' + v)"
        tests = [f"{entry} in variables.harmless"]
        if granted := tenant.granted(self.grant):
            tests.append(f"({entry} in variables.grantable && {matches(entry, entry_pattern(granted))})")
        if named := _named_groups(granted):
            custom = f"{matches(entry, CUSTOM_RIGHT)} && !{matches(entry, KUBERNETES_RIGHT)}"
            tests.append(f"({custom} && {matches(entry, entry_pattern(named))})")
        each = " || ".join(tests)
        for name, field in (("v", "verbs"), ("r", "resources"), ("g", "apiGroups")):
            each = f"{at(value, (field,))}.orValue([]).all({name}, {each})"
        sizes = " * ".join(f"{at(value, (field,))}.orValue([]).size()" for field in ("apiGroups", "resources", "verbs"))
        return f"({at(value, ('nonResourceURLs',))}.orValue([]).size() == 0 && {sizes} <= {_MOST_RIGHTS} && {each})"


def _is_granted(name: str, verb: str, granted: Iterable[str]) -> bool:
    right = f"{name}={verb}"
    if right in _GRANTABLE:
        return is_entry_granted(name, verb, granted)
    return _is_custom(right) and is_entry_granted(name, verb, _named_groups(granted))


def _can_be_granted(right: str) -> bool:
    return right in _GRANTABLE or _is_custom(right)


def _is_custom(right: str) -> bool:
    return bool(re.fullmatch(CUSTOM_RIGHT, right)) and not re.fullmatch(KUBERNETES_RIGHT, right)


def _named_groups(granted: Iterable[str]) -> list[str]:
    """Return the entries whose group is a name and no glob."""
    groups = ((entry, entry.partition("=")[0].partition(".")[2]) for entry in granted)
    return [entry for entry, group in groups if group and not set(group) & set("*?")]


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


class OwnAccount(Struct, frozen=True):
    """A subject that is a ServiceAccount of one of the tenant's namespaces, and not one that applies objects."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse users, groups, and accounts of others."""
        subject = mapping(value)
        kind, name, namespace = (str(subject.get(key) or "") for key in ("kind", "name", "namespace"))
        shown = f"`{namespace}/{name}`" if namespace else f"`{name}`"
        if kind != "ServiceAccount" or namespace not in tenant.namespaces:
            return [Refusal(f"{kind} {shown}")]
        return [Refusal(f"{kind} {shown}")] if name in tenant.reserved.accounts else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare kind, namespace and name."""
        kind, name, namespace = (f"{at(value, (key,))}.orValue('')" for key in ("kind", "name", "namespace"))
        own = f"{kind} == 'ServiceAccount' && {among(namespace, tenant)}"
        return f"({own} && !({name} in {texts(tenant.reserved.accounts)}))"


class SecretRights(Struct, frozen=True):
    """A rule of a Role that includes no Secret that Flux reads."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a rule that includes one of them."""
        rule = mapping(value)
        names = _texts(rule.get("resourceNames"))
        found = [name for name in tenant.reserved.secrets if not names or name in names]
        resources = _texts(rule.get("resources"))
        includes = {"", "*"} & {*_texts(rule.get("apiGroups"))} and {"secrets", "*"} & {*resources}
        if not includes or not found:
            return []
        place = next(number for number, name in enumerate(resources) if name in ("secrets", "*"))
        return [Refusal(f"`{found[0]}`", ("resources", place))]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare the resources and the names."""
        if not tenant.reserved.secrets:
            return "true"
        groups, resources, names = (
            f"{at(value, (field,))}.orValue([])" for field in ("apiGroups", "resources", "resourceNames")
        )
        includes = f"{groups}.exists(g, g in ['', '*']) && {resources}.exists(r, r in ['secrets', '*'])"
        reserved = texts(tenant.reserved.secrets)
        return f"!({includes} && ({names}.size() == 0 || {names}.exists(n, n in {reserved})))"


_GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLE = f"ClusterRole.{_GROUP}"
ROLES = (f"Role.{_GROUP}", CLUSTER_ROLE)
ROLE_BINDING = f"RoleBinding.{_GROUP}"

_AGGREGATED = r"[\s\S]*aggregate-to-[\s\S]*"
"""Labels by which ClusterRoles are added to others (source: Kubernetes, aggregated ClusterRoles)."""

RBAC_REACHES: tuple[Reach, ...] = (
    Reach("right", "the right", ROLES, (("rules", ALL),), Rights()),
    Reach("cluster-role", "the ClusterRole", (CLUSTER_ROLE,), (("metadata", "name"),), OwnName()),
    Reach("aggregation", "rules of other ClusterRoles", (CLUSTER_ROLE,), (("aggregationRule",),), Missing()),
    Reach("aggregated", "the label", (CLUSTER_ROLE,), (("metadata", "labels"),), NoKeys(_AGGREGATED)),
    Reach(
        "bound-kind", "a role of kind", (ROLE_BINDING,), (("roleRef", "kind"),), Granted(always=("Role",)), default=""
    ),
    Reach("subject", "the subject", (ROLE_BINDING,), (("subjects", ALL),), OwnAccount()),
    Reach(
        "cluster-binding", "rights in every namespace", (f"ClusterRoleBinding.{_GROUP}",), (("roleRef",),), Missing()
    ),
)
