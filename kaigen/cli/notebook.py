"""`kaigen notebook`: Notebooks of a live cluster, and the step from a Notebook to a Job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import KAIGEN
from kaigen.cli.live.notebook_open import (
    FOLDER,
    open_notebook,
    print_promotion,
    seconds_of,
    timeout_option,
    warn_skipped,
)
from kaigen.cli.live.session import Session, age, all_option, cluster_options, command_words
from kaigen.cli.main import output_options
from kaigen.cli.options import environment_option, read_one_config
from kaigen.diagnostics.errors import CheckFailed
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.ops import folder_sync
    from kaigen.ops import notebooks as ops_notebooks
    from kaigen.ops import open_notebook as ops_open
    from kaigen.scaffold import notebook_job


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


@click.command("sync")
@click.argument("name")
@click.argument("folder", type=FOLDER)
@cluster_options
@click.option(
    "--direction",
    type=click.Choice(["both", "to-notebook", "from-notebook"]),
    default="both",
    show_default=True,
    help="The side that changes.",
)
@timeout_option
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
    with ops_open.forward_notebook(session.cluster, notebook, seconds_of(timeout), console.say) as found:
        run = ops_open.FolderSync(
            session.cluster, notebook, found, folder, console.out, folder_sync.Direction(direction)
        )
        skipped = run.run()
    if skipped:
        warn_skipped(console, skipped)
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
    print_promotion(console, made)


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
