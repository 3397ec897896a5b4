"""What protects a namespace: whether anything is left to protect when such an object is removed."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.core.json_types import JsonObject
from kaigen.diff.objects import Obj, get_map
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case
from kaigen.diff.rules.storage import keepers
from kaigen.diff.selectors import LabelIndex


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
