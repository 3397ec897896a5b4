"""YAML text inside a document, such as a file in a ConfigMap, with positions in the file that holds the document."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace
from yaml.nodes import MappingNode, Node, ScalarNode

from kaigen.core.json_types import Step
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.field_path import dotted_path
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
    source = EmbeddedSource(dotted_path(path), text, document, tuple(path), _line_offsets(document, path))
    problems = Diagnostics()
    documents = parse(source, problems)
    for item in problems:
        diagnostics.add(replace(item, path=f"{source.path}.{item.path}" if item.path else source.path))
    return documents


class EmbeddedSource(Source, frozen=True):
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
