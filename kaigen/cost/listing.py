"""Costs as data and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kaigen.core.text import plural
from kaigen.cost.collect import Costs, Item

_UNKNOWN = "–"


def costs_data(found: Costs) -> dict[str, Any]:
    """Return the costs of an environment as plain data."""
    return {
        "environment": found.environment,
        "currency": found.currency,
        "apps": [_item(item) for item in found.items],
        "perHour": dict(zip(("least", "most"), _sum(item.hours for item in found.items), strict=True)),
        **_carbon(found),
        "idle": [
            {"instanceType": each.instance, "nodes": each.nodes, "gpus": each.gpus, "used": each.used}
            for each in found.idle
        ],
    }


def _carbon(found: Costs) -> dict[str, Any]:
    if not found.region:
        return {}
    return {"region": found.region, "kgCO2ePerHour": _ends(_sum(item.emitted for item in found.items))}


def _ends(pair: tuple[float, float]) -> dict[str, float]:
    return {"least": round(pair[0], 4), "most": round(pair[1], 4)}


def _item(item: Item) -> dict[str, Any]:
    cost = item.cost
    hours = item.hours
    return {
        "app": item.app,
        **({"tenant": item.tenant} if item.tenant else {}),
        "kind": item.kind,
        "name": item.name,
        "gpus": cost.gpus,
        "pods": {
            "least": item.least,
            "most": item.most,
            **({} if item.mean is None else {"mean": round(item.mean, 4)}),
        },
        "instanceType": cost.instance.name if cost.instance else None,
        "perHour": None if hours is None else _ends(hours),
        **({} if item.emitted is None else {"kgCO2ePerHour": _ends(item.emitted)}),
        **({"price": cost.rate.amount, "priceFrom": cost.rate.source} if cost.rate else {}),
        **({"while": "it runs"} if item.runs else {}),
        **({"seconds": item.seconds} if item.seconds else {}),
        **({"note": cost.why} if cost.why else {}),
    }


def render_json(found: Sequence[Costs]) -> str:
    """Return costs as a JSON list of environments."""
    return json.dumps([costs_data(each) for each in found], indent=2, ensure_ascii=False) + "\n"


def cost_rows(found: Costs) -> Iterator[tuple[str, ...]]:
    """Return the rows of a table of costs, the header first and the sum last."""
    yield "APP", "OBJECT", "PODS", "GPUS", "NODE", f"{found.currency} AN HOUR", "A MONTH", "NOTE"
    for item in found.items:
        hours = item.hours
        yield (
            item.app,
            f"{item.kind} {item.name}",
            _range(item.least, item.most, "d"),
            str(item.cost.gpus),
            item.cost.instance.name if item.cost.instance else "–",
            "–" if hours is None else _range(item.most * (item.cost.hour or 0) if item.runs else hours[0], hours[1]),
            "–" if item.month is None or item.runs else _range(*item.month),
            "; ".join(_notes(item)),
        )
    least, most = _sum(item.hours for item in found.items)
    months = [item.month for item in found.items if item.month is not None and not item.runs]
    always = sum(each for each, _ in months), sum(each for _, each in months)
    unknown = sum(item.hours is None for item in found.items)
    note = f"without {plural(unknown, 'object')} whose price is unknown" if unknown else ""
    hour, month = _range(least, most), _range(*always)
    if unknown and unknown == len(found.items):
        hour = month = _UNKNOWN
    yield "all", "", "", "", "", hour, month, note


def tenant_rows(found: Costs) -> Iterator[tuple[str, ...]]:
    """Return the rows of a table of costs by tenant, the header first."""
    yield "TENANT", f"{found.currency} AN HOUR"
    for name in sorted({item.tenant for item in found.items}):
        own = [item for item in found.items if item.tenant == name]
        is_known = any(item.hours is not None for item in own)
        yield name or "–", _range(*_sum(item.hours for item in own)) if is_known else _UNKNOWN


def idle_lines(found: Costs) -> Iterator[str]:
    """Return a line for each instance type whose nodes have GPUs that no pod uses."""
    for each in found.idle:
        unused = each.gpus - each.used
        nodes = plural(each.nodes, "node")
        yield f"{plural(unused, 'GPU')} of {nodes} {each.instance} idle: its pods use {each.used} of {each.gpus}"


def carbon_line(found: Costs) -> str:
    """Return what all apps emit in an hour, in words; empty without a table of carbon."""
    if not found.region:
        return ""
    unknown = sum(item.carbon is None for item in found.items)
    without = f", without {plural(unknown, 'object')} whose node has no known power" if unknown else ""
    text = _range(*_sum(item.emitted for item in found.items))
    return f"{text} kg CO2e an hour in {found.region}{without}" if unknown < len(found.items) else ""


def _notes(item: Item) -> Iterator[str]:
    if item.mean is not None:
        yield f"{item.mean:.2f} pods on average, by its schedule"
    if item.runs:
        limit = item.seconds / 3600
        yield "while it runs" + (f", {limit:g} h at most" if limit else "")
    if item.cost.rate and item.cost.rate.source != "catalog":
        yield item.cost.rate.source
    if item.cost.why:
        yield item.cost.why


def _sum(pairs: Iterable[tuple[float, float] | None]) -> tuple[float, float]:
    known = [pair for pair in pairs if pair is not None]
    return round(sum(least for least, _ in known), 4), round(sum(most for _, most in known), 4)


def _range(least: float, most: float, form: str = ",.2f") -> str:
    low, high = format(least, form), format(most, form)
    return low if low == high else f"{low} to {high}"
