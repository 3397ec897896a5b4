"""Parse YAML and JSON texts into documents that know the position of each value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace
from yaml.error import YAMLError
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from kaigen.core.json_types import FieldPath, Json, Step
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.problem import dotted_path
from kaigen.system.lazy_import import lazy_imports
from kaigen.yaml.compose import PLAIN, Unreadable, compose, compose_parts
from kaigen.yaml.construct import Constructor, NodeProblem
from kaigen.yaml.scalars import manifest_value
from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.yaml import json_text, syntax


__all__ = ["Document", "parse"]

Members = dict[str, tuple[Node, Node]]
"""Key and value of each member of a mapping, by name."""


class Document(Struct, frozen=True, eq=False):
    """One document of a source.

    Attributes:
        source: the text it is in.
        index: number of the document in its source, from 0; broken documents count, empty ones do not.
        data: its value, shared with nothing else.
        node: the node tree of the text.
        members: the members of its mappings by name, of those that were searched.
        written: for values of `data` that are elsewhere in the text, the path there by the path in `data`.
    """

    source: Source
    index: int
    data: Json
    node: Node
    members: dict[MappingNode, Members] = field(default_factory=dict)
    written: Mapping[FieldPath, FieldPath] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Document({self.source!r}, index={self.index}, data={self.data!r})"

    @property
    def apiVersion(self) -> str | None:
        """The `apiVersion`, if it is a string."""
        return self._text("apiVersion")

    @property
    def kind(self) -> str | None:
        """The `kind`, if it is a string."""
        return self._text("kind")

    @property
    def name(self) -> str | None:
        """The `metadata.name`, if it is a string."""
        return self._text("metadata", "name")

    def _text(self, *path: str) -> str | None:
        value: Json = self.data
        for step in path:
            if not isinstance(value, dict):
                return None
            value = value.get(step)
        return value if isinstance(value, str) else None

    def mark(self, path: Sequence[Step] = (), *, key: bool = False) -> Mark:
        """Return the mark of a value.

        Args:
            path: keys and list indexes from the root. For a path that does not exist, the mark is that of the last
                key on it that does.
            key: return the mark of the value's key instead.
        """
        key_node, node, steps = self._walk(path)
        if (key or steps < len(path) or _is_empty(node)) and key_node is not None:
            node = key_node
        start = node.start_mark.index
        return self.source.mark_at(start, _first_line_end(node))

    def span(self, path: Sequence[Step]) -> tuple[int, int] | None:
        """Return where a scalar on one line starts and ends in the text, with its quotes; None where there is none."""
        _, node, steps = self._walk(path)
        start, end = node.start_mark, node.end_mark
        if steps < len(path) or not isinstance(node, ScalarNode) or start.line != end.line:
            return None
        return (start.index, end.index) if start.index < end.index else None

    def pair(self, path: Sequence[Step]) -> tuple[Node, Node] | None:
        """Return the nodes of the key and the value at a path; None where there is no such key."""
        key, node, steps = self._walk(path)
        return (key, node) if key is not None and steps == len(path) else None

    def is_flow(self, path: Sequence[Step]) -> bool:
        """Return whether a mapping or sequence is written in braces or brackets."""
        _, node, _ = self._walk(path)
        return isinstance(node, CollectionNode) and bool(node.flow_style)

    def _walk(self, path: Sequence[Step]) -> tuple[Node | None, Node, int]:
        """Follow a path as far as it exists; return the last key, the node reached, and the number of steps."""
        for count in range(len(path), 0, -1) if self.written else ():
            if (place := self.written.get(tuple(path[:count]))) is not None:
                path = (*place, *path[count:])
                break
        key: Node | None = None
        node = self.node
        for count, step in enumerate(path):
            if isinstance(node, MappingNode) and isinstance(step, str):
                pair = self._members(node).get(step)
                if pair is None:
                    return key, node, count
                key, node = pair
            elif isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
                key, node = None, node.value[step]
            else:
                return key, node, count
        return key, node, len(path)

    def _members(self, mapping: MappingNode) -> Members:
        """Return the members of a mapping, its own before those that it merges, and the first of equal ones."""
        found = self.members.get(mapping)
        if found is not None:
            return found
        found = self.members[mapping] = {}
        merged: list[Node] = []
        for key, value in mapping.value:
            if not isinstance(key, ScalarNode):
                continue
            if key.value == "<<" and key.tag == PLAIN:
                merged += value.value if isinstance(value, SequenceNode) else [value]
            else:
                found.setdefault(key.value, (key, value))
        for part in merged:
            if isinstance(part, MappingNode):
                for name, pair in self._members(part).items():
                    found.setdefault(name, pair)
        return found

    def raw(self, path: Sequence[Step]) -> str | None:
        """Return the text of a scalar as written, without quotes: `1.10` for 1.1; None where there is no scalar."""
        _, node, steps = self._walk(path)
        return node.value if steps == len(path) and isinstance(node, ScalarNode) else None


def parse(
    source: Source, diagnostics: Diagnostics, *, is_manifest: Callable[[Document], bool] = lambda _: False
) -> list[Document]:
    """Parse the documents of a text.

    Args:
        source: the text; JSON if its path ends in `.json`, else YAML.
        diagnostics: collects errors.
        is_manifest: whether a document is an object for a cluster, whose scalars are read as Kubernetes reads them.

    Returns:
        The documents that are not empty. A document that is not YAML or too large is omitted. One with errors in single
        values is included, with the text or the first of the duplicates as value.
    """
    if source.text.startswith("\ufeff"):
        source = replace(source, text=source.text[1:])
    if source.file.lower().endswith(".json"):
        return _parse_json(source, diagnostics)
    documents = _Documents(source, diagnostics, is_manifest)
    try:
        nodes = compose(source.text)
    except (Unreadable, YAMLError):
        _parse_parts(documents)
        return documents.found
    for node in nodes:
        documents.add(node)
    return documents.found


class _Documents:
    """Collects the documents of a text that are not empty.

    Attributes:
        source: the text.
        diagnostics: receives errors.
        found: the documents.
        index: number of the next one; broken documents count.
    """

    def __init__(
        self, source: Source, diagnostics: Diagnostics, is_manifest: Callable[[Document], bool] = lambda _: False
    ) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.found: list[Document] = []
        self.index = 0
        self._is_manifest = is_manifest
        self._constructor = Constructor(source.text)
        self._of_manifests = Constructor(source.text, manifest_value)

    def add(self, node: Node) -> None:
        """Add a document by its root, unless it is empty."""
        if _is_empty(node):
            return
        index, self.index = self.index, self.index + 1
        constructor = self._constructor
        try:
            document = Document(self.source, index, constructor.construct(node), node)
            if self._is_manifest(document):
                constructor = self._of_manifests
                document = replace(document, data=constructor.construct(node))
        except Unreadable as error:
            self.diagnostics.add(_unreadable(self.source, 0, error))
            return
        if constructor.problems:
            paths = _paths(node, {id(problem.node) for problem in constructor.problems})
            for problem in constructor.problems:
                self.diagnostics.add(_diagnostic(self.source, paths.get(id(problem.node), ()), problem))
        self.found.append(document)

    def add_broken(self, problem: Diagnostic) -> None:
        """Report a document that cannot be read."""
        self.diagnostics.add(problem)
        self.index += 1


def _parse_json(source: Source, diagnostics: Diagnostics) -> list[Document]:
    documents = _Documents(source, diagnostics)
    try:
        node = json_text.compose_json(source.text)
    except Unreadable as error:
        diagnostics.add(_unreadable(source, 0, error))
        return []
    if node is not None:
        documents.add(node)
    return documents.found


def _parse_parts(documents: _Documents) -> None:
    source = documents.source
    for start, stop, result in compose_parts(source.text):
        if isinstance(result, Unreadable):
            documents.add_broken(_unreadable(source, start, result))
        elif isinstance(result, YAMLError):
            documents.add_broken(syntax.explain(result, source, start, stop))
        else:
            for node in result:
                documents.add(node)


def _unreadable(source: Source, offset: int, error: Unreadable) -> Diagnostic:
    index = offset + error.index
    return error.problem.located(source.mark_at(index, index + error.length))


def _diagnostic(source: Source, path: FieldPath, problem: NodeProblem) -> Diagnostic:
    message = problem.message
    if problem.first is not None:
        message += f", first on line {source.mark_at(problem.first.start_mark.index).line}"
    mark = source.mark_at(problem.node.start_mark.index, _first_line_end(problem.node))
    return Diagnostic(problem.code, message, mark, problem.hint, path=dotted_path(path))


def _is_empty(node: Node) -> bool:
    """Return whether a node has no text at all, not even an anchor or a tag."""
    return isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index and node.tag == PLAIN


def _paths(root: Node, ids: set[int]) -> dict[int, FieldPath]:
    """Return the first path of each of some nodes, by identity; that of a key is the path of its value."""
    found: dict[int, FieldPath] = {}
    seen: set[int] = set()
    pending: list[tuple[Node, FieldPath]] = [(root, ())]
    while pending:
        node, path = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if id(node) in ids:
            found[id(node)] = path
        if isinstance(node, MappingNode):
            for key, value in reversed(node.value):
                name = key.value if isinstance(key, ScalarNode) else None
                if id(key) in ids:
                    found[id(key)] = (*path, name) if name else path
                if name is not None:
                    pending.append((value, (*path, name)))
        elif isinstance(node, SequenceNode):
            pending.extend((item, (*path, place)) for place, item in reversed([*enumerate(node.value)]))
    return found


def _first_line_end(node: Node) -> int:
    """Return where a node's text ends on its first line, without a trailing comment."""
    start, end = node.start_mark, node.end_mark
    if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
        return int(end.index)
    if isinstance(node, MappingNode):
        key, value = node.value[0]
        last = value if value.start_mark.line == start.line and value.start_mark.index >= start.index else key
    else:
        last = node.value[0]
    return max(_first_line_end(last), start.index + 1) if last.start_mark.line == start.line else start.index + 1
