"""Rules for RBAC: permissions, one by one, and subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import cast

from kaigen.core.json_types import Json
from kaigen.diagnostics.problem import At
from kaigen.diff.formatting import gravest, listing
from kaigen.diff.model import ABSENT, Absent, FieldChange
from kaigen.diff.objects import Obj, get_list, get_text
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.trees import is_own, place_of
from kaigen.kubernetes.kind_table import OWN_KINDS
from kaigen.kubernetes.manifest import resource_of
from kaigen.kubernetes.rights import is_harmless_right

ROLES = frozenset({"Role.rbac.authorization.k8s.io", "ClusterRole.rbac.authorization.k8s.io"})

_MOST_OF_RULE = 10_000
"""Combinations of verb, group and resource in a rule; one with more counts as everything."""

_MOST = 200_000
"""Permissions of a role; what a role has beyond counts as everything. A file of 8 MiB can hold many more."""

_LONGEST_URL = 1000
"""Characters of a URL; of a longer one, only `*` is known to include it."""

Grant = tuple[str, str, str, str]
"""API group, resource or URL, name of one object or `*`, verb."""


def grants(role: Obj | None) -> set[Grant]:
    """Return every single permission of a role."""
    return _expanded(get_list(role.data, "rules") if role else [])[0]


def _expanded(rules: Iterable[Json]) -> tuple[set[Grant], bool]:
    """Return every single permission of rules, and whether none was replaced by everything."""
    found: set[Grant] = set()
    is_complete = True
    for rule in rules:
        verbs, urls = _texts(rule, "verbs"), _texts(rule, "nonResourceURLs")
        groups, resources = _texts(rule, "apiGroups"), _texts(rule, "resources")
        names = _texts(rule, "resourceNames") or ["*"]
        kinds = len(verbs) * len(groups) * len(resources)
        if kinds > _MOST_OF_RULE or len(found) + kinds * len(names) + len(verbs) * len(urls) > _MOST:
            found.add(("*", "*", "*", "*"))
            is_complete = False
            continue
        found.update(product(["URL"], urls, ["*"], verbs))
        found.update(product(groups, resources, names, verbs))
    return found, is_complete


def _texts(rule: Json, field: str) -> list[str]:
    return [str(item) for item in get_list(rule, field)]


def _beyond(new: set[Grant], old: set[Grant]) -> list[Grant]:
    """Return the permissions that `new` grants and `old` does not, sorted."""
    return sorted(grant for grant in new - old if old.isdisjoint(_wider(grant)))


def _wider(grant: Grant) -> Iterator[Grant]:
    """Yield every permission that includes this one."""
    group, resource, name, verb = grant
    if group == "URL":
        # `/healthz/*` for all URLs below.
        ends = range(1, len(resource) + 1) if len(resource) <= _LONGEST_URL and resource.startswith("/") else ()
        starts = [f"{resource[:end]}*" for end in ends]
        return product(["URL"], [resource, "*", *starts], ["*"], [verb, "*"])
    # `*/scale` for a subresource of everything.
    _, slash, subresource = resource.partition("/")
    resources = [resource, "*", *([f"*/{subresource}"] if slash else [])]
    return product([group, "*"], resources, [name, "*"], [verb, "*"])


def rights_fields(old: Json, new: Json) -> list[FieldChange] | None:
    """Return the changes between the rules of two roles: for each resource, the verbs before and now.

    The order of rules, and how rights are divided among them, has no effect. None if the rules are not as the API
    server accepts them, or have too many rights to compare one by one.
    """
    before, after = _verbs(old), _verbs(new)
    if before is None or after is None:
        return None
    changes = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key, set()), after.get(key, set())
        if was != now:
            old_verbs: Json | Absent = list(sorted(was)) if was else ABSENT
            new_verbs: Json | Absent = list(sorted(now)) if now else ABSENT
            changes.append(FieldChange(("rules", At(_label(*key))), old_verbs, new_verbs))
    return changes


_FIELDS = frozenset({"apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs"})


def _verbs(rules: Json) -> dict[tuple[str, str, str], set[str]] | None:
    """Return the verbs of rules by group, resource and name; None if that does not say everything about the rules."""
    if not _is_plain_rule(rules):
        return None
    found, is_complete = _expanded(cast("list[Json]", rules))
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for group, resource, name, verb in found:
        verbs.setdefault((group, resource, name), set()).add(verb)
    return verbs if is_complete else None


def _is_plain_rule(rules: Json) -> bool:
    """Return whether rules have only the fields of Kubernetes, with lists of text."""
    return isinstance(rules, list) and all(
        isinstance(rule, dict)
        and rule.keys() <= _FIELDS
        and all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in rule.values())
        for rule in rules
    )


def _label(group: str, resource: str, name: str) -> str:
    what = resource if group in ("", "URL") else f"{resource}.{group}"
    return what if name == "*" else f"{what} {name}"


BINDINGS = frozenset({"RoleBinding.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io"})

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"


def describe(found: Iterable[Grant]) -> str:
    """Return permissions as text: `get and list secrets; create jobs.batch`."""
    verbs: dict[str, list[str]] = {}
    for group, resource, name, verb in found:
        what = f"{resource}.{group}" if group not in ("", "URL", "*") else resource
        what = "everything" if resource == "*" and group == "*" else what
        verbs.setdefault(f"{what} {name}" if name != "*" else what, []).append(
            "do anything with" if verb == "*" else verb
        )
    by_verbs: dict[tuple[str, ...], list[str]] = {}
    for what, names in verbs.items():
        by_verbs.setdefault(tuple(sorted(set(names))), []).append(what)
    parts = [f"{listing(names, 8)} {listing(sorted(whats), 5)}" for names, whats in by_verbs.items()]
    shown = gravest(parts, 6)
    return "; ".join(shown) + (f"; and {len(parts) - len(shown)} more" if len(parts) > len(shown) else "")


def rules(case: Case) -> Iterator[Finding]:
    """A role grants more or less."""
    before, after = grants(case.old), grants(case.new)
    more, less = _beyond(after, before), _beyond(before, after)
    start = "may now" if case.old else "may"
    grave = [grant for grant in more if not _is_harmless(grant, case)]
    if grave:
        yield "danger", f"{start}: {describe(grave)}"
    plain = sorted({*more} - {*grave})
    if plain:
        yield "notice", f"{start}{' also' if grave else ''}: {describe(plain)}"
    if less and case.new:
        yield "info", f"may no longer: {describe(less)}"


def _loses_nothing(group: str, resource: str, verb: str) -> bool:
    """Return whether a right reaches nothing and loses nothing: a claim that is deleted may lose its data."""
    return verb != "delete" and is_harmless_right(group, resource, verb)


def _is_harmless(grant: Grant, case: Case) -> bool:
    """Return whether a right is harmless: in the role's namespace, or as kaigen gives it to accounts of tenancies."""
    if case.obj.kind != "Role":
        return False
    group, resource, name, verb = grant
    if _loses_nothing(group, resource, verb):
        return True
    if (resource, verb) == ("roles", "bind"):
        # The account of a tenancy binds the Roles of its apps, each of which is judged itself.
        role = _find_role(name, case.place, case)
        return is_own(case.obj) and role is not None and _is_plain(role)
    return is_own(case.obj) and (group, resource) in _MANAGED and verb in _MANAGING


