"""The rules of a tenant as CEL expressions, made from the table of reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kaigen.config.controller_keys import allowed_entries
from kaigen.config.globs import glob_pattern
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.value_paths import ALL, VALUES, steps_of
from kaigen.tenancy.cel import OBJECT, TYPE, among, at, matches, text, texts
from kaigen.tenancy.conditions.texts import Missing
from kaigen.tenancy.pod_security import security_rules
from kaigen.tenancy.reach import PODS, TEMPLATE_PATHS, TEMPLATES, Reach
from kaigen.tenancy.table import REACHES


class Rule(Struct, frozen=True):
    """One rule of a tenant.

    Attributes:
        name: of the rule.
        expression: true for an object that the tenant may have.
        message: what is wrong with any other.
    """

    name: str
    expression: str
    message: str


def variables() -> dict[str, str]:
    """Return the expressions that rules use, by name.

    They are the type of the object, the `spec` and the annotations of its pods, the metadata of its templates, its
    labels and annotations before an update, and those that every tenant may have.
    """
    type_ = (
        "object.apiVersion.contains('/') ? object.kind + '.' + object.apiVersion.split('/')[0] : object.kind"
    )
    templates = "[]"
    for kind, paths in TEMPLATE_PATHS.items():
        templates = f"{TYPE} == {text(kind)} ? {' + '.join(map(_mappings, paths))} : {templates}"
    entries = (f"{at('oldObject', ('metadata', field))}.orValue({{}})" for field in ("annotations", "labels"))
    kept = " + ".join(f"{each}.map(key, key + '=' + {each}[key])" for each in entries)
    return {
        "type": type_,
        "pods": _of_pods("spec"),
        "annotations": _of_pods("metadata", "annotations"),
        "templates": templates,
        "kept": f"request.operation == 'UPDATE' ? {kept} : []",
        "allowed": texts(sorted(allowed_entries())),
    }


def _of_pods(*steps: str) -> str:
    """Return the expression of the list with a field of each pod of the object."""
    found = "[]"
    for row in KINDS.values():
        lists = [_mappings([*steps_of(place.path), *steps]) for place in row.pods]
        if lists:
            found = f"{TYPE} == {text(row.type)} ? {' + '.join(lists)} : {found}"
    return found


def namespace() -> str:
    """Return the expression of the namespace that an object is in or is for; empty for one of the cluster."""
    claimed = f"{at(OBJECT, ('spec', 'claimRef', 'namespace'))}.orValue('')"
    own = f"{at(OBJECT, ('metadata', 'namespace'))}.orValue('')"
    group = "object.apiVersion == 'v1'"
    return (
        f"{group} && object.kind == 'Namespace' ? object.metadata.name : "
        f"({group} && object.kind == 'PersistentVolume' ? {claimed} : {own})"
    )


def rules_of(tenant: Tenant) -> Iterator[Rule]:
    """Yield the rules of a tenant, one for each way to reach outside its namespaces."""
    kinds = glob_pattern(tenant.granted("kinds"))
    yield Rule("kind", matches(TYPE, kinds), _message(tenant, "the kind", "kinds"))
    own = f"{among('variables.place', tenant)} || (variables.place == '' && object.kind != 'Namespace')"
    yield Rule("namespace", own, _message(tenant, "the namespace", "namespaces"))
    for control in security_rules(tenant.pod_security):
        granted = f"; granted: Pod Security {tenant.pod_security}"
        message = f"tenant {tenant.name} is not granted {control.what}{granted}"
        yield Rule(control.name, control.expression, message)
    for reach in REACHES:
        yield Rule(
            reach.name, _expression(reach, tenant), _message(tenant, reach.what, reach.condition.grant)
        )


def _message(tenant: Tenant, what: str, grant: str) -> str:
    listed = ""
    if grant and grant not in ("kinds", "images"):
        values = tenant.namespaces if grant == "namespaces" else tenant.granted(grant)
        listed = f"; granted: {', '.join(values) or 'none'}"
    for ending in (" of type", " of kind", " in namespace", " of namespace"):
        what = what.removesuffix(ending)
    return f"tenant {tenant.name} is not granted {what}{listed}"


def _expression(reach: Reach, tenant: Tenant) -> str:
    def tests(base: str) -> str:
        return " && ".join(
            f"({_all(base, steps, reach, tenant)}{_kept(steps) if reach.kept else ''})"
            for steps in reach.paths
        )

    if reach.types == (PODS,):
        found = f"variables.pods.all(pod, {tests('pod')})"
        if reach.created:
            found = f"({TYPE} == 'Pod' && request.operation == 'UPDATE') || {found}"
        return found
    if reach.types == (TEMPLATES,):
        return f"variables.templates.all(template, {tests('template')})"
    if not reach.types:
        return tests(OBJECT)
    return f"!({TYPE} in {texts(reach.types)}) || ({tests(OBJECT)})"


def _kept(steps: Sequence[str]) -> str:
    """Return the end of an expression that an update may keep a value; empty for a path through a list."""
    if ALL in steps:
        return ""
    return f" || (request.operation == 'UPDATE' && {at(OBJECT, steps)} == {at('oldObject', steps)})"


def _all(base: str, steps: Sequence[str], reach: Reach, tenant: Tenant, depth: int = 0) -> str:
    """Return the expression that every value at the end of a path passes the test."""
    place = next((number for number, step in enumerate(steps) if step in (ALL, VALUES)), None)
    if place is not None:
        before, rest = steps[:place], steps[place + 1 :]
        item = f"x{depth}"
        if steps[place] == VALUES:
            values = f"{at(base, before)}.orValue({{}})" if before else base
            return f"{values}.all({item}, {_all(f'{values}[{item}]', rest, reach, tenant, depth + 1)})"
        items = f"{at(base, before)}.orValue([])" if before else base
        found = f"{items}.all({item}, {_all(item, rest, reach, tenant, depth + 1)})"
        if not rest and reach.default is not None:
            return f"({items}.size() == 0 ? {reach.condition.passes(text(reach.default), tenant)} : {found})"
        return found
    if not steps:
        return reach.condition.passes(base, tenant)
    found = at(base, steps)
    if isinstance(reach.condition, Missing):
        return f"!{found}.hasValue()"
    if reach.default is not None:
        return reach.condition.passes(f"{found}.orValue({text(reach.default)})", tenant)
    return f"!{found}.hasValue() || {reach.condition.passes(f'{found}.value()', tenant)}"


def _mappings(steps: Sequence[str]) -> str:
    """Return the expression of the list with each mapping at a path, which goes through one list at most."""
    if ALL not in steps:
        return f"[{at(OBJECT, steps)}.orValue({{}})]"
    place = steps.index(ALL)
    items = f"{at(OBJECT, steps[:place])}.orValue([])"
    rest = steps[place + 1 :]
    return f"{items}.map(item, {at('item', rest)}.orValue({{}}))" if rest else items
