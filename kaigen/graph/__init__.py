"""The graph of apps, their objects and their dependencies, as Mermaid, SVG or one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kaigen.graph.build import build_graph
from kaigen.graph.html import render_html
from kaigen.graph.mermaid import render_mermaid
from kaigen.graph.svg import render_svg

if TYPE_CHECKING:
    from kaigen.graph.model import Graph

__all__ = ["Form", "build_graph", "render_graph"]

Form = Literal["mermaid", "svg", "html"]


def render_graph(graph: Graph, form: Form) -> str:
    """Return the graph as text that ends in a newline and depends on the graph alone.

    Args:
        graph: the graph.
        form: `mermaid` for a flowchart, `svg` for a drawing, `html` for a page.
    """
    if form == "html":
        return render_html(graph)
    if form == "svg":
        return render_svg(graph)
    return render_mermaid(graph)
