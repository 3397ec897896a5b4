"""Construct plain data from a node tree: dicts with string keys, lists and scalars that nothing else shares.

Errors are collected with their nodes and the other values are still built, so one run reports every error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kaigen.core.json_types import Json
from kaigen.diagnostics.problem import ProblemError
from kaigen.yaml.compose import MAX_DEPTH, PLAIN, TEXT, Unreadable, too_deep
from kaigen.yaml.scalars import FILE_MODES, Plain, file_mode, plain_value

MAX_COPIED = 100_000
"""Nodes that the aliases of one text may add by copying."""

MAX_PROBLEMS = 200
"""Errors reported for one text; with more, something else is wrong."""

_TAGS = "tag:yaml.org,2002:"
_COLLECTION_TAGS: dict[type[Node], str] = {MappingNode: _TAGS + "map", SequenceNode: _TAGS + "seq"}
_OPENING = frozenset("0123456789-+.yYnNoO~tTfF")
_MERGE = "<<"
_ALIAS = r"(?:[^*#]|(?<=\s)#[^\n]*+|(?<!\s)#)*+(\*[^\s,\[\]{}]*)"


class NodeProblem(Struct, frozen=True):
    """One error of a node.

    Attributes:
        node: the node.
        first: the node that came first, where the error is a duplicate.
    """

    code: str
    message: str
    hint: str
    node: Node
    first: Node | None = None


class Constructor:
    """Builds the data of one text's documents.

    Attributes:
        problems: errors of the last document.
    """

    def __init__(self, text: str, plain: Callable[[str], Plain] = plain_value) -> None:
        """Take the text, and what returns the value of an unquoted scalar."""
        self._text = text
        self._plain = plain
        # Strings in JSON may have characters that YAML allows only as escapes.
        self._escapes = "\\" in text or "\x7f" in text or not text.isascii()
        self._aliases = "*" in text
        self._bangs = "!" in text
        self._copied = 0
        self._reported = 0
        self.problems: list[NodeProblem] = []

    def construct(self, root: Node) -> Json:
        """Return the data of a document.

        Raises:
            Unreadable: when aliases make it endless or too large.
        """
        self.problems = []
        if self._aliases or self._bangs:
            self._inspect(root)
        return self._build(root)

    def _problem(self, code: str, message: str, hint: str, node: Node, first: Node | None = None) -> None:
        self._reported += 1
        if self._reported <= MAX_PROBLEMS:
            self.problems.append(NodeProblem(code, message, hint, node, first))

    def _build(self, node: Node) -> Json:
        kind = node.__class__
        if kind is ScalarNode:
            return self._scalar(node)
        if node.tag != PLAIN and node.tag != _COLLECTION_TAGS.get(kind):
            self._refuse_tag(node)
        if kind is SequenceNode:
            return [self._build(item) for item in node.value]
        return self._mapping(node)

    def _mapping(self, node: Node) -> dict[str, Json]:
        data: dict[str, Json] = {}
        merged: list[dict[str, Json]] | None = None
        for key_node, value_node in node.value:
            if key_node.__class__ is not ScalarNode:
                self._refuse_key(node, key_node)
                continue
            key: str = key_node.value
            if key in data:
                self._repeated(node, key_node)
                continue
            tag = key_node.tag
            if tag == TEXT:
                if self._escapes:
                    self._check_text(key_node)
            elif tag != PLAIN:
                self._check_tag(key_node)
            elif key == _MERGE:
                if merged is not None:
                    self._repeated(node, key_node)
                merged = [*(merged or ()), *self._merged(value_node)]
                continue
            elif not key:
                self._problem("KG0131", "a key is missing before `:`", 'write a key, or "" for an empty one', key_node)
                continue
            # By far the most common case, inlined to save a call per field.
            if value_node.__class__ is ScalarNode and value_node.tag == PLAIN:
                text = value_node.value
                if text and text[0] not in _OPENING:
                    data[key] = text
                    continue
                if key in FILE_MODES and (mode := file_mode(text)) is not None:
                    data[key] = mode
                    continue
            data[key] = self._build(value_node)
        if merged:
            whole: dict[str, Json] = {}
            for part in merged:
                for key, value in part.items():
                    whole.setdefault(key, value)
            return whole | data
        return data

    def _scalar(self, node: Node) -> Plain:
        text: str = node.value
        tag = node.tag
        if tag == TEXT:
            if self._escapes:
                self._check_text(node)
            return text
        try:
            if tag == PLAIN:
                return self._plain(text)
            return self._tagged(node)
        except ProblemError as error:
            self._problem(error.problem.code, error.problem.message, error.problem.hint, node)
            return text

    def _tagged(self, node: Node) -> Plain:
        text: str = node.value
        name = node.tag.removeprefix(_TAGS)
        if name == "str":
            if self._escapes:
                self._check_text(node)
            return text
        expected = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(name)
        if expected is None or not node.tag.startswith(_TAGS):
            self._refuse_tag(node)
            return text
        value = plain_value(text)
        right = isinstance(value, expected) and (name == "bool" or not isinstance(value, bool))  # type: ignore[arg-type]
        if not right:
            self._problem("KG0132", f"`{_short(text)}` is not a valid `!!{name}`", "remove the tag", node)
        return float(value) if right and name == "float" and value is not None else value

    def _check_text(self, node: Node) -> None:
        found = re.search("[\0\x7f-\x9f\ud800-\udfff\ufffe\uffff]", node.value)
        if not found:
            return
        character = found.group()
        if character == "\0" or "\ud800" <= character <= "\udfff":
            what = "NUL" if character == "\0" else "half a surrogate pair"
            self._problem("KG0120", f"an escape produces {what}, which is not allowed", "remove it", node)
        else:
            # kustomize reads U+0085 back as a space, and the others not at all, because it writes all of them raw.
            message = f"the control character U+{ord(character):04X} is not allowed, even as an escape"
            self._problem("KG0119", message, "remove it: kustomize rejects or changes it", node)

    def _check_tag(self, key: Node) -> None:
        if not key.tag.startswith(_TAGS) or key.tag.removeprefix(_TAGS) not in {"str", "int", "float", "bool", "null"}:
            self._refuse_tag(key)

    def _refuse_tag(self, node: Node) -> None:
        tag = node.tag
        shown = "!!" + tag.removeprefix(_TAGS) if tag.startswith(_TAGS) else tag
        self._problem(
            "KG0132", f"the tag `{_short(shown)}` is not supported", "remove it: kaigen reads plain data", node
        )

    def _refuse_key(self, mapping: Node, node: Node) -> None:
        if self._text.startswith("{{", mapping.start_mark.index):
            self._problem(
                "KG0117",
                "templates are not expanded here, and unquoted `{{ … }}` is a mapping",
                'write the value itself, or quote the braces: "{{ … }}"',
                mapping,
            )
        else:
            what = "a mapping" if isinstance(node, MappingNode) else "a list"
            self._problem(
                "KG0131", f"{what} cannot be a key", "use a string as key, in quotes where it contains brackets", node
            )

    def _repeated(self, mapping: Node, key: Node) -> None:
        first = next(
            (
                other
                for other, _ in mapping.value
                if isinstance(other, ScalarNode) and other.value == key.value and other is not key
            ),
            None,
        )
        hint = "keep one of them"
        if key.value == _MERGE:
            hint = "merge several with a list: `<<: [*one, *two]`"
        self._problem("KG0130", f"duplicate key `{_short(key.value)}`", hint, key, first)

    def _merged(self, node: Node) -> list[dict[str, Json]]:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        if not all(isinstance(part, MappingNode) for part in parts):
            self._problem("KG0138", "`<<` merges a mapping or a list of mappings", "use an alias: `<<: *name`", node)
            return []
        return [self._mapping(part) for part in parts]

    def _inspect(self, root: Node) -> None:
        """Limit what aliases copy before anything is copied, and find tags that the tree does not keep."""
        sizes: dict[int, tuple[int, int]] = {}

        def measure(node: Node, parent: Node | None = None, number: int = 0) -> tuple[int, int]:
            known = sizes.get(id(node))
            if known is not None:
                if known[0] == 0:
                    raise self._alias(
                        parent, number, "KG0135", "the alias refers to a value that contains it", "remove the alias"
                    )
                self._copied += known[0]
                if self._copied > MAX_COPIED:
                    raise self._alias(
                        parent,
                        number,
                        "KG0134",
                        f"aliases expand this document by more than {MAX_COPIED} values",
                        "write the values out, or use fewer levels of aliases",
                    )
                return known
            sizes[id(node)] = (0, 0)
            size, depth = 1, 1
            if node.__class__ is not ScalarNode:
                for place, child in enumerate(_children(node)):
                    below = measure(child, node, place)
                    size += below[0]
                    depth = max(depth, below[1] + 1)
            sizes[id(node)] = (size, depth)
            if depth > MAX_DEPTH:
                raise too_deep(node.start_mark.index)
            if self._bangs and node.tag in (PLAIN, TEXT) and self._text.startswith("!", node.start_mark.index):
                self._problem("KG0132", "the tag `!` is not supported", "quote the value to make it text", node)
            return sizes[id(node)]

        # An alias refers to an earlier node, so the recursion is no deeper than the text.
        measure(root)

    def _alias(self, parent: Node | None, number: int, code: str, message: str, hint: str) -> Unreadable:
        assert parent is not None, "a document's root is not an alias"
        start, stop = _alias_position(self._text, parent, number)
        return Unreadable(start, code, message, hint, stop - start)


def _children(node: Node) -> Iterable[Node]:
    if node.__class__ is MappingNode:
        return (child for pair in node.value for child in pair)
    return node.value  # type: ignore[no-any-return]


def _alias_position(text: str, parent: Node, number: int) -> tuple[int, int]:
    """Return the position of an alias, which has no node of its own, from the children before it."""
    at = parent.start_mark.index
    for place, child in enumerate(_children(parent)):
        if child.start_mark.index >= at and child is not parent and place < number:
            at = child.end_mark.index
            continue
        found = re.compile(_ALIAS).match(text, at)
        if found is None:
            break
        if place == number:
            return found.span(1)
        at = found.end()
    return parent.start_mark.index, parent.start_mark.index + 1


def _short(text: str) -> str:
    line = text.split("\n", 1)[0]
    return text if len(text) <= 60 and line == text else line[:60] + "…"
