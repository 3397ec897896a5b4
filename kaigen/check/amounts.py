"""Checks of amounts of resources: present, consistent and plausible, and in units that were probably not forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import find_instance, machine
from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.claims import listed_claims
from kaigen.kubernetes.manifest import Object, entries, mapping, type_of
from kaigen.kubernetes.names import is_qualified
from kaigen.kubernetes.node_choice import instance_types
from kaigen.kubernetes.pods import Container, PodTemplate, containers
from kaigen.kubernetes.quantities import NANO, nano
from kaigen.kubernetes.requests import pod_requests, readable


def resource_findings(template: PodTemplate, container: Container) -> Iterator[Problem]:
    """Check the resources of one container.

    A limit without a request counts as a request, and so does one of the whole pod. Ephemeral containers have none.
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
                "set them in resources.requests; without them the scheduler assumes that the container needs nothing",
                Severity.WARNING,
            )
    path = (*container.path, "resources")
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, value in amounts.items():
            if isinstance(value, (str, int, float)):
                for code, message, hint in _amount_problems(name, value):
                    yield Problem(code, message, (*path, field, name), hint)
    yield from _agreement(requests, limits, path)


def _amounts(value: object) -> Object:
    """Return the amounts of a mapping; the schema check reports keys that are not strings."""
    return {k: v for k, v in mapping(value).items() if isinstance(k, str)}


def _agreement(requests: Object, limits: Object, path: FieldPath) -> Iterator[Problem]:
    """Check that requests do not exceed limits, and that both are equal for devices."""
    for name, value in requests.items():
        if name not in _STANDARD and name not in limits:
            message = f"{name} has a request but no limit"
            hint = f"set limits: {{{name}: {value}}}; request and limit must be equal"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name), hint)
            continue
        limit = limits.get(name)
        if limit is None or limit == value:
            continue
        request, maximum = nano(value), nano(limit)
        if request is None or maximum is None or request == maximum:
            continue
        if name not in _STANDARD:
            message = f"{name} has the request {value} and the limit {limit}; both must be equal"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name))
        elif request > maximum:
            message = f"the {name} request of {value} exceeds the limit of {limit}"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name))


_STANDARD = frozenset({"cpu", "ephemeral-storage", "memory"})
_BYTES = ("memory", "ephemeral-storage", "storage")
_FEW_BYTES = 2**20 * NANO
"""No container starts with less memory, and no driver makes a smaller volume."""
_MANY_CPUS = 1000 * NANO
"""No node has as many."""
_CLAIM = "PersistentVolumeClaim"


def claim_findings(obj: Object) -> Iterator[Problem]:
    """Check the sizes of a PersistentVolumeClaim, or of the claims that a workload makes for its pods."""
    if type_of(obj) == _CLAIM:
        yield from _requested(obj, ())
    for path, claim in listed_claims(obj):
        yield from _requested(claim, path)


def scratch_findings(template: PodTemplate) -> Iterator[Problem]:
    """Check the sizes of the volumes that a pod has while it runs."""
    for number, volume in entries(template.spec.get("volumes")):
        path = template.place(("volumes", number))
        limit = mapping(volume.get("emptyDir")).get("sizeLimit")
        if isinstance(limit, (str, int)):
            yield from _problems("storage", limit, (*path, "emptyDir", "sizeLimit"))
            if mapping(volume["emptyDir"]).get("medium") == "Memory":
                yield from _above_memory(template, volume.get("name"), limit, (*path, "emptyDir", "sizeLimit"))
        claim = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
        yield from _requested(claim, (*path, "ephemeral", "volumeClaimTemplate"))


def _above_memory(template: PodTemplate, name: object, limit: str | int, path: FieldPath) -> Iterator[Problem]:
    """Check that a volume in memory fits into a container that mounts it, whose limit its files count towards.

    Source: https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
    """
    allowed: dict[int, object] = {}
    for container in containers(template):
        if any(mount.get("name") == name for _, mount in entries(container.body.get("volumeMounts"))):
            most = mapping(mapping(container.body.get("resources")).get("limits")).get("memory")
            amount = nano(most)
            if amount is None:
                return
            allowed[amount] = most
    size = nano(limit)
    if allowed and size is not None and size > max(allowed):
        message = f"the volume is {limit} of memory, but the limit of its container is {allowed[max(allowed)]}"
        hint = "raise the memory limit, or lower the size: filling the volume ends the container"
        yield Problem(codes.AMOUNT_DOUBTFUL, message, path, hint, Severity.WARNING)


