"""Rules for kinds, and for fields of kinds, that kaigen does not know, so that every other rule applies to a tenant.

A tenant has pods only in places that kaigen knows. And in kinds of which kaigen does not know the fields that name
Secrets and ServiceAccounts, every text that is a reserved name counts, except a namespace, and the name of an object of
another kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kaigen.check import codes
from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Object, join_type, type_of
from kaigen.kubernetes.pods import CONTAINER_FIELDS, CONTAINER_LISTS, CONTAINER_MAPPINGS, pod_templates
from kaigen.kubernetes.schemas import index
from kaigen.kubernetes.secret_fields import known_types
from kaigen.tenancy.cel import OBJECT, TYPE, exists_below, text, texts

POD_RULE = "unknown-pods"
"""Of the rule."""

PODS = "pods in a kind, or in a field of it, that kaigen does not know"


def pod_violations(obj: Object, tenant: Tenant) -> Iterator[Problem]:
    """Return a problem for each place with pods that the table of object kinds does not have."""
    for template in pod_templates(obj):
        if template.by_form:
            yield Problem(
                codes.TENANT_NOT_GRANTED,
                f"tenant `{tenant.name}` is not granted {PODS}: {type_of(obj)}",
                template.spec_path,
                "use a kind that kaigen knows, or move the spec to a folder of no tenant",
            )


def pod_expression(tenant: Tenant) -> str:
    """Return the expression that an object has no such place; empty if all kinds of the tenant are known.

    Kinds that kaigen knows are not searched: of them, only `violations` sees a place that a version of the kind adds
    to those of the table.
    """
    known = {
        join_type(version.rpartition("/")[0], kind)
        for kind, versions in index()["kinds"].items()
        for version in versions
    } | {row.type for row in KINDS.values() if row.pods}
    if known.issuperset(tenant.granted("kinds")):
        return ""
    return f"{TYPE} in {texts(sorted(known))} || !{exists_below(OBJECT, _has_form)}"


def _has_form(value: str) -> str:
    """Return the expression that a value is a pod or a single container; see `kaigen.kubernetes.pods`."""
    named = "type(c) == map && ['image', 'name'].exists(f, f in c && type(c[f]) == string)"
    listed = (
        f"{texts(CONTAINER_FIELDS)}.exists(f, f in {value} && type({value}[f]) == list"
        f" && {value}[f].exists(c, {named}))"
    )
    marked = " || ".join(
        f"{texts(fields)}.exists(f, f in {value} && type({value}[f]) == {kind})"
        for fields, kind in ((CONTAINER_LISTS, "list"), (CONTAINER_MAPPINGS, "map"))
    )
    image = f"{text('image')} in {value} && type({value}['image']) == string"
    return f"(type({value}) == map && ({listed} || ({image} && ({marked}))))"


ACCOUNT_RULE = "unknown-account"
SECRET_RULE = "syncer-secret-unknown"
"""Names of the rules."""

ACCOUNT = "the ServiceAccount"
SECRET = "the Secret"
"""What a rule refuses."""

_SKIPPED = ("apiVersion", "kind", "metadata", "status")
_KINDS = ("Secret", "ServiceAccount")


def name_places(obj: Object, names: Collection[str]) -> Iterator[tuple[FieldPath, str]]:
    """Yield where an object has one of some names, with the name; nothing for a kind with fields that are known."""
    if not names or type_of(obj) in known_types():
        return
    stack: list[tuple[FieldPath, object]] = [
        ((key,), value) for key, value in reversed(obj.items()) if key not in _SKIPPED
    ]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str) and value in names:
            yield path, value
        elif isinstance(value, list):
            stack += [((*path, number), item) for number, item in reversed([*enumerate(value)])]
        elif isinstance(value, dict):
            stack += [((*path, str(key)), value[key]) for key in reversed(value) if _is_name(str(key), value)]


def account_violations(obj: Object, tenant: Tenant) -> Iterator[Problem]:
    """Return a problem for each place with the name of a ServiceAccount that applies objects."""
    for path, name in name_places(obj, tenant.reserved.accounts):
        yield Problem(
            codes.TENANT_NOT_GRANTED,
            f"tenant `{tenant.name}` is not granted {ACCOUNT} `{name}`",
            path,
            "use another name, or move the spec to a folder of no tenant",
        )


def name_expression(names: Collection[str]) -> str:
    """Return the expression that an object has none of some names where `places` finds them."""
    listed = texts(sorted(names))

    def has_name(value: str) -> str:
        kind = f"{value}[?'kind'].orValue('Secret')"
        other = f"k == 'name' && type({kind}) == string && !({kind} in {texts(_KINDS)})"
        in_mapping = f"{value}.exists(k, {value}[k] in {listed} && k != 'namespace' && !({other}))"
        in_list = f"{value}.exists(x, x in {listed})"
        return f"(type({value}) == map ? {in_mapping} : type({value}) == list ? {in_list} : false)"

    field = f"{OBJECT}[k0]"
    found = f"{field} in {listed} || [{field}].exists(v0, {has_name('v0')} || {exists_below('v0', has_name)})"
    skipped = f"k0 in {texts(_SKIPPED)}"
    return f"{TYPE} in {texts(sorted(known_types()))} || !{OBJECT}.exists(k0, !({skipped}) && ({found}))"


def _is_name(key: str, value: Object) -> bool:
    """Return whether the text of a key may be the name of a Secret or of a ServiceAccount."""
    kind = value.get("kind")
    is_other = key == "name" and isinstance(kind, str) and kind not in _KINDS
    return not (is_other or (key == "namespace" and isinstance(value[key], str)))
