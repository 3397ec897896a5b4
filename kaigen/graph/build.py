"""From compiled apps to their graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kaigen.compile.app import Rendered
from kaigen.compile.builders.frame import WAVE
from kaigen.emit.files import app_folder
from kaigen.environments.patch import PatchedDocument
from kaigen.graph.lines import plain_lines, spec_lines
from kaigen.graph.markers import filled_buckets, markers
from kaigen.graph.model import AppNode, Edge, ExternalNode, Graph, ObjectNode, Place, Relation
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.made_secrets import made_secret
from kaigen.kubernetes.manifest import Identity, Object, mapping
from kaigen.kubernetes.references import references_of
from kaigen.kubernetes.selectors import pods_of, selected, selector_of
from kaigen.yaml.document import Document
from kaigen.yaml.dump import dump

if TYPE_CHECKING:
    from kaigen.pipeline.run import Compilation, Compiled

Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""


def build_graph(compilation: Compilation) -> Graph:
    """The graph of compiled apps."""
    apps: list[AppNode] = []
    bodies: dict[str, Object] = {}
    ids: dict[str, int] = {}
    for compiled in compilation.apps:
        folder = app_folder(compiled.app)
        ids[folder] = ids.get(folder, 0) + 1
        app_id = folder if ids[folder] == 1 else f"{folder}-{ids[folder]}"
        app = _app(app_id, compiled)
        apps.append(app)
        by_role = {item.object.role: item.body for item in compiled.objects}
        bodies |= {node.id: by_role[node.id.rpartition("/")[2]] for node in app.objects}
    edges, externals = _Edges(apps, bodies).found()
    return Graph(tuple(apps), externals, edges)


def _app(app_id: str, compiled: Compiled) -> AppNode:
    app, spec = compiled.app, compiled.spec
    place, text = Place(app.source), ""
    if spec is not None:
        mark = spec.document.mark(())
        place = Place(app.source or mark.file, mark.line)
        text = _text(spec.document)
    nodes = []
    for index, item in enumerate(compiled.objects):
        metadata = item.body["metadata"]
        own = place
        lines: tuple[Place | None, ...] = ()
        if spec is not None:
            lines = spec_lines(item, compiled, spec)
        elif compiled.documents:
            document = compiled.documents[index]
            own = Place(app.source, document.mark(()).line)
            lines = plain_lines(item.body, document, app.source)
        written = item.object.verbatim or dump(item.body)
        nodes.append(
            ObjectNode(
                id=f"{app_id}/{item.object.role}",
                app=app_id,
                api_version=str(item.body["apiVersion"]),
                kind=str(item.body["kind"]),
                namespace=str(metadata.get("namespace") or ""),
                name=str(metadata["name"]),
                wave=_wave(item),
                path=f"{app_folder(app)}/manifests/{item.object.role}.{item.object.ending}",
                yaml=written,
                place=own,
                lines=() if item.object.verbatim else lines,
            )
        )
    nodes.sort(key=lambda node: (node.wave, node.kind, node.name, node.id))
    return AppNode(app_id, app.namespace, app.name, app.kind, app.summary, place, text, tuple(nodes))


def _text(document: object) -> str:
    """A document as it was written, without what stands before its first line."""
    if isinstance(document, PatchedDocument):
        document = document.base
    if not isinstance(document, Document):
        return ""
    text = document.source.text.removeprefix("\ufeff")
    start, stop = document.node.start_mark.index, document.node.end_mark.index
    return str(text[text.rfind("\n", 0, start) + 1 : stop]).rstrip()


def _wave(item: Rendered) -> int:
    """The wave that is written on an object, which a user's own annotation may have moved."""
    given = mapping(item.body["metadata"].get("annotations")).get(WAVE)
    try:
        return int(str(given)) if given is not None else item.object.wave
    except ValueError:
        return item.object.wave


class _Edges:
    """Finds what objects need, once all are known."""

    def __init__(self, apps: Sequence[AppNode], bodies: Mapping[str, Object]) -> None:
        self._apps = apps
        self._bodies = bodies
        self._makers: dict[Key, str] = {}
        self._writers: dict[tuple[str, str, str], str] = {}
        for app in apps:
            buckets = filled_buckets(bodies[node.id] for node in app.objects)
            for node in app.objects:
                body = bodies[node.id]
                self._makers.setdefault((node.kind, node.namespace, node.name), node.id)
                for marker in markers(body, "fetch"):
                    claim = buckets.get(marker.location, marker.location)
                    self._writers.setdefault((node.namespace, claim, marker.identity), node.id)
                secret = made_secret(body)
                if secret is not None:
                    self._makers.setdefault(("Secret", node.namespace, secret.name), node.id)

    def found(self) -> tuple[tuple[Edge, ...], tuple[ExternalNode, ...]]:
        """Every edge and everything external, each once, in the order of the apps and by name."""
        edges: dict[Edge, None] = {}
        externals: dict[str, ExternalNode] = {}
        for app in self._apps:
            for node in app.objects:
                for reference in references_of(self._bodies[node.id], app.namespace):
                    target = self._find(reference.target)
                    if target is None:
                        row = KINDS.get(reference.target.type)
                        if row is not None and row.has_built_in(reference.target.name):
                            continue
                        external = _external(reference.target)
                        target = externals.setdefault(external.id, external).id
                    if target != node.id:
                        edges.setdefault(Edge(node.id, target, Relation(reference.use)))
                edges |= dict.fromkeys(self._gates(node, externals))
                edges |= dict.fromkeys(self._selections(node, app))
        return tuple(edges), tuple(sorted(externals.values(), key=lambda node: node.id))

    def _find(self, target: Identity) -> str | None:
        kind, namespace, name = target.kind, target.namespace, target.name
        found = self._makers.get((kind, namespace, name))
        return found if found is not None else self._makers.get((kind, "", name))

    def _gates(self, node: ObjectNode, externals: dict[str, ExternalNode]) -> Iterator[Edge]:
        for marker in markers(self._bodies[node.id], "wait"):
            writer = self._writers.get((node.namespace, *marker))
            if writer is None:
                missing = _external(Identity("Marker", node.namespace, " ".join(marker)))
                writer = externals.setdefault(missing.id, missing).id
            if writer != node.id:
                yield Edge(node.id, writer, Relation.WAITS)

    def _selections(self, node: ObjectNode, app: AppNode) -> Iterator[Edge]:
        selector = selector_of(self._bodies[node.id])
        if selector is None:
            return
        for other in app.objects:
            pods = pods_of([self._bodies[other.id]])
            if pods and selected(pods, node.namespace, selector):
                yield Edge(node.id, other.id, Relation.SELECTS)


def _external(target: Identity) -> ExternalNode:
    kind, namespace, name = target.kind, target.namespace, target.name
    return ExternalNode(f"external/{kind}/{namespace}/{name}", kind, namespace, name)
