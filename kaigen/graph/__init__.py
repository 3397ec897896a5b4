"""What apps consist of and what depends on what, as a graph: for reviewers, as Mermaid, SVG or one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kaigen.graph.model import Graph
    from kaigen.pipeline.run import Compilation

Form = Literal["mermaid", "svg", "html"]


def build_graph(compilation: Compilation) -> Graph:
    """The graph of compiled apps."""
    from kaigen.graph.build import build_graph

    return build_graph(compilation)


def render_graph(graph: Graph, form: Form) -> str:
    """The graph as a text, ending in a newline, that depends on the graph alone.

    Args:
        graph: what to draw.
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
