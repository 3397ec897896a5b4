"""Checks of requests and limits of containers: present, consistent and plausible."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.check.amounts import STANDARD, amount_problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.pods import Container, PodTemplate
from kaigen.kubernetes.quantities import nano


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
                for code, message, hint in amount_problems(name, value):
                    yield Problem(code, message, (*path, field, name), hint)
    yield from _agreement(requests, limits, path)


def _amounts(value: object) -> Object:
    """Return the amounts of a mapping; the schema check reports keys that are not strings."""
    return {k: v for k, v in mapping(value).items() if isinstance(k, str)}


def _agreement(requests: Object, limits: Object, path: FieldPath) -> Iterator[Problem]:
    """Check that requests do not exceed limits, and that both are equal for devices."""
    for name, value in requests.items():
        if name not in STANDARD and name not in limits:
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
        if name not in STANDARD:
            message = f"{name} has the request {value} and the limit {limit}; both must be equal"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name))
        elif request > maximum:
            message = f"the {name} request of {value} exceeds the limit of {limit}"
            yield Problem(codes.REQUEST_AND_LIMIT_DISAGREE, message, (*path, "requests", name))
