"""The rules of requests of a tenant's accounts that write no object: deletions, connections, tokens, bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kaigen.config.globs import glob_pattern
from kaigen.config.tenant_settings import Tenant
from kaigen.tenancy.cel import TYPE, among, matches, text, texts
from kaigen.tenancy.rows.rbac import CLUSTER_ROLE
from kaigen.tenancy.rules import Rule, kind_test

FREE_SUBRESOURCES: tuple[dict[str, Any], ...] = (
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


def request_rules(tenant: Tenant) -> Iterator[Rule]:
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
