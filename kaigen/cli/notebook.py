"""`kaigen notebook`: Notebooks of a live cluster, and the step from a Notebook to a Job."""

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
from kaigen.cli.live.session import Session, age, all_option, cluster_options, command_words, lifetime
from kaigen.cli.main import output_options
from kaigen.cli.options import environment_option, read_one_config
from kaigen.diagnostics.errors import CheckFailed, KaigenError, SystemFailure
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import time

    from kaigen.kubernetes import requests, runs
    from kaigen.ops import continuation, creation, folder_sync, interrupts
    from kaigen.ops import notebooks as ops_notebooks
    from kaigen.ops import open_notebook as ops_open
    from kaigen.scaffold import notebook_job

if TYPE_CHECKING:
    from kaigen.kubernetes.manifest import Manifest
    from kaigen.ops.continuation import Continuation
    from kaigen.ops.open_notebook import FolderSync
    from kaigen.scaffold.notebook_job import Promotion


@click.command("list")
@cluster_options
@all_option
@click.pass_obj
def list_notebooks(console: Console, /, everywhere: bool, **where: Any) -> None:
    """List Notebooks."""
    session = Session(console, KAIGEN, everywhere=everywhere, **where)
    found = ops_notebooks.notebooks(session.cluster, session.namespaces)
    if not found:
        scope = f" in namespace {session.namespaces}" if session.namespaces else ""
        console.say(f"No Notebooks found{scope}.")
        return
    rows = [["NAME", "STATE", "GPU", "MANAGED BY", "AGE"]]
    for row in map(ops_notebooks.row_of, found):
        rows.append([row.name, row.phase, row.gpu, row.managed_by or "-", age(row.created)])
    if not session.namespaces:
        names = ["NAMESPACE", *(item["metadata"]["namespace"] for item in found)]
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    session.print_table(rows)


def _scale(console: Console, name: str, where: dict[str, Any], *, suspend: bool) -> None:
    session = Session(console, KAIGEN, **where)
    notebook = ops_notebooks.find_notebook(session.cluster, session.namespace, name)
    changed = ops_notebooks.scale(session.cluster, notebook, suspend=suspend)
    word = "suspended" if suspend else "resumed"
    console.out(f"notebook/{name} {word}" if changed else f"notebook/{name} unchanged")


@click.command("suspend")
@click.argument("name")
@cluster_options
@click.pass_obj
def suspend(console: Console, /, name: str, **where: Any) -> None:
    """Remove the pod of a Notebook; its files stay.

    The kernels end. A Notebook of Argo CD or Flux is suspended in Git, `suspend: true`, unless
    it has `idle` or `hours`.
    """
    _scale(console, name, where, suspend=True)


@click.command("resume")
@click.argument("name")
@cluster_options
@click.pass_obj
def resume(console: Console, /, name: str, **where: Any) -> None:
    """Start a suspended Notebook with its files.

    A Notebook of Argo CD or Flux is resumed in Git, `suspend: false`, unless
    it has `idle` or `hours`.
    """
    _scale(console, name, where, suspend=False)


@click.command("delete")
@click.argument("name")
@cluster_options
@click.option("--delete-volume", is_flag=True, help="Delete the volume with the files, too.")
@click.pass_obj
def delete(console: Console, /, name: str, delete_volume: bool, **where: Any) -> None:
    """Delete the objects of a Notebook; the volume with its files stays.

    A Notebook of Argo CD or Flux is deleted in Git, with its spec.
    """
    session = Session(console, KAIGEN, **where)
    notebook = ops_notebooks.find_notebook(session.cluster, session.namespace, name)
    for deleted in ops_notebooks.delete_notebook(session.cluster, notebook, volume=delete_volume):
        console.out(f"{deleted} deleted")


_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_INTERVAL_S = 3.0
_SUSPEND_S = 10.0
"""Seconds for which a cluster that does not answer is asked to suspend a Notebook at the end."""


def _timeout_option(function: Any) -> Any:
    return click.option(
        "--timeout",
        default="15m",
        show_default=True,
        metavar="DURATION",
        callback=lifetime,
        help="Time to wait until the server answers.",
    )(function)


def _seconds(timeout: str) -> float:
    return float("inf") if timeout in ("", "never") else float(timeout)


@click.command("open")
@click.argument("name", required=False, default="")
@click.option("-f", "--filename", default="", metavar="FILE", help="Create the Notebook of this spec first.")
@environment_option("the first")
@cluster_options
@click.option("--folder", type=_FOLDER, metavar="DIR", help="Synchronize this folder, both ways, until the end.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Local port. Default: a free one.")
@click.option("--keep-running", is_flag=True, help="Do not suspend the Notebook at the end.")
@click.option(
    "--promote/--no-promote",
    "promoting",
    default=None,
    help="At the end, build the image from --folder and write the spec that trains, as `promote` does. Default: ask.",
)
@_timeout_option
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
            _work(console, session, notebook, folder, _seconds(timeout), port, no_browser)
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
            _print_promotion(console, found.write(console.say, console.report))


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
            _warn(console, sync.run())
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
                    _warn(console, sync.run_last())
            except SystemFailure as error:
                hint = f"its files stay in the volume; while it runs, synchronize with: {again}"
                raise SystemFailure(f"not synchronized: {error}", hint=hint) from None


