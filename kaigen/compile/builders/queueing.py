"""What Kueue reads of a workload: its queue, its priority, and how near to each other its pods must be."""

from __future__ import annotations

from kaigen.catalog.profiles import Profile
from kaigen.compile.expressions import Tree
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.core.text import series
from kaigen.kinds.blocks import Placement
from kaigen.kubernetes.queues import POD_ANNOTATIONS, PRIORITY_LABEL, QUEUE_LABEL

_PLACEMENT: FieldPath = ("spec", "placement")
_ONE_GROUP = f"{POD_ANNOTATIONS}group-name"


def queue_labels(placement: Placement) -> dict[str, Tree]:
    """Return the labels of a workload with its queue and its priority there."""
    labels: dict[str, Tree] = {QUEUE_LABEL: placement.queue} if placement.queue else {}
    return labels | ({PRIORITY_LABEL: placement.priority} if placement.queue and placement.priority else {})


def node_label(level: str, profile: Profile) -> str | None:
    """Return the node label of a level of the network; None for a word that the profile has no label for.

    Args:
        level: a word such as `rack`, or a label, which has a `/`.
        profile: has the labels.
    """
    return level if "/" in level else profile.topology.get(level)


def near_annotations(placement: Placement, profile: Profile, *, one_group: bool = False) -> dict[str, str]:
    """Return the annotations of pods that say how near to each other Kueue places them.

    Args:
        placement: the spec's block.
        profile: has the labels of the levels.
        one_group: whether a leader and its workers, which are two sets of pods for Kueue, are placed together.
    """
    near = placement.topology
    if near is None:
        return {}
    way, level = ("required", near.required) if near.required is not None else ("preferred", near.preferred)
    label = node_label(level or "", profile)
    if label is None:
        return {}
    return {f"{POD_ANNOTATIONS}{way}-topology": label, **({_ONE_GROUP: "group"} if one_group else {})}


def check_queueing(placement: Placement, profile: Profile, problems: Problems, *, why_single: str = "") -> None:
    """Report fields that Kueue does not read, and levels of the network without a node label.

    Args:
        placement: the spec's block.
        profile: has the labels of the levels.
        problems: collects the errors.
        why_single: why no pods are placed near each other, as the end of a message; empty where they are.
    """
    near = placement.topology
    for field, given in (("priority", placement.priority), ("topology", near)):
        if given is not None and placement.queue is None:
            report_ignored_field(problems, field, (*_PLACEMENT, field), "without a queue", "set `placement.queue`")
    if near is None:
        return
    if why_single:
        report_ignored_field(problems, "topology", (*_PLACEMENT, "topology"), why_single, "leave it out")
    way = "required" if near.required is not None else "preferred"
    check_level(near.required or near.preferred or "", profile, (*_PLACEMENT, "topology", way), problems)


def check_level(level: str, profile: Profile, path: FieldPath, problems: Problems) -> None:
    """Report a level of the network that the profile has no node label for."""
    if node_label(level, profile) is None:
        known = series([f"`{word}`" for word in profile.topology])
        problems.error(
            "KG0478",
            f"profile `{profile.name}` has no node label for the level `{level}`",
            path,
            f"use {known}, or write the label of the nodes, such as `example.com/{level}`",
        )
