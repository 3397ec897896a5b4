"""`kaigen diff`: what a change does, for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console
from kaigen.cli.options import environment_option, override_options, read_configs, read_overrides

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kaigen.config.settings import Config


@click.command("diff")
@click.option(
    "--base",
    default="HEAD",
    show_default=True,
    metavar="GITREF",
    help="Commit or tag to compare with; for a branch, the merge base.",
)
@environment_option("all")
@override_options
@click.option(
    "--output", "-o", type=click.Choice(["text", "markdown", "json"]), default="text", help="Output format."
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there is a change.")
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
    """Show what a change does, object by object.

    Compares the current specs with the tree that is rendered at GITREF, and explains each change: a new run, pods
    that restart, a volume that is kept, a field that cannot change in place. If GITREF contains no rendered tree, its
    specs are rendered.
    """
    from kaigen.diff import compare, render_json, render_markdown, render_text
    from kaigen.environments.combined import for_each
    from kaigen.git.repository import merge_base
    from kaigen.pipeline.run import render

    configs = read_configs(environment)
    commit = merge_base(configs[0].root, base)
    overrides = read_overrides(assignments, value_files)
    trees = for_each(configs, lambda config: render((), config, overrides=overrides))
    old: dict[str, bytes] = {}
    new: dict[str, bytes] = {}
    for config, tree in zip(configs, trees, strict=True):
        place = f"{config.environment}/" if len(configs) > 1 else ""
        old |= {f"{place}{path}": data for path, data in _tree_at(config, commit).items()}
        new |= {f"{place}{path}": data for path, data in tree.items()}
    change = compare(old, new)
    if output == "markdown":
        console.write(render_markdown(change))
    elif output == "json":
        console.write(render_json(change))
    else:
        console.write(render_text(change, color=console.colored(err=False), width=console.width()))
    if exit_code and change.apps:
        raise click.exceptions.Exit(1)


def _tree_at(config: Config, commit: str) -> dict[str, bytes]:
    from kaigen.git.repository import read_tree_at
    from kaigen.output.index import INDEX_NAME

    tree = read_tree_at(config.root, commit, config.output)
    if INDEX_NAME in tree:
        return tree
    return _render_at(config, commit)


def _render_at(config: Config, commit: str) -> dict[str, bytes]:
    """The tree that the specs of a commit come to, for a repository that does not commit what it renders."""
    import tempfile

    from kaigen.config.load import load_config
    from kaigen.config.settings import FILE_NAME, PINS_FOLDER
    from kaigen.git.repository import read_tree_at
    from kaigen.pipeline.run import render

    files = read_tree_at(config.root, commit)
    if not any(_is_below(path, config.specs) for path in files):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, files, (FILE_NAME, PINS_FOLDER))
        before = load_config(Path(folder), config.environment)
        patches = before.patch_files
        _write(folder, files, (*before.specs, *before.kinds, *patches))
        return render((), before)


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(place == "." or path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def _write(folder: str, files: Mapping[str, bytes], places: Iterable[str]) -> None:
    for path, data in files.items():
        if _is_below(path, places):
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