def _again(console: Console, sync: FolderSync | None, failure: str) -> str:
    """Synchronize once more; return the failure, which is printed once."""
    if sync is None:
        return ""
    try:
        _warn(console, sync.run())
    except (SystemFailure, OSError) as error:
        if str(error) != failure:
            console.say(f"not synchronized, trying again: {error}")
        return str(error)
    return ""


def _warn(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.say(f"skipped {line}")


@click.command("sync")
@click.argument("name")
@click.argument("folder", type=_FOLDER)
@cluster_options
@click.option(
    "--direction",
    type=click.Choice(["both", "to-notebook", "from-notebook"]),
    default="both",
    show_default=True,
    help="The side that changes.",
)
@_timeout_option
@click.pass_obj
def sync(console: Console, /, name: str, folder: Path, direction: str, timeout: str, **where: Any) -> None:
    """Synchronize a local folder with the files of a running Notebook, once.

    Compares the hashes of files with those of the last time. Nothing is deleted: a file that one side deleted stays on
    the other. Of a file that changed on both sides, the version of the notebook is stored next to the local one. Hidden
    files, files larger than 100 MiB, symbolic links, and what `.kaigenignore` lists are left out; without that file,
    what `.gitignore` or `.dockerignore` lists.
    """
    session = Session(console, KAIGEN, **where)
    notebook = ops_notebooks.find_notebook(session.cluster, session.namespace, name)
    if ops_notebooks.row_of(notebook).phase in ("Suspended", "Suspending"):
        raise CheckFailed(f"Notebook {name} is suspended", hint=f"start it: kaigen notebook resume {name}")
    with ops_open.forward_notebook(session.cluster, notebook, _seconds(timeout), console.say) as found:
        run = ops_open.FolderSync(
            session.cluster, notebook, found, folder, console.out, folder_sync.Direction(direction)
        )
        skipped = run.run()
    if skipped:
        _warn(console, skipped)
        raise CheckFailed(f"{len(skipped)} files were not synchronized")


@click.command("promote")
@click.argument("name", required=False, default="")
@click.option("-f", "--filename", default="", metavar="FILE", help="File with the spec. Default: all specs.")
@environment_option("the first")
@click.option(
    "--image", default="", metavar="IMAGE", help="Image that trains. Default: that of the Notebook, or its build."
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="Build the image from the commit of this folder, which has a Dockerfile and is in a Git checkout.",
)
@click.option(
    "--artifact",
    default="",
    metavar="REFERENCE",
    help="Build the image from this folder, as `kaigen build push` printed it.",
)
@click.option("--command", "words", default="", callback=command_words, metavar="COMMAND", help="Command of the image.")
@click.option("--label", default="", metavar="TEXT", help="End of the name. Default: the Git branch, or the Unix time.")
@click.pass_obj
def promote(
    console: Console,
    /,
    name: str,
    filename: str,
    environment: str,
    image: str,
    folder: Path | None,
    artifact: str,
    words: list[str],
    label: str,
) -> None:
    """Write the spec of a Job that trains what was tried in a Notebook.

    Reads the spec of the Notebook in this repository, and writes `model-LABEL.yaml` next to it: the image or its build,
    the base model and the dataset at the same paths, the resources and the parameters. Checks the new spec. What the
    Notebook does not answer, such as which of two datasets to use, is a comment in the file.
    """
    if len([each for each in (image, folder, artifact) if each]) > 1:
        raise click.UsageError("give one of --image, --folder and --artifact")
    config = read_one_config(console, environment)
    paths = [filename] if filename else []
    made = notebook_job.promotion_of(
        config, name, paths=paths, image=image, program=folder, artifact=artifact, command=words, label=label
    )
    notebook_job.write_promotion(made, config)
    if made.changed:
        console.say(f"{folder} has changes that are not in the commit, so the image will not have them")
    _print_promotion(console, made)


def _print_promotion(console: Console, made: Promotion) -> None:
    console.out(str(made.path))
    for field in made.blank:
        console.say(f"fill in `{field}`: see the comment in {made.path}")


_COMMANDS = (
    open_notebook,
    list_notebooks,
    suspend,
    resume,
    sync,
    promote,
    delete,
)


class _Ordered(click.Group):
    """A group that lists its commands as a user needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(each.name) for each in _COMMANDS]


@click.group("notebook", cls=_Ordered)
def command() -> None:
    """Open Notebooks of a cluster, and turn them into Jobs.

    Needs `pip install 'kaigen[cluster]'`, except for `promote`. All commands also work with Notebooks that Argo CD or
    Flux synced, except those that would change them: those changes belong into Git.
    """


for each in _COMMANDS:
    known = {parameter.name for parameter in each.params}
    each.params += [option for option in output_options() if option.name not in known]
    command.add_command(each)
