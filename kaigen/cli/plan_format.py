"""Output of `kaigen plan` and `kaigen gpus fit`: tables and plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kaigen.cli.console import Console, table
from kaigen.sizing.plan import gib_text, layout_text
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.dialects.dialect import Dialect, Estimate
    from kaigen.sizing.answer import Answer
    from kaigen.sizing.format import Json
    from kaigen.sizing.result import Plan

with lazy_imports():
    from kaigen.sizing import format


def _estimates(found: Answer, dialect: Dialect) -> Sequence[Estimate]:
    plan = found.plan
    return dialect.estimates(found.preset, plan.facts, plan.hardware, plan.request.context_length)


def answer_data(found: Answer, dialects: Iterable[Dialect]) -> dict[str, Json]:
    """Return an answer as plain data, with the estimates of these dialects."""
    data = format.plan_data(found.plan) | {"others": [format.other_data(other) for other in found.others]}
    for dialect in dialects:
        data[dialect.name] = {item.version: dict(item.data) for item in _estimates(found, dialect)}
    return data


def print_answer(console: Console, found: Answer, dialects: Iterable[Dialect]) -> None:
    """Print an answer as tables, with the estimates of these dialects."""
    plan = found.plan
    load, layout = plan.load, plan.layout
    copies = f", {plan.request.replicas} replicas" if plan.request.replicas > 1 else ""
    console.out(f"{plan.facts.name} on {format.hardware_text(plan)}: {layout_text(layout)}{copies}")
    console.out()
    sums = [(row.name, gib_text(row.gib), row.how) for row in format.rows(plan)]
    width = max(len(value) for _, value, _ in sums)
    for line in table(
        [("EACH GPU", "GiB".rjust(width), ""), *((name, gib.rjust(width), how) for name, gib, how in sums)]
    ):
        console.out(line)
    console.out()
    facts = [
        ("context", f"{load.context} tokens{format.context_limit(plan)}"),
        ("sequences", f"{load.concurrency} of that length at once, of {plan.max_concurrency} that would fit"),
        ("flags", format.command_line(plan)),
    ]
    for dialect in dialects:
        facts += [(f"{dialect.title} {item.version}", item.text) for item in _estimates(found, dialect)]
    facts += [("note", note) for note in plan.notes]
    for line in table(facts):
        console.out(line)
    if found.others:
        console.out()
        for line in table([_HEAD, *map(other_row, found.others)]):
            console.out(line)


_HEAD = ("NEXT BEST", "GPUS", "NODES", "PARALLEL", "CONTEXT", "SEQUENCES")


def other_row(plan: Plan) -> tuple[str, str, str, str, str, str]:
    """A plan among others, as a row of a table."""
    hardware, layout = plan.hardware, plan.layout
    return (
        hardware.name,
        f"{hardware.count} × {hardware.gpu}",
        str(layout.nodes),
        parallel(layout.tp, layout.pp, layout.dp),
        str(plan.load.context),
        str(plan.max_concurrency),
    )


def parallel(tp: int, pp: int, dp: int) -> str:
    """Parallelism in short."""
    parts = [f"{name}{size}" for name, size in (("tp", tp), ("pp", pp), ("dp", dp)) if size > 1]
    return " ".join(parts) or "–"
