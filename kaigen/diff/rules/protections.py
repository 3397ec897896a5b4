"""Rules for limits that all apps of a namespace share, for alerts, and what is left to protect when an object goes."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.core.json_types import JsonObject
from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT
from kaigen.diff.objects import Obj, get_list, get_map, get_text
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.rules.storage import keepers
from kaigen.diff.selectors import LabelIndex
from kaigen.kubernetes.quantities import nano

QUOTA = "ResourceQuota"
ALERTS = "PrometheusRule.monitoring.coreos.com"


def quota(case: Case) -> Iterator[Finding]:
    """A quota was raised, lowered, or removed."""
    if case.old is None:
        return
    before = get_map(case.old.data, "spec", "hard")
    if case.new is None:
        limits = listing((f"{key} {value(item)}" for key, item in before.items()), 5)
        if is_namespace_left(case):
            yield "danger", f"apps of the namespace are no longer limited: {limits}"
        else:
            yield "info", "is deleted with its namespace"
        return
    after = get_map(case.new.data, "spec", "hard")
    for key, was in before.items():
        now = after.get(key, ABSENT)
        old, new = nano(was), nano(now)
        if now is ABSENT or old is None or new is None or new > old:
            if now != was:
                yield "danger", f"apps may use more: {key} {value(now)} instead of {value(was)}"
        elif new < old:
            yield "notice", f"apps may use less: {key} {value(now)} instead of {value(was)}"
    added = [f"{key} {value(item)}" for key, item in after.items() if key not in before]
    if added:
        yield "notice", f"also limits {listing(added)}"


def alerts(case: Case) -> Iterator[Finding]:
    """An alert is gone, waits longer, or has another condition."""
    before, after = _alerts(case.old), _alerts(case.new)
    gone = [name for name in before if name not in after]
    if gone:
        yield "notice", f"alerts no longer about {listing(gone, 5)}"
    for name, rules in before.items():
        # An app may have several rules of one name, for several workloads.
        for (was, waited), (now, waits) in zip(rules, after.get(name, []), strict=False):
            if waited != waits:
                yield "notice", f"{name} waits {waits or '0s'} instead of {waited or '0s'}"
            if was != now:
                yield "notice", f"{name} has another condition: `{now}` instead of `{was}`"


def _alerts(obj: Obj | None) -> dict[str, list[tuple[str, str]]]:
    """Return condition and delay of each alert by its name."""
    found: dict[str, list[tuple[str, str]]] = {}
    groups = get_list(obj.data, "spec", "groups") if obj is not None else []
    for rule in (rule for group in groups for rule in get_list(group, "rules")):
        if name := get_text(rule, "alert"):
            found.setdefault(name, []).append((get_text(rule, "expr"), get_text(rule, "for")))
    return found


def is_namespace_left(case: Case) -> bool:
    """Return whether the namespace of a removed object may live on, with pods that are not of the tree.

    It is deleted only if its Namespace is in the old tree, is not in the new one, and is not kept by the syncer.
    """
    old = [obj for obj in case.trees.named("old", "Namespace", case.top, case.place) if obj.type == "Namespace"]
    new = case.trees.named("new", "Namespace", case.top, case.place)
    return not old or bool(new) or any(keepers(obj) for obj in old)


def has_pods_of(policy: Obj, case: Case) -> bool:
    """Return whether the new tree has pods that a NetworkPolicy of an app selected, of whatever app."""
    if any(pod_templates(each) for each in case.siblings()):
        return True
    key = ("labels of pods", case.top, case.place)
    index = case.trees.once(key, lambda: LabelIndex(_labels(case)))
    # Expressions may match any pod.
    return index.has_match(get_map(policy.data, "spec", "podSelector", "matchLabels"))


def _labels(case: Case) -> Iterator[JsonObject]:
    for obj in case.trees.of_namespace("new", case.top, case.place):
        for template in pod_templates(obj).values():
            yield get_map(template.data, "metadata", "labels")
