"""CEL expressions of the rules for tenants, as admission policies evaluate them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kaigen.catalog.controllers import host_keys, raw_keys
from kaigen.config.controller_keys import allowed_entries, key_pattern
from kaigen.config.globs import bucket_pattern, entry_pattern, glob_pattern, host_pattern
from kaigen.config.tenant_settings import Tenant
from kaigen.gitops.pod_security_cel import security_rules
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.reach import (
    ALL,
    BUCKET_DRIVERS,
    BUILD_IMAGE,
    BUILD_OPTION,
    EXCLUDES,
    INLINE_OPTIONS,
    OPTION,
    PODS,
    REACHES,
    TEMPLATE_PATHS,
    TEMPLATES,
    URI,
    URL_REST,
    URL_SCHEME,
    VALUES,
    WORKLOAD_IDENTITIES,
    Reach,
    Test,
)

OBJECT = "object"
TYPE = "variables.type"

FREE = r"^((app|apps|batch)\.kubernetes\.io|(argocd\.argoproj|kueue\.x-k8s)\.io|kaigen\.dev)/"
"""The beginning of the most frequent keys, for which no policy searches the table of controllers."""

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
    """Return the expressions that rules use, by name.

    They are the type of the object, the `spec` and the annotations of its pods, the metadata of its templates, and its
    labels and annotations before an update.
    """
    type_ = (
        "object.apiVersion.contains('/') ? object.kind + '.' + object.apiVersion.split('/')[0] : object.kind"
    )
    templates = "[]"
    for kind, paths in TEMPLATE_PATHS.items():
        templates = f"{TYPE} == {text(kind)} ? {' + '.join(map(_mappings, paths))} : {templates}"
    entries = (
        f"{_at('oldObject', ('metadata', field))}.orValue({{}})" for field in ("annotations", "labels")
    )
    kept = " + ".join(f"{each}.map(key, key + '=' + {each}[key])" for each in entries)
    return {
        "type": type_,
        "pods": _of_pods("spec"),
        "annotations": _of_pods("metadata", "annotations"),
        "templates": templates,
        "kept": f"request.operation == 'UPDATE' ? {kept} : []",
    }


def _of_pods(*steps: str) -> str:
    """Return the expression of the list with a field of each pod of the object."""
    found = "[]"
    for row in KINDS.values():
        lists = [_mappings([*_steps(place.path), *steps]) for place in row.pods]
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
    return f"!({TYPE} in [{', '.join(map(text, reach.types))}]) || ({tests(OBJECT)})"


def _kept(steps: Sequence[str]) -> str:
    """Return the end of an expression that an update may keep a value; empty for a path through a list."""
    if ALL in steps:
        return ""
    return f" || (request.operation == 'UPDATE' && {_at(OBJECT, steps)} == {_at('oldObject', steps)})"


def _all(base: str, steps: Sequence[str], reach: Reach, tenant: Tenant, depth: int = 0) -> str:
    """Return the expression that every value at the end of a path passes the test."""
    place = next((number for number, step in enumerate(steps) if step in (ALL, VALUES)), None)
    if place is not None:
        before, rest = steps[:place], steps[place + 1 :]
        item = f"x{depth}"
        if steps[place] == VALUES:
            values = f"{_at(base, before)}.orValue({{}})" if before else base
            return f"{values}.all({item}, {_all(f'{values}[{item}]', rest, reach, tenant, depth + 1)})"
        items = f"{_at(base, before)}.orValue([])" if before else base
        found = f"{items}.all({item}, {_all(item, rest, reach, tenant, depth + 1)})"
        if not rest and reach.default is not None:
            return f"({items}.size() == 0 ? {_passes(text(reach.default), reach, tenant)} : {found})"
        return found
    if not steps:
        return _passes(base, reach, tenant)
    found = _at(base, steps)
    if reach.test is Test.MISSING:
        return f"!{found}.hasValue()"
    if reach.default is not None:
        return _passes(f"{found}.orValue({text(reach.default)})", reach, tenant)
    return f"!{found}.hasValue() || {_passes(f'{found}.value()', reach, tenant)}"


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
        case Test.MATCHES:
            return _matches(value, reach.pattern)
        case Test.BUILD:
            image = f"o.matches({text(f'^{BUILD_IMAGE}')})"
            is_granted = _matches("o", f"{BUILD_IMAGE}({glob_pattern(granted)})")
            fields = f"{value}.split(',').all(o, !{image} || {is_granted})"
            return f"(!{value}.matches({text(f'^{BUILD_OPTION}')}) || {fields})"
        case Test.SERVER:
            url = f"{URL_SCHEME}({host_pattern(tenant.servers())}){URL_REST}"
            return f"(!{value}.contains('://') || {_matches(value, url)})"
        case Test.VOLUME:
            return _matches(value, glob_pattern(tenant.volumes()))
        case Test.IDENTITY:
            provider = f"{_at(value, ('provider',))}.orValue('')"
            owner = f"{_at(value, ('identityOwner',))}.orValue('')"
            own = ", ".join(map(text, WORKLOAD_IDENTITIES))
            return f"({provider} in [{own}] || ({provider} == 'aws' && {owner} == 'workload'))"
        case Test.RAW_KEYS:
            notes = f"{_at(value, ('annotations',))}.orValue({{}})"
            return f"!{notes}.exists(key, {_matches('key', glob_pattern(raw_keys()))})"
        case Test.HOSTS:
            note = f"{_at(value, ('annotations',))}[?key]"
            hosts = f"{note}.value().replace(', ', ',').split(',')"
            keys = ", ".join(map(text, host_keys()))
            return f"[{keys}].all(key, !{note}.hasValue() || {hosts}.all(h, {_matches('h', host_pattern(granted))}))"
        case Test.CONTROLLER_KEYS:
            return _controller_keys(value, (*granted, *allowed_entries()), keeps=not reach.types)
        case Test.INLINE_LOCATION:
            options = f"{_at(value, INLINE_OPTIONS)}.orValue('').split(',')"
            return _location(value, options, bucket_pattern(granted), inline=True)


def _controller_keys(metadata: str, granted: Iterable[str], *, keeps: bool) -> str:
    """Return the expression that metadata have only granted labels and annotations of controllers.

    Args:
        metadata: expression of the metadata.
        granted: globs of what is granted, `KEY` or `KEY=VALUE`.
        keeps: whether an update may keep what the object had before, because controllers set annotations too.
    """
    both = ", ".join(f"{_at(metadata, (field,))}.orValue({{}})" for field in ("annotations", "labels"))
    entry = "(key + '=' + m[key])"
    tests = [f"key.matches({text(FREE)})", f"!{_matches('key', key_pattern())}"]
    tests.append(_matches(entry, entry_pattern(granted)))
    if keeps:
        tests.append(f"{entry} in variables.kept")
    return f"[{both}].all(m, m.all(key, {' || '.join(tests)}))"


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
        place = f"('{row.scheme}://' + {name} + '/' + {folders})"
        found = f"({driver} == {text(row.driver)} ? {_matches(place, pattern)} : {found})"
    return found


def _steps(path: str) -> list[str]:
    return [step for step in path.replace("[]", ".[]").split(".") if step]


def _mappings(steps: Sequence[str]) -> str:
    """Return the expression of the list with each mapping at a path."""
    if ALL not in steps:
        return f"[{_at(OBJECT, steps)}.orValue({{}})]"
    place = steps.index(ALL)
    items = f"{_at(OBJECT, steps[:place])}.orValue([])"
    return f"{items}.map(item, {_at('item', steps[place + 1 :])}.orValue({{}}))"


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
