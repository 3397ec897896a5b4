"""Requirements as data and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kaigen.kubernetes.requests import readable
from kaigen.requirements.model import Finding, Requirement, Requirements, Use
from kaigen.yaml.dump import dump

_MOST_PLACES = 2
"""Most places that a row of a table lists."""
_MOST_APPS = 4
"""Most apps that a row of a table lists."""

Findings = Mapping[Requirement, Finding]


def requirements_data(found: Requirements, findings: Findings | None = None) -> dict[str, Any]:
    """Return the requirements of an environment as plain data.

    Args:
        found: the requirements.
        findings: what a cluster has; None without a check.
    """
    return {
        "environment": found.environment,
        "requirements": [_item(item, findings) for item in (found.items if findings is None else findings)],
        "requests": [
            {
                "namespace": total.namespace,
                "resource": total.resource,
                "amount": readable(total.resource, total.amount),
                "apps": [_use(use) for use in total.uses],
            }
            for total in found.totals
        ],
    }


def _item(item: Requirement, findings: Findings | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "kind": item.kind,
        "name": item.name,
        **({"namespace": item.namespace} if item.namespace else {}),
        **({"suppliedBy": item.supplier} if item.supplier else {}),
        "neededBy": [_use(use) for use in item.uses],
    }
    if findings is not None:
        finding = findings[item]
        data["cluster"] = {"status": finding.status, **({"detail": finding.detail} if finding.detail else {})}
    return data


def _use(use: Use) -> dict[str, str]:
    return {**({"app": use.app} if use.app else {}), **({"place": use.place} if use.place else {})}


def render_json(found: Sequence[dict[str, Any]]) -> str:
    """Return described requirements as a JSON list."""
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def render_yaml(found: Sequence[dict[str, Any]]) -> str:
    """Return described requirements as a YAML list."""
    return dump(found)


def requirement_rows(found: Requirements, findings: Findings | None = None) -> Iterator[tuple[str, ...]]:
    """Return the rows of a table of requirements, the header first."""
    yield ("REQUIRED", "NAME", "SUPPLIED BY", "NEEDED AT", *(("CLUSTER",) if findings is not None else ()))
    for item in found.items if findings is None else findings:
        places = list(dict.fromkeys(use.place or use.app for use in item.uses))
        shown = _some(places, _MOST_PLACES) or "-"
        status: tuple[str, ...] = ()
        if findings is not None:
            finding = findings[item]
            status = (f"{finding.status}: {finding.detail}" if finding.detail else finding.status,)
        yield (item.kind, item.title, item.supplier or "-", shown, *status)


def total_rows(found: Requirements) -> Iterator[tuple[str, ...]]:
    """Return the rows of a table of what the apps request, the header first."""
    yield ("NAMESPACE", "RESOURCE", "REQUESTS", "APPS")
    for total in found.totals:
        apps = _some([use.app.partition("/")[2] for use in total.uses], _MOST_APPS)
        yield (total.namespace, total.resource, readable(total.resource, total.amount), apps)


def _some(items: Sequence[str], most: int) -> str:
    """Return the first items of a list, and how many are left out."""
    shown = ", ".join(items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
