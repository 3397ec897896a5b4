"""`kaigen graph`: a drawing of apps, objects and dependencies."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from kaigen.cli.console import Console
from kaigen.cli.options import environment_option, read_config_of
from kaigen.core.text import plural
from kaigen.graph import build_graph, render_graph, svg
from kaigen.pipeline.app_names import unknown_app
from kaigen.pipeline.run import Run

if TYPE_CHECKING:
    from kaigen.graph import Form
    from kaigen.graph.model import Graph

SUFFIXES: dict[str, Form | Literal["png"]] = {".html": "html", ".htm": "html", ".svg": "svg", ".png": "png"}
"""File extensions that select a format; any other selects Mermaid."""


_FORMATS = ["mermaid", "svg", "png", "html"]


@click.command("graph")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@environment_option("the first that has them")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="Output format. Default: by the extension of FILE, or mermaid.",
)
@click.option("-o", "--output", metavar="FILE", help="Output file. Default: standard output.")
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    metavar="N",
    help="Follow dependencies up to N steps from each APP. Default: all.",
)
@click.option("--dependents", is_flag=True, help="Include the apps that depend on each APP.")
@click.pass_obj
def command(
    console: Console,
    apps: tuple[str, ...],
    environment: str,
    form: Form | Literal["png"] | None,
    output: str | None,
    depth: int | None,
    dependents: bool,
) -> None:
    """Draw apps, their objects and their dependencies.

    Draws each APP, `NAME` or `NAMESPACE/NAME`, with its dependencies (default: all apps). Use Mermaid for a pull
    request, SVG or PNG for a document; HTML is a single page with search that works offline.
    """
    if not apps and (depth is not None or dependents):
        raise click.UsageError("--depth and --dependents require an APP")
    if form is None and output in _FORMATS:
        raise click.UsageError(f"--output is a file: write --output graph.{output}, or --format {output}")
    chosen = form or SUFFIXES.get(Path(output or "").suffix.lower(), "mermaid")
    if chosen == "html" and output is None and sys.stdout.isatty():
        raise click.UsageError("an HTML page cannot be printed to a terminal; name a file with -o")
    if chosen == "png" and output is None:
        raise click.UsageError("a PNG cannot be printed; name a file with -o")
    config = read_config_of(console, apps, environment)
    graph = build_graph(Run.load((), config, use_cache=False).compilation(), config.external)
    if apps:
        graph = graph.around(_chosen(apps, graph), depth=depth, dependents=dependents)
    data = _drawn(graph, chosen)
    if output is None:
        console.write(data.decode())
        return
    Path(output).write_bytes(data)
    objects = sum(len(app.objects) for app in graph.apps)
    console.say(f"{output}: {plural(len(graph.apps), 'app')}, {plural(objects, 'object')}")


def _drawn(graph: Graph, form: Form | Literal["png"]) -> bytes:
    if form != "png":
        return render_graph(graph, form).encode()
    try:
        return svg.render_png(graph)
    except ImportError:
        raise click.UsageError("PNG output requires resvg_py: install kaigen[png]") from None


def _chosen(names: Sequence[str], graph: Graph) -> list[str]:
    """Return the ids of the named apps.

    Raises:
        InputError: there is no such app.
    """
    found: list[str] = []
    for name in names:
        own = [app.id for app in graph.apps if name in (app.name, f"{app.namespace}/{app.name}")]
        if not own:
            raise unknown_app(name, [(app.namespace, app.name) for app in graph.apps])
        found += own
    return found
