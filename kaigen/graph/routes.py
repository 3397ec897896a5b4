"""The routes of edges over a grid: through the gaps between columns and rows, so that no line crosses a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from kaigen.graph.geometry import BOX_HEIGHT
from kaigen.graph.grid import Cell, Grid
from kaigen.graph.model import Edge, Relation

ColumnGap = tuple[int, int]
"""The gap left of a column has two parts: `(n, 0)` outside of an app that begins at column n, `(n, 1)` inside it."""

RouteKey = tuple[str, bool]
"""Lines of one key share their way: those to one node with one style."""

_Gap = TypeVar("_Gap", int, ColumnGap)


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
