"""A grid of cells for apps that depend on each other: a column for each wave, a row for each object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.graph.geometry import Node
from kaigen.graph.model import AppNode, Edge, ExternalNode, Graph, Relation

Cell = tuple[int, int]
"""Column and row."""

Needs = Mapping[str, Mapping[str, frozenset[Relation]]]
"""By the id of an app, the apps that it needs."""

EXTERNAL_WAVE = -1_000_000_000
"""The wave of external nodes: their column comes before all waves."""


class AppCells(Struct):
    """One app on the grid.

    Attributes:
        columns: the wave of each of its columns, and the nodes in it from top to bottom.
        first: its first column on the grid.
        row: the row of its title.
    """

    app: AppNode
    columns: list[tuple[int, list[Node]]]
    first: int = 0
    row: int = 0

    @property
    def rows(self) -> int:
        """The number of its rows, that of the title included."""
        return 1 + max((len(nodes) for _, nodes in self.columns), default=0)


class Grid:
    """Apps that depend on each other, placed on one grid.

    Attributes:
        edges: the edges that begin in these apps.
        owners: the app of each object, by id.
        apps: the apps in the order of their places.
        cells: the cell of each node, by app and node.
        occupied: every cell with a node.
        starts: the first columns of all apps.
        ends: by app, the column after its last one.
        title_rows: the rows with titles of apps.
        column_count: number of columns.
        row_count: number of rows.
    """

    def __init__(self, graph: Graph, apps: Sequence[AppNode], needs: Needs) -> None:
        self.owners = {node.id: app.id for app in apps for node in app.objects}
        self.edges = [edge for edge in graph.edges if edge.source in self.owners]
        externals = {node.id: node for node in graph.externals}
        named: dict[str, dict[str, ExternalNode]] = {app.id: {} for app in apps}
        for edge in self.edges:
            if edge.target in externals:
                named[self.owners[edge.source]][edge.target] = externals[edge.target]
        unplaced = {app.id: AppCells(app, _columns(app, list(named[app.id].values()))) for app in apps}
        _order_rows(unplaced, self.edges)
        self.apps = _place(unplaced, _depths(apps, needs), needs)
        self.cells: dict[tuple[str, str], Cell] = {
            (place.app.id, node.id): (place.first + number, place.row + 1 + row)
            for place in self.apps
            for number, (_, nodes) in enumerate(place.columns)
            for row, node in enumerate(nodes)
        }
        self.occupied = set(self.cells.values())
        self.ends = {place.app.id: place.first + len(place.columns) for place in self.apps}
        self.starts = {place.first for place in self.apps}
        self.title_rows = {place.row for place in self.apps}
        self.column_count = max(self.ends.values(), default=0)
        self.row_count = max((place.row + place.rows for place in self.apps), default=0)


def components(apps: Sequence[AppNode], needs: Needs) -> list[list[AppNode]]:
    """Return the groups of apps that depend on each other, directly or not, in the order of their first apps."""
    neighbours: dict[str, set[str]] = {app.id: set() for app in apps}
    for source, targets in needs.items():
        for target in targets:
            neighbours[source].add(target)
            neighbours[target].add(source)
    group: dict[str, int] = {}
    for number, app in enumerate(apps):
        waiting = [app.id]
        while waiting:
            here = waiting.pop()
            if here not in group:
                group[here] = number
                waiting.extend(neighbours[here])
    found: dict[int, list[AppNode]] = {}
    for app in apps:
        found.setdefault(group[app.id], []).append(app)
    return list(found.values())


def _depths(apps: Sequence[AppNode], needs: Needs) -> dict[str, int]:
    """Return the longest way from each app to one that needs no other; a cycle is cut where it closes."""
    depths: dict[str, int] = {}
    open_: set[str] = set()
    for app in apps:
        waiting: list[tuple[str, bool]] = [(app.id, False)]
        while waiting:
            here, done = waiting.pop()
            if done:
                open_.discard(here)
                depths[here] = 1 + max((depths[other] for other in needs[here] if other in depths), default=-1)
            elif here not in depths and here not in open_:
                open_.add(here)
                waiting.append((here, True))
                waiting.extend((other, False) for other in sorted(needs[here], reverse=True))
    return depths


def _columns(app: AppNode, externals: Sequence[ExternalNode]) -> list[tuple[int, list[Node]]]:
    waves: dict[int, list[Node]] = {EXTERNAL_WAVE: list(externals)} if externals else {}
    for node in app.objects:
        waves.setdefault(node.wave, []).append(node)
    return sorted(waves.items(), key=lambda item: item[0]) or [(0, [])]


def _order_rows(apps: Mapping[str, AppCells], edges: Sequence[Edge]) -> None:
    """Put connected nodes into near rows, column by column from the last one, so that lines are short."""
    neighbours: dict[str, list[str]] = {}
    for edge in edges:
        neighbours.setdefault(edge.source, []).append(edge.target)
        neighbours.setdefault(edge.target, []).append(edge.source)
    for app in apps.values():
        rows: dict[str, int] = {}  # of the nodes in finished columns
        for _, nodes in reversed(app.columns):
            nodes.sort(key=lambda node: (_mean_row(neighbours.get(node.id, ()), rows), node.kind, node.name))
            rows.update((node.id, row) for row, node in enumerate(nodes))


def _mean_row(neighbours: Sequence[str], rows: Mapping[str, int]) -> float:
    """Return the mean of the known rows of some neighbours; a node without neighbours goes last."""
    known = [rows[other] for other in neighbours if other in rows]
    return sum(known) / len(known) if known else 0.0 if neighbours else float(len(rows) + 1)


def _place(apps: Mapping[str, AppCells], depths: Mapping[str, int], needs: Needs) -> list[AppCells]:
    """Give each app columns by its depth, and rows near those of the apps that it needs."""
    placed: list[AppCells] = []
    end = 0
    for depth in sorted({depths[app] for app in apps}):
        level = [app for name, app in apps.items() if depths[name] == depth]
        done = {app.app.id: app.row for app in placed}

        def rank(app: AppCells, done: Mapping[str, int] = done) -> tuple[float, str]:
            rows = [done[other] for other in needs[app.app.id] if other in done]
            return (sum(rows) / len(rows) if rows else 0.0, app.app.id)

        width = max(len(app.columns) for app in level)
        row = 0
        for app in sorted(level, key=rank):
            app.first, app.row = end + width - len(app.columns), row
            row += app.rows
            placed.append(app)
        end += width
    return placed
