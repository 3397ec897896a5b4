"""The graph as SVG: apps as frames, objects as boxes in columns by wave, dependencies as lines; and as a PNG."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from kaigen.graph.geometry import BOX_HEIGHT, BOX_WIDTH, Box, FrameBox, Layout, Line
from kaigen.graph.layout import lay_out
from kaigen.graph.model import ExternalNode, Graph, Relation
from kaigen.graph.style import absence, family, one_line, shorten
from kaigen.sizing.picture import light_style, png_of

_MARGIN = 16
_NAME = 26
_ROUND = 5


class Svg(str):
    """An SVG file as text. Notebooks show it as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def read_style() -> str:
    """Return the style sheet, which follows the light or dark mode of the reader's system."""
    return (Path(__file__).parent / "page" / "svg.css").read_text(encoding="utf-8")


def render_svg(graph: Graph, style: str = "") -> Svg:
    """Return the graph as an SVG file.

    Args:
        graph: the graph.
        style: a style sheet instead of kaigen's own.
    """
    layout = lay_out(graph)
    width, height = max(layout.width, 120) + 2 * _MARGIN, max(layout.height, 40) + 2 * _MARGIN
    apps = "1 app" if len(graph.apps) == 1 else f"{len(graph.apps)} apps"
    return Svg(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="kg" width="{width}" height="{height}" '
        f'viewBox="{-_MARGIN} {-_MARGIN} {width} {height}" role="img" aria-label="{apps}">\n'
        f"<style>\n{style or read_style()}</style>\n"
        f'<rect class="paper" x="{-_MARGIN}" y="{-_MARGIN}" width="{width}" height="{height}"/>\n'
        f"{drawing(graph, layout)}</svg>\n"
    )


def drawing(graph: Graph, layout: Layout) -> str:
    """Return the content of the SVG: frames, lines, boxes, each with the id of its node as `data-id`."""
    names = {node.id: f"{node.kind} {node.name}" for app in graph.apps for node in app.objects}
    names |= {node.id: f"{node.kind} {node.name}" for node in graph.externals}
    parts = [_frame(frame) for frame in layout.frames]
    parts += [_line(line, names) for line in layout.lines]
    parts += [_box(box) for box in layout.boxes]
    return "".join(f"{part}\n" for part in parts)


def _text(text: str) -> str:
    return escape(one_line(text))


def _attribute(text: str) -> str:
    return quoteattr(one_line(text))


def _frame(frame: FrameBox) -> str:
    app = frame.app
    room = (frame.width - 24) // 8
    title = shorten(app.id, room)
    kind = app.kind if len(title) + len(app.kind) + 2 <= room else ""
    waves = "".join(f'<text class="wave" x="{x}" y="{frame.y + 35}">{_text(name)}</text>' for x, name in frame.columns)
    return (
        f'<g class="app" data-id={_attribute(app.id)}><title>{_text(f"{app.id}: {app.kind}, {app.location}")}</title>'
        f'<rect class="frame" x="{frame.x}" y="{frame.y}" width="{frame.width}" height="{frame.height}" rx="8"/>'
        f'<text class="title" x="{frame.x + 12}" y="{frame.y + 20}">{_text(title)}'
        f'<tspan class="of" dx="8">{_text(kind)}</tspan></text>{waves}</g>'
    )


def _box(box: Box) -> str:
    node = box.node
    external = isinstance(node, ExternalNode)
    kind = f"{node.kind}, {absence(node)}" if isinstance(node, ExternalNode) else node.kind
    tip = f"{kind} {node.name}" if external else f"{node.kind} {node.name}: {getattr(node, 'path', '')}"
    return (
        f'<g class="node {family(node)}" data-id={_attribute(node.id)} data-app={_attribute(box.app)}>'
        f"<title>{_text(tip)}</title>"
        f'<rect class="box" x="{box.x}" y="{box.y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<rect class="bar" x="{box.x}" y="{box.y + 6}" width="4" height="{BOX_HEIGHT - 12}" rx="2"/>'
        f'<text class="kind" x="{box.x + 12}" y="{box.y + 16}">{_text(shorten(kind, 32))}</text>'
        f'<text class="name" x="{box.x + 12}" y="{box.y + 32}">{_text(shorten(node.name, _NAME))}</text></g>'
    )


def _line(line: Line, names: dict[str, str]) -> str:
    edge = line.edge
    wait = " wait" if edge.relation is Relation.WAITS else ""
    x, y = line.points[-1]
    side = 1 if line.points[-2][0] < x else -1
    title = f"{names[edge.source]} {edge.relation.value} {names[edge.target]}"
    return (
        f'<g class="edge" data-from={_attribute(edge.source)} data-to={_attribute(edge.target)}>'
        f"<title>{_text(title)}</title>"
        f'<path class="line{wait}" d="{_path(line.points)}"/>'
        f'<path class="tip{wait}" d="M{x} {y}l{-7 * side} -3.5v7z"/></g>'
    )


def _path(points: tuple[tuple[int, int], ...]) -> str:
    """Return a path with rounded corners."""
    steps = [f"M{points[0][0]} {points[0][1]}"]
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        first, second = _near(here, before), _near(here, after)
        steps.append(f"L{first[0]} {first[1]}Q{here[0]} {here[1]} {second[0]} {second[1]}")
    steps.append(f"L{points[-1][0]} {points[-1][1]}")
    return "".join(steps)


def _near(corner: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the point between a corner and another point at which the curve of the corner begins."""
    x, y = ((there > here) - (there < here) for here, there in zip(corner, other, strict=True))
    room = max(abs(corner[0] - other[0]), abs(corner[1] - other[1])) // 2
    step = min(_ROUND, room)
    return corner[0] + x * step, corner[1] + y * step


def render_png(graph: Graph) -> bytes:
    """Return the graph as a PNG.

    Raises:
        ImportError: the extra `kaigen[png]` is not installed.
    """
    return png_of(render_svg(graph, light_style(read_style())))
