"""What is drawn does not lie on top of each other, whatever the graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.graph.geometry import BOX_HEIGHT, BOX_WIDTH, Box, Layout, Line
from kaigen.graph.layout import lay_out
from kaigen.graph.model import Graph
from tests.unit.graph.graphs import DEMO, graph_of, made


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    apps = draw(st.lists(st.lists(st.integers(-1, 4), max_size=5), min_size=1, max_size=6))
    count = sum(len(app) for app in apps)
    if not count:
        return made(apps, [])
    one = st.integers(0, count - 1)
    return made(apps, draw(st.lists(st.tuples(one, one), max_size=14)), draw(st.lists(one, max_size=3)))


def segments(line: Line) -> Iterator[tuple[int, int, int, int]]:
    for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
        assert x1 == x2 or y1 == y2, "lines run along the grid"
        yield min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def crosses(segment: tuple[int, int, int, int], box: Box) -> bool:
    x1, y1, x2, y2 = segment
    return x1 < box.x + BOX_WIDTH and x2 > box.x and y1 < box.y + BOX_HEIGHT and y2 > box.y


def check(graph: Graph, layout: Layout) -> None:
    drawn = {(box.app, box.node.id): box for box in layout.boxes}
    assert {node.id for app in graph.apps for node in app.objects} <= {node for _, node in drawn}
    assert len(layout.lines) == len(graph.edges)
    for box in layout.boxes:
        frame = next(frame for frame in layout.frames if frame.app.id == box.app)
        assert frame.x < box.x
        assert box.x + BOX_WIDTH < frame.x + frame.width
        assert frame.y < box.y
        assert box.y + BOX_HEIGHT < frame.y + frame.height
    for first in layout.frames:
        assert 0 <= first.x <= first.x + first.width <= layout.width
        assert 0 <= first.y <= first.y + first.height <= layout.height
        for second in layout.frames:
            apart = (
                first.x + first.width < second.x
                or second.x + second.width < first.x
                or first.y + first.height < second.y
                or second.y + second.height < first.y
            )
            assert first is second or apart, (first.app.id, second.app.id)
    owners = graph.owners()
    for line in layout.lines:
        app = owners[line.edge.source]
        source, target = (drawn[app, line.edge.source], drawn[owners.get(line.edge.target, app), line.edge.target])
        assert line.points[0][0] in (source.x, source.x + BOX_WIDTH)
        assert source.y < line.points[0][1] < source.y + BOX_HEIGHT
        assert line.points[-1][0] in (target.x, target.x + BOX_WIDTH)
        assert target.y < line.points[-1][1] < target.y + BOX_HEIGHT
        for segment in segments(line):
            assert not any(crosses(segment, box) for box in layout.boxes)
            assert segment[0] >= 0
            assert segment[1] >= 0
            assert segment[2] <= layout.width
            assert segment[3] <= layout.height


@given(graphs())
def test_no_line_crosses_a_box_and_no_frames_overlap(graph: Graph) -> None:
    check(graph, lay_out(graph))


def test_the_demo_is_laid_out_cleanly() -> None:
    graph = graph_of(DEMO)
    check(graph, lay_out(graph))


def test_an_app_is_right_of_the_apps_that_it_needs() -> None:
    graph = made([[0], [0], [0]], [(1, 0), (2, 1)])
    assert [frame.app.name for frame in sorted(lay_out(graph).frames, key=lambda frame: frame.x)] == [
        "app-000",
        "app-001",
        "app-002",
    ]


def test_columns_are_waves_in_order() -> None:
    (frame,) = lay_out(made([[3, 0, 1, 0]], [(0, 1)], [0])).frames
    assert [name for _, name in frame.columns] == ["elsewhere", "wave 0", "wave 1", "wave 3"]
    assert [x for x, _ in frame.columns] == sorted(x for x, _ in frame.columns)


@pytest.mark.parametrize("count", [0, 1, 60])
def test_many_apps_are_arranged_in_a_page_and_not_a_column(count: int) -> None:
    layout = lay_out(made([[0, 1]] * count, []))
    assert len(layout.frames) == count
    if count == 60:
        assert 0.5 < layout.width / layout.height < 3
