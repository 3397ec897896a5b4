"""The rule that a tenant has pods only in places that kaigen knows, so that every other rule applies to them."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.config.tenant_settings import Tenant
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Object, join_type, type_of
from kaigen.kubernetes.pods import CONTAINER_FIELDS, CONTAINER_LISTS, CONTAINER_MAPPINGS, pod_templates
from kaigen.kubernetes.schemas import index
from kaigen.tenancy.cel import OBJECT, TYPE, exists_below, text, texts

NAME = "unknown-pods"
"""Of the rule."""

WHAT = "pods in a kind, or in a field of it, that kaigen does not know"


def violations(obj: Object, tenant: Tenant) -> Iterator[Problem]:
    """Return a problem for each place with pods that the table of object kinds does not have."""
    for template in pod_templates(obj):
        if template.by_form:
            yield Problem(
                codes.TENANT_NOT_GRANTED,
                f"tenant `{tenant.name}` is not granted {WHAT}: {type_of(obj)}",
                template.spec_path,
                "use a kind that kaigen knows, or move the spec to a folder of no tenant",
            )


def expression(tenant: Tenant) -> str:
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
