"""Requests and limits of containers: there, in agreement, and meant."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, Path, mapping
from kaigen.kubernetes.names import is_qualified
from kaigen.kubernetes.pods import Container, PodTemplate
from kaigen.kubernetes.quantities import NANO, nano

STANDARD = frozenset({"cpu", "ephemeral-storage", "memory"})
_good: set[tuple[str, str]] = set()
BYTES = ("memory", "ephemeral-storage", "storage")


def resource_findings(template: PodTemplate, container: Container) -> Iterator[Problem]:
    """What is wrong with the resources of one container.

    A limit without a request is a request too, and so is one of the whole pod; ephemeral containers have
    none.
    """
    if container.field == "ephemeralContainers":
        return
    resources = mapping(container.body.get("resources"))
    requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
    shared = mapping(template.spec.get("resources"))
    if "cpu" not in requests or "memory" not in requests:
        missing = [
            name
            for name in ("cpu", "memory")
            if name not in requests
            and name not in limits
            and name not in mapping(shared.get("requests"))
            and name not in mapping(shared.get("limits"))
        ]
        if missing:
            yield Problem(
                codes.REQUEST_MISSING,
                f"the container `{container.name}` requests no {' and no '.join(missing)}",
                (*container.path, "resources") if "resources" in container.body else container.path,
                "the scheduler places it as if it needed nothing",
                Severity.WARNING,
            )
    path = (*container.path, "resources")
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, value in amounts.items():
            if value.__class__ is str and (name, value) in _good:
                continue
            found = list(_amount(name, value, (*path, field, name)))
            yield from found
            if not found and isinstance(value, str) and len(_good) < 10_000:
                _good.add((name, value))
    yield from _agreement(requests, limits, path)


def _amounts(value: object) -> Object:
    """A mapping of amounts; the schema speaks of keys that are no names."""
    return {k: v for k, v in mapping(value).items() if isinstance(k, str)}


def _amount(name: str, value: object, path: Path) -> Iterator[Problem]:
    amount = nano(value)
    if amount is None:
        return
    if amount < 0:
        yield Problem(codes.AMOUNT_DOUBTFUL, f"{name} {value} is negative", path)
    elif name in BYTES and amount % NANO:
        hint = f"did you mean {str(value).removesuffix('m')}Mi?" if str(value).endswith("m") else ""
        yield Problem(codes.AMOUNT_DOUBTFUL, f"{name} {value} is not a whole number of bytes", path, hint)
    if name in STANDARD or name.startswith("hugepages-"):
        return
    if "/" not in name or not is_qualified(name):
        hint = "devices are named by their vendor, as in nvidia.com/gpu" if "/" not in name else ""
        yield Problem(codes.RESOURCE_NAME_INVALID, f"there is no resource `{name}`", path, hint)
    elif amount % NANO:
        yield Problem(codes.AMOUNT_DOUBTFUL, f"{name} {value} is not a whole number of devices", path)


def _agreement(requests: Object, limits: Object, path: Path) -> Iterator[Problem]:
    """Requests above their limits, and devices whose request and limit are not the same."""
    for name, value in requests.items():
        if name not in STANDARD and name not in limits:
            message = f"{name} is requested without a limit"
            hint = f"set limits: {{{name}: {value}}}; the two must be equal"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name), hint)
            continue
        limit = limits.get(name)
        if limit is None or limit == value:
            continue
        asked, most = nano(value), nano(limit)
        if asked is None or most is None or asked == most:
            continue
        if name not in STANDARD:
            message = f"{name} is requested as {value} and limited to {limit}; the two must be equal"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name))
        elif asked > most:
            message = f"the request of {name}, {value}, is above its limit, {limit}"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name))
