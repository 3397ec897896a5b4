"""Which line of a spec each line of a manifest comes from, as far as the compiler kept it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kaigen.compile.app import Rendered
from kaigen.compile.expressions import Expr, Json, Namespace, Release
from kaigen.compile.field_expressions import HashedName, Labels
from kaigen.graph.model import Place
from kaigen.yaml.dump import entry_lines

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Mark
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.run import Compiled
    from kaigen.yaml.document import Document

Path = tuple[str | int, ...]


def line_paths(body: Json) -> list[Path]:
    """For each line of an object as `kaigen.yaml.dump.dump` writes it, the path of the value it begins with."""
    found: list[Path] = []
    _lay(body, (), found)
    return found


def _lay(value: Json, path: Path, found: list[Path]) -> None:
    """Add a line for each line that a block mapping or sequence takes; its first may be its holder's."""
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
                _lay(item, own, found)  # its first entry stands behind the dash
                continue
            found.append(own)
            if isinstance(item, list) and item:
                _lay(item, own, found)
            elif isinstance(item, str) and "\n" in item:
                found.extend([own] * (len(entry_lines("k", item, "")) - 1))


def plain_lines(body: Json, document: Document, source: str) -> tuple[Place | None, ...]:
    """For each line of an object that was let through as it was written, its place in the document."""
    return tuple(
        Place(source, document.mark(path, key=isinstance(path[-1], str)).line) for path in line_paths(body)
    )


def spec_lines(item: Rendered, compiled: Compiled, spec: Spec) -> tuple[Place | None, ...]:
    """For each line of an object, the place that says so; None where kaigen chose it.

    Args:
        item: the object.
        compiled: its app.
        spec: what the app was made from.
    """
    origins = _Origins(item, compiled, spec)
    return tuple(origins.place(path) for path in line_paths(item.body))


class _Origins:
    """From places in one object to those of its spec, or of what changed the spec."""

    def __init__(self, item: Rendered, compiled: Compiled, spec: Spec) -> None:
        self._object = item.object
        self._body = item.body
        self._values = compiled.values
        self._spec = spec
        self._known: dict[Path, Place | None] = {}
        # What is in front of paths in marks, but not in paths that are relative to the repository.
        file = spec.document.mark(()).file
        self._root = file.removesuffix(spec.source) if spec.source else ""

    def place(self, path: Path) -> Place | None:
        written = self._object.place(path) if self._object.place else None
        if written is not None:
            return self._relative(written)
        origin = self._origin(path)
        if len(origin) < 2:
            return None  # `spec` alone says nothing
        if origin not in self._known:
            there = _reaches(self._spec.document.data, origin)
            mark = self._spec.document.mark(origin, key=isinstance(origin[-1], str)) if there else None
            self._known[origin] = self._relative(mark) if mark else None
        return self._known[origin]

    def _relative(self, mark: Mark) -> Place:
        return Place(mark.file.removeprefix(self._root), mark.line)

    def _origin(self, path: Path) -> Path:
        """The document's field that a place in the object came from; empty when kaigen made it."""
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
            # A setting that was overridden for this app is not what the spec says.
            origins = [
                setting.origin
                for setting in node.settings()
                if setting.origin and _within(self._values, setting.path) == setting.default
            ]
            if not origins:
                return ()
            return self._inside(self._spec.document_path(origins[0]), value, path[depth + 1 :])
        return ()

    def _inside(self, origin: Path, value: object, rest: Sequence[str | int]) -> Path:
        """The place below a field that the rest of a path leads to, as far as the document holds the same there.

        A list in an object may begin with entries of kaigen's own, so an entry is found by what it is.
        """
        here: object = self._spec.document.data
        path = list(origin)
        try:
            for key in origin:
                here = here[key]  # type: ignore[index]
            for key in rest:
                value = value[key]  # type: ignore[index]
                step = here.index(value) if isinstance(here, list) else key
                here = here[step]  # type: ignore[index]
                path.append(step)
        except (KeyError, IndexError, TypeError, ValueError):
            pass
        return tuple(path)


def _within(values: Mapping[str, Json], path: str) -> object:
    here: object = values
    for key in path.split("."):
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def _reaches(data: object, path: Path) -> bool:
    here = data
    try:
        for key in path:
            here = here[key]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        return False
    return True
