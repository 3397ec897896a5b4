"""CEL expressions of the rules for tenants, as admission policies evaluate them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kaigen.config.globs import bucket_pattern, glob_pattern
from kaigen.config.tenant_settings import Tenant
from kaigen.gitops.pod_security_cel import security_rules
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.reach import (
    ALL,
    BUCKET_DRIVERS,
    EXCLUDES,
    INLINE_OPTIONS,
    OPTION,
    PODS,
    REACHES,
    URI,
    Reach,
    Test,
)

OBJECT = "object"
TYPE = "variables.type"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
    """Return the expressions that rules use, by name: the type of the object, `spec` and annotations of its pods."""
    type_ = (
        "object.apiVersion.contains('/') ? object.kind + '.' + object.apiVersion.split('/')[0] : object.kind"
    )
    return {"type": type_, "pods": _of_pods("spec"), "annotations": _of_pods("metadata", "annotations")}


def _of_pods(*steps: str) -> str:
    """Return the expression of the list with a field of each pod of the object."""
    found = "[]"
    for row in KINDS.values():
        lists = [_pod_list(place.path, steps) for place in row.pods]
        if lists:
            found = f"{TYPE} == {text(row.type)} ? {' + '.join(lists)} : {found}"
    return found


def namespace() -> str:
    """Return the expression of the namespace that an object is in or is for; empty for one of the cluster."""
    claimed = f"{_at(OBJECT, ('spec', 'claimRef', 'namespace'))}.orValue('')"
    own = f"{_at(OBJECT, ('metadata', 'namespace'))}.orValue('')"
    group = "object.apiVersion == 'v1'"
    return (
        f"{group} && object.kind == 'Namespace' ? object.metadata.name : "
        f"({group} && object.kind == 'PersistentVolume' ? {claimed} : {own})"
    )


def rules_of(tenant: Tenant) -> Iterator[Rule]:
    """Yield the rules of a tenant, one for each way to reach outside its namespaces."""
    kinds = glob_pattern(tenant.granted("kinds"))
    yield Rule("kind", _matches(TYPE, kinds), _message(tenant, "the kind", "kinds"))
    own = f"{among('variables.place', tenant)} || (variables.place == '' && object.kind != 'Namespace')"
    yield Rule("namespace", own, _message(tenant, "the namespace", "namespaces"))
    for control in security_rules(tenant.pod_security):
        granted = f"; granted: Pod Security {tenant.pod_security}"
        message = f"tenant {tenant.name} is not granted {control.what}{granted}"
        yield Rule(control.name, control.expression, message)
    for reach in REACHES:
        yield Rule(reach.name, _expression(reach, tenant), _message(tenant, reach.what, reach.grant))


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
        return " && ".join(f"({_all(base, steps, reach, tenant)})" for steps in reach.paths)

    if reach.types == (PODS,):
        found = f"variables.pods.all(pod, {tests('pod')})"
        if reach.created:
            found = f"({TYPE} == 'Pod' && request.operation == 'UPDATE') || {found}"
        return found
    if not reach.types:
        return tests(OBJECT)
    return f"!({TYPE} in [{', '.join(map(text, reach.types))}]) || ({tests(OBJECT)})"


def _all(base: str, steps: Sequence[str], reach: Reach, tenant: Tenant, depth: int = 0) -> str:
    """Return the expression that every value at the end of a path passes the test."""
    if ALL in steps:
        before, rest = steps[: steps.index(ALL)], steps[steps.index(ALL) + 1 :]
        items = f"{_at(base, before)}.orValue([])" if before else base
        item = f"x{depth}"
        found = f"{items}.all({item}, {_all(item, rest, reach, tenant, depth + 1)})"
        if not rest and reach.default is not None:
            return f"({items}.size() == 0 ? {_passes(text(reach.default), reach, tenant)} : {found})"
        return found
    if not steps:
        return _passes(base, reach, tenant)
    place = _at(base, steps)
    if reach.test is Test.MISSING:
        return f"!{place}.hasValue()"
    if reach.default is not None:
        return _passes(f"{place}.orValue({text(reach.default)})", reach, tenant)
    return f"!{place}.hasValue() || {_passes(f'{place}.value()', reach, tenant)}"


def _passes(value: str, reach: Reach, tenant: Tenant) -> str:
    """Return the expression that a value passes the test."""
    granted = tenant.granted(reach.grant)
    match reach.test:
        case Test.GRANTED:
            return _matches(value, glob_pattern((*granted, *reach.always)))
        case Test.MISSING:
            return "false"
        case Test.NOT_TRUE:
            return f"{value} != true"
        case Test.NO_KEYS:
            allowed = (*granted, *reach.always)
            exempt = f" && !{_matches('key', glob_pattern(allowed))}" if allowed else ""
            return f"!{value}.exists(key, {_matches('key', reach.pattern)}{exempt})"
        case Test.LIST:
            return f"{value}.split(',').all(o, {_matches('o', glob_pattern((*granted, *reach.always)))})"
        case Test.NAMESPACE:
            return among(value, tenant)
        case Test.KEY:
            key = f"{_at(value, ('key',))}.orValue('')"
            excludes = f"{_at(value, ('operator',))}.orValue('') in [{', '.join(map(text, EXCLUDES))}]"
            exempt = f" || {_matches(key, glob_pattern(granted))}" if granted else ""
            return f"({excludes} || !{_matches(key, reach.pattern)}{exempt})"
        case Test.REFERENCE:
            place = _at(value, ("namespace",))
            shown = f"({place}.value() + '/' + {_at(value, ('name',))}.orValue(''))"
            own = among(f"{place}.value()", tenant)
            return f"(!{place}.hasValue() || {own} || {_matches(shown, glob_pattern(granted))})"
        case Test.BUCKET:
            pattern = f"{OPTION}({bucket_pattern(granted)})"
            return f"(!{value}.matches({text('^' + URI)}) || {_matches(value, pattern)})"
        case Test.LOCATION:
            options = f"{_at(value, ('mountOptions',))}.orValue([])"
            return _location(value, options, bucket_pattern(granted))
        case Test.INLINE_LOCATION:
            options = f"{_at(value, INLINE_OPTIONS)}.orValue('').split(',')"
            return _location(value, options, bucket_pattern(granted), inline=True)


def _location(spec: str, options: str, pattern: str, *, inline: bool = False) -> str:
    """Return the expression that a volume mounts a bucket of a pattern, or no bucket.

    Args:
        spec: expression of the `spec` of a PersistentVolume, or of the volume of a pod.
        options: expression of the list of its mount options.
        pattern: of the buckets.
        inline: whether it is the volume of a pod.
    """
    found = "true"
    driver = f"{_at(spec, ('csi', 'driver'))}.orValue('')"
    for row in BUCKET_DRIVERS:
        name = f"{_at(spec, ('csi', *(row.inline if inline else row.path)))}.orValue('').split(':')[0]"
        folders = "''"
        if row.word:
            chosen = f"{options}.filter(o, o.contains({text(row.word)}))"
            folders = f"{chosen}.map(o, o.replace({text(row.option)}, '')).join(' ')"
        place = f"('s3://' + {name} + '/' + {folders})"
        found = f"({driver} == {text(row.driver)} ? {_matches(place, pattern)} : {found})"
    return found


def _pod_list(path: str, field: Sequence[str]) -> str:
    """Return the expression of the list with a field of each pod at a path."""
    steps = [step for step in path.replace("[]", ".[]").split(".") if step]
    if ALL not in steps:
        return f"[{_at(OBJECT, (*steps, *field))}.orValue({{}})]"
    place = steps.index(ALL)
    items = f"{_at(OBJECT, steps[:place])}.orValue([])"
    return f"{items}.map(item, {_at('item', (*steps[place + 1 :], *field))}.orValue({{}}))"


def _at(base: str, steps: Iterable[str]) -> str:
    """Return the expression of an optional value."""
    for step in steps:
        base += f".?{step}" if _NAME.fullmatch(step) else f"[?{text(step)}]"
    return base


def among(value: str, tenant: Tenant) -> str:
    """Return the expression that a text is one of the tenant's namespaces."""
    return f"{value} in [{', '.join(map(text, tenant.namespaces))}]"


def _matches(value: str, pattern: str) -> str:
    return f"{value}.matches({text(f'^({pattern})$')})"


def text(value: str) -> str:
    """Return a text as a literal."""
    return json.dumps(value)
