"""Building the graph of compiled apps, with the line of a spec that each line of a manifest comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kaigen.compile.app import Rendered
from kaigen.compile.builders.frame import WAVE
from kaigen.compile.expressions import Expr, Namespace, Release
from kaigen.compile.field_expressions import HashedName, Labels
from kaigen.core.json_types import FieldPath, Json
from kaigen.emit.manifests import app_folder
from kaigen.environments.patch import PatchedDocument
from kaigen.graph.edges import find_edges
from kaigen.graph.model import AppNode, Graph, Location, ObjectNode
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.pipeline.origins import field_below
from kaigen.yaml.document import Document
from kaigen.yaml.dump import dump, entry_lines

if TYPE_CHECKING:
    from kaigen.config.external import ExternalEntry
    from kaigen.diagnostics.diagnostic import Mark
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.result import Compilation, Compiled


def _line_paths(body: Json) -> list[FieldPath]:
    """Return, for each line that `kaigen.yaml.dump` writes of an object, the path of the value that begins there."""
    found: list[FieldPath] = []
    _lay(body, (), found)
    return found


def _lay(value: Json, path: FieldPath, found: list[FieldPath]) -> None:
    """Add a path for each line of a block mapping or sequence, whose first line may be that of its parent."""
    if isinstance(value, dict):
        for key, item in value.items():
            own = (*path, key)
            found.append(own)
            if isinstance(item, dict | list):
                _lay(item, own, found)
            elif isinstance(item, str) and "\n" in item:
                found.extend([own] * (len(entry_lines("k", item, "")) - 1))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            own = (*path, place)
            if isinstance(item, dict) and item:
                _lay(item, own, found)  # its first entry follows the dash
                continue
            found.append(own)
            if isinstance(item, list) and item:
                _lay(item, own, found)
            elif isinstance(item, str) and "\n" in item:
                found.extend([own] * (len(entry_lines("k", item, "")) - 1))


def _plain_lines(body: Json, document: Document, source: str) -> tuple[Location | None, ...]:
    """Return, for each line of an object that is copied from a document, its line there."""
    return tuple(
        Location(source, document.mark(path, key=isinstance(path[-1], str)).line) for path in _line_paths(body)
    )


def _spec_lines(item: Rendered, compiled: Compiled, spec: Spec) -> tuple[Location | None, ...]:
    """Return, for each line of an object, its source; None where kaigen chose the value.

    Args:
        item: the object.
        compiled: its app.
        spec: the spec of the app.
    """
    origins = _Origins(item, compiled, spec)
    return tuple(origins.source(path) for path in _line_paths(item.body))


class _Origins:
    """Maps paths in one object to lines of its spec, or of a file that changed the spec."""

    def __init__(self, item: Rendered, compiled: Compiled, spec: Spec) -> None:
        self._object = item.object
        self._body = item.body
        self._values = compiled.values
        self._spec = spec
        self._known: dict[FieldPath, Location | None] = {}
        # The prefix that marks have and paths relative to the repository do not.
        file = spec.document.mark(()).file
        self._root = file.removesuffix(spec.source) if spec.source else ""

    def source(self, path: FieldPath) -> Location | None:
        written = self._object.place(path) if self._object.place else None
        if written is not None:
            return self._relative(written)
        origin = self._origin(path)
        if len(origin) < 2:
            return None  # `spec` alone is not a source
        if origin not in self._known:
            there = _reaches(self._spec.document.data, origin)
            mark = self._spec.document.mark(origin, key=isinstance(origin[-1], str)) if there else None
            self._known[origin] = self._relative(mark) if mark else None
        return self._known[origin]

    def _relative(self, mark: Mark) -> Location:
        return Location(mark.file.removeprefix(self._root), mark.line)

    def _origin(self, path: FieldPath) -> FieldPath:
        """Return the field of the document that a path in the object came from; empty when kaigen made it."""
        node: object = self._object.body
        value: object = self._body
        for depth, key in enumerate(path):
            try:
                node, value = node[key], value[key]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                return ()
            if not isinstance(node, Expr):
                continue
            if isinstance(node, HashedName | Release):
                return ("metadata", "name")
            if isinstance(node, Namespace):
                return ("metadata", "namespace")
            if isinstance(node, Labels):
                return ()
            # A setting that is overridden for this app does not come from the spec.
            origins = [
                setting.origin
                for setting in node.settings()
                if setting.origin and _within(self._values, setting.path) == setting.default
            ]
            if not origins:
                return ()
            origin = self._spec.document_path(origins[0])
            return field_below(self._spec.document.data, origin, value, path[depth + 1 :])
        return ()


def _within(values: Mapping[str, Json], path: str) -> object:
    here: object = values
    for key in path.split("."):
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def _reaches(data: object, path: FieldPath) -> bool:
    here = data
    try:
        for key in path:
            here = here[key]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        return False
    return True


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
            lines = _spec_lines(item, compiled, spec)
        elif compiled.documents:
            document = compiled.documents[index]
            own = Location(app.source, document.mark(()).line)
            lines = _plain_lines(item.body, document, app.source)
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
