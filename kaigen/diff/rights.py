"""The rights that a role gives, as single permissions that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import cast

from kaigen.core.json_types import Json
from kaigen.diagnostics.problem import At
from kaigen.diff.model import ABSENT, Absent, FieldChange
from kaigen.diff.objects import Obj, get_list

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


def beyond(new: set[Grant], old: set[Grant]) -> list[Grant]:
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
    if not _is_plain(rules):
        return None
    found, is_complete = _expanded(cast("list[Json]", rules))
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for group, resource, name, verb in found:
        verbs.setdefault((group, resource, name), set()).add(verb)
    return verbs if is_complete else None


def _is_plain(rules: Json) -> bool:
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
