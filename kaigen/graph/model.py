"""The graph: apps, their objects, external objects that they refer to, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct


class Relation(Enum):
    """The meaning of an edge; its source depends on its target."""

    WAITS = "waits for"
    MOUNTS = "mounts"
    READS = "reads"
    PULLS = "pulls with"
    RUNS_AS = "runs as"
    SELECTS = "selects"
    ASKS = "asks"
    REFERS = "refers to"


class Location(Struct, frozen=True):
    """A line of a file.

    Attributes:
        file: relative to the repository.
        line: 1-based; 0 when only the file is known.
    """

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class ObjectNode(Struct, frozen=True):
    """One Kubernetes object of an app.

    Attributes:
        id: unique in the graph and stable: `NAMESPACE/APP/ROLE`.
        app: id of its app.
        api_version: as in `batch/v1`.
        kind: as in `Job`.
        namespace: empty for an object of the cluster.
        name: its name.
        wave: its sync wave.
        path: its file in the tree of plain manifests.
        yaml: the object as text.
        location: where its spec begins.
        lines: for each line of `yaml`, its source: a line of the spec, or of a file that changes the spec or the
            object; None where kaigen chose the value.
    """

    id: str
    app: str
    api_version: str
    kind: str
    namespace: str
    name: str
    wave: int
    path: str
    yaml: str
    location: Location
    lines: tuple[Location | None, ...]


class ExternalNode(Struct, frozen=True):
    """An object that no app of the graph makes but one refers to, such as a Secret.

    Attributes:
        id: unique in the graph and stable: `external/KIND/NAMESPACE/NAME`.
        kind: as in `Secret`.
        namespace: where it must be; empty for an object of the cluster.
        name: its name.
        maker: id of the app that makes it, when the graph excludes that app.
        declared: kaigen.yaml lists it in `external`.
    """

    id: str
    kind: str
    namespace: str
    name: str
    maker: str = ""
    declared: bool = False


class AppNode(Struct, frozen=True):
    """One app.

    Attributes:
        id: unique in the graph: `NAMESPACE/NAME`, with a number appended for a second app of that name.
        namespace: of its objects.
        name: its name.
        kind: the kind of its spec.
        summary: what it is, one sentence.
        location: where its spec begins.
        text: the text of the spec; empty when it is not known.
        objects: its objects by wave.
    """

    id: str
    namespace: str
    name: str
    kind: str
    summary: str
    location: Location
    text: str
    objects: tuple[ObjectNode, ...]


class Edge(Struct, frozen=True):
    """One dependency.

    Attributes:
        source: id of the dependent object.
        target: id of the object that it needs, internal or external.
        relation: how it needs it.
    """

    source: str
    target: str
    relation: Relation


class Graph(Struct, frozen=True):
    """All nodes and edges, in an order that depends on names only."""

    apps: tuple[AppNode, ...]
    externals: tuple[ExternalNode, ...]
    edges: tuple[Edge, ...]

    def owners(self) -> dict[str, str]:
        """Return the app of each object, by id."""
        return {node.id: app.id for app in self.apps for node in app.objects}

    def needs(self) -> dict[str, dict[str, frozenset[Relation]]]:
        """Return for each app the other apps that it needs, and how."""
        owners = self.owners()
        found: dict[str, dict[str, frozenset[Relation]]] = {app.id: {} for app in self.apps}
        for edge in self.edges:
            source, target = owners[edge.source], owners.get(edge.target)
            if target is not None and target != source:
                known = found[source].get(target, frozenset())
                found[source][target] = known | {edge.relation}
        return found

    def around(self, names: Iterable[str], *, depth: int | None = None, dependents: bool = False) -> Graph:
        """Return the part of the graph that some apps need.

        Args:
            names: ids of apps.
            depth: how many steps to follow from app to app; None for all.
            dependents: follow the apps that need them as well.
        """
        needs = {app: set(targets) for app, targets in self.needs().items()}
        ways = [needs]
        if dependents:
            ways.append({app: {other for other in needs if app in needs[other]} for app in needs})
        chosen = set(names)
        for way in ways:
            front, steps = set(names), 0
            seen = set(front)
            while front and (depth is None or steps < depth):
                front = {target for app in front for target in way[app]} - seen
                seen |= front
                steps += 1
            chosen |= seen
        return self.only(chosen)

    def only(self, chosen: set[str]) -> Graph:
        """The part of the graph that consists of some apps, given by id; what else they need becomes external."""
        apps = tuple(app for app in self.apps if app.id in chosen)
        inside = {node.id for app in apps for node in app.objects}
        outside = {
            node.id: ExternalNode(node.id, node.kind, node.namespace, node.name, app.id)
            for app in self.apps
            if app.id not in chosen
            for node in app.objects
        }
        outside |= {node.id: node for node in self.externals}
        edges = tuple(edge for edge in self.edges if edge.source in inside)
        used = {edge.target for edge in edges} - inside
        return Graph(apps, tuple(outside[node] for node in sorted(used)), edges)
