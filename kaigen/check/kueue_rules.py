"""Rules between the fields of Kueue's objects, and of what waits in its queues, that its webhooks enforce.

Source, by the name of the function in it: `pkg/webhooks` and `pkg/controller/jobframework` of sigs.k8s.io/kueue v0.16.2
and v0.19.2.
"""

from __future__ import annotations

import re

from kaigen.check import codes
from kaigen.check.names import label_findings
from kaigen.check.webhook_problems import Findings, bad_value, conflict
from kaigen.core.json_types import FieldPath
from kaigen.core.text import describe
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.names import SUBDOMAIN, is_qualified
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.quantities import nano
from kaigen.kubernetes.queues import POD_ANNOTATIONS, QUEUE_LABEL, RUN_SECONDS_LABEL


def cluster_queue_findings(obj: Object) -> Findings:
    """Follow `validateResourceGroups`."""
    spec = mapping(obj.get("spec"))
    # v1beta1 calls it `cohort`.
    cohort = bool(spec.get("cohortName") or spec.get("cohort"))
    resources: set[str] = set()
    flavors: set[str] = set()
    for number, group in entries(spec.get("resourceGroups")):
        path: FieldPath = ("spec", "resourceGroups", number)
        covered = group.get("coveredResources")
        covered = covered if isinstance(covered, list) else []
        for place, name in enumerate(covered):
            where = (*path, "coveredResources", place)
            if isinstance(name, str) and not is_qualified(name):
                yield Problem(codes.RESOURCE_NAME_INVALID, f"{describe(name)} is not the name of a resource", where)
            elif isinstance(name, str) and name in resources:
                yield Problem(codes.DUPLICATE_ENTRY, f"another group covers {name}", where)
            resources.add(str(name))
        for place, flavor in entries(group.get("flavors")):
            where = (*path, "flavors", place)
            if str(flavor.get("name")) in flavors:
                yield Problem(codes.DUPLICATE_ENTRY, f"another group has {flavor.get('name')}", (*where, "name"))
            flavors.add(str(flavor.get("name")))
            yield from _quotas(flavor, covered, cohort, where)


def _quotas(flavor: Object, covered: list[object], cohort: bool, path: FieldPath) -> Findings:
    """Follow `validateFlavorQuotas`."""
    quotas = entries(flavor.get("resources"))
    for (number, quota), name in zip(quotas, covered, strict=False):
        place = (*path, "resources", number)
        if isinstance(name, str) and quota.get("name") != name:
            found = describe(quota.get("name"))
            yield conflict(f"must be {describe(name)}, as in coveredResources, not {found}", (*place, "name"))
        amounts = {field: nano(quota.get(field)) for field in ("nominalQuota", "borrowingLimit", "lendingLimit")}
        for field, amount in amounts.items():
            if amount is None:
                continue
            if amount < 0:
                yield Problem(codes.AMOUNT_DOUBTFUL, f"must not be negative: {quota[field]}", (*place, field))
            if field == "lendingLimit" and not cohort:
                yield conflict("needs `cohortName`: without a cohort there is no queue to share with", (*place, field))
        lent, own = amounts["lendingLimit"], amounts["nominalQuota"]
        if lent is not None and own is not None and lent > own:
            yield conflict("must not exceed nominalQuota", (*place, "lendingLimit"))


def resource_flavor_findings(obj: Object) -> Findings:
    """Follow `ValidateResourceFlavor`."""
    spec = mapping(obj.get("spec"))
    yield from label_findings(spec.get("nodeLabels"), ("spec", "nodeLabels"))
    for field in ("nodeTaints", "tolerations"):
        for number, entry in entries(spec.get(field)):
            key = entry.get("key")
            if isinstance(key, str) and not is_qualified(key) and (key or field == "nodeTaints"):
                yield Problem(codes.LABEL_INVALID, f"`{key}` is not a valid label key", ("spec", field, number, "key"))


def queued_findings(obj: Object) -> Findings:
    """Follow `ValidateQueueName`, `validateCreateForMaxExecTime` and `ValidateTASPodSetRequest`."""
    labels = mapping(mapping(obj.get("metadata")).get("labels"))
    queue, limit = labels.get(QUEUE_LABEL), labels.get(RUN_SECONDS_LABEL)
    if isinstance(queue, str) and not re.fullmatch(SUBDOMAIN, queue):
        yield bad_value(f"`{queue}` is not the name of a queue", ("metadata", "labels", QUEUE_LABEL))
    if isinstance(limit, str) and not (limit.isdecimal() and int(limit) > 0):
        message = f"must be a number of seconds above 0, not `{limit}`"
        yield bad_value(message, ("metadata", "labels", RUN_SECONDS_LABEL))
    for template in pod_templates(obj):
        notes = mapping(template.metadata.get("annotations"))
        if template.path and any(str(key).startswith(POD_ANNOTATIONS) for key in notes):
            yield from _topology(notes, (*template.path, "metadata", "annotations"))


def _topology(notes: Object, path: FieldPath) -> Findings:
    ways = [key for key in ("required", "preferred", "unconstrained") if f"{POD_ANNOTATIONS}{key}-topology" in notes]
    if len(ways) > 1:
        key = f"{POD_ANNOTATIONS}{ways[1]}-topology"
        yield conflict(f"must not be set next to {POD_ANNOTATIONS}{ways[0]}-topology", (*path, key))
    for name in ("required", "preferred", "slice-required"):
        key = f"{POD_ANNOTATIONS}{name}-topology"
        level = notes.get(key)
        if isinstance(level, str) and not is_qualified(level):
            yield bad_value(f"`{level}` is not the name of a label", (*path, key))
    free = notes.get(f"{POD_ANNOTATIONS}unconstrained-topology")
    if isinstance(free, str) and free not in _BOOLEANS:
        yield bad_value(f"must be true or false, not `{free}`", (*path, f"{POD_ANNOTATIONS}unconstrained-topology"))
    slices, size = f"{POD_ANNOTATIONS}slice-required-topology", f"{POD_ANNOTATIONS}slice-size"
    if (slices in notes) is not (size in notes):
        given, other = (slices, size) if slices in notes else (size, slices)
        yield conflict(f"needs the annotation {other}", (*path, given))
    amount = notes.get(size)
    if isinstance(amount, str) and not (amount.isdecimal() and int(amount) > 0):
        yield bad_value(f"must be a number above 0, not `{amount}`", (*path, size))


_BOOLEANS = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
