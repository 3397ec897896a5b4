"""`kaigen render`: the main job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import (
    environment_option,
    output_folder,
    override_options,
    paths_argument,
    read_config,
    read_overrides,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kaigen.config import Config, Format
    from kaigen.gitops.contents import FileContent, TreeState
    from kaigen.gitops.tree import TreeChange
    from kaigen.incremental import AppRow
    from kaigen.load.diagnostics import Diagnostic
    from kaigen.overrides import Overrides
    from kaigen.pipeline import Compilation

MOST_ROWS = 20
"""Rows of the table at the end of a render."""
MOST_WARNINGS = 10
"""Warnings that a render shows before it points to `kaigen validate`."""


@click.command("render")
@paths_argument
@click.option("-o", "--output", metavar="DIR", help="Folder to render into. Default: the one in kaigen.yaml.")
@environment_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["manifests", "chart", "both"]),
    help="What to write. Default: kaigen.yaml's.",
)
@click.option("--no-cache", is_flag=True, help="Compile every spec, also those that are as they were.")
@click.option("--check", is_flag=True, help="Write nothing; show a diff and exit 1 when the tree is stale.")
@click.option(
    "--stdout", "to_stdout", is_flag=True, help="Print all objects as one YAML stream; write nothing."
)
@override_options
@click.pass_obj
def command(
    console: Console,
    paths: tuple[str, ...],
    output: str | None,
    environment: str,
    form: str | None,
    no_cache: bool,
    check: bool,
    to_stdout: bool,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
) -> None:
    """Write manifests and charts of the specs.

    Of those in PATH (default: those of kaigen.yaml). One folder an app, one object a file. Files of apps whose
    spec is gone are removed; files that kaigen did not write are never touched. Either the whole tree is written
    or nothing is.
    """
    if check and to_stdout:
        raise click.UsageError("--check and --stdout exclude each other")
    if to_stdout and form == "chart":
        raise click.UsageError("--stdout prints manifests; a chart is a folder")
    if to_stdout and output is not None:
        raise click.UsageError("--stdout and --output exclude each other")
    config = read_config(environment, output)
    overrides = read_overrides(assignments, value_files)
    root = output_folder(config, output)
    if not paths and not to_stdout:
        from kaigen.incremental import render_incrementally

        chosen = cast("Format", form) if form else config.format
        result = render_incrementally(config, overrides, chosen, root, use_cache=not no_cache)
        _report(console, result.diagnostics)
        if check:
            _check(console, root, result.files, None, result.state)
        else:
            _write(console, root, result.files, None, result.apps, result.state)
        result.keep()
        return
    compilation = _compile(paths, config, overrides)
    _report(console, compilation.diagnostics)
    if to_stdout:
        console.write(compilation.stream())
        return
    files = compilation.files(cast("Format", form) if form else config.format)
    scope = compilation.owns if paths else None
    if check:
        _check(console, root, files, scope)
    else:
        _write(console, root, files, scope, compilation.rows())


def _report(console: Console, diagnostics: Sequence[Diagnostic]) -> None:
    if not diagnostics or console.verbosity < 0:
        return
    shown = diagnostics if console.verbosity > 0 else diagnostics[:MOST_WARNINGS]
    console.report(shown)
    if len(shown) < len(diagnostics):
        console.say(f"… and {len(diagnostics) - len(shown)} more; `kaigen validate` shows them all")
    console.say("")


def _compile(paths: tuple[str, ...], config: Config, overrides: Sequence[Overrides]) -> Compilation:
    from kaigen.pipeline import compile_specs, load_others, load_specs

    loaded = load_specs(paths, config, stdin=sys.stdin.buffer if "-" in paths else None)
    return compile_specs(loaded, config, overrides, others=load_others(loaded, config) if paths else None)


def _check(
    console: Console,
    root: Path,
    files: Mapping[str, FileContent],
    scope: Callable[[str], bool] | None,
    state: TreeState | None = None,
) -> None:
    from kaigen.gitops.tree import diff_tree, plan_tree
    from kaigen.load.diagnostics import CheckFailed

    change = plan_tree(root, files, scope=scope, state=state)
    if change.is_empty:
        console.say(f"{root} is up to date: {_counts(change)}")
        return
    for line in diff_tree(root, files, change, scope=scope):
        console.out(line)
    raise CheckFailed(
        f"{root} is stale: {_counts(change)}", hint="run `kaigen render` and commit what it writes"
    )


def _write(
    console: Console,
    root: Path,
    files: Mapping[str, FileContent],
    scope: Callable[[str], bool] | None,
    apps: Sequence[AppRow],
    state: TreeState | None = None,
) -> None:
    from kaigen.gitops.tree import write_tree

    change = write_tree(root, files, scope=scope, state=state)
    if console.verbosity < 0:
        return
    paths = (*change.added, *change.changed, *change.removed)
    touched = {"/".join(path.split("/")[:2]) for path in paths}
    rows = [
        (f"{row.namespace}/{row.name}", row.kind, str(row.objects), row.source)
        for row in apps
        if console.verbosity > 0 or f"{row.namespace}/{row.name}" in touched
    ]
    if rows:
        for line in table([("APP", "KIND", "OBJECTS", "SPEC"), *rows[:MOST_ROWS]]):
            console.say(line)
        if len(rows) > MOST_ROWS:
            console.say(f"… and {len(rows) - MOST_ROWS} more")
    console.say(f"{root}: {len(apps)} {'app' if len(apps) == 1 else 'apps'}, {_counts(change)}")


def _counts(change: TreeChange) -> str:
    parts = [(len(change.added), "added"), (len(change.changed), "changed"), (len(change.removed), "removed")]
    told = [f"{count} {word}" for count, word in parts if count]
    files = len(change.added) + len(change.changed) + change.unchanged
    return f"{files} {'file' if files == 1 else 'files'}, " + (", ".join(told) or "nothing changed")
