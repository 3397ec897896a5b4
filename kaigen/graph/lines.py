"""The line of a spec that each line of a manifest comes from, where the compiler recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaigen.compile.app import Rendered
from kaigen.compile.expressions import Expr, Namespace, Release
from kaigen.compile.field_expressions import HashedName, Labels
from kaigen.core.json_types import FieldPath, Json
from kaigen.graph.model import Location
from kaigen.pipeline.origins import field_below
from kaigen.yaml.dump import entry_lines

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Mark
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.result import Compiled
    from kaigen.yaml.document import Document


def line_paths(body: Json) -> list[FieldPath]:
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


def plain_lines(body: Json, document: Document, source: str) -> tuple[Location | None, ...]:
    """Return, for each line of an object that is copied from a document, its line there."""
    return tuple(Location(source, document.mark(path, key=isinstance(path[-1], str)).line) for path in line_paths(body))


def spec_lines(item: Rendered, compiled: Compiled, spec: Spec) -> tuple[Location | None, ...]:
    """Return, for each line of an object, its source; None where kaigen chose the value.

    Args:
        item: the object.
        compiled: its app.
        spec: the spec of the app.
    """
    origins = _Origins(item, compiled, spec)
    return tuple(origins.source(path) for path in line_paths(item.body))


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
