"""Where everything of a graph is drawn: a grid of cells, and lines that run between the cells only.

Apps that depend on each other stand side by side, what is needed to the left of what needs it. An app's columns
are its waves, behind a column of what it refers to and no app makes. All cells are of one size and all rows of
such a group line up, so the gaps between rows and between columns are free for lines, and no line can cross a
box. Lines to one box share their way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import TypeVar

from kaigen.graph.model import AppNode, Edge, ExternalNode, Graph, ObjectNode, Relation

BOX_WIDTH, BOX_HEIGHT = 212, 42
HEAD_HEIGHT = 40
_TRACK = 7
_GAP = 14
_FRAME = 12
_BETWEEN = 34
_ASPECT = 1.5
_EXTERNAL = -1_000_000_000
"""In place of a wave: the column of what no app makes stands before all waves."""

Point = tuple[int, int]
_Gap = TypeVar("_Gap", int, tuple[int, int])
Node = ObjectNode | ExternalNode


@dataclass(frozen=True, slots=True)
class Box:
    """One node as it is drawn; something external is drawn in every app that refers to it."""

    node: Node
    app: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class FrameBox:
    """One app as it is drawn, with the x of each of its columns and what that holds."""

    app: AppNode
    x: int
    y: int
    width: int
    height: int
    columns: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One edge as it is drawn, from what needs something to what it needs."""

    edge: Edge
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing, in pixels from its upper left corner."""

    width: int
    height: int
    frames: tuple[FrameBox, ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def lay_out(graph: Graph) -> Layout:
    """Place a graph."""
    needs = graph.needs()
    groups = [_Group(graph, members, needs).layout() for members in _components(graph.apps, needs)]
    groups.sort(key=lambda group: -group.height)  # stable, so by name where they are as high
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
        frames += [_moved_frame(frame, x, y) for frame in group.frames]
        boxes += [Box(box.node, box.app, box.x + x, box.y + y) for box in group.boxes]
        lines += [Line(line.edge, tuple((a + x, b + y) for a, b in line.points)) for line in group.lines]
        shelf = max(shelf, group.height)
        right = max(right, x + group.width)
        x += group.width + _BETWEEN
    return Layout(right, y + shelf, tuple(frames), tuple(boxes), tuple(lines))


def _moved_frame(frame: FrameBox, x: int, y: int) -> FrameBox:
    columns = tuple((place + x, name) for place, name in frame.columns)
    return FrameBox(frame.app, frame.x + x, frame.y + y, frame.width, frame.height, columns)


def _components(
    apps: Sequence[AppNode], needs: Mapping[str, Mapping[str, frozenset[Relation]]]
) -> list[list[AppNode]]:
    """Apps that depend on each other, by whatever way, together; in the order of their first."""
    beside: dict[str, set[str]] = {app.id: set() for app in apps}
    for source, targets in needs.items():
        for target in targets:
            beside[source].add(target)
            beside[target].add(source)
    group: dict[str, int] = {}
    for number, app in enumerate(apps):
        waiting = [app.id]
        while waiting:
            here = waiting.pop()
            if here not in group:
                group[here] = number
                waiting.extend(beside[here])
    found: dict[int, list[AppNode]] = {}
    for app in apps:
        found.setdefault(group[app.id], []).append(app)
    return list(found.values())


def _depths(
    apps: Sequence[AppNode], needs: Mapping[str, Mapping[str, frozenset[Relation]]]
) -> dict[str, int]:
    """How many steps each app is from one that needs no other; a circle is cut where it closes."""
    depths: dict[str, int] = {}
    open_: set[str] = set()
    for app in apps:
        waiting: list[tuple[str, bool]] = [(app.id, False)]
        while waiting:
            here, done = waiting.pop()
            if done:
                open_.discard(here)
                depths[here] = 1 + max(
                    (depths[other] for other in needs[here] if other in depths), default=-1
                )
            elif here not in depths and here not in open_:
                open_.add(here)
                waiting.append((here, True))
                waiting.extend((other, False) for other in sorted(needs[here], reverse=True))
    return depths


@dataclass(slots=True)
class _Part:
    """One app on the grid.

    Attributes:
        columns: the wave of each of its columns, and the nodes in it from top to bottom.
        first: its first column on the grid.
        row: the row of its head.
    """

    app: AppNode
    columns: list[tuple[int, list[Node]]]
    first: int = 0
    row: int = 0

    @property
    def rows(self) -> int:
        return 1 + max((len(nodes) for _, nodes in self.columns), default=0)


@dataclass(slots=True)
class _Route:
    """The way of one edge over the grid.

    Attributes:
        key: lines of one key share their way.
        out: column gap beside the source.
        into: column gap beside the target.
        lane: row gap on the way; None where one vertical line joins both.
        straight: the row of the source is free up to the gap beside the target.
    """

    edge: Edge
    key: tuple[str, bool]
    source: tuple[int, int]
    target: tuple[int, int]
    out: tuple[int, int]
    into: tuple[int, int]
    lane: int | None = None
    straight: bool = False
    ports: tuple[int, int] = field(default=(0, 0))


class _Group:
    """Apps that depend on each other, on one grid.

    The gap left of column `n` has two parts: `(n, 0)` outside of an app that begins there, `(n, 1)` inside it.
    """

    def __init__(
        self,
        graph: Graph,
        apps: Sequence[AppNode],
        needs: Mapping[str, Mapping[str, frozenset[Relation]]],
    ) -> None:
        members = {node.id: app.id for app in apps for node in app.objects}
        self._edges = [edge for edge in graph.edges if edge.source in members]
        externals = {node.id: node for node in graph.externals}
        outer: dict[str, dict[str, ExternalNode]] = {app.id: {} for app in apps}
        for edge in self._edges:
            if edge.target in externals:
                outer[members[edge.source]][edge.target] = externals[edge.target]
        self._members = members
        parts = {app.id: _Part(app, _columns(app, list(outer[app.id].values()))) for app in apps}
        self._order_rows(parts)
        self._parts = self._place(parts, _depths(apps, needs), needs)
        self._cells: dict[tuple[str, str], tuple[int, int]] = {}
        for part in self._parts:
            for number, (_, nodes) in enumerate(part.columns):
                for place, node in enumerate(nodes):
                    self._cells[part.app.id, node.id] = (part.first + number, part.row + 1 + place)
        self._full = set(self._cells.values())
        self._ends = {part.app.id: part.first + len(part.columns) for part in self._parts}
        self._starts = {part.first for part in self._parts}
        self._column_count = max((part.first + len(part.columns) for part in self._parts), default=0)
        self._row_count = max((part.row + part.rows for part in self._parts), default=0)
        self._heads = {part.row for part in self._parts}

    def _order_rows(self, parts: Mapping[str, _Part]) -> None:
        """Put what is joined into near rows, column by column from the last, so that lines are short."""
        beside: dict[str, list[str]] = {}
        for edge in self._edges:
            beside.setdefault(edge.source, []).append(edge.target)
            beside.setdefault(edge.target, []).append(edge.source)
        for part in parts.values():
            rows: dict[str, int] = {}  # of nodes in columns that are done
            for _, nodes in reversed(part.columns):
                nodes.sort(key=lambda node: (_mean_row(beside.get(node.id, ()), rows), node.kind, node.name))
                rows.update((node.id, place) for place, node in enumerate(nodes))

    def _place(
        self,
        parts: Mapping[str, _Part],
        depths: Mapping[str, int],
        needs: Mapping[str, Mapping[str, frozenset[Relation]]],
    ) -> list[_Part]:
        """Give each app its columns by depth and its rows near those of the apps that it needs."""
        placed: list[_Part] = []
        end = 0
        for depth in sorted(set(depths[app] for app in parts)):
            level = [part for app, part in parts.items() if depths[app] == depth]
            done = {part.app.id: part.row for part in placed}

            def rank(part: _Part, done: Mapping[str, int] = done) -> tuple[float, str]:
                rows = [done[other] for other in needs[part.app.id] if other in done]
                return (sum(rows) / len(rows) if rows else 0.0, part.app.id)

            width = max(len(part.columns) for part in level)
            row = 0
            for part in sorted(level, key=rank):
                part.first, part.row = end + width - len(part.columns), row
                row += part.rows
                placed.append(part)
            end += width
        return placed

    def _routes(self) -> list[_Route]:
        found = []
        for edge in self._edges:
            app = self._members[edge.source]
            source = self._cells[app, edge.source]
            own = self._members.get(edge.target, app)
            target = self._cells[own, edge.target]
            # To the right side of what stands further left; else around the left sides.
            leftward = target[0] < source[0]
            out = (source[0], 1) if target[0] <= source[0] else (source[0] + 1, 1)
            into = (target[0], 1)
            if leftward:
                next_ = target[0] + 1
                outside = next_ in self._starts and next_ == self._ends[own]
                into = (next_, 0 if outside else 1)
            elif target[0] > source[0] and out[0] in self._starts:
                out = (source[0] + 1, 0)
            # Something external is drawn in each app, so its lines are of one app only.
            key = f"{own}/{edge.target}"
            route = _Route(edge, (key, edge.relation is Relation.WAITS), source, target, out, into)
            between = range(min(source[0], target[0]) + 1, max(source[0], target[0]))
            if out != into:
                route.straight = all((column, source[1]) not in self._full for column in between) and (
                    source[1] not in self._heads
                )
                if not route.straight:
                    route.lane = target[1] if source[1] <= target[1] else target[1] + 1
            found.append(route)
        return found

    def layout(self) -> Layout:
        """The drawing of this group."""
        routes = self._routes()
        self._assign_ports(routes)
        across, lanes = self._tracks(routes)
        gap_x, column_x, width = self._horizontal(across)
        lane_y, row_y, height = self._vertical(lanes)
        boxes = [
            Box(node, part.app.id, column_x[column], row_y[row])
            for part in self._parts
            for _, nodes in part.columns
            for node in nodes
            for column, row in [self._cells[part.app.id, node.id]]
        ]
        lines = []
        for route in routes:
            lines.append(Line(route.edge, self._points(route, across, lanes, gap_x, column_x, lane_y, row_y)))
        frames = []
        for part in self._parts:
            last = part.first + len(part.columns) - 1
            left = gap_x[part.first, 1] - _FRAME
            top = row_y[part.row]
            bottom = row_y[part.row + part.rows - 1] + (BOX_HEIGHT if part.rows > 1 else HEAD_HEIGHT)
            right = column_x[last] + BOX_WIDTH + _FRAME
            columns = tuple(
                (column_x[part.first + number], "elsewhere" if wave == _EXTERNAL else f"wave {wave}")
                for number, (wave, _) in enumerate(part.columns)
            )
            frames.append(FrameBox(part.app, left, top, right - left, bottom - top + _FRAME, columns))
        return Layout(width, height, tuple(frames), tuple(boxes), tuple(lines))

    def _assign_ports(self, routes: Sequence[_Route]) -> None:
        """Spread the ends of lines over the sides of boxes, in the order of where they lead."""
        sides: dict[tuple[tuple[int, int], bool], dict[tuple[object, ...], float]] = {}
        for route in routes:
            left = route.target[0] <= route.source[0]
            start = sides.setdefault((route.source, left), {})
            start.setdefault(("out", *route.key), route.target[1] + route.target[0] / 1000)
            end = sides.setdefault((route.target, not route.target[0] < route.source[0]), {})
            end.setdefault(("in", *route.key), route.source[1] + route.source[0] / 1000)
        offsets = {}
        for side, ends in sides.items():
            ordered = sorted((far, str(key), key) for key, far in ends.items())
            for place, (_, _, key) in enumerate(ordered):
                offsets[side, key] = round(BOX_HEIGHT * (place + 1) / (len(ordered) + 1))
        for route in routes:
            left = route.target[0] <= route.source[0]
            route.ports = (
                offsets[(route.source, left), ("out", *route.key)],
                offsets[(route.target, not route.target[0] < route.source[0]), ("in", *route.key)],
            )

    def _tracks(
        self, routes: Sequence[_Route]
    ) -> tuple[dict[tuple[object, ...], tuple[int, int]], dict[tuple[object, ...], tuple[int, int]]]:
        """The track of each way in each gap, and of how many: of column gaps, and of row gaps."""
        uprights: dict[tuple[int, int], dict[tuple[str, bool], tuple[float, float]]] = {}
        levels: dict[int, dict[tuple[str, bool], tuple[float, float]]] = {}
        for route in routes:
            start, end = float(route.source[1]), float(route.target[1])
            if route.out == route.into or route.straight:
                _cover(uprights.setdefault(route.into, {}), route.key, start, end)
                continue
            assert route.lane is not None
            lane = route.lane - 0.5
            _cover(uprights.setdefault(route.out, {}), route.key, start, lane)
            _cover(uprights.setdefault(route.into, {}), route.key, lane, end)
            _cover(levels.setdefault(route.lane, {}), route.key, float(route.out[0]), float(route.into[0]))
        return _colored(uprights), _colored(levels)

    def _horizontal(
        self, across: Mapping[tuple[object, ...], tuple[int, int]]
    ) -> tuple[dict[tuple[int, int], int], dict[int, int], int]:
        """x of each column gap and of each column, and the whole width."""
        counts: dict[object, int] = {}
        for (gap, _), (_, count) in across.items():
            counts[gap] = count
        gap_x: dict[tuple[int, int], int] = {}
        column_x: dict[int, int] = {}
        x = 0
        for column in range(self._column_count + 1):
            begins = column in self._starts
            if column == self._column_count:
                x += _FRAME
                break
            if begins:
                gap_x[column, 0] = x + _FRAME
                if column:
                    x += _FRAME + _GAP + counts.get((column, 0), 0) * _TRACK
                x += _FRAME
            gap_x[column, 1] = x
            inner = counts.get((column, 1), 0) * _TRACK
            x += inner + (_GAP if inner or not begins else 0)
            column_x[column] = x
            x += BOX_WIDTH
        return gap_x, column_x, x

    def _vertical(
        self, lanes: Mapping[tuple[object, ...], tuple[int, int]]
    ) -> tuple[dict[int, int], dict[int, int], int]:
        """y of each row gap and of each row, and the whole height."""
        counts: dict[object, int] = {}
        for (gap, _), (_, count) in lanes.items():
            counts[gap] = count
        lane_y: dict[int, int] = {}
        row_y: dict[int, int] = {}
        y = 0
        for row in range(self._row_count):
            head = row in self._heads
            lane_y[row] = y + (_FRAME if head and row else 0)
            if row:
                y += _GAP + counts.get(row, 0) * _TRACK + (_FRAME + 8 if head else 0)
            row_y[row] = y
            y += HEAD_HEIGHT if head and self._only_heads(row) else BOX_HEIGHT
        lane_y[self._row_count] = y + _FRAME
        below = counts.get(self._row_count, 0)
        return lane_y, row_y, y + _FRAME + (below * _TRACK + _GAP if below else 0)

    def _only_heads(self, row: int) -> bool:
        return not any(cell[1] == row for cell in self._full)

    def _points(
        self,
        route: _Route,
        across: Mapping[tuple[object, ...], tuple[int, int]],
        lanes: Mapping[tuple[object, ...], tuple[int, int]],
        gap_x: Mapping[tuple[int, int], int],
        column_x: Mapping[int, int],
        lane_y: Mapping[int, int],
        row_y: Mapping[int, int],
    ) -> tuple[Point, ...]:
        def upright(gap: tuple[int, int]) -> int:
            return gap_x[gap] + _GAP // 2 + across[gap, route.key][0] * _TRACK

        leaves_left = route.target[0] <= route.source[0]
        enters_left = not route.target[0] < route.source[0]
        x1 = column_x[route.source[0]] + (0 if leaves_left else BOX_WIDTH)
        x2 = column_x[route.target[0]] + (0 if enters_left else BOX_WIDTH)
        y1 = row_y[route.source[1]] + route.ports[0]
        y2 = row_y[route.target[1]] + route.ports[1]
        into = upright(route.into)
        points = [(x1, y1)]
        if route.lane is not None:
            out = upright(route.out)
            y = lane_y[route.lane] + _GAP // 2 + lanes[route.lane, route.key][0] * _TRACK
            points += [(out, y1), (out, y), (into, y)]
        else:
            points.append((into, y1))
        points += [(into, y2), (x2, y2)]
        return tuple(
            point for number, point in enumerate(points) if number == 0 or point != points[number - 1]
        )


def _mean_row(neighbours: Sequence[str], rows: Mapping[str, int]) -> float:
    """The middle of the rows of those neighbours that have one; what has no neighbour at all goes last."""
    known = [rows[other] for other in neighbours if other in rows]
    return sum(known) / len(known) if known else 0.0 if neighbours else float(len(rows) + 1)


def _columns(app: AppNode, externals: Sequence[ExternalNode]) -> list[tuple[int, list[Node]]]:
    waves: dict[int, list[Node]] = {_EXTERNAL: list(externals)} if externals else {}
    for node in app.objects:
        waves.setdefault(node.wave, []).append(node)
    return sorted(waves.items(), key=lambda item: item[0]) or [(0, [])]


def _cover(
    found: dict[tuple[str, bool], tuple[float, float]], key: tuple[str, bool], start: float, end: float
) -> None:
    low, high = found.get(key, (start, start))
    found[key] = (min(low, start, end), max(high, start, end))


def _colored(
    gaps: Mapping[_Gap, Mapping[tuple[str, bool], tuple[float, float]]],
) -> dict[tuple[object, ...], tuple[int, int]]:
    """For each way in each gap a track in which no other way is at the same place, and the number of tracks."""
    found: dict[tuple[object, ...], tuple[int, int]] = {}
    for gap, ways in gaps.items():
        ends: list[float] = []
        tracks: dict[tuple[str, bool], int] = {}
        for key, (low, high) in sorted(ways.items(), key=lambda item: (item[1], item[0])):
            free = (number for number, end in enumerate(ends) if end < low)
            track = next(free, len(ends))
            if track == len(ends):
                ends.append(high)
            ends[track] = high
            tracks[key] = track
        found |= {(gap, key): (track, len(ends)) for key, track in tracks.items()}
    return found
