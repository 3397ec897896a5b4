"""The graph as a PNG, in the light theme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.graph.svg import read_style, render_svg
from kaigen.sizing.png import light_style, png_of

if TYPE_CHECKING:
    from kaigen.graph.model import Graph


def render_png(graph: Graph) -> bytes:
    """Return the graph as a PNG.

    Raises:
        ImportError: the extra `kaigen[png]` is not installed.
    """
    return png_of(render_svg(graph, light_style(read_style())))
