"""Rules for RBAC: permissions and subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kaigen.diff.formatting import gravest, listing
from kaigen.diff.model import Json
from kaigen.diff.objects import Obj, get_list, get_text
from kaigen.diff.rules.case import Case, Finding

GROUP = ".rbac.authorization.k8s.io"
ROLES = frozenset({f"Role{GROUP}", f"ClusterRole{GROUP}"})
BINDINGS = frozenset({f"RoleBinding{GROUP}", f"ClusterRoleBinding{GROUP}"})

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_EVERYONE = frozenset(
    {"system:anonymous", "system:authenticated", "system:serviceaccounts", "system:unauthenticated"}
)

Grant = tuple[str, str, str, str]
"""API group, resource or URL, name of one object or `*`, verb."""


def grants(role: Obj | None) -> set[Grant]:
    """Return every single permission of a role."""
    found: set[Grant] = set()
    for rule in get_list(role.data, "rules") if role else []:
        verbs = _texts(get_list(rule, "verbs"))
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
    if more:
        yield ("danger" if case.old else "notice"), f"{'may now' if case.old else 'may'}: {describe(more)}"
    if less and case.new:
        yield "info", f"may no longer: {describe(less)}"


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
    before = _subjects(case.old)
    after = _subjects(case.new)
    role = get_text(case.obj.data, "roleRef", "kind") + " " + get_text(case.obj.data, "roleRef", "name")
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
        broad = everywhere or any(subject.rpartition(" ")[2] in _EVERYONE for subject in more)
        admin = get_text(case.obj.data, "roleRef", "name") in ("cluster-admin", "admin")
        yield ("danger" if broad or admin else "notice"), f"gives {role}{scope} to {listing(more)}"
    less = [subject for subject in before if subject not in after]
    if less:
        yield "notice", f"takes {role}{scope} from {listing(less)}"


def _subjects(binding: Obj | None) -> list[str]:
    found = []
    for subject in get_list(binding.data, "subjects") if binding else []:
        namespace = get_text(subject, "namespace")
        name = get_text(subject, "name")
        found.append(f"{get_text(subject, 'kind')} {f'{namespace}/{name}' if namespace else name}")
    return found
