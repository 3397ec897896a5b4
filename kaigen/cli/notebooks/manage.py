"""`list`, `suspend`, `resume` and `delete`."""

from __future__ import annotations

from typing import Any

import click

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import KAIGEN
from kaigen.cli.live.session import Session, age, all_option, cluster_options
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.ops import notebooks as ops_notebooks


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

    The kernels end. A Notebook of Argo CD or Flux is suspended in Git: `suspend: true`.
    """
    _scale(console, name, where, suspend=True)


@click.command("resume")
@click.argument("name")
@cluster_options
@click.pass_obj
def resume(console: Console, /, name: str, **where: Any) -> None:
    """Start a suspended Notebook with its files.

    A Notebook of Argo CD or Flux is resumed in Git: `suspend: false`.
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
