"""Answers as table rows and as plain data: the output of `kaigen plan`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kaigen.sizing import format
from kaigen.sizing.constants import GIB
from kaigen.sizing.plan import gib_text, layout_text

if TYPE_CHECKING:
    from kaigen.core.json_types import Json
    from kaigen.dialects.registry import Dialect, Estimate
    from kaigen.plan.prices import Prices
    from kaigen.plan.specs import RingOfSpec, SpecPlan
    from kaigen.sizing.answer import Answer
    from kaigen.sizing.cold_start import ColdStart

Rows = Sequence[Sequence[str]]


def title(found: Answer) -> str:
    """Return the model, its nodes and its layout in one line."""
    plan = found.plan
    copies = f", {plan.request.replicas} replicas" if plan.request.replicas > 1 else ""
    return f"{plan.facts.name} on {format.hardware_text(plan)}: {layout_text(plan.layout)}{copies}"


def tables(found: Answer, dialects: Iterable[Dialect], prices: Prices) -> list[Rows]:
    """Return an answer as tables: memory, facts with prices and the estimates of these dialects, and alternatives."""
    plan = found.plan
    load = plan.load
    sums = [(row.name, gib_text(row.gib), row.how) for row in format.rows(plan)]
    width = max(len(gib) for _, gib, _ in sums)
    facts = [
        ("context", f"{load.context} tokens{format.context_limit(plan)}"),
        ("sequences", f"{load.concurrency} of that length at once, of {plan.max_concurrency} that would fit"),
        ("flags", format.command_line(plan)),
    ]
    facts += prices.rows(plan)
    for dialect in dialects:
        facts += [(f"{dialect.title} {item.version}", item.text) for item in _estimates(found, dialect)]
    facts += [("note", note) for note in plan.notes]
    memory = [("EACH GPU", "GiB".rjust(width), ""), *((name, gib.rjust(width), how) for name, gib, how in sums)]
    return [memory, facts, *([format.plan_rows("NEXT BEST", found.others)] if found.others else [])]


def answer_data(found: Answer, dialects: Iterable[Dialect], prices: Prices) -> dict[str, Json]:
    """Return an answer as plain data, with prices and the estimates of these dialects."""
    data = format.plan_data(found.plan) | prices.data(found.plan)
    data["others"] = [format.other_data(other) for other in found.others]
    for dialect in dialects:
        data[dialect.name] = {item.version: dict(item.data) for item in _estimates(found, dialect)}
    return data


def host_tables(item: SpecPlan) -> list[Rows]:
    """Return the memory of the node in each pod as a table; none where no flag reserves any."""
    if not item.host:
        return []
    parts = [
        (part.name, gib_text(part.gib), f"`{part.flag}`{', in /dev/shm' if part.shared else ''}") for part in item.host
    ]
    shared = [("/dev/shm", item.shared_memory, "a part of the memory")] if item.shared_memory else []
    return [[("EACH POD", "GiB", ""), *parts, *shared, ("memory", item.memory, "requested")]]


def cold_start_tables(found: ColdStart | None) -> list[Rows]:
    """Return how long the first request waits as a table; none where a replica always runs."""
    if found is None:
        return []
    read = f"Prometheus reads every {found.scrape} s, and " if found.scrape else ""
    limit = "`probes.startup`" if found.given else "the limit of the startup probe, by the size of the weights"

    def row(name: str, more: int, how: str) -> tuple[str, str, str, str]:
        return (name, _time(found.noticed(0.5) + more), _time(found.noticed(0.99) + more), how)

    start = _time(found.start)
    return [
        [
            ("FIRST REQUEST", "P50", "P99", "outside of the hours of `schedule`" if found.hours else ""),
            row("until KEDA knows", 0, f"{read}KEDA asks every {found.polling} s"),
            ("until a pod is ready", start, start, f"at most: {limit}"),
            row("wait", found.start, f"at most; the router holds it for {_time(found.hold)}"),
        ]
    ]


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return " ".join(text for text in (f"{minutes} min" if minutes else "", f"{rest} s" if rest else "") if text)


def cold_start_data(found: ColdStart | None) -> dict[str, Json]:
    """Return how long the first request waits as plain data; empty where a replica always runs."""
    if found is None:
        return {}
    waits: dict[str, Json] = {
        name: round(found.noticed(share) + found.start, 1) for name, share in (("p50", 0.5), ("p99", 0.99))
    }
    return {"coldStart": {"startSeconds": found.start, "waitSeconds": waits, "holdSeconds": found.hold}}


def ring_title(item: RingOfSpec) -> str:
    """Return the ring of a spec in one line."""
    nodes = "1 node" if item.plan.nodes == 1 else f"{item.plan.nodes} nodes"
    return f"{nodes}, weights in {item.plan.weights}, a context of {item.plan.context} tokens"


def ring_tables(item: RingOfSpec) -> list[Rows]:
    """Return the memory of the nodes of a ring as a table."""
    plan = item.plan
    rows = [("NODE", "NUMBER", "GiB", "REQUESTS"), ("root", "1", f"{plan.root / GIB:.2f}", item.root)]
    if item.worker:
        rows.append(("worker", str(plan.nodes - 1), f"{plan.worker / GIB:.2f}", item.worker))
    return [rows, *cold_start_tables(item.cold_start)]


def ring_data(item: RingOfSpec) -> dict[str, Json]:
    """Return the ring of a spec as plain data."""
    plan = item.plan
    data: dict[str, Json] = {
        "nodes": plan.nodes,
        "weights": plan.weights,
        "context": plan.context,
        "fileBytes": plan.file,
        "root": {"bytes": plan.root, "memory": item.root},
    }
    if item.worker:
        data["worker"] = {"bytes": plan.worker, "memory": item.worker}
    return {"app": item.name, "source": item.source, "ring": data, **cold_start_data(item.cold_start)}


def plans_data(plans: Iterable[SpecPlan], dialects: Sequence[Dialect], prices: Prices) -> list[dict[str, Json]]:
    """Return the plans of specs as plain data, with prices and the estimates of these dialects."""
    return [
        {
            "app": item.name,
            "source": item.source,
            **answer_data(item.answer, dialects, prices),
            **_host_data(item),
            **cold_start_data(item.cold_start),
        }
        for item in plans
    ]


def _host_data(item: SpecPlan) -> dict[str, Json]:
    if not item.host:
        return {}
    parts: list[Json] = [
        {"name": part.name, "flag": part.flag, "gib": part.gib, "inSharedMemory": part.shared} for part in item.host
    ]
    return {"pod": {"memory": item.memory, "sharedMemory": item.shared_memory, "reserved": parts}}


def _estimates(found: Answer, dialect: Dialect) -> Sequence[Estimate]:
    plan = found.plan
    return dialect.estimates(found.preset, plan.facts, plan.hardware, plan.request.context_length)
