"""`kaigen render`: manifests and charts from specs."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from msgspec.structs import replace

from kaigen.cli.console import Console, progress_line, table
from kaigen.cli.options import (
    environment_option,
    output_folder,
    override_options,
    paths_argument,
    read_configs,
    read_overrides,
)
from kaigen.diagnostics.errors import CheckFailed, InputError
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kaigen.config.settings import Config, Format
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.output.tree import TreeChange
    from kaigen.pipeline.output import OutputTree

with lazy_imports():
    from kaigen.environments import combined as environments_combined
    from kaigen.output import index
    from kaigen.pipeline import host_checks
    from kaigen.pipeline import origin as pipeline_origin
    from kaigen.pipeline import output as pipeline_output
    from kaigen.pipeline import run as pipeline_run


MOST_ROWS = 20
"""Rows of the table at the end of a render."""
MOST_WARNINGS = 10
"""Most warnings that a render prints; `kaigen validate` prints all."""


@click.command("render")
@paths_argument
@click.option("-o", "--output", metavar="DIR", help="Output folder. Default: `output` in kaigen.yaml.")
@environment_option("all")
@click.option(
    "--format",
    "form",
    type=click.Choice(["manifests", "chart", "both"]),
    help="Form of the output. Default: `format` in kaigen.yaml.",
)
@click.option("--no-cache", is_flag=True, help="Compile every spec, even unchanged ones.")
@click.option("--check", is_flag=True, help="Write nothing; print a diff and exit with 1 if the output is stale.")
@click.option("--stdout", "to_stdout", is_flag=True, help="Print all objects as one YAML stream; write nothing.")
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
    """Render specs to manifests and Helm charts.

    Renders the specs in PATH (default: those of kaigen.yaml), one folder per app, one file per object. Removes the
    files of apps without a spec; never touches files that kaigen did not write. Writes the whole tree or nothing.
    """
    if check and to_stdout:
        raise click.UsageError("--check and --stdout are mutually exclusive")
    if to_stdout and form == "chart":
        raise click.UsageError("--stdout cannot print charts")
    if to_stdout and output is not None:
        raise click.UsageError("--stdout and --output are mutually exclusive")
    if output in ("yaml", "json") and not Path(output).exists():
        raise click.UsageError(f"--output names a folder, not a format; for `{output}` as text use --stdout")
    configs = read_configs(environment, output)
    if to_stdout and len(configs) > 1:
        names = ", ".join(config.environment for config in configs)
        raise click.UsageError(f"--stdout prints one environment; select it with --env: {names}")
    if form:
        configs = [replace(config, format=cast("Format", form)) for config in configs]
    overrides = read_overrides(assignments, value_files)
    stdin = sys.stdin.buffer.read() if "-" in paths else None
    streams: list[str] = []
    runs: list[pipeline_run.Run] = []
    with progress_line(console) as progress:

        def work(config: Config) -> pipeline_output.OutputTree | pipeline_run.Run:
            stream = BytesIO(stdin) if stdin is not None else None
            run = pipeline_run.Run.load(
                paths,
                config,
                overrides,
                stdin=stream,
                folder=Path(),
                use_cache=not (no_cache or to_stdout),
                progress=progress,
            )
            runs.append(run)
            if to_stdout:
                streams.append(run.stream())
                return run
            inside = config.root if output is None else None
            return run.tree(output_folder(config, output), inside=inside)

        results = environments_combined.for_each(configs, work)
    diagnostics = {config.environment: item.diagnostics for config, item in zip(configs, results, strict=True)}
    between = host_checks.hosts_of_clusters(run.summaries for run in runs)
    _report(console, environments_combined.combine_diagnostics(diagnostics, between))
    trees = [item for item in results if isinstance(item, pipeline_output.OutputTree)]
    if configs[0].environments and not (environment or paths or to_stdout):
        inside = configs[0].root if output is None else None
        trees[:0] = _left_behind(output_folder(configs[0], output).parent, configs[0].environments, inside)
    if check:
        _check_origin(configs[0], output, trees, whole=not paths)
        _check(console, trees)
    for text in streams:
        console.write(text)
    for tree in trees:
        if not check:
            _write(console, tree)
        tree.save()


def _left_behind(root: Path, environments: Sequence[str], inside: Path | None) -> list[pipeline_output.OutputTree]:
    """Obsolete trees: of deleted environments, and of the time before environments were defined."""
    below = sorted(path for path in root.iterdir() if path.name not in environments) if root.is_dir() else []
    return [
        pipeline_output.OutputTree(place, inside=inside)
        for place in (root, *below)
        if (place / index.INDEX_NAME).is_file()
    ]


def _report(console: Console, diagnostics: Sequence[Diagnostic]) -> None:
    if not diagnostics or console.verbosity < 0:
        return
    shown = diagnostics if console.verbosity > 0 else diagnostics[:MOST_WARNINGS]
    console.report(shown)
    if len(shown) < len(diagnostics):
        console.say(f"… and {len(diagnostics) - len(shown)} more; `kaigen validate` lists all")
    console.say("")


def _check_origin(config: Config, output: str | None, trees: Sequence[OutputTree], *, whole: bool) -> None:
    """Raise an error for files of the output that are not what kaigen wrote, unless only some specs are checked."""
    if whole:
        root = config.root / config.output_base if output is None else Path(output)
        # Those of deleted environments are stale.
        names = {*config.trees, *("" if tree.root == root else tree.root.name for tree in trees)}
        inside = config.root if output is None else None
        found = pipeline_origin.origin_diagnostics(root, names, config, inside)
        if found:
            raise InputError(found)


def _check(console: Console, trees: Sequence[OutputTree]) -> None:
    stale = []
    for tree in trees:
        change = tree.plan()
        if change.is_empty:
            console.say(f"{tree.root} is up to date: {_counts(change)}")
            continue
        for line in tree.diff(change):
            console.out(line)
        stale.append(f"{tree.root} is stale: {_counts(change)}")
    if stale:
        raise CheckFailed("; ".join(stale), hint="run `kaigen render` and commit the result")


def _write(console: Console, tree: OutputTree) -> None:
    change = tree.write()
    if console.verbosity < 0:
        return
    paths = (*change.added, *change.changed, *change.removed)
    touched = {"/".join(path.split("/")[:2]) for path in paths}
    rows = [
        (f"{row.namespace}/{row.name}", row.kind, str(row.objects), row.source)
        for row in tree.apps
        if console.verbosity > 0 or f"{row.namespace}/{row.name}" in touched
    ]
    if rows:
        for line in table([("APP", "KIND", "OBJECTS", "SPEC"), *rows[:MOST_ROWS]]):
            console.say(line)
        if len(rows) > MOST_ROWS:
            console.say(f"… and {len(rows) - MOST_ROWS} more")
    apps = len(tree.apps)
    console.say(f"{tree.root}: {apps} {'app' if apps == 1 else 'apps'}, {_counts(change)}")


def _counts(change: TreeChange) -> str:
    parts = [(len(change.added), "added"), (len(change.changed), "changed"), (len(change.removed), "removed")]
    counts = [f"{count} {word}" for count, word in parts if count]
    files = len(change.added) + len(change.changed) + change.unchanged
    return f"{files} {'file' if files == 1 else 'files'}, " + (", ".join(counts) or "nothing changed")
