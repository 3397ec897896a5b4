"""The graph: apps, their objects, what they refer to that nobody here makes, and the edges between all of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Relation(Enum):
    """What an edge means; its source depends on its target."""

    WAITS = "waits for"
    MOUNTS = "mounts"
    READS = "reads"
    PULLS = "pulls with"
    RUNS_AS = "runs as"
    SELECTS = "selects"
    REFERS = "refers to"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was said.

    Attributes:
        file: relative to the repository.
        line: 1-based; 0 when only the file is known.
    """

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """One Kubernetes object of an app.

    Attributes:
        id: unique in the graph and stable: `NAMESPACE/APP/ROLE`.
        app: id of its app.
        api_version: as in `batch/v1`.
        kind: as in `Job`.
        namespace: its own; empty for an object of the cluster.
        name: its name.
        wave: when it is applied.
        path: its file in the tree of plain manifests.
        yaml: the object as it is written there.
        place: where its spec begins.
        lines: for each line of `yaml`, what says so: a line of the spec, or of a file that changes the spec or
            the object; None where kaigen chose it.
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
    place: Place
    lines: tuple[Place | None, ...]


@dataclass(frozen=True, slots=True)
class ExternalNode:
    """Something that is referred to and that no app of the graph makes, such as a Secret.

    Attributes:
        id: unique in the graph and stable: `external/KIND/NAMESPACE/NAME`.
        kind: as in `Secret`.
        namespace: where it must be; empty for an object of the cluster.
        name: its name.
        maker: id of the app that makes it, when the graph leaves that out.
    """

    id: str
    kind: str
    namespace: str
    name: str
    maker: str = ""


@dataclass(frozen=True, slots=True)
class AppNode:
    """One app.

    Attributes:
        id: unique in the graph: `NAMESPACE/NAME`; of two apps of one name the later has a number behind it.
        namespace: where it goes.
        name: its name.
        kind: the kind that its spec was written in.
        summary: what it is, one sentence.
        place: where its spec begins.
        text: the spec as it was written; empty when it is not at hand.
        objects: what it makes, by wave.
    """

    id: str
    namespace: str
    name: str
    kind: str
    summary: str
    place: Place
    text: str
    objects: tuple[ObjectNode, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One thing that another needs.

    Attributes:
        source: id of the object that needs it.
        target: id of the object, or of what is external.
        relation: how.
    """

    source: str
    target: str
    relation: Relation


@dataclass(frozen=True, slots=True)
class Graph:
    """Everything, in an order that depends on names only."""

    apps: tuple[AppNode, ...]
    externals: tuple[ExternalNode, ...]
    edges: tuple[Edge, ...]

    def owners(self) -> dict[str, str]:
        """The app of each object, by id."""
        return {node.id: app.id for app in self.apps for node in app.objects}

    def needs(self) -> dict[str, dict[str, frozenset[Relation]]]:
        """By app, the other apps that it needs, and how."""
        owners = self.owners()
        found: dict[str, dict[str, frozenset[Relation]]] = {app.id: {} for app in self.apps}
        for edge in self.edges:
            source, target = owners[edge.source], owners.get(edge.target)
            if target is not None and target != source:
                known = found[source].get(target, frozenset())
                found[source][target] = known | {edge.relation}
        return found

    def around(self, names: Iterable[str], *, depth: int | None = None, dependents: bool = False) -> Graph:
        """The part of the graph that some apps need.

        Args:
            names: ids of apps.
            depth: how many steps to go from app to app; None for all.
            dependents: go to the apps that need them, too.
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