def node_findings(template: PodTemplate) -> Iterator[Problem]:
    """Check that one of the instance types that a pod allows has as much as it requests; all must be of known size."""
    found = instance_types(template.spec)
    if found is not None:
        yield from _gpu_findings(template, *found)
    machines = [each for each in map(machine, found[1]) if each is not None] if found else []
    if found is None or len(machines) != len(found[1]):
        return
    requested = pod_requests(template, BUILT_IN)
    cpus, memory = requested["cpu"], requested["memory"]
    if any(cpus <= each.cpus * NANO and memory <= each.memory * NANO for each in machines):
        return
    largest = max(machines, key=lambda each: (each.memory, each.cpus))
    has = f"`{largest.name}` has {largest.cpus} CPUs and {readable('memory', largest.memory * NANO)}"
    yield Problem(
        codes.NODE_TOO_SMALL,
        f"the pod requests {readable('cpu', cpus)} CPUs and {readable('memory', memory)} of memory, but {has}",
        template.place(found[0]),
        "request less, or allow a larger instance type; the system takes a part of a node, too",
        Severity.WARNING,
    )


def _gpu_findings(template: PodTemplate, path: FieldPath, names: list[str]) -> Iterator[Problem]:
    """Check that one of the instance types has as many whole GPUs as a pod requests."""
    types = [each for each in (find_instance(name, BUILT_IN) for name in names) if each is not None]
    if len(types) != len(names):
        return
    for name, amount in pod_requests(template, BUILT_IN).items():
        offers = [each.count for each in types if each.gpu.resource == name]
        if offers and amount > max(offers) * NANO:
            largest = max(types, key=lambda each: each.count)
            yield Problem(
                codes.NODE_TOO_SMALL,
                f"the pod requests {readable(name, amount)} {name}, but `{largest.name}` has {largest.count}",
                template.place(path),
                "request fewer, or allow an instance type with more; a Job with several `nodes` has GPUs of each",
                Severity.WARNING,
            )


def _requested(claim: Object, path: FieldPath) -> Iterator[Problem]:
    size = mapping(mapping(mapping(claim.get("spec")).get("resources")).get("requests")).get("storage")
    if isinstance(size, (str, int)):
        yield from _problems("storage", size, (*path, "spec", "resources", "requests", "storage"))


def _problems(name: str, value: str | float, path: FieldPath) -> Iterator[Problem]:
    for code, message, hint in _amount_problems(name, value):
        if code == codes.AMOUNT_DOUBTFUL:
            yield Problem(code, message, path, hint)


@lru_cache(maxsize=10_000, typed=True)
def _amount_problems(name: str, value: str | float) -> tuple[tuple[str, str, str], ...]:
    """Return code, message and hint of each problem of one amount."""
    amount = nano(value)
    if amount is None:
        return ()
    problems = []
    if amount < 0:
        problems.append((codes.AMOUNT_DOUBTFUL, f"{name} must not be negative: {value}", ""))
    elif name in _BYTES and amount % NANO:
        hint = f"did you mean {str(value).removesuffix('m')}Mi?" if str(value).endswith("m") else ""
        problems.append((codes.AMOUNT_DOUBTFUL, f"{name} {value} is not a whole number of bytes", hint))
    elif name in _BYTES and 0 < amount < _FEW_BYTES and _is_bare(value):
        message = f"{name} {value} is {value} bytes"
        problems.append((codes.AMOUNT_DOUBTFUL, message, f"did you mean `{value}{_likely_unit(name, amount)}`?"))
    elif name == "cpu" and amount >= _MANY_CPUS and _is_bare(value):
        problems.append((codes.AMOUNT_DOUBTFUL, f"cpu {value} is {value} CPUs", f"did you mean `{value}m`?"))
    if name in _STANDARD or name.startswith("hugepages-"):
        return tuple(problems)
    if "/" not in name or not is_qualified(name):
        hint = "use the full name of the device, such as nvidia.com/gpu" if "/" not in name else ""
        problems.append((codes.RESOURCE_NAME_INVALID, f"unknown resource `{name}`", hint))
    elif amount % NANO:
        problems.append((codes.AMOUNT_DOUBTFUL, f"{name} {value} is not a whole number of devices", ""))
    return tuple(problems)


def _is_bare(value: str | float) -> bool:
    """Whether an amount has no unit."""
    return str(value).isdigit()


def _likely_unit(name: str, amount: int) -> str:
    """Return the unit of a number of bytes that was probably meant."""
    return "Mi" if name == "memory" and amount >= 128 * NANO else "Gi"
