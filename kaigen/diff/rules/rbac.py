"""Rules for RBAC: permissions and subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kaigen.diff.formatting import gravest, listing
from kaigen.diff.model import Json
from kaigen.diff.objects import Obj, get_list, get_text
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.tree import locate
from kaigen.diff.trees import is_own
from kaigen.gitops.own_kinds import OWN_KINDS
from kaigen.kubernetes.api_paths import resource_of
from kaigen.kubernetes.harmless_rights import is_harmless_right

GROUP = ".rbac.authorization.k8s.io"
ROLES = frozenset({f"Role{GROUP}", f"ClusterRole{GROUP}"})
BINDINGS = frozenset({f"RoleBinding{GROUP}", f"ClusterRoleBinding{GROUP}"})

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"

_MOST = 10_000
"""Combinations in a rule; one with more counts as everything."""

Grant = tuple[str, str, str, str]
"""API group, resource or URL, name of one object or `*`, verb."""


def _loses_nothing(group: str, resource: str, verb: str) -> bool:
    """Return whether a right reaches nothing and loses nothing: a claim that is deleted may lose its data."""
    return verb != "delete" and is_harmless_right(group, resource, verb)


def grants(role: Obj | None) -> set[Grant]:
    """Return every single permission of a role."""
    found: set[Grant] = set()
    for rule in get_list(role.data, "rules") if role else []:
        verbs = _texts(get_list(rule, "verbs"))
        if len(verbs) * len(get_list(rule, "apiGroups")) * len(get_list(rule, "resources")) > _MOST:
            found.add(("*", "*", "*", "*"))
            continue
        for verb in verbs:
            for url in _texts(get_list(rule, "nonResourceURLs")):
                found.add(("URL", url, "*", verb))
            for group in _texts(get_list(rule, "apiGroups")):
                for resource in _texts(get_list(rule, "resources")):
                    for name in _texts(get_list(rule, "resourceNames")) or ["*"]:
                        found.add((group, resource, name, verb))
    return found


def _texts(items: Iterable[Json]) -> list[str]:
    return [str(item) for item in items]


def _covers(wide: Grant, narrow: Grant) -> bool:
    if (wide[0] == "URL") != (narrow[0] == "URL"):
        return False
    return all(_matches(pattern, item) for pattern, item in zip(wide, narrow, strict=True))


def _matches(pattern: str, item: str) -> bool:
    if pattern == item or pattern == "*":
        return True
    # `/healthz/*` for URLs, `*/scale` for a subresource of everything.
    if pattern.startswith("/") and pattern.endswith("*"):
        return item.startswith(pattern[:-1])
    return pattern.startswith("*/") and item.endswith(pattern[1:])


def beyond(new: set[Grant], old: set[Grant]) -> list[Grant]:
    """Return the permissions that `new` grants and `old` does not, sorted."""
    wide = [grant for grant in old if any("*" in part for part in grant)]
    return sorted(grant for grant in new - old if not any(_covers(pattern, grant) for pattern in wide))


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
    more, less = beyond(after, before), beyond(before, after)
    start = "may now" if case.old else "may"
    grave = [grant for grant in more if not _is_harmless(grant, case)]
    if grave:
        yield "danger", f"{start}: {describe(grave)}"
    plain = [grant for grant in more if grant not in grave]
    if plain:
        yield "notice", f"{start}{' also' if grave else ''}: {describe(plain)}"
    if less and case.new:
        yield "info", f"may no longer: {describe(less)}"


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


def unsafe_rights(account: str, place: str, case: Case) -> list[Grant]:
    """Return the rights of a ServiceAccount in the new tree that are not harmless.

    Args:
        account: its name.
        place: its namespace.
        case: the case whose trees are read.
    """
    found: set[Grant] = set()
    for binding in case.trees.of_kind("new", "RoleBinding", case.top, account):
        named = f"ServiceAccount {place}/{account}"
        if _place(binding) == place and named in _subjects(binding, _place(binding)):
            role = _role_of(binding, case)
            found |= grants(role) if role else {("", f"what {_role_name(binding)} allows", "*", "do")}
    return sorted(grant for grant in found if not _loses_nothing(grant[0], grant[1], grant[3]))


def _place(obj: Obj) -> str:
    return obj.namespace or locate(obj.path).app.namespace


def _role_name(binding: Obj) -> str:
    return f"{get_text(binding.data, 'roleRef', 'kind')} {get_text(binding.data, 'roleRef', 'name')}"


def _role_of(binding: Obj, case: Case) -> Obj | None:
    """Return the Role of a binding, if it is in the new tree."""
    if get_text(binding.data, "roleRef", "kind") != "Role":
        return None
    return _find_role(get_text(binding.data, "roleRef", "name"), _place(binding), case)


def _find_role(name: str, place: str, case: Case) -> Obj | None:
    """Return a Role of the new tree."""
    roles = case.trees.of_kind("new", "Role", case.top, name)
    return next((role for role in roles if role.name == name and _place(role) == place), None)


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
    scope = (
        " in every namespace"
        if everywhere
        else f" in namespace {case.obj.namespace}"
        if case.obj.namespace
        else ""
    )
    more = [subject for subject in after if subject not in before]
    if more:
        grave = (
            everywhere or not _is_usual_role(case) or any(not _is_own_account(each, case) for each in more)
        )
        yield ("danger" if grave else "notice"), f"gives {role}{scope} to {listing(more)}"
    less = [subject for subject in before if subject not in after]
    if less:
        yield "notice", f"takes {role}{scope} from {listing(less)}"


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
