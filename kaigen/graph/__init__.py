"""The graph of apps, their objects and their dependencies, as Mermaid, SVG or one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kaigen.graph.model import Graph
    from kaigen.pipeline.result import Compilation

Form = Literal["mermaid", "svg", "html"]


def build_graph(compilation: Compilation) -> Graph:
    """Return the graph of compiled apps."""
    from kaigen.graph.build import build_graph

    return build_graph(compilation)


def render_graph(graph: Graph, form: Form) -> str:
    """Return the graph as text that ends in a newline and depends on the graph alone.

    Args:
        graph: the graph.
        form: `mermaid` for a flowchart, `svg` for a drawing, `html` for a page.
    """
    if form == "html":
        from kaigen.graph.html import render_html

        return render_html(graph)
    if form == "svg":
        from kaigen.graph.svg import render_svg

        return render_svg(graph)
    from kaigen.graph.mermaid import render_mermaid

    return render_mermaid(graph)
