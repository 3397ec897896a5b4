"""The rules of a tenant as CEL expressions, made from the table of reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kaigen.config.controller_keys import allowed_entries
from kaigen.config.globs import glob_pattern
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import ALL, VALUES, steps_of
from kaigen.kubernetes.object_kind import PodPath
from kaigen.kubernetes.rights import GRANTABLE_RIGHTS
from kaigen.kubernetes.secret_fields import known_types
from kaigen.tenancy import unknown
from kaigen.tenancy.cel import OBJECT, TYPE, among, at, matches, text, texts
from kaigen.tenancy.conditions.values import Missing
from kaigen.tenancy.pod_security import security_rules
from kaigen.tenancy.reach import PODS, TEMPLATE_PATHS, TEMPLATES, Reach
from kaigen.tenancy.rows.rbac import HARMLESS
from kaigen.tenancy.rows.reserved import RESERVED_SECRET_REACHES
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
    labels and annotations before an update, those that every tenant may have, and the rights of Roles that need no
    grant, or can be granted.
    """
    templates = "[]"
    for kind, paths in TEMPLATE_PATHS.items():
        lists = [_mappings(steps) for steps in paths if not _is_nested(steps)]
        if lists:
            templates = f"{TYPE} == {text(kind)} ? {' + '.join(lists)} : {templates}"
    entries = (f"{at('oldObject', ('metadata', field))}.orValue({{}})" for field in ("annotations", "labels"))
    kept = " + ".join(f"{each}.map(key, key + '=' + {each}[key])" for each in entries)
    return {
        "type": type_of(OBJECT),
        "pods": _of_pods("spec"),
        "annotations": _of_pods("metadata", "annotations"),
        "templates": templates,
        "kept": f"request.operation == 'UPDATE' ? {kept} : []",
        "allowed": texts(sorted(allowed_entries())),
        "harmless": texts(HARMLESS),
        "grantable": texts(GRANTABLE_RIGHTS),
    }


def _of_pods(*steps: str) -> str:
    """Return the expression of the list with a field of each pod of the object."""
    found = "[]"
    for row in KINDS.values():
        lists = [_of_place(place, steps) for place in row.pods if not place.single or steps == ("spec",)]
        if lists:
            found = f"{TYPE} == {text(row.type)} ? {' + '.join(lists)} : {found}"
    return found


def _of_place(place: PodPath, steps: Sequence[str]) -> str:
    """Return the expression of the list with a field of each pod at a place; a single container is a pod with it."""
    if not place.single:
        return _mappings([*steps_of(place.path), *steps])
    container = at(OBJECT, steps_of(place.path))
    context = at(OBJECT, [*steps_of(place.joins), "spec", "securityContext"])
    pod = f"dyn({{'containers': dyn([{container}.value()]), ?'securityContext': {context}}})"
    return f"({container}.hasValue() ? [{pod}] : [])"


def type_of(obj: str) -> str:
    """Return the expression of the kind of an object with its group."""
    return f"({obj}.apiVersion.contains('/') ? {obj}.kind + '.' + {obj}.apiVersion.split('/')[0] : {obj}.kind)"


def namespace(obj: str = OBJECT) -> str:
    """Return the expression of the namespace that an object is in or is for; empty for one of the cluster."""
    claimed = f"{at(obj, ('spec', 'claimRef', 'namespace'))}.orValue('')"
    own = f"{at(obj, ('metadata', 'namespace'))}.orValue('')"
    group = f"{obj}.apiVersion == 'v1'"
    return (
        f"{group} && {obj}.kind == 'Namespace' ? {obj}.metadata.name : "
        f"({group} && {obj}.kind == 'PersistentVolume' ? {claimed} : {own})"
    )


