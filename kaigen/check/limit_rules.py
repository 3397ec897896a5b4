"""Rules of ResourceQuotas and LimitRanges that the API server enforces and no schema contains.

Source: pkg/apis/core/validation of k8s.io/kubernetes v1.36.3; each function names the one it follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.names import is_qualified
from kaigen.kubernetes.quantities import NANO, nano

Findings = Iterator[Problem]

_QUOTA_RESOURCES = re.compile(
    "cpu|memory|storage|ephemeral-storage|pods|services|replicationcontrollers|resourcequotas|secrets|configmaps"
    "|persistentvolumeclaims|services[.](nodeports|loadbalancers)|(limits|requests)[.](cpu|memory|ephemeral-storage)"
    "|requests[.]storage|(requests[.])?hugepages-.*"
)
"""Names without a slash that a quota may limit (`standardQuotaResources` of pkg/apis/core/helper)."""
_WHOLE = re.compile(
    "pods|services.*|replicationcontrollers|resourcequotas|secrets|configmaps|persistentvolumeclaims|count/.*"
)


def quota_findings(obj: Object) -> Findings:
    """Follow `ValidateResourceQuotaSpec`."""
    for name, value in mapping(mapping(obj.get("spec")).get("hard")).items():
        path: FieldPath = ("spec", "hard", str(name))
        amount = nano(value)
        if "/" not in str(name) and not _QUOTA_RESOURCES.fullmatch(str(name)):
            yield Problem(codes.RESOURCE_NAME_INVALID, f"unknown resource `{name}`", path)
        elif amount is not None and amount < 0:
            yield Problem(codes.AMOUNT_DOUBTFUL, f"{name} must not be negative: {value}", path)
        elif amount is not None and amount % NANO and _WHOLE.fullmatch(str(name)):
            yield Problem(codes.AMOUNT_DOUBTFUL, f"{name} {value} is not a whole number", path)


_LIMITED = {"Container": ("cpu", "memory", "ephemeral-storage"), "Pod": ("cpu", "memory", "ephemeral-storage")}


def limit_range_findings(obj: Object) -> Findings:
    """Follow `ValidateLimitRange`."""
    kinds: set[str] = set()
    for number, limit in entries(mapping(obj.get("spec")).get("limits")):
        path: FieldPath = ("spec", "limits", number)
        kind = str(limit.get("type"))
        if kind not in ("Pod", "Container", "PersistentVolumeClaim") and ("/" not in kind or not is_qualified(kind)):
            message = "must be Container, Pod, PersistentVolumeClaim, or a name such as example.com/image"
            yield Problem(codes.BAD_VALUE, message, (*path, "type"))
        if kind in kinds:
            yield Problem(codes.DUPLICATE_ENTRY, f"has the same type {kind} as another limit", (*path, "type"))
        kinds.add(kind)
        yield from _limits(limit, _LIMITED.get(kind), path)


_ONE = 10**9
"""One, in billionths."""


def _amount(value: object) -> int | None:
    """Return an amount in billionths; null counts as 0 for the API server."""
    return 0 if value is None else nano(value)


def _is_limited(name: str, known: Sequence[str] | None) -> bool:
    """Return whether a limit may name a resource without a domain; of most types, any that a quota knows."""
    if known is None:
        return name == "storage" or _QUOTA_RESOURCES.fullmatch(name) is not None
    return name in known or name.startswith("hugepages-")


def _limits(limit: Object, known: Sequence[str] | None, path: FieldPath) -> Findings:
    """Check the names of resources, and that each amount is at most those that come after it."""
    ordered = ("min", "defaultRequest", "default", "max")
    for place, field in enumerate((*ordered, "maxLimitRequestRatio")):
        for name, value in mapping(limit.get(field)).items():
            where = (*path, field, str(name))
            if "/" not in str(name) and not _is_limited(str(name), known):
                yield Problem(codes.RESOURCE_NAME_INVALID, f"unknown resource `{name}`", where)
            amount = _amount(value)
            if field == "maxLimitRequestRatio" and amount is not None and amount < _ONE:
                yield Problem(codes.FIELD_CONFLICT, f"{field} {value} of {name} is below 1", where)
            for higher in (each for each in ordered[place + 1 :] if name in mapping(limit.get(each))):
                most = _amount(mapping(limit[higher])[name])
                if amount is not None and most is not None and amount > most:
                    yield Problem(codes.FIELD_CONFLICT, f"{field} {value} of {name} is above its {higher}", where)
