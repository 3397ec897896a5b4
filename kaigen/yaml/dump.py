"""Write plain data as deterministic block YAML that every YAML parser reads the same way.

Own code instead of PyYAML's dumper, which would take most of a render's time and writes anchors and folded lines. This
one has a single style: block mappings and sequences, unquoted scalars where no parser (YAML 1.1 or 1.2) could misread
them, literal blocks for text of several lines, double quotes for everything else. A property test parses its output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

# Unquoted text that every parser reads as a string, including quantities (10Gi) and flags (--port).
_TAIL = r"[A-Za-z0-9_./()$@+=%~^,;<>*!?\\'\"-]"
_PLAIN = re.compile(
    rf"(?:[A-Za-z/_.$(]|--?[A-Za-z]){_TAIL}*(?:[ :]{_TAIL}+)*|[1-9][0-9]*(?:m|k|M|G|T|Ki|Mi|Gi|Ti|s|h|d)"
)
_WORDS = frozenset(
    {"null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "none", "nan", "inf", "infinity"}
)
_NUMERIC = re.compile(r"[-+]?(?:[0-9.]|0[xob])", re.IGNORECASE)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\0"}
_QUOTED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')
_ATOMS = frozenset({bool, int, float, type(None)})
_LITERAL_REFUSED = re.compile(r"[ \t](?:\n|\Z)|\A[ \t\n]|\t")


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _NAMED.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}")


def _quote(text: str) -> str:
    if ('"' in text or "\\" in text) and not _UNPRINTABLE.search(text) and "\n" not in text and "\t" not in text:
        return "'" + text.replace("'", "''") + "'"
    return '"' + _QUOTED.sub(_escape, text) + '"'


@lru_cache(maxsize=100_000)  # Most texts recur in object after object.
def scalar(text: str) -> str:
    """Return a string as it is written on one line: unquoted where that is safe."""
    plain = (
        _PLAIN.fullmatch(text)
        and text.lower() not in _WORDS
        and not text.endswith(":")
        and not (text[0] == "." and _NUMERIC.match(text))
        and text not in {"...", "---", "<<", "="}
    )
    return text if plain else _quote(text)


def literal_lines(text: str) -> tuple[str, list[str]] | None:
    """Return the header and lines of a literal block, or None where the text cannot be written as one."""
    if "\n" not in text or _UNPRINTABLE.search(text) or _LITERAL_REFUSED.search(text):
        return None
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    header = ("|-", "|", "|+")[min(ends, 2)]
    return header, body.split("\n") + [""] * max(ends - 1, 0)


def inline(value: object) -> str:
    """Return a scalar as it is written on one line.

    Raises:
        TypeError: for a value that JSON does not have.
    """
    if isinstance(value, str):
        return scalar(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 reads an exponent only behind a point and with a sign.
        if "e" in text:
            mantissa, exponent = text.split("e")
            point = "" if "." in mantissa else ".0"
            sign = "" if exponent[0] in "+-" else "+"
            text = f"{mantissa}{point}e{sign}{exponent}"
        return text
    raise TypeError(f"YAML output cannot hold a {type(value).__name__}")


def flow(value: object) -> str:
    """Return a value on one line, mappings and sequences in braces and brackets.

    Raises:
        TypeError: for a value that JSON does not have.
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{inline(key)}: {flow(item)}" for key, item in value.items()) + "}"
    return f"[{', '.join(map(flow, value))}]" if isinstance(value, list) else inline(value)


class Writer:
    """Writes the lines of one document.

    Attributes:
        lines: what was written, without line ends.
    """

    __slots__ = ("lines",)

    scalar: Callable[[str], str] = staticmethod(scalar)

    def __init__(self) -> None:
        self.lines: list[str] = []

    def mapping(self, tree: Mapping[str, object], indent: str, first: str | None = None) -> None:
        """Write the entries of a mapping; `first` replaces the indent of the first line, as with a sequence's dash."""
        lines, scalar = self.lines, self.scalar
        lead = indent if first is None else first
        for key, node in tree.items():
            start = f"{lead}{scalar(key)}:"
            # By exact type, the commonest first: this runs for every node of every object.
            kind = type(node)
            if kind is str:
                if "\n" in node:  # type: ignore[operator]
                    self.text(start + " ", node, indent)  # type: ignore[arg-type]
                else:
                    lines.append(f"{start} {scalar(node)}")  # type: ignore[arg-type]
            elif kind is dict:
                if node:
                    lines.append(start)
                    self.mapping(node, indent + "  ")  # type: ignore[arg-type]
                else:
                    lines.append(start + " {}")
            elif kind is list or kind is tuple:
                if node:
                    lines.append(start)
                    self.sequence(node, indent + "  ")  # type: ignore[arg-type]
                else:
                    lines.append(start + " []")
            elif kind in _ATOMS:
                lines.append(f"{start} {inline(node)}")
            else:
                self.special_entry(start, node, indent, lead)
            lead = indent

    def sequence(self, nodes: Iterable[object], indent: str) -> None:
        """Write the items of a sequence."""
        lead = indent + "- "
        deeper = indent + "  "
        for node in nodes:
            kind = type(node)
            if kind is str:
                self.text(lead, node, indent)  # type: ignore[arg-type]
            elif kind is dict:
                if node:
                    self.mapping(node, deeper, lead)  # type: ignore[arg-type]
                else:
                    self.lines.append(lead + "{}")
            elif kind is list or kind is tuple:
                if node:
                    self.lines.append(indent + "-")
                    self.sequence(node, deeper)  # type: ignore[arg-type]
                else:
                    self.lines.append(lead + "[]")
            else:
                self.lines.append(lead + self.inline(node))

    def text(self, lead: str, value: str, indent: str) -> None:
        """Write a string, in a literal block where it has several lines."""
        block = literal_lines(value) if "\n" in value else None
        if block is None:
            self.lines.append(lead + self.scalar(value))
            return
        header, body = block
        self.lines.append(lead + header)
        deeper = indent + "  "
        self.lines.extend([deeper + self.literal_line(line) if line else "" for line in body])

    def literal_line(self, line: str) -> str:
        """Return one line of a literal block."""
        return line

    def inline(self, node: object) -> str:
        """Return a value that is written on one line."""
        return inline(node)

    def special_entry(self, start: str, node: object, indent: str, lead: str) -> None:
        """Write an entry of a mapping whose value is of a type that `mapping` does not write itself.

        Args:
            start: the key with everything before it on its line.
            node: the value.
            indent: of the mapping.
            lead: what the line starts with: `indent`, or a sequence's dash.
        """
        self.lines.append(f"{start} {inline(node)}")

    def document(self, tree: object) -> str:
        """Write a whole document and return its text."""
        if isinstance(tree, Mapping) and tree:
            self.mapping(tree, "")
        elif isinstance(tree, list | tuple) and tree:
            self.sequence(tree, "")
        elif isinstance(tree, str):
            self.text("", tree, "")
        elif isinstance(tree, Mapping):
            self.lines.append("{}")
        else:
            self.lines.append("[]" if isinstance(tree, list | tuple) else inline(tree))
        return "\n".join(self.lines) + "\n"


def dump(data: object) -> str:
    """Return plain data as one block YAML document, with a line end and without a document marker.

    Raises:
        TypeError: for a value that JSON does not have.
    """
    return Writer().document(data)


def entry_lines(key: str, value: object, indent: str) -> list[str]:
    """Return the lines of one entry of a mapping of plain data."""
    writer = Writer()
    writer.mapping({key: value}, indent)
    return writer.lines
