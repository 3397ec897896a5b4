"""Places the boxes, frames and lines of a graph; lines lead through the gaps between columns and rows.

Own code: the layouters on PyPI that need no Graphviz (grandalf, igraph) know neither frames nor lines around boxes.

Apps that depend on each other are next to each other, and an app is to the right of those that it needs. The columns
of an app are its waves, after a column of external nodes. All cells have one size and all rows of a group line up, so
the gaps between rows and columns are free for lines. Lines to one box share their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from kaigen.graph.geometry import BOX_HEIGHT, BOX_WIDTH, HEAD_HEIGHT, Box, FrameBox, Layout, Line, Point
from kaigen.graph.grid import EXTERNAL_WAVE, AppCells, Cell, Grid, components
from kaigen.graph.model import Edge, Graph, Relation

ColumnGap = tuple[int, int]
"""The gap left of a column has two parts: `(n, 0)` outside of an app that begins at column n, `(n, 1)` inside it."""

RouteKey = tuple[str, bool]
"""Lines of one key share their way: those to one node with one style."""

_TRACK = 7
_GAP = 14
_FRAME = 12
_BETWEEN = 34
_ASPECT = 1.5

_Gap = TypeVar("_Gap", int, ColumnGap)


def lay_out(graph: Graph) -> Layout:
    """Return the layout of a graph."""
    needs = graph.needs()
    groups = [_Group(Grid(graph, apps, needs)).layout() for apps in components(graph.apps, needs)]
    groups.sort(key=lambda group: -group.height)  # stable, so by name where heights are equal
    widest = max((group.width for group in groups), default=0)
    area = sum((group.width + _BETWEEN) * (group.height + _BETWEEN) for group in groups)
    limit = max(widest, round(sqrt(area * _ASPECT)))
    frames: list[FrameBox] = []
    boxes: list[Box] = []
    lines: list[Line] = []
    x = y = shelf = right = 0
    for group in groups:
        if x and x + group.width > limit:
            x, y, shelf = 0, y + shelf + _BETWEEN, 0
        frames += [_moved(frame, x, y) for frame in group.frames]
        boxes += [Box(box.node, box.app, box.x + x, box.y + y) for box in group.boxes]
        lines += [Line(line.edge, tuple((a + x, b + y) for a, b in line.points)) for line in group.lines]
        shelf = max(shelf, group.height)
        right = max(right, x + group.width)
        x += group.width + _BETWEEN
    return Layout(right, y + shelf, tuple(frames), tuple(boxes), tuple(lines))


def _moved(frame: FrameBox, x: int, y: int) -> FrameBox:
    columns = tuple((left + x, name) for left, name in frame.columns)
    return FrameBox(frame.app, frame.x + x, frame.y + y, frame.width, frame.height, columns)


class _Group:
    """The pixels of one grid: positions of its columns, rows, and the gaps between them."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._routes = find_routes(grid)
        self._tracks: Tracks = assign_tracks(self._routes)
        self._gap_x: dict[ColumnGap, int] = {}
        self._column_x: dict[int, int] = {}
        self._lane_y: dict[int, int] = {}
        self._row_y: dict[int, int] = {}
        self._width = self._place_columns(_counts(self._tracks.columns.items()))
        self._height = self._place_rows(_counts(self._tracks.rows.items()))

    def layout(self) -> Layout:
        """Return the layout of this group."""
        boxes = [
            Box(node, place.app.id, self._column_x[column], self._row_y[row])
            for place in self._grid.apps
            for _, nodes in place.columns
            for node in nodes
            for column, row in [self._grid.cells[place.app.id, node.id]]
        ]
        lines = tuple(Line(route.edge, self._points(route)) for route in self._routes)
        frames = tuple(self._frame(place) for place in self._grid.apps)
        return Layout(self._width, self._height, frames, tuple(boxes), lines)

    def _frame(self, place: AppCells) -> FrameBox:
        left = self._gap_x[place.first, 1] - _FRAME
        top = self._row_y[place.row]
        last_row = self._row_y[place.row + place.rows - 1]
        bottom = last_row + (BOX_HEIGHT if place.rows > 1 else HEAD_HEIGHT)
        right = self._column_x[place.first + len(place.columns) - 1] + BOX_WIDTH + _FRAME
        columns = tuple(
            (self._column_x[place.first + number], "elsewhere" if wave == EXTERNAL_WAVE else f"wave {wave}")
            for number, (wave, _) in enumerate(place.columns)
        )
        return FrameBox(place.app, left, top, right - left, bottom - top + _FRAME, columns)

    def _place_columns(self, tracks: Mapping[ColumnGap, int]) -> int:
        """Set x of each column and column gap, and return the width."""
        grid = self._grid
        x = 0
        for column in range(grid.column_count):
            begins = column in grid.starts
            if begins:
                self._gap_x[column, 0] = x + _FRAME
                if column:
                    x += _FRAME + _GAP + tracks.get((column, 0), 0) * _TRACK
                x += _FRAME
            self._gap_x[column, 1] = x
            inner = tracks.get((column, 1), 0) * _TRACK
            x += inner + (_GAP if inner or not begins else 0)
            self._column_x[column] = x
            x += BOX_WIDTH
        return x + _FRAME

    def _place_rows(self, tracks: Mapping[int, int]) -> int:
        """Set y of each row and row gap, and return the height."""
        grid = self._grid
        y = 0
        for row in range(grid.row_count):
            title = row in grid.title_rows
            self._lane_y[row] = y + (_FRAME if title and row else 0)
            if row:
                y += _GAP + tracks.get(row, 0) * _TRACK + (_FRAME + 8 if title else 0)
            self._row_y[row] = y
            only_titles = title and not any(cell[1] == row for cell in grid.occupied)
            y += HEAD_HEIGHT if only_titles else BOX_HEIGHT
        self._lane_y[grid.row_count] = y + _FRAME
        below = tracks.get(grid.row_count, 0)
        return y + _FRAME + (below * _TRACK + _GAP if below else 0)

    def _points(self, route: Route) -> tuple[Point, ...]:
        x1 = self._column_x[route.source[0]] + (0 if route.leaves_left else BOX_WIDTH)
        x2 = self._column_x[route.target[0]] + (0 if route.enters_left else BOX_WIDTH)
        y1 = self._row_y[route.source[1]] + route.ports[0]
        y2 = self._row_y[route.target[1]] + route.ports[1]
        into = self._gap_position(route, route.into)
        points = [(x1, y1)]
        if route.lane is None:
            points.append((into, y1))
        else:
            out = self._gap_position(route, route.out)
            track = self._tracks.rows[route.lane, route.key]
            y = self._lane_y[route.lane] + _GAP // 2 + track.number * _TRACK
            points += [(out, y1), (out, y), (into, y)]
        points += [(into, y2), (x2, y2)]
        return tuple(point for number, point in enumerate(points) if number == 0 or point != points[number - 1])

    def _gap_position(self, route: Route, gap: ColumnGap) -> int:
        return self._gap_x[gap] + _GAP // 2 + self._tracks.columns[gap, route.key].number * _TRACK


