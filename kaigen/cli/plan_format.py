"""How `kaigen plan` and `kaigen gpus fit` tell plans: as tables, and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.cli.console import Console, table

if TYPE_CHECKING:
    from kaigen.sizing.answer import Answer
    from kaigen.sizing.format import Json
    from kaigen.sizing.kaito import KaitoEstimate
    from kaigen.sizing.result import Plan


def estimates_of(found: Answer) -> dict[str, KaitoEstimate | str]:
    """What KAITO derives, or why it cannot, by version."""
    from kaigen.sizing.constants import kaito_constants
    from kaigen.sizing.kaito import estimate_facts, estimate_preset, node_like
    from kaigen.sizing.problem import PlanError

    node, asked = node_like(found.plan.hardware), found.plan.request.context_length
    told: dict[str, KaitoEstimate | str] = {}
    for version in kaito_constants():
        try:
            told[version] = (
                estimate_preset(found.preset, node, context=asked, version=version)
                if found.preset is not None
                else estimate_facts(found.plan.facts, node, context=asked, version=version)
            )
        except PlanError as error:
            told[version] = str(error)
    return told


def answer_data(found: Answer, *, kaito: bool) -> dict[str, Json]:
    """An answer as plain data, with KAITO's estimates if asked for."""
    from kaigen.sizing.format import kaito_data, other_data, plan_data

    data = plan_data(found.plan) | {"others": [other_data(other) for other in found.others]}
    if kaito:
        data["kaito"] = {
            version: {"refused": item} if isinstance(item, str) else kaito_data(item)
            for version, item in estimates_of(found).items()
        }
    return data


def print_answer(console: Console, found: Answer, *, kaito: bool) -> None:
    """An answer as tables, with KAITO's estimates if asked for."""
    from kaigen.sizing.format import command_line, rows, told_hardware
    from kaigen.sizing.plan import told_gib, told_layout

    plan = found.plan
    load, layout = plan.load, plan.layout
    copies = f", {plan.request.replicas} replicas" if plan.request.replicas > 1 else ""
    console.out(f"{plan.facts.name} on {told_hardware(plan)}: {told_layout(layout)}{copies}")
    console.out()
    sums = [(row.name, told_gib(row.gib), row.how) for row in rows(plan)]
    width = max(len(value) for _, value, _ in sums)
    for line in table(
        [("EACH GPU", "GiB".rjust(width), ""), *((name, gib.rjust(width), how) for name, gib, how in sums)]
    ):
        console.out(line)
    console.out()
    facts = [
        ("context", f"{load.context} tokens, of {plan.max_context} that would fit"),
        ("sequences", f"{load.concurrency} of that length at once, of {plan.max_concurrency} that would fit"),
        ("flags", command_line(plan)),
    ]
    for version, item in (estimates_of(found) if kaito else {}).items():
        facts.append((f"KAITO {version}", item if isinstance(item, str) else _kaito(item)))
    facts += [("note", note) for note in plan.notes]
    for line in table(facts):
        console.out(line)
    if found.others:
        console.out()
        for line in table([_HEAD, *map(other_row, found.others)]):
            console.out(line)


_HEAD = ("NEXT BEST", "GPUS", "NODES", "PARALLEL", "FREE GiB", "SEQUENCES")


def other_row(plan: Plan) -> tuple[str, str, str, str, str, str]:
    """A plan among others, as a row of a table."""
    hardware, layout = plan.hardware, plan.layout
    return (
        hardware.name,
        f"{hardware.count} × {hardware.gpu}",
        str(layout.nodes),
        parallel(layout.tp, layout.pp, layout.dp),
        f"{plan.memory.free:.1f}",
        str(plan.max_concurrency),
    )


def parallel(tp: int, pp: int, dp: int) -> str:
    """Parallelism in short."""
    parts = [f"{name}{size}" for name, size in (("tp", tp), ("pp", pp), ("dp", dp)) if size > 1]
    return " ".join(parts) or "–"


def _kaito(item: KaitoEstimate) -> str:
    from kaigen.sizing.format import count

    shape = parallel(item.tp, item.pp, item.dp)
    return f"{count(item.nodes, 'node')}, at least {count(item.min_gpus, 'GPU')}" + (
        f", {shape}" if shape != "–" else ""
    )
