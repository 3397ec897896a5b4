"""`kaigen notebook open`: a Notebook in the browser until Ctrl-C, and what becomes of it then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import KAIGEN
from kaigen.cli.live.session import Session, cluster_options, lifetime
from kaigen.cli.options import environment_option, read_one_config
from kaigen.diagnostics.errors import CheckFailed, KaigenError, SystemFailure
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import time

    from kaigen.kubernetes import requests, runs
    from kaigen.ops import continuation, creation, interrupts
    from kaigen.ops import notebooks as ops_notebooks
    from kaigen.ops import open_notebook as ops_open

if TYPE_CHECKING:
    from kaigen.kubernetes.manifest import Manifest
    from kaigen.ops.continuation import Continuation
    from kaigen.ops.open_notebook import FolderSync
    from kaigen.scaffold.notebook_job import Promotion

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_INTERVAL_S = 3.0
_SUSPEND_S = 10.0
"""Seconds for which a cluster that does not answer is asked to suspend a Notebook at the end."""


def timeout_option(function: Any) -> Any:
    """`--timeout`, for the start of the server."""
    return click.option(
        "--timeout",
        default="15m",
        show_default=True,
        metavar="DURATION",
        callback=lifetime,
        help="Time to wait until the server answers.",
    )(function)


def seconds_of(timeout: str) -> float:
    """Return a timeout in seconds; `never` and an empty one have no end."""
    return float("inf") if timeout in ("", "never") else float(timeout)


@click.command("open")
@click.argument("name", required=False, default="")
@click.option("-f", "--filename", default="", metavar="FILE", help="Create the Notebook of this spec first.")
@environment_option("the first")
@cluster_options
@click.option("--folder", type=FOLDER, metavar="DIR", help="Synchronize this folder, both ways, until the end.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Local port. Default: a free one.")
@click.option("--keep-running", is_flag=True, help="Do not suspend the Notebook at the end.")
@click.option(
    "--promote/--no-promote",
    "promoting",
    default=None,
    help="At the end, build the image from --folder and write the spec that trains, as `promote` does. Default: ask.",
)
@timeout_option
@click.pass_obj
def open_notebook(
    console: Console,
    /,
    name: str,
    filename: str,
    environment: str,
    folder: Path | None,
    no_browser: bool,
    port: int,
    keep_running: bool,
    promoting: bool | None,
    timeout: str,
    **where: Any,
) -> None:
    """Open a Notebook in the browser, until Ctrl-C.

    Resumes NAME, or creates the Notebook of -f, waits until its server answers, and forwards a local port to it. At the
    end, a Notebook that is not managed by Argo CD or Flux is suspended; its files stay.

    If its spec is in this repository, the last question is whether to build an image from --folder, which needs a
    Dockerfile, and to write the spec of a Job that trains. Without a terminal, the commands for that are printed.
    """
    if bool(name) == bool(filename):
        raise click.UsageError("give either the name of a Notebook or its spec with -f")
    session = Session(console, KAIGEN, **where)
    namespace = session.namespace
    if filename:
        config = read_one_config(console, environment)
        if where["namespace"]:
            config = replace(config, namespace=where["namespace"])
        rendered = ops_open.render_notebook(filename, config)
        name, namespace = rendered.name, rendered.namespace
        program = click.get_current_context().command_path.replace("kubectl-open", "kubectl open")
        ops_notebooks.apply_notebook(session.cluster, rendered.objects, namespace, name, program)
        console.say(f"notebook/{name} applied in namespace {namespace}")
    notebook = ops_notebooks.find_notebook(session.cluster, namespace, name)
    tracked = runs.tracked_by(notebook)

    def find_continuation() -> Continuation:
        return continuation.continuation_of(read_one_config(console, environment), name, filename, folder)

    if promoting:
        find_continuation()
    closed = False
    with interrupts.interruptible(), _suspended_at_end(session, namespace, name, is_kept=bool(tracked) or keep_running):
        with suppress(KeyboardInterrupt):
            _work(console, session, notebook, folder, seconds_of(timeout), port, no_browser)
            closed = True
        console.say(_end(notebook, tracked))
    if closed:
        continue_work(console, promoting, find_continuation)


@contextmanager
def _suspended_at_end(session: Session, namespace: str, name: str, *, is_kept: bool) -> Iterator[None]:
    """Suspend a Notebook at the end of the block, unless it is kept.

    If the cluster does not answer, say how to suspend it later; an error of the block stays the one that is raised.

    Raises:
        SystemFailure: the block ended without an error, and the Notebook keeps running.
    """
    try:
        yield
    except BaseException:
        if not is_kept and (failure := _suspend_again(session, namespace, name)):
            session.console.failure(failure)
        raise
    if not is_kept and (failure := _suspend_again(session, namespace, name)):
        raise failure


def _suspend_again(session: Session, namespace: str, name: str) -> SystemFailure | None:
    """Suspend a Notebook within seconds; return why it keeps running, with what to do, if it does."""
    try:
        with interrupts.ignore_interrupts(), creation.hurry(session.cluster, _SUSPEND_S):
            notebook = ops_notebooks.find_notebook(session.cluster, namespace, name)
            ops_notebooks.scale(session.cluster, notebook, suspend=True)
    except CheckFailed as error:  # it was deleted meanwhile, or a syncer manages it now
        session.console.say(str(error))
    except KaigenError as error:
        command = session.command("suspend", name, program="kaigen notebook", namespace=namespace)
        return SystemFailure(f"Notebook {name} keeps running: {error}", hint=f"suspend it with: {command}")
    else:
        session.console.say(f"Notebook {name} suspended; its files stay")
    return None


def _end(notebook: Manifest, tracked: str) -> str:
    """Return what becomes of a Notebook after `open`, as a message."""
    if not tracked:
        return "closed"
    name = notebook["metadata"]["name"]
    if requests.is_scaled_live(notebook):
        return f"Notebook {name} keeps running until it is idle, or its hours end"
    return f"Notebook {name} keeps running: {tracked} manages it"


def continue_work(console: Console, promoting: bool | None, find: Callable[[], Continuation]) -> None:
    """Build an image and write the spec that trains, if the user wants both; without a terminal, print how.

    Args:
        console: of the command.
        promoting: whether the user wants it; None asks.
        find: returns how the work continues.
    """
    if promoting is False or (promoting is None and console.verbosity < 0):
        return
    try:
        found = find()
    except KaigenError:
        if promoting:
            raise
        return
    if promoting is None and not (sys.stdin.isatty() and sys.stderr.isatty()):
        console.say("to train what the notebook has, run:")
        for line in found.commands:
            console.say(f"  {line}")
        return
    with suppress(click.Abort):
        if promoting or click.confirm(found.question, err=True):
            print_promotion(console, found.write(console.say, console.report))


def _work(
    console: Console,
    session: Session,
    notebook: Manifest,
    folder: Path | None,
    seconds: float,
    port: int,
    no_browser: bool,
) -> None:
    """Forward a port, and synchronize a folder, until Ctrl-C.

    Raises:
        KeyboardInterrupt: Ctrl-C before the server answers, or another request to end.
    """
    ops_notebooks.scale(session.cluster, notebook, suspend=False)
    with ops_open.forward_notebook(session.cluster, notebook, seconds, console.say, port) as found:
        sync = ops_open.FolderSync(session.cluster, notebook, found, folder, console.say) if folder else None
        if sync is not None:
            warn_skipped(console, sync.run())
        console.out(found.url)
        with nullcontext() if no_browser else ops_open.show_address(found.url):
            console.say("press Ctrl-C to end")
            name, namespace = notebook["metadata"]["name"], notebook["metadata"]["namespace"]
            words = ("sync", name, str(folder))
            _keep(console, sync, session.command(*words, program="kaigen notebook", namespace=namespace))


def _keep(console: Console, sync: FolderSync | None, again: str) -> None:
    """Synchronize again and again until Ctrl-C, and a last time after it.

    Args:
        console: of the command.
        sync: synchronizes; None for no folder.
        again: the command that does it later.

    Raises:
        SystemFailure: the last time failed.
    """
    failure = ""
    try:
        while True:
            time.sleep(_INTERVAL_S)
            failure = _again(console, sync, failure)
    except interrupts.Terminated:
        raise
    except KeyboardInterrupt:
        pass
    finally:
        if sync is not None:
            console.say("synchronizing a last time")
            try:
                with interrupts.ignore_interrupts():
                    warn_skipped(console, sync.run_last())
            except SystemFailure as error:
                hint = f"its files stay in the volume; while it runs, synchronize with: {again}"
                raise SystemFailure(f"not synchronized: {error}", hint=hint) from None


def _again(console: Console, sync: FolderSync | None, failure: str) -> str:
    """Synchronize once more; return the failure, which is printed once."""
    if sync is None:
        return ""
    try:
        warn_skipped(console, sync.run())
    except (SystemFailure, OSError) as error:
        if str(error) != failure:
            console.say(f"not synchronized, trying again: {error}")
        return str(error)
    return ""


def warn_skipped(console: Console, lines: list[str]) -> None:
    """Print which files were not synchronized."""
    for line in lines:
        console.say(f"skipped {line}")


def print_promotion(console: Console, made: Promotion) -> None:
    """Print the path of a new spec, and which of its fields a person must fill in."""
    console.out(str(made.path))
    for field in made.blank:
        console.say(f"fill in `{field}`: see the comment in {made.path}")