def rules_of(tenant: Tenant) -> Iterator[Rule]:
    """Yield the rules of a tenant, one for each way to reach outside its namespaces.

    Whoever writes the status of an object that others made can change its labels and annotations, and nothing else
    that a rule reads, so only the rules of these apply.
    """
    yield _rule("kind", kind_test(tenant), _message(tenant, "the kind", "kinds"))
    yield _rule("namespace", namespace_test(tenant), _message(tenant, "the namespace", "namespaces"))
    if searched := unknown.pod_expression(tenant):
        yield _rule(unknown.POD_RULE, searched, _message(tenant, unknown.PODS, ""))
    for name, what, names in (
        (unknown.ACCOUNT_RULE, unknown.ACCOUNT, tenant.reserved.accounts),
        (unknown.SECRET_RULE, unknown.SECRET, tenant.reserved.secrets),
    ):
        if names and not known_types().issuperset(tenant.granted("kinds")):
            yield _rule(name, unknown.name_expression(names), _message(tenant, what, ""))
    for control in security_rules(tenant.pod_security):
        granted = f"; granted: Pod Security {tenant.pod_security}"
        message = f"tenant {tenant.name} is not granted {control.what}{granted}"
        yield _rule(control.name, control.expression, message)
    for reach in (*REACHES, *RESERVED_SECRET_REACHES):
        if reach in RESERVED_SECRET_REACHES and not tenant.reserved.secrets:
            continue
        message = _message(tenant, reach.what, reach.condition.grant)
        expression = _expression(reach, tenant)
        of_metadata = not reach.types and all(steps[:1] == ("metadata",) for steps in reach.paths)
        yield Rule(reach.name, expression, message) if of_metadata else _rule(reach.name, expression, message)


def _rule(name: str, expression: str, message: str) -> Rule:
    """Return a rule of something that no write of a status can change."""
    return Rule(name, f"variables.settled || ({expression})", message)


def kind_test(tenant: Tenant) -> str:
    """Return the expression that a tenant may have objects of a kind."""
    return matches(TYPE, glob_pattern(tenant.granted("kinds")))


def namespace_test(tenant: Tenant) -> str:
    """Return the expression that an object is in a namespace of a tenant, or of the cluster and for none."""
    place = "variables.place"
    return f"{among(place, tenant)} || ({place} == '' && {TYPE} != 'Namespace')"


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
            f"({_all(base, steps, reach, tenant)}{_kept(steps) if reach.kept else ''})" for steps in reach.paths
        )

    if reach.types == (PODS,):
        found = f"variables.pods.all(pod, {tests('pod')})"
        if reach.created:
            found = f"({TYPE} == 'Pod' && request.operation == 'UPDATE') || {found}"
        return found
    if reach.types == (TEMPLATES,):
        return _of_templates(tests("template"))
    if not reach.types:
        return tests(OBJECT)
    return f"!({TYPE} in {texts(reach.types)}) || ({tests(OBJECT)})"


def _of_templates(tests: str) -> str:
    """Return the expression that the metadata of every template, `template`, pass tests."""
    found = f"variables.templates.all(template, {tests})"
    for kind, paths in TEMPLATE_PATHS.items():
        nested = [_each(OBJECT, steps, tests) for steps in paths if _is_nested(steps)]
        if nested:
            found += f" && ({TYPE} != {text(kind)} || ({' && '.join(nested)}))"
    return found


def _is_nested(steps: Sequence[str]) -> bool:
    """Return whether a path has a list in a list, which CEL cannot join to one list."""
    return steps.count(ALL) > 1


def _each(base: str, steps: Sequence[str], tests: str, depth: int = 0) -> str:
    """Return the expression that each mapping at a path, `template`, passes tests."""
    if ALL not in steps:
        return f"[{at(base, steps)}.orValue({{}})].all(template, {tests})"
    place, item = steps.index(ALL), f"x{depth}"
    items = f"{at(base, steps[:place])}.orValue([])"
    return f"{items}.all({item}, {_each(item, steps[place + 1 :], tests, depth + 1)})"


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
