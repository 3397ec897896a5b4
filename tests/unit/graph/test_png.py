"""The graph as a PNG."""

from __future__ import annotations

from kaigen.graph.svg import read_style, render_png, render_svg
from kaigen.sizing.picture import light_style, png_of
from tests.unit.graph.graphs import DEMO, graph_of


def test_the_demo_is_drawn_in_the_light_theme() -> None:
    graph = graph_of(DEMO)
    picture = render_png(graph)
    assert picture.startswith(b"\x89PNG")
    assert picture == render_png(graph)
    svg = render_svg(graph, light_style(read_style()))
    assert ">hf-token<" in svg
    assert png_of(svg) != png_of(svg.replace(">hf-token<", "><")), "the names are not drawn"
    style = light_style(read_style())
    assert "var(" not in style
    assert "@media" not in style
    assert ".kg .paper { fill: #ffffff; }" in style
