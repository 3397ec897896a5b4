"""Building the graph of compiled apps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaigen.compile.app import Rendered
from kaigen.compile.builders.frame import WAVE
from kaigen.emit.files import app_folder
from kaigen.environments.patch import PatchedDocument
from kaigen.graph.edges import find_edges
from kaigen.graph.lines import plain_lines, spec_lines
from kaigen.graph.model import AppNode, Graph, Location, ObjectNode
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.yaml.document import Document
from kaigen.yaml.dump import dump

if TYPE_CHECKING:
    from kaigen.config.external import ExternalEntry
    from kaigen.pipeline.result import Compilation, Compiled


def build_graph(compilation: Compilation, declared: Sequence[ExternalEntry] = ()) -> Graph:
    """Return the graph of compiled apps.

    Args:
        compilation: the apps.
        declared: objects that clusters have although no app makes them.
    """
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
    edges, externals = find_edges(apps, bodies, declared)
    return Graph(tuple(apps), externals, edges)


def _app(app_id: str, compiled: Compiled) -> AppNode:
    app, spec = compiled.app, compiled.spec
    location, text = Location(app.source), ""
    if spec is not None:
        mark = spec.document.mark(())
        location = Location(app.source or mark.file, mark.line)
        text = _text(spec.document)
    nodes = []
    for index, item in enumerate(compiled.objects):
        metadata = item.body["metadata"]
        own = location
        lines: tuple[Location | None, ...] = ()
        if spec is not None:
            lines = spec_lines(item, compiled, spec)
        elif compiled.documents:
            document = compiled.documents[index]
            own = Location(app.source, document.mark(()).line)
            lines = plain_lines(item.body, document, app.source)
        text_of_object = item.object.verbatim or dump(item.body)
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
                yaml=text_of_object,
                location=own,
                lines=() if item.object.verbatim else lines,
            )
        )
    nodes.sort(key=lambda node: (node.wave, node.kind, node.name, node.id))
    return AppNode(app_id, app.namespace, app.name, app.kind, app.summary, location, text, tuple(nodes))


def _text(document: object) -> str:
    """Return the text of a document, without comments before its first line."""
    if isinstance(document, PatchedDocument):
        document = document.base
    if not isinstance(document, Document):
        return ""
    text = document.source.text.removeprefix("\ufeff")
    start, stop = document.node.start_mark.index, document.node.end_mark.index
    return str(text[text.rfind("\n", 0, start) + 1 : stop]).rstrip()


def _wave(item: Rendered) -> int:
    """Return the wave of an object, which an annotation may override."""
    given = mapping(item.body["metadata"].get("annotations")).get(WAVE)
    try:
        return int(str(given)) if given is not None else item.object.wave
    except ValueError:
        return item.object.wave
