"""`kaigen diff`: what a change does, for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console
from kaigen.cli.options import environment_option, override_options, read_config, read_overrides

if TYPE_CHECKING:
    from kaigen.config import Config


@click.command("diff")
@click.option(
    "--base",
    default="HEAD",
    show_default=True,
    metavar="GITREF",
    help="Commit, branch or tag to compare with; of a branch, where this one left it.",
)
@environment_option
@override_options
@click.option(
    "--output", "-o", type=click.Choice(["text", "markdown", "json"]), default="text", help="How it is told."
)
@click.option("--exit-code", is_flag=True, help="Exit 1 when there is a change.")
@click.pass_obj
def command(
    console: Console,
    base: str,
    environment: str,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
    output: str,
    exit_code: bool,
) -> None:
    """Tell what a change does, object by object.

    What the specs as they are now change in the rendered tree of GITREF, in plain words: a new run, pods that
    restart, a volume that is kept, a field that cannot change in place. The tree of GITREF is the one committed
    there; where none is, the specs of GITREF are rendered.
    """
    from kaigen.gitops.diff import compare, render_json, render_markdown, render_text
    from kaigen.gitops.git import merge_base
    from kaigen.pipeline import render

    config = read_config(environment)
    commit = merge_base(config.root, base)
    new = render((), config, overrides=read_overrides(assignments, value_files))
    change = compare(_tree_at(config, commit), new)
    if output == "markdown":
        console.write(render_markdown(change))
    elif output == "json":
        console.write(render_json(change))
    else:
        console.write(render_text(change, color=console.colored(err=False), width=console.width()))
    if exit_code and change.apps:
        raise click.exceptions.Exit(1)


def _tree_at(config: Config, commit: str) -> dict[str, bytes]:
    from kaigen.gitops.git import read_tree_at
    from kaigen.gitops.index import INDEX_NAME

    tree = read_tree_at(config.root, commit, config.output)
    if INDEX_NAME in tree:
        return tree
    return _render_at(config, commit)


def _render_at(config: Config, commit: str) -> dict[str, bytes]:
    """The tree that the specs of a commit come to, for a repository that does not commit what it renders."""
    import tempfile

    from kaigen.config import FILE_NAME, load_config
    from kaigen.gitops.git import read_tree_at
    from kaigen.pipeline import render

    files = read_tree_at(config.root, commit)
    wanted = {
        path: data
        for path, data in files.items()
        if path == FILE_NAME
        or any(path == spec or path.startswith(f"{spec.rstrip('/')}/") for spec in config.specs)
    }
    if not any(path != FILE_NAME for path in wanted):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        for path, data in wanted.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return render((), load_config(Path(folder), config.environment))