_MANAGED = frozenset((group, resource_of(kind)) for group, kind in OWN_KINDS)
_MANAGING = frozenset({"create", "delete", "get", "list", "patch", "update", "watch"})
"""What the account of a tenancy may do with the kinds that kaigen's own kinds compile to."""


def unsafe_rights(account: str, place: str, case: Case) -> str:
    """Return the rights of a ServiceAccount in the new tree that are not harmless, as text; empty for none.

    Args:
        account: its name.
        place: its namespace.
        case: the case whose trees are read.
    """
    trees = case.trees
    bindings = trees.once(("bindings", case.top, place), lambda: _bindings(place, case))
    bound = bindings.get(f"ServiceAccount {place}/{account}", ())
    roles = {_role_name(binding): _role_of(binding, case) for binding in bound}
    # Many accounts may have the same large role.
    return trees.once(("unsafe rights", case.top, place, frozenset(roles)), lambda: _describe_unsafe(roles))


def _describe_unsafe(roles: Mapping[str, Obj | None]) -> str:
    found: set[Grant] = set()
    for name, role in roles.items():
        found |= grants(role) if role else {("", f"what {name} allows", "*", "do")}
    return describe(sorted(grant for grant in found if not _loses_nothing(grant[0], grant[1], grant[3])))


def _bindings(place: str, case: Case) -> dict[str, list[Obj]]:
    """Return the RoleBindings of a namespace of the new tree, by subject."""
    found: dict[str, list[Obj]] = {}
    for binding in case.trees.in_namespace("new", "RoleBinding", case.top, place):
        for subject in _subjects(binding, place):
            found.setdefault(subject, []).append(binding)
    return found


