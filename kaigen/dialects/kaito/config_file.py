"""A YAML file in a ConfigMap, with errors at its lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from yaml.nodes import MappingNode, Node, ScalarNode

from kaigen.core.json_types import FieldPath, Json, Step
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.lowering import Lowering
from kaigen.kinds.positioned import SourceField
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source


def parse_embedded(document: Document, path: Sequence[Step], diagnostics: Diagnostics) -> list[Document]:
    """Parse the text of a scalar as YAML.

    Args:
        document: the outer document.
        path: of the scalar.
        diagnostics: takes problems of the text, at their positions in the outer file.

    Returns:
        The documents that are not empty; none when the path has no scalar.
    """
    text = document.raw(path)
    if text is None:
        return []
    lines = _line_offsets(document, path)
    source = EmbeddedSource(dotted_path(path), text, outer=document, outer_path=tuple(path), lines=lines)
    problems = Diagnostics()
    documents = parse(source, problems)
    for item in problems:
        diagnostics.add(replace(item, path=f"{source.path}.{item.path}" if item.path else source.path))
    return documents


class EmbeddedSource(Source, frozen=True, kw_only=True):
    """The text of a scalar.

    Attributes:
        outer: the document with the scalar.
        outer_path: of the scalar.
        lines: offset of each line of the text in the outer file; empty where the scalar is not written line by line.
    """

    outer: Document
    outer_path: tuple[Step, ...]
    lines: tuple[int, ...]

    def mark_at(self, start: int, end: int | None = None) -> Mark:
        """Return the position in the outer file: of the text, or of the scalar's key where lines differ."""
        mark = Source(self.path, self.text).mark_at(start, end)
        if not 0 < mark.line <= len(self.lines):
            return self.outer.mark(self.outer_path, key=True)
        first = self.lines[mark.line - 1] + max(mark.column - 1, 0)
        return self.outer.source.mark_at(first, first + mark.length)


def _line_offsets(document: Document, path: Sequence[Step]) -> tuple[int, ...]:
    """Return the offset of each line of a literal block scalar (`|`); nothing for other scalars."""
    node = _scalar(document.node, path)
    if node is None or node.style != "|":
        return ()
    text = document.source.text[: node.end_mark.index]
    starts = [match.end() for match in re.finditer(r"\r\n?|\n", text) if match.end() > node.start_mark.index]
    lines = node.value.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None or first >= len(starts):
        return ()
    indent = text.find(lines[first], starts[first]) - starts[first]
    return tuple(start + indent for start in starts)


def _scalar(root: Node, path: Sequence[Step]) -> ScalarNode | None:
    node: Node | None = root
    for step in path:
        if not isinstance(node, MappingNode):
            return None
        node = next((value for key, value in node.value if key.value == step), None)
    return node if isinstance(node, ScalarNode) else None


class ConfigFile(Struct, frozen=True):
    """A mapping in a ConfigMap.

    Attributes:
        mapping: its content.
        lowering: collects its problems.
    """

    mapping: Mapping[str, Json]
    lowering: Lowering
    _document: Document
    _field: tuple[str, str]

    def error(self, code: str, message: str, path: FieldPath = (), hint: str = "") -> None:
        """Report an error at a key of the file."""
        self._report(Severity.ERROR, code, message, path, hint)

    def warning(self, code: str, message: str, path: FieldPath = (), hint: str = "") -> None:
        """Report a warning at a key of the file."""
        self._report(Severity.WARNING, code, message, path, hint)

    def source(self, path: FieldPath) -> SourceField:
        """Return the place of a value of the file."""
        return SourceField(self._document.mark(path), dotted_path((*self._field, *path)))

    def _report(self, severity: Severity, code: str, message: str, path: FieldPath, hint: str) -> None:
        mark = self._document.mark(path, key=True)
        self.lowering.report([Diagnostic(code, message, mark, hint, severity, dotted_path((*self._field, *path)))])


def read_config_file(document: Document, key: str, name: str, at: FieldPath, lowering: Lowering) -> ConfigFile | None:
    """Return the file under a key of a ConfigMap, which becomes part of the resource that names it.

    Args:
        document: the ConfigMap.
        key: of the file.
        name: of the ConfigMap.
        at: the field that names the ConfigMap.
        lowering: collects problems; they are errors of the file, at its lines.
    """
    lowering.consume(document)
    data = document.data.get("data") if isinstance(document.data, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get(key), str):
        lowering.error("KG0418", f"ConfigMap `{name}` has no key `{key}`", at, f"add `{key}` to it")
        return None
    problems = Diagnostics()
    field = ("data", key)
    embedded = parse_embedded(document, field, problems)
    lowering.report(problems)
    if problems.has_errors:
        return None
    content = embedded[0].data if len(embedded) == 1 else None
    if not isinstance(content, dict):
        mark = document.mark(field, key=True)
        lowering.report([Diagnostic("KG0418", f"`{key}` must be one YAML mapping", mark, path=dotted_path(field))])
        return None
    return ConfigFile(content, lowering, embedded[0], field)
