"""`kaigen render`: the main job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from kaigen.cli.console import Console
from kaigen.cli.options import (
    environment_option,
    output_folder,
    override_options,
    paths_argument,
    read_config,
    read_overrides,
)

if TYPE_CHECKING:
    from kaigen.config import Format
    from collections.abc import Callable

    from kaigen.gitops.tree import TreeChange
    from kaigen.pipeline import Compilation


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
    check: bool,
    to_stdout: bool,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
) -> None:
    """Write manifests and charts of the specs in PATH (default: those of kaigen.yaml).

    One folder an app, one object a file. Files of apps whose spec is gone are removed; files that kaigen did not
    write are never touched. Either the whole tree is written or nothing is.
    """
    if check and to_stdout:
        raise click.UsageError("--check and --stdout exclude each other")
    if to_stdout and form == "chart":
        raise click.UsageError("--stdout prints manifests; a chart is a folder")
    if to_stdout and output is not None:
        raise click.UsageError("--stdout and --output exclude each other")
    from kaigen.pipeline import compile_specs, load_others, load_specs

    config = read_config(environment, output)
    overrides = read_overrides(assignments, value_files)
    stdin = sys.stdin.buffer if "-" in paths else None
    loaded = load_specs(paths, config, stdin=stdin)
    others = load_others(loaded, config) if paths else None
    compilation = compile_specs(loaded, config, overrides, others=others)
    if compilation.diagnostics and console.verbosity >= 0:
        console.report(compilation.diagnostics)
    if to_stdout:
        console.write(compilation.stream())
        return
    root = output_folder(config, output)
    files = compilation.files(cast("Format", form) if form else config.format)
    scope = compilation.owns if paths else None
    if check:
        _check(console, root, files, scope)
    else:
        _write(console, root, files, scope, compilation)


def _check(
    console: Console, root: Path, files: dict[str, bytes], scope: Callable[[str], bool] | None
) -> None:
    from kaigen.gitops.tree import diff_tree, plan_tree
    from kaigen.load.diagnostics import CheckFailed

    change = plan_tree(root, files, scope=scope)
    if change.is_empty:
        console.say(f"{root} is up to date: {_counts(change)}")
        return
    for line in diff_tree(root, files, change):
        console.out(line.rstrip("\n"))
    counts = _counts(change)
    raise CheckFailed(f"{root} is stale: {counts}", hint="run `kaigen render` and commit what it writes")


def _write(
    console: Console,
    root: Path,
    files: dict[str, bytes],
    scope: Callable[[str], bool] | None,
    compilation: Compilation,
) -> None:
    from kaigen.gitops.tree import write_tree

    change = write_tree(root, files, scope=scope)
    if console.verbosity < 0:
        return
    touched = {
        path.split("/manifests/")[0].split("/chart/")[0]
        for path in (*change.added, *change.changed, *change.removed)
    }
    rows = [
        (f"{item.app.namespace}/{item.app.name}", item.app.kind, str(len(item.objects)), item.app.source)
        for item in compilation.apps
        if console.verbosity > 0 or f"{item.app.namespace}/{item.app.name}" in touched
    ]
    most = 20
    if rows:
        table = [("APP", "KIND", "OBJECTS", "SPEC"), *rows[:most]]
        widths = [max(len(row[column]) for row in table) for column in range(4)]
        for row in table:
            console.say(
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            )
        if len(rows) > most:
            console.say(f"… and {len(rows) - most} more")
    apps = len(compilation.apps)
    console.say(f"{root}: {apps} {'app' if apps == 1 else 'apps'}, {_counts(change)}")


def _counts(change: TreeChange) -> str:
    parts = [(len(change.added), "added"), (len(change.changed), "changed"), (len(change.removed), "removed")]
    told = [f"{count} {word}" for count, word in parts if count]
    files = sum(count for count, _ in parts) + change.unchanged
    return f"{files} {'file' if files == 1 else 'files'}" + (
        f" ({', '.join(told)})" if told else ", nothing changed"
    )
