"""Rules between the fields of LeaderWorkerSets that their webhook enforces and no schema contains.

Source, by the name of the function in it: `pkg/webhooks` of sigs.k8s.io/lws v0.9.0.
"""

from __future__ import annotations

import re

from kaigen.check import codes
from kaigen.check.webhook_problems import MOST_PODS, Findings, bad_value, conflict, count_of
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, mapping

_PERCENT = re.compile(r"[0-9]+%")


def _share(value: object, whole: int, *, up: bool) -> int | None:
    """Return a count of pods, which may be given in percent of all; None for anything else."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not _PERCENT.fullmatch(value):
        return None
    amount = int(value[:-1]) * whole
    return -(-amount // 100) if up else amount // 100


def leader_worker_set_findings(obj: Object) -> Findings:
    """Follow `generalValidate` of LeaderWorkerSet."""
    spec = mapping(obj.get("spec"))
    template = mapping(spec.get("leaderWorkerTemplate"))
    replicas, size = count_of(spec, "replicas", 1), count_of(template, "size", 1)
    place: FieldPath = ("spec", "leaderWorkerTemplate")
    if size is not None and size < 1:
        yield Problem(codes.OUT_OF_RANGE, f"must be at least 1, not {size}", (*place, "size"))
    if replicas is not None and size is not None and replicas * size > MOST_PODS:
        yield Problem(codes.OUT_OF_RANGE, f"{replicas} groups of {size} pods are more than 2^31", ("spec", "replicas"))
    yield from _rolling_update(mapping(spec.get("rolloutStrategy")), replicas)
    yield from _sub_groups(template, size)
    notes = mapping(mapping(obj.get("metadata")).get("annotations"))
    if _SUB_GROUP_TOPOLOGY in notes and template.get("subGroupPolicy") is None:
        path = ("metadata", "annotations", _SUB_GROUP_TOPOLOGY)
        yield conflict("needs spec.leaderWorkerTemplate.subGroupPolicy", path)


_SUB_GROUP_TOPOLOGY = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


def _rolling_update(strategy: Object, replicas: int | None) -> Findings:
    rolling = mapping(strategy.get("rollingUpdateConfiguration"))
    path: FieldPath = ("spec", "rolloutStrategy", "rollingUpdateConfiguration")
    for field in ("maxUnavailable", "maxSurge", "partition"):
        value = rolling.get(field)
        if isinstance(value, int) and value < 0:
            yield Problem(codes.OUT_OF_RANGE, f"must be at least 0, not {value}", (*path, field))
        elif field != "partition" and isinstance(value, str):
            if not _PERCENT.fullmatch(value):
                yield bad_value(f"must be a number or a percentage, not `{value}`", (*path, field))
            elif int(value[:-1]) > 100:
                yield Problem(codes.OUT_OF_RANGE, "must not be more than 100%", (*path, field))
    unavailable, surge = (rolling.get(field) for field in ("maxUnavailable", "maxSurge"))
    fewer = _share(1 if unavailable is None else unavailable, replicas or 0, up=False)
    more = _share(0 if surge is None else surge, replicas or 0, up=True)
    if replicas and fewer == 0 and more == 0:
        yield conflict("`maxSurge` and `maxUnavailable` must not both be 0 groups", path)


def _sub_groups(template: Object, size: int | None) -> Findings:
    """Follow `validateUpdateSubGroupPolicy`."""
    policy = mapping(template.get("subGroupPolicy"))
    part = count_of(policy, "subGroupSize")
    if size is None or size < 1 or part is None:
        return
    path: FieldPath = ("spec", "leaderWorkerTemplate", "subGroupPolicy", "subGroupSize")
    if part < 1:
        yield Problem(codes.OUT_OF_RANGE, f"must be at least 1, not {part}", path)
    elif part > size:
        yield conflict(f"subGroupSize {part} exceeds size {size}", path)
    elif policy.get("subGroupPolicyType") == "LeaderExcluded" and (size - 1) % part:
        yield conflict(f"the {size - 1} workers of a group are not a multiple of {part}", path)
    elif size % part and (size - 1) % part:
        yield conflict(f"neither size {size} nor its {size - 1} workers are a multiple of {part}", path)