def _role_name(binding: Obj) -> str:
    return f"{get_text(binding.data, 'roleRef', 'kind')} {get_text(binding.data, 'roleRef', 'name')}"


def _role_of(binding: Obj, case: Case) -> Obj | None:
    """Return the Role of a binding, if it is in the new tree."""
    if get_text(binding.data, "roleRef", "kind") != "Role":
        return None
    return _find_role(get_text(binding.data, "roleRef", "name"), place_of(binding), case)


def _find_role(name: str, place: str, case: Case) -> Obj | None:
    """Return a Role of the new tree."""
    roles = case.trees.named("new", "Role", case.top, name)
    return next((role for role in roles if place_of(role) == place), None)


def aggregated(case: Case) -> Iterator[Finding]:
    """A ClusterRole is aggregated to others."""
    was = case.old.labels if case.old else {}
    into = [
        key.removeprefix(_AGGREGATE)
        for key, text in case.obj.labels.items()
        if key.startswith(_AGGREGATE) and text == "true" and was.get(key) != "true"
    ]
    if into:
        yield "danger", f"its rules are added to ClusterRole {listing(into)}, for every subject bound to it"


def subjects(case: Case) -> Iterator[Finding]:
    """The subjects of a binding changed."""
    before = _subjects(case.old, case.place)
    after = _subjects(case.new, case.place)
    role = _role_name(case.obj)
    everywhere = case.obj.kind == "ClusterRoleBinding"
    scope = " in every namespace" if everywhere else f" in namespace {case.obj.namespace}" if case.obj.namespace else ""
    more = _without(after, before)
    if more:
        grave = everywhere or not _is_usual_role(case) or any(not _is_own_account(each, case) for each in more)
        yield ("danger" if grave else "notice"), f"gives {role}{scope} to {listing(more)}"
    less = _without(before, after)
    if less:
        yield "notice", f"takes {role}{scope} from {listing(less)}"


def _without(subjects: Iterable[str], others: Iterable[str]) -> list[str]:
    known = set(others)
    return [subject for subject in subjects if subject not in known]


def _is_usual_role(case: Case) -> bool:
    """Return whether a binding is to a Role of the tree that gives only what is harmless, or to that of a tenancy."""
    if is_own(case.obj):
        return get_text(case.obj.data, "roleRef", "kind") == "Role"
    role = _role_of(case.obj, case)
    return role is not None and _is_plain(role)


def _is_plain(role: Obj) -> bool:
    """Return whether a Role gives only harmless rights."""
    return all(_loses_nothing(group, resource, verb) for group, resource, _, verb in grants(role))


def _is_own_account(subject: str, case: Case) -> bool:
    """Return whether a subject is a ServiceAccount of the binding's own namespace."""
    return subject.startswith(f"ServiceAccount {case.place}/")


def _subjects(binding: Obj | None, place: str) -> list[str]:
    found = []
    for subject in get_list(binding.data, "subjects") if binding else []:
        kind, name = get_text(subject, "kind"), get_text(subject, "name")
        namespace = get_text(subject, "namespace") or (place if kind == "ServiceAccount" else "")
        found.append(f"{kind} {f'{namespace}/{name}' if namespace else name}")
    return found