def _counts(tracks: Iterable[tuple[tuple[_Gap, RouteKey], Track]]) -> dict[_Gap, int]:
    """Return the number of tracks in each gap."""
    return {gap: track.total for (gap, _), track in tracks}


class Route(Struct):
    """The way of one edge over the grid.

    Attributes:
        edge: the edge.
        key: lines of one key share their way.
        source: cell where it begins.
        target: cell where it ends.
        out: column gap next to the source.
        into: column gap next to the target.
        lane: row gap on the way; None where one vertical line connects both.
        straight: the row of the source is free up to the gap next to the target.
        ports: where it leaves its source and enters its target, in pixels below the top of the box.
    """

    edge: Edge
    key: RouteKey
    source: Cell
    target: Cell
    out: ColumnGap
    into: ColumnGap
    lane: int | None = None
    straight: bool = False
    ports: tuple[int, int] = field(default=(0, 0))

    @property
    def leaves_left(self) -> bool:
        """Whether it leaves its source on the left side."""
        return self.target[0] <= self.source[0]

    @property
    def enters_left(self) -> bool:
        """Whether it enters its target on the left side."""
        return self.target[0] >= self.source[0]


class Track(NamedTuple):
    """One of the parallel lines in a gap, and how many there are."""

    number: int
    total: int


class Tracks(NamedTuple):
    """The track of each route key in each gap.

    Attributes:
        columns: of the gaps between columns.
        rows: of the gaps between rows.
    """

    columns: dict[tuple[ColumnGap, RouteKey], Track]
    rows: dict[tuple[int, RouteKey], Track]


