"""Deterministic block YAML, for people to review and for any YAML parser to read the same.

The general emitter of PyYAML takes most of a render's time and writes anchors, folded lines and its own ideas
of quoting. This one knows one style: block mappings and sequences, plain scalars where no parser (YAML 1.1 or
1.2) could misread them, literal blocks for text of several lines, double quotes for the rest. A property
test holds that parsing its output gives the same data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kaigen.compile.expressions import Expr, Setting, Tree
from kaigen.compile.field_expressions import Arguments, Labels, Spread

# Plain scalars: a conservative set that every parser reads as a string. A number with a unit and a flag are in it.
_TAIL = r"[A-Za-z0-9_./()$@+=%~^,;<>*!?\\'\"-]"
_PLAIN = re.compile(
    rf"(?:[A-Za-z/_.$(]|--?[A-Za-z]){_TAIL}*(?:[ :]{_TAIL}+)*|[1-9][0-9]*(?:m|k|M|G|T|Ki|Mi|Gi|Ti|s|h|d)"
)
_WORDS = frozenset(
    {
        "null",
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        ".inf",
        ".nan",
        "none",
        "nan",
        "inf",
        "infinity",
    }
)
_NUMERIC = re.compile(r"[-+]?(?:[0-9.]|0[xob])", re.IGNORECASE)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\0"}
_QUOTED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')
_ATOMS = frozenset({bool, int, float, type(None)})
_LITERAL_REFUSED = re.compile(r"[ \t](?:\n|\Z)|\A[ \t\n]|\t")

# The line of each text that was written, in plain YAML and in a template: most recur in object after object.
_plain_lines: dict[str, str] = {}
_template_lines: dict[str, str] = {}
_MOST_LINES = 100_000


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _NAMED.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}")


def _quote(text: str) -> str:
    if (
        ('"' in text or "\\" in text)
        and not _UNPRINTABLE.search(text)
        and "\n" not in text
        and "\t" not in text
    ):
        return "'" + text.replace("'", "''") + "'"
    return '"' + _QUOTED.sub(_escape, text) + '"'


def scalar(text: str) -> str:
    """A string on one line: plain where that is safe, else in quotes."""
    plain = (
        _PLAIN.fullmatch(text)
        and text.lower() not in _WORDS
        and not text.endswith(":")
        and not (text[0] == "." and _NUMERIC.match(text))
        and text not in {"...", "---", "<<", "="}
    )
    return text if plain else _quote(text)


def _literal_lines(text: str) -> tuple[str, list[str]] | None:
    """The header and lines of a literal block; None when the text cannot stand in one."""
    if "\n" not in text or _UNPRINTABLE.search(text) or _LITERAL_REFUSED.search(text):
        return None
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    header = ("|-", "|", "|+")[min(ends, 2)]
    return header, body.split("\n") + [""] * max(ends - 1, 0)


def _inline(value: Any) -> str:
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


class _Writer:
    """Writes one document's lines. `template` writes Helm's template instead of plain YAML."""

    __slots__ = ("known", "lines", "template")

    def __init__(self, template: bool) -> None:
        self.lines: list[str] = []
        self.template = template
        self.known = _template_lines if template else _plain_lines

    def mapping(self, tree: Mapping[str, Tree], indent: str, first: str | None = None) -> None:
        """Write the entries of a mapping; `first` is the lead of the first line (a sequence's dash)."""
        lines, known = self.lines, self.known
        lead = indent if first is None else first
        node: Any
        for key, node in tree.items():
            start = f"{lead}{known.get(key) or self.line(key)}:"
            # By exact type, the commonest first: this runs for every node of every object.
            kind = type(node)
            if kind is str:
                line = known.get(node)
                if line is None:
                    self.text(start + " ", node, indent)
                else:
                    lines.append(f"{start} {line}")
            elif kind is dict:
                if node:
                    lines.append(start)
                    self.mapping(node, indent + "  ")
                else:
                    lines.append(start + " {}")
            elif kind is list or kind is tuple:
                if node:
                    lines.append(start)
                    self.sequence(node, indent + "  ")
                else:
                    lines.append(start + " []")
            elif kind not in _ATOMS and isinstance(node, Expr):
                assert lead == indent or not (isinstance(node, Setting) and node.optional), (
                    "an optional setting cannot be the first entry of a sequence's mapping"
                )
                self.expression(start, node, indent)
            else:
                lines.append(f"{start} {_inline(node)}")
            lead = indent

    def line(self, text: str) -> str:
        """A text on one line, which is remembered; not one of several lines, which is another thing as a value."""
        line = scalar(text)
        if self.template and "{{" in line:
            line = _shield(line)
        if len(self.known) < _MOST_LINES and "\n" not in text:
            self.known[text] = line
        return line

    def text(self, lead: str, value: str, indent: str) -> None:
        block = _literal_lines(value) if "\n" in value else None
        if block is None:
            self.lines.append(lead + self.line(value))
            return
        header, body = block
        self.lines.append(lead + header)
        deeper = indent + "  "
        if self.template:
            body = [_shield(line) if "{{" in line else line for line in body]
        self.lines.extend([deeper + line if line else "" for line in body])

    def sequence(self, nodes: Iterable[Any], indent: str) -> None:
        lead = indent + "- "
        deeper = indent + "  "
        for node in nodes:
            kind = type(node)
            if kind is str:
                self.text(lead, node, indent)
            elif kind is dict:
                if node:
                    self.mapping(node, deeper, lead)
                else:
                    self.lines.append(lead + "{}")
            elif kind is list or kind is tuple:
                if node:
                    self.lines.append(indent + "-")
                    self.sequence(node, deeper)
                else:
                    self.lines.append(lead + "[]")
            elif isinstance(node, Expr):
                self.lines.append(lead + node.inline())
            else:
                self.lines.append(lead + _inline(node))

    def expression(self, start: str, node: Expr, indent: str) -> None:
        """Write an entry whose value is an expression; `start` is its key with all that stands before it."""
        lines = self.lines
        if isinstance(node, Labels):
            lines.append(start)
            lines.append(f"{indent}  {{{{- {node.pipeline()} | nindent {len(indent) + 2} }}}}")
            self.mapping(node.own, indent + "  ")
            return
        if isinstance(node, Spread):
            lines.append(f"{indent}{{{{- with {node.of.pipeline()} }}}}")
            lines.append(start)
            lines.append(f"{indent}  {{{{- range . }}}}")
            lines.append(f"{indent}  - {node.inline()}")
            lines.append(f"{indent}  {{{{- end }}}}")
            lines.append(f"{indent}{{{{- end }}}}")
            return
        if isinstance(node, Arguments):
            lines.append(start)
            self.sequence(node.fixed, indent + "  ")
            lines.extend([f"{indent}  {line}" for line in node.lines()])
            return
        block = isinstance(node, Setting) and isinstance(node.default, dict | list)
        if isinstance(node, Setting) and node.optional:
            lines.append(f"{indent}{{{{- with {node.pipeline()} }}}}")
            if block:
                lines.append(start)
                lines.append(f"{indent}  {{{{- toYaml . | nindent {len(indent) + 2} }}}}")
            else:
                lines.append(f"{start} {{{{ toJson . }}}}")
            lines.append(f"{indent}{{{{- end }}}}")
        elif block:
            lines.append(start)
            lines.append(f"{indent}  {{{{- toYaml {node.pipeline()} | nindent {len(indent) + 2} }}}}")
        else:
            lines.append(f"{start} {node.inline()}")


def _shield(text: str) -> str:
    """Text in which Helm sees no template action."""
    return text.replace("{{", '{{ "{{" }}')


def _write(tree: Tree, template: bool) -> str:
    writer = _Writer(template)
    if isinstance(tree, Mapping) and tree:
        writer.mapping(tree, "")
    elif isinstance(tree, list | tuple) and tree:
        writer.sequence(tree, "")
    elif isinstance(tree, str):
        writer.text("", tree, "")
    else:
        writer.lines.append(
            "{}" if isinstance(tree, Mapping) else "[]" if isinstance(tree, list | tuple) else _inline(tree)
        )
    return "\n".join(writer.lines) + "\n"


def dump(data: Any) -> str:
    """Plain data as one block YAML document, with a line end and without a document marker.

    Raises:
        TypeError: for what YAML's JSON subset cannot hold.
    """
    return _write(data, template=False)


def dump_template(tree: Tree) -> str:
    """An object with expressions in it as a Helm template."""
    return _write(tree, template=True)


def entry_lines(key: str, value: Any, indent: str) -> list[str]:
    """The lines of one entry of a mapping of plain data."""
    writer = _Writer(template=False)
    writer.mapping({key: value}, indent)
    return writer.lines
