"""`list`, `get`, `watch`, `logs` and `events`: what Jobs of the cluster do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import Flavor
from kaigen.cli.live.session import Session, age, all_option, cluster_options, lifetime
from kaigen.diagnostics.errors import CheckFailed, SystemFailure
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kaigen.kubernetes.manifest import Manifest
    from kaigen.ops.jobs import JobRow

with lazy_imports():
    from kaigen.cluster import clues
    from kaigen.kubernetes import runs
    from kaigen.ops import jobs as ops_jobs
    from kaigen.ops import logs as ops_logs

OUTPUTS = ("wide", "json", "yaml", "name")


def commands(flavor: Flavor) -> list[click.Command]:
    """Return the commands."""
    return [_list(flavor), _get(flavor), _watch(flavor), _logs(flavor), _events(flavor)]


def _output_option(function: Any) -> Any:
    return click.option("-o", "--output", type=click.Choice(OUTPUTS), help="Output format.")(function)


def _list(flavor: Flavor) -> click.Command:
    @click.command("list", help="List Jobs.")
    @cluster_options
    @all_option
    @_output_option
    @click.pass_obj
    def command(console: Console, /, output: str | None, everywhere: bool, **where: Any) -> None:
        session = Session(console, flavor, everywhere=everywhere, **where)
        jobs = session.cluster.objects(ops_jobs.JOB, session.namespaces, ops_jobs.RUNS)
        found = [job for job in jobs if flavor.lists(job)]
        found.sort(key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"]))
        if output in ("json", "yaml", "name"):
            session.print_objects(found, output)
            return
        if not found:
            scope = f" in namespace {session.namespaces}" if session.namespaces else ""
            console.say(f"No Jobs found{scope}.")
            return
        session.print_table(_table(session, found, wide=output == "wide"))

    return command


def _table(session: Session, found: Sequence[Manifest], *, wide: bool) -> list[list[str]]:
    scope = not session.namespaces
    header = [*(["NAMESPACE"] if scope else []), "NAME", "PHASE", "GPU", "MODEL", "AGE"]
    rows = [[*header, *(["JOB", "VOLUME", "IMAGE", "MESSAGE"] if wide else [])]]
    for item in found:
        pods = ops_jobs.pods_of(session.cluster, item) if wide else ()
        row = ops_jobs.row_of(item, ops_jobs.state_of(session.cluster, item, pods) if wide else None)
        cells = [row.name, row.state.phase, row.gpu, row.model or "-", age(row.created)]
        more = [row.job, ",".join(row.claims) or "-", row.image, row.state.message or "-"]
        rows.append([*([row.namespace] if scope else []), *cells, *(more if wide else [])])
    return rows


def _get(flavor: Flavor) -> click.Command:
    @click.command("get", help="Show a Job: what it runs, its state, and where its result is.")
    @click.argument("name")
    @cluster_options
    @_output_option
    @click.pass_obj
    def command(console: Console, /, name: str, output: str | None, **where: Any) -> None:
        session = Session(console, flavor, **where)
        found = session.job(name)
        if output in ("json", "yaml", "name"):
            session.print_objects([found], output, single=True)
            return
        pods = ops_jobs.pods_of(session.cluster, found)
        state = ops_jobs.state_of(session.cluster, found, pods)
        for line in _described(ops_jobs.row_of(found, state), pods):
            console.out(line)

    return command


def _described(row: JobRow, pods: Sequence[Manifest]) -> list[str]:
    """Return the lines that describe a Job."""
    took = f" ({age(row.started, row.finished)})" if row.started and row.finished else ""
    fields = {
        "Name": row.name,
        "Namespace": row.namespace,
        "Job": row.job,
        "Model": row.model,
        "GPU": row.gpu,
        "Image": row.image,
        "Volume": ", ".join(row.claims),
        "Phase": row.state.phase,
        "Message": row.state.message,
        "Started": _moment(row.started),
        "Finished": _moment(row.finished) + took,
        "Artifact": row.artifact,
        "Pods": ", ".join(pod["metadata"]["name"] for pod in pods),
    }
    return [f"{name + ':':<11} {value}" for name, value in fields.items() if value]


def _moment(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def timeout_option(function: Any) -> Any:
    """`--timeout`."""
    return click.option(
        "--timeout",
        default="",
        metavar="DURATION",
        callback=lifetime,
        help="Time to wait for the end, such as 600 or 10m. Default: no limit.",
    )(function)


def _watch(flavor: Flavor) -> click.Command:
    @click.command(
        "watch",
        help="Print each change of a Job until it ends. Exits with 0 if it succeeded, 1 if it failed or was deleted, "
        "and 3 if it did not end in time.",
    )
    @click.argument("name")
    @cluster_options
    @timeout_option
    @click.pass_obj
    def command(console: Console, /, name: str, timeout: str, **where: Any) -> None:
        session = Session(console, flavor, **where)
        follow(session, session.job(name), float(timeout) if timeout else None)

    return command


def follow(session: Session, job: Manifest, seconds: float | None) -> None:
    """Print the states of a Job until it ends.

    Raises:
        CheckFailed: it failed or was deleted.
        SystemFailure: it did not end in time.
    """
    name = session.name_of(job)
    state = None
    try:
        for state in ops_jobs.changes(session.cluster, job, seconds):
            session.console.out(f"[{state.phase}] {state.message}".rstrip())
    except KeyboardInterrupt:
        session.console.say(f"stopped watching; Job {name} goes on")
        raise
    phase = state.phase if state is not None else ""
    if state is not None and phase == "Failed":
        raise CheckFailed(f"Job {name} failed", hint=_hint(session, job, state.container))
    if phase != "Succeeded":
        raise SystemFailure(f"Job {name} did not end within {seconds:g} s; it is {phase}")


def _hint(session: Session, job: Manifest, container: str) -> str:
    """Return how to read what a Job printed that failed, or to keep it the next time."""
    if ops_jobs.pods_expire(job):
        return "its pods are deleted at once; to read what they print, create it with a longer --ttl"
    options = ["-c", container] if container else []
    return f"read what it printed: {session.command('logs', session.name_of(job), *options)}"


def _logs(flavor: Flavor) -> click.Command:
    @click.command("logs", help="Print what the newest pod of a Job printed.")
    @click.argument("name")
    @cluster_options
    @click.option("-f", "--follow", is_flag=True, help="Wait for the pod, and for more lines.")
    @click.option("-c", "--container", default="", metavar="NAME", help="Container. Default: the main one.")
    @click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last lines.")
    @click.pass_obj
    def command(console: Console, /, name: str, follow: bool, container: str, tail: int | None, **where: Any) -> None:
        session = Session(console, flavor, **where)
        job = session.job(name)
        lines = ops_logs.logs(
            session.cluster,
            job,
            follow=follow,
            container=container,
            tail=tail,
            command=session.command,
            name=session.name_of(job),
            say=console.say,
        )
        for line in lines:
            console.out(line.decode(errors="replace"))

    return command


def _events(flavor: Flavor) -> click.Command:
    @click.command("events", help="List the events of a Job, its pods and its volume.")
    @click.argument("name")
    @cluster_options
    @click.pass_obj
    def command(console: Console, /, name: str, **where: Any) -> None:
        session = Session(console, flavor, **where)
        found = ops_jobs.events(session.cluster, session.job(name))
        if not found:
            console.say("No events found.")
            return
        rows = [["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]]
        for event in found:
            about = event["involvedObject"]
            seen = age(runs.time_of(clues.event_time(event)))
            target = f"{about['kind'].lower()}/{about['name']}"
            message = " ".join(str(event.get("message", "")).split())
            rows.append([seen, event.get("type", ""), event.get("reason", ""), target, message])
        session.print_table(rows)

    return command
