"""`kaigen gates`: the reports of the Jobs that judge Topologies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import address_options, environment_option, read_configs, require_repository
from kaigen.gates.reports import FOLDER
from kaigen.gates.verdicts import Verdict, collect_reports, find_gates, read_verdicts
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config

with lazy_imports():
    from kaigen.cluster import connect
    from kaigen.diff import markdown


@click.command("gates")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@environment_option("the first")
@click.option("--from-cluster", is_flag=True, help="Read the reports from the cluster, and write them to `reports`.")
@address_options
@click.option("--output", "-o", type=click.Choice(["text", "markdown", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console,
    apps: tuple[str, ...],
    environment: str,
    from_cluster: bool,
    context: str,
    kubeconfig: str,
    output: str,
) -> None:
    """Show whether the gates of an environment have passed.

    A gate is a Job with `workload: benchmark` or `evaluate`. With APP, `NAME` or `NAMESPACE/NAME`, shows the gates that
    judge these apps. Reads `reports/ENV`; with --from-cluster, reads the Jobs and their reports from the environment's
    cluster first, and writes them there, to be committed: `kaigen promote` needs them.

    Exits with 1 if a gate has not passed for what Git has now.
    """
    config = read_configs(environment)[0]
    require_repository(config)
    gates = find_gates(config, apps)
    if from_cluster:
        found = collect_reports(config.root, gates, connect.connect(context, kubeconfig))
    else:
        found = read_verdicts(config.root, gates)
    if output == "json":
        console.out(json.dumps([_data(each) for each in found], indent=2, ensure_ascii=False))
    elif output == "markdown":
        console.write(render_verdicts(found))
    elif found:
        for line in verdict_table(found):
            console.out(line)
    else:
        console.say("no gates")
    if not all(each.passed for each in found):
        raise click.exceptions.Exit(1)


def verdict_table(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the lines of a table of gates."""
    rows = [(each.gate.namespace, each.gate.app, each.gate.run, each.state, each.reason or "-") for each in verdicts]
    return list(table([("NAMESPACE", "GATE", "RUN", "STATE", "REASON"), *rows]))


def render_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return the reports one after the other, with the state of those that are not about what Git has."""
    parts = []
    for each in verdicts:
        text = each.report.text if each.report is not None else f"### {each.gate.app}: {each.state}\n"
        note = f"\n**{each.state}:** {markdown.escape(each.reason)}\n" if each.state in ("missing", "outdated") else ""
        parts.append(f"{text.rstrip()}\n{note}")
    return "\n".join(parts)


MOST_REPORTS = 20_000
"""Most characters of the tables of gates in a comment, and of the reports below them."""


def reports_section(configs: Sequence[Config]) -> str:
    """Return the gates of environments as a section of a pull request's comment; empty without any report.

    Each environment has a table of its gates, first those that have not passed, and their reports are folded below it.
    Gates that do not fit are counted, and reports that do not fit are left out.

    Args:
        configs: settings of the environments.
    """
    parts, room, lines = [], MOST_REPORTS, MOST_REPORTS
    for config in configs:
        if not (config.root / FOLDER / (config.environment or "default")).is_dir():
            continue
        found = sorted(read_verdicts(config.root, find_gates(config)), key=lambda each: each.passed)
        if not found:
            continue
        parts.append(f"\n## Gates of {config.environment or 'the cluster'}\n\n")
        parts.append("| gate | run | state | reason |\n| --- | --- | --- | --- |\n")
        rows = list(_fitting(map(_row, found), lines))
        lines -= sum(map(len, rows))
        parts += rows
        if len(rows) < len(found):
            parts.append(f"| and {len(found) - len(rows)} more | | | |\n")
        texts = [_folded(each) for each in found if each.report is not None]
        shown = list(_fitting(texts, room))
        room -= sum(map(len, shown))
        parts += shown
    return "".join(parts)


def _fitting(texts: Iterable[str], room: int) -> Iterator[str]:
    """Yield the texts that fit in a number of characters."""
    for text in texts:
        if len(text) <= room:
            yield text
            room -= len(text)


def _folded(verdict: Verdict) -> str:
    return f"\n<details><summary>{verdict.gate.app}</summary>\n\n{render_verdicts([verdict])}\n</details>\n"


def _row(verdict: Verdict) -> str:
    gate = verdict.gate
    state = verdict.state if verdict.passed else f"**{verdict.state}**"
    name, reason = markdown.code_span(f"{gate.namespace}/{gate.app}"), markdown.escape(verdict.reason) or "-"
    return f"| {name} | {markdown.code_span(gate.run)} | {state} | {reason} |\n"


def _data(verdict: Verdict) -> dict[str, object]:
    return {
        "namespace": verdict.gate.namespace,
        "gate": verdict.gate.app,
        "run": verdict.gate.run,
        "state": verdict.state,
        "reason": verdict.reason,
        "report": verdict.report.data if verdict.report is not None else None,
    }
