"""Compose YAML text into node trees with libyaml.

A scalar's tag is one of YAML's two non-specific ones: `?` for an unquoted scalar, whose text decides its type
(`kaigen.yaml.scalars`), and `!` for a quoted one, which is a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from yaml.error import Mark, YAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kaigen.diagnostics.errors import SystemFailure
from kaigen.diagnostics.problem import ProblemError

try:
    from yaml._yaml import CParser
except ImportError:

    class CParser:  # type: ignore[no-redef]
        """A substitute for libyaml's parser where PyYAML was built without it."""

        def __init__(self, text: str) -> None:
            raise SystemFailure(
                "PyYAML was built without libyaml, which kaigen needs to read YAML",
                hint="install a PyYAML wheel: pip install --force-reinstall --only-binary :all: PyYAML",
            )


PLAIN = "?"
TEXT = "!"

MAX_DEPTH = 100
"""Levels of nesting in a document: more than any manifest needs, and safe for recursion."""

_BAD_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Unreadable(ProblemError):
    """Text that cannot be read as a document.

    Attributes:
        index: of the first wrong character.
        length: number of wrong characters.
    """

    def __init__(self, index: int, code: str, message: str, hint: str, length: int = 1) -> None:
        super().__init__(code, message, hint=hint)
        self.index = index
        self.length = length


class LibyamlParser(CParser):
    """libyaml's parser without PyYAML's YAML 1.1 resolver; it counts the levels of nesting."""

    _level = 0

    def resolve(self, kind: type[Node], value: str | None, implicit: tuple[bool, bool] | bool) -> str:
        """Return the tag of an untagged node."""
        return TEXT if kind is ScalarNode and not implicit[0] else PLAIN  # type: ignore[index]

    def descend_resolver(self, parent: Node | None, index: object) -> None:
        """Count one more level; the parser calls this before it makes a node."""
        self._level += 1
        if self._level > MAX_DEPTH:
            raise too_deep(parent.start_mark.index if parent is not None and parent.start_mark else 0)

    def ascend_resolver(self) -> None:
        """Count one level less; the parser calls this after it made a node."""
        self._level -= 1


def too_deep(index: int) -> Unreadable:
    """Return the error for nesting deeper than `MAX_DEPTH`."""
    return Unreadable(index, "KG0133", f"more than {MAX_DEPTH} levels of nesting", "flatten the document")


def find_bad_character(text: str) -> int:
    """Return the index of the first character that YAML does not allow in a text, or -1."""
    found = _BAD_ASCII.search(text)
    first = found.start() if found else -1
    if not text.isascii():
        # Compiled here because every command imports this module.
        other = re.search("[\x80-\x84\x86-\x9f]|[\ud800-\udfff]|\ufeff|\ufffe|\uffff", text)
        if other and (first < 0 or other.start() < first):
            first = other.start()
    return first


def reject_bad_character(text: str) -> None:
    """Raise `Unreadable` for the first character that YAML does not allow."""
    index = find_bad_character(text)
    if index < 0:
        return
    number = ord(text[index])
    if number == 0xFEFF:
        what, hint = ("a byte order mark inside the text", "delete this invisible character")
    elif 0xD800 <= number <= 0xDFFF:
        what, hint = f"half a surrogate pair, U+{number:04X}", "save the file as UTF-8"
    else:
        what, hint = (
            f"the control character U+{number:04X}",
            f'delete it, or write "\\x{number:02x}" in double quotes',
        )
        if number == 0 or number >= 0x7F:
            hint = "delete it"
    raise Unreadable(index, "KG0119", f"{what} is not allowed", hint)


def compose(text: str) -> list[Node]:
    """Return the trees of all documents, empty ones included.

    Raises:
        Unreadable: for forbidden characters and too many levels.
        YAMLError: for everything else that is not YAML.
    """
    return list(compose_each(text))


def compose_each(text: str) -> Iterator[Node]:
    """Compose one document after the other; raises as `compose`."""
    reject_bad_character(text)
    parser = LibyamlParser(text)
    while parser.check_node():
        node = parser.get_node()
        if node is None:
            break
        yield node


def compose_parts(text: str) -> Iterator[tuple[int, int, list[Node] | Unreadable | YAMLError]]:
    """Compose document by document, so that a broken one does not hide the others.

    Yields:
        Start and end of a section of the text, and its trees or its error. Marks in trees count from the start of the
        text, those in an error from the start of the section.
    """
    counted = lines = 0
    for start, stop in _parts(text):
        lines += sum(1 for _ in re.finditer("\r\n?|[\n\x85\u2028\u2029]", text[counted:start]))
        counted = start
        part = text[start:stop]
        if part.startswith("..."):
            part = "   " + part[3:]
        try:
            nodes = compose(part)
        except (Unreadable, YAMLError) as error:
            yield start, stop, error
            continue
        if start:
            seen: set[int] = set()
            for node in nodes:
                _move(node, start, lines, seen)
        yield start, stop, nodes


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Split a text at its document markers, which have the same meaning everywhere, even inside a scalar."""
    marker = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
    only_prefix = re.compile(r"(?:(?:[ \t]*(?:#[^\n]*)?|%[^\n]*)(?:\r?\n|\Z))*")
    start = 0
    for found in marker.finditer(text):
        begin = start + 3 if text.startswith("...", start) else start
        # Comments and directives before `---` belong to the document that it opens.
        prefix = only_prefix.match(text, begin, found.start())
        if found.start() == start or (text[found.start()] == "-" and prefix and prefix.end() == found.start()):
            continue
        yield start, found.start()
        start = found.start()
    yield start, len(text)


def _move(node: Node, characters: int, lines: int, seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    for name in ("start_mark", "end_mark"):
        mark = getattr(node, name)
        if mark is not None:
            moved = Mark(mark.name, mark.index + characters, mark.line + lines, mark.column, None, 0)
            setattr(node, name, moved)
    if isinstance(node, MappingNode):
        for key, value in node.value:
            _move(key, characters, lines, seen)
            _move(value, characters, lines, seen)
    elif isinstance(node, SequenceNode):
        for item in node.value:
            _move(item, characters, lines, seen)