def find_routes(grid: Grid) -> list[Route]:
    """Return the route of every edge of a grid."""
    routes = [_route(grid, edge) for edge in grid.edges]
    _assign_ports(routes)
    return routes


def _route(grid: Grid, edge: Edge) -> Route:
    app = grid.owners[edge.source]
    source = grid.cells[app, edge.source]
    own = grid.owners.get(edge.target, app)
    target = grid.cells[own, edge.target]
    # To the right side of a target further left, and around the left sides of others.
    out = (source[0], 1) if target[0] <= source[0] else (source[0] + 1, 1)
    into = (target[0], 1)
    if target[0] < source[0]:
        following = target[0] + 1
        outside = following in grid.starts and following == grid.ends[own]
        into = (following, 0 if outside else 1)
    elif target[0] > source[0] and out[0] in grid.starts:
        out = (source[0] + 1, 0)
    # An external node is drawn in each app, so lines to it belong to one app.
    key = (f"{own}/{edge.target}", edge.relation is Relation.WAITS)
    route = Route(edge, key, source, target, out, into)
    if out != into:
        between = range(min(source[0], target[0]) + 1, max(source[0], target[0]))
        free = all((column, source[1]) not in grid.occupied for column in between)
        route.straight = free and source[1] not in grid.title_rows
        if not route.straight:
            route.lane = target[1] if source[1] <= target[1] else target[1] + 1
    return route


def _assign_ports(routes: Sequence[Route]) -> None:
    """Spread the ends of lines over the sides of boxes, in the order of their other ends."""
    sides: dict[tuple[Cell, bool], dict[tuple[object, ...], float]] = {}
    for route in routes:
        start = sides.setdefault((route.source, route.leaves_left), {})
        start.setdefault(("out", *route.key), route.target[1] + route.target[0] / 1000)
        end = sides.setdefault((route.target, route.enters_left), {})
        end.setdefault(("in", *route.key), route.source[1] + route.source[0] / 1000)
    offsets = {}
    for side, ends in sides.items():
        ordered = sorted((distance, str(key), key) for key, distance in ends.items())
        for number, (_, _, key) in enumerate(ordered):
            offsets[side, key] = round(BOX_HEIGHT * (number + 1) / (len(ordered) + 1))
    for route in routes:
        route.ports = (
            offsets[(route.source, route.leaves_left), ("out", *route.key)],
            offsets[(route.target, route.enters_left), ("in", *route.key)],
        )


def assign_tracks(routes: Sequence[Route]) -> Tracks:
    """Return the tracks of all routes, so that no two lines of different keys overlap in a gap."""
    verticals: dict[ColumnGap, dict[RouteKey, tuple[float, float]]] = {}
    horizontals: dict[int, dict[RouteKey, tuple[float, float]]] = {}
    for route in routes:
        start, end = float(route.source[1]), float(route.target[1])
        if route.lane is None:
            _extend(verticals.setdefault(route.into, {}), route.key, start, end)
            continue
        lane = route.lane - 0.5
        _extend(verticals.setdefault(route.out, {}), route.key, start, lane)
        _extend(verticals.setdefault(route.into, {}), route.key, lane, end)
        _extend(horizontals.setdefault(route.lane, {}), route.key, float(route.out[0]), float(route.into[0]))
    return Tracks(_separate(verticals), _separate(horizontals))


def _extend(ranges: dict[RouteKey, tuple[float, float]], key: RouteKey, start: float, end: float) -> None:
    low, high = ranges.get(key, (start, start))
    ranges[key] = (min(low, start, end), max(high, start, end))


def _separate(gaps: Mapping[_Gap, Mapping[RouteKey, tuple[float, float]]]) -> dict[tuple[_Gap, RouteKey], Track]:
    """Return for each key in each gap a track where its range overlaps no other."""
    found: dict[tuple[_Gap, RouteKey], Track] = {}
    for gap, ranges in gaps.items():
        ends: list[float] = []
        numbers: dict[RouteKey, int] = {}
        for key, (low, high) in sorted(ranges.items(), key=lambda item: (item[1], item[0])):
            free = (number for number, end in enumerate(ends) if end < low)
            track = next(free, len(ends))
            if track == len(ends):
                ends.append(high)
            ends[track] = high
            numbers[key] = track
        found |= {(gap, key): Track(number, len(ends)) for key, number in numbers.items()}
    return found
