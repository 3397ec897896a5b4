"""Why a text is not YAML, in the words of the person who wrote it.

libyaml and PyYAML's own parser name the rule that was broken, in different words and sometimes far from the
mistake. Here their messages only choose the question; the answer comes from the text around the place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from yaml.error import MarkedYAMLError, YAMLError

from kaigen.load.diagnostics import Diagnostic
from kaigen.load.sources import Source

_TEMPLATE = re.compile(r"\{\{|\{%")
_GLUED = re.compile(r"[ ]*(?:- +)*([A-Za-z_][\w./-]*):(?![ \t\r\n/]|$)(\S.*)")
_ENTRY = re.compile(r"[ ]*(?:- +)*(?:[^\s\"'#\[{][^#]*?|\"[^\"]*\"|'[^']*'):(?:[ \t]|$)")
_OPENING_OF = {"]": "[", "}": "{"}
_CLOSING_OF = {"[": "]", "{": "}"}
_QUOTES = {'"': "double", "'": "single"}
_MOST_SCANNED = 200_000


@dataclass(frozen=True, slots=True)
class _Finding:
    """A diagnostic in the making; places are indexes into the whole text."""

    code: str
    message: str
    hint: str
    start: int
    end: int | None = None


class _Place:
    """What is around the places that a parser names, in the text of one document."""

    def __init__(self, text: str, first: int, last: int, problem: int, context: int | None) -> None:
        self.text = text
        self.first = first
        self.last = last
        self.at = min(max(problem, first), last)
        self.context = None if context is None else min(max(context, first), last)

    @property
    def char(self) -> str:
        """The character at the place, empty at the end of the document."""
        return self.text[self.at] if self.at < self.last else ""

    def line_start(self, index: int) -> int:
        return max(self.text.rfind("\n", self.first, index) + 1, self.first)

    def line(self, index: int) -> str:
        stop = self.text.find("\n", index, self.last)
        return self.text[self.line_start(index) : self.last if stop < 0 else stop].rstrip("\r")

    def before(self, index: int) -> str:
        return self.text[self.line_start(index) : index]

    def line_before(self, index: int) -> tuple[int, str] | None:
        """The nearest line above that says something, with where it starts."""
        start = self.line_start(index)
        while start > self.first:
            start = self.line_start(start - 1)
            line = self.line(start)
            if line.strip() and not line.lstrip().startswith("#"):
                return start, line
        return None


def explain(error: YAMLError, source: Source, first: int, last: int) -> Diagnostic:
    """A diagnostic for a parser's error.

    Args:
        error: what the parser raised; its marks count from `first`.
        source: the text.
        first: index at which the document begins.
        last: index at which it ends.
    """
    if not isinstance(error, MarkedYAMLError):
        return Diagnostic("KG0110", f"not valid YAML: {error}", source.mark_at(first, first + 1))
    context = None if error.context_mark is None else first + error.context_mark.index
    problem = context if error.problem_mark is None else first + error.problem_mark.index
    # What follows the document is the next one's, or nothing.
    end = first + len(source.text[first:last].rstrip())
    place = _Place(source.text, first, end, problem or first, context)
    found = _finding(error.problem or "", error.context or "", place)
    return Diagnostic(found.code, found.message, source.mark_at(found.start, found.end), found.hint)


def _finding(problem: str, context: str, place: _Place) -> _Finding:
    if "anchor;" in problem or "duplicate anchor" in (context + problem) or "second occurrence" in problem:
        return _duplicate_anchor(place)
    if "undefined alias" in problem:
        return _undefined_alias(place)
    tab = _tab(problem, place)
    if tab:
        return tab
    if "quoted scalar" in context and ("end of stream" in problem or "document" in problem):
        return _unclosed_quote(place.context if place.context is not None else place.at, place)
    if "escape" in problem or "hexdecimal" in problem or "hexadecimal" in problem:
        return _escape(place)
    template = _template(place)
    if template:
        return template
    if "scanning an alias" in context or "scanning an anchor" in context:
        char = "*" if "alias" in context else "&"
        return _start(place.context if place.context is not None else place.at, char, place)
    if re.search(r"\btag\b(?!>)", f"{context} {problem}"):
        start = place.context if place.context is not None else place.at
        return _Finding(
            "KG0132", "this tag is not supported", "remove it, or quote the value", start, start + 1
        )
    if "directive" in context or "directive" in problem or "incompatible YAML" in problem:
        return _directive(place)
    if "block scalar" in context:
        return _block_scalar(place)
    if "cannot start any token" in problem:
        return _start(place.at, place.char, place)
    if "sequence entries are not allowed" in problem:
        return _Finding(
            "KG0114",
            "`- ` cannot stand on the line of its key",
            "put each item on a line of its own, indented under the key",
            place.at,
            place.at + 1,
        )
    if "mapping values are not allowed" in problem:
        return _colon(place)
    if "mapping keys are not allowed" in problem:
        return _Finding("KG0116", "`? ` cannot stand here", "quote the value", place.at, place.at + 1)
    if "could not find expected ':'" in problem:
        return _no_colon(place)
    if "flow" in context or "unexpected ':'" in problem:
        return _flow(place)
    if "block collection" in context or "block mapping" in context:
        return _block(place, in_list="collection" in context)
    if "node content" in problem and place.char in _OPENING_OF:
        return _stray_bracket(place)
    if "node content" in problem and place.char == ",":
        return _start(place.at, ",", place)
    if "document start" in problem:
        return _after_document(place)
    return _Finding("KG0110", f"not valid YAML: {problem or context}", "", place.at, place.at + 1)


def _duplicate_anchor(place: _Place) -> _Finding:
    first = place.text.count("\n", 0, place.context or 0) + 1
    name = re.compile(r"&[^\s,\[\]{}]*").match(place.text, place.at)
    shown = name.group() if name else "&"
    return _Finding(
        "KG0137",
        f"the anchor `{shown}` is given twice, first on line {first}",
        "give each anchor a name of its own",
        place.at,
        place.at + len(shown),
    )


def _undefined_alias(place: _Place) -> _Finding:
    name = re.compile(r"\*[^\s,\[\]{}]*").match(place.text, place.at)
    shown = name.group() if name else "*"
    known = re.findall(
        r"&([^\s,\[\]{}]+)", place.text[place.first : min(place.at, place.first + _MOST_SCANNED)]
    )
    hint = ""
    if known:
        from kaigen.load.suggest import nearest

        close = nearest(shown[1:], known)
        hint = f"did you mean `*{close[0]}`?" if close else ""
    return _Finding(
        "KG0136",
        f"`{shown}` refers to no anchor",
        hint or f'quote it where text is meant: "{shown}"',
        place.at,
        place.at + len(shown),
    )


def _tab(problem: str, place: _Place) -> _Finding | None:
    hint = "YAML takes spaces only: two a level"
    if "tab character" in problem:
        return _Finding("KG0111", "a tab indents this line", hint, place.at, place.at + 1)
    # A tab in an indentation breaks other rules too, which are named for their effect, here or a line above.
    for index in {
        place.at,
        place.line_start(place.at) - 1 if place.line_start(place.at) > place.first else place.at,
    }:
        line = place.line(index)
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent and line.strip():
            start = place.line_start(index) + indent.index("\t")
            return _Finding("KG0111", "a tab indents this line", hint, start, start + indent.count("\t"))
    if place.char == "\t":
        return _Finding("KG0111", "a tab cannot stand here", hint, place.at, place.at + 1)
    return None


def _unclosed_quote(start: int, place: _Place) -> _Finding:
    quote = place.text[start] if place.text[start : start + 1] in _QUOTES else '"'
    hint = f"close it with `{quote}`"
    if quote == "'":
        hint += "; an apostrophe inside is written twice, or the text stands in double quotes"
    return _Finding("KG0112", f"this {_QUOTES[quote]} quote is never closed", hint, start)


def _escape(place: _Place) -> _Finding:
    at = place.at
    for index in (at, at - 1):
        if place.text[index : index + 1] == "\\":
            at = index
            break
    else:
        at = max(place.text.rfind("\\", place.first, at + 1), place.first)
    shown = place.text[at : at + 2].strip() or "\\"
    return _Finding(
        "KG0120",
        f"`{shown}` is no escape in double quotes"
        if shown[1:] not in ("u", "x", "U")
        else f"`{shown}` needs hex digits of a character that exists",
        "write a backslash twice, or use single quotes",
        at,
        at + len(shown),
    )


def _template(place: _Place) -> _Finding | None:
    for index in (place.at, place.context):
        if index is None:
            continue
        line = place.line(index)
        found = _TEMPLATE.search(line)
        if found and not line[: found.start()].rstrip().endswith(('"', "'")):
            start = place.line_start(index) + found.start()
            return _Finding(
                "KG0117",
                "template text is not expanded here, and unquoted it is not YAML",
                "write the value itself, or put quotes around all of it",
                start,
                start + 2,
            )
    return None


def _start(start: int, char: str, place: _Place) -> _Finding:
    value = place.text[start : place.line_start(start) + len(place.line(start))].strip()
    value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
    quoted = f"'{value}'" if '"' in value or "\\" in value else f'"{value}"'
    hint = f"quote it: {quoted}" if 0 < len(value) <= 40 else "quote it"
    shown = "a backtick" if char == "`" else f"`{char}`"
    return _Finding(
        "KG0116", f"an unquoted value cannot start with {shown}", hint, start, start + max(len(value), 1)
    )


def _directive(place: _Place) -> _Finding:
    start = place.context if place.context is not None else place.at
    start = place.line_start(start)
    if place.text[start : start + 1] != "%":
        start = place.line_start(place.at)
    return _directive_at(start)


def _directive_at(start: int) -> _Finding:
    return _Finding(
        "KG0116",
        "a line that starts with `%` is a directive to the parser",
        "quote it where text is meant",
        start,
    )


def _block_scalar(place: _Place) -> _Finding:
    return _Finding(
        "KG0110",
        "only `+`, `-`, an indentation from 1 to 9 and a comment may follow `|` or `>`",
        "start the text on the next line, or quote the value where it is one line",
        place.at,
        place.at + 1,
    )


def _colon(place: _Place) -> _Finding:
    before = place.before(place.at)
    entry = _ENTRY.match(before)
    line = place.line(place.at)
    if entry and before[entry.end() :].strip():
        start = place.line_start(place.at) + entry.end()
        start += len(before) - len(before[entry.end() :].lstrip()) - entry.end()
        value = line[start - place.line_start(place.at) :].rstrip()
        quoted = f"'{value}'" if '"' in value or "\\" in value else f'"{value}"'
        return _Finding(
            "KG0115",
            "an unquoted value cannot hold `: `",
            f"quote it: {quoted}" if len(value) <= 60 else "quote the value",
            start,
        )
    return _continued(place, place.at) or _Finding(
        "KG0115", "`:` cannot stand here", "quote the value that it belongs to", place.at, place.at + 1
    )


def _continued(place: _Place, index: int) -> _Finding | None:
    """The mistake when a line was read as the rest of the value above it."""
    above = place.line_before(index)
    if above is None:
        return None
    start, line = above
    glued = _GLUED.match(line)
    if glued and not _ENTRY.match(line):
        return _glued(glued, start)
    here = place.line(index)
    indent = len(here) - len(here.lstrip(" "))
    if _ENTRY.match(line) and indent > len(line) - len(line.lstrip(" ")):
        key = line.split(":", 1)[0].strip().lstrip("- ")
        at = place.line_start(index) + indent
        return _Finding(
            "KG0114",
            f"this line is indented under `{key}`, which has a value already",
            "indent it like the line above, or remove that value",
            at,
        )
    if not _ENTRY.match(line) and line.rstrip()[-1:] not in ("]", "}", '"', "'"):
        at = start + len(line) - len(line.lstrip())
        return _Finding(
            "KG0118", "`:` is missing: this is neither a key nor a value", "write `key: value`", at
        )
    return None


def _glued(found: re.Match[str], line_start: int) -> _Finding:
    key, value = found.groups()
    shown = f"{key}: {value.strip()}"
    return _Finding(
        "KG0118",
        f"a space is missing after `{key}:`",
        f"write `{shown}`" if len(shown) <= 60 else f"write `{key}: …`",
        line_start + found.start(1),
        line_start + found.end(1) + 1,
    )


def _no_colon(place: _Place) -> _Finding:
    start = place.context if place.context is not None else place.at
    if place.text[start : start + 1] in _CLOSING_OF:
        return _flow(place)
    line_start = place.line_start(start)
    glued = _GLUED.match(place.line(start))
    if glued:
        return _glued(glued, line_start)
    if place.text[start : start + 1] in _QUOTES and "\n" in place.text[start : place.at].strip():
        return _unclosed_quote(start, place)
    return _Finding(
        "KG0118", "`:` is missing: this is neither a key nor a value", "write `key: value`", start
    )


def _open_brackets(place: _Place) -> list[int]:
    """Where brackets are open at the place, as far as a look at quotes and comments can tell."""
    open_at: list[int] = []
    text = place.text
    index = max(place.first, place.at - _MOST_SCANNED)
    while index < place.at:
        char = text[index]
        if char in _CLOSING_OF:
            if open_at or not text[max(index - 1, 0)].isalnum():
                open_at.append(index)
        elif char in _OPENING_OF and open_at:
            open_at.pop()
        elif char in _QUOTES and text[index - 1 : index] in ("", " ", ",", "[", "{", ":", "\n", "\t"):
            close = text.find(char, index + 1, place.at)
            index = close if close >= 0 else index
        elif char == "#" and text[index - 1 : index] in ("", " ", "\n", "\t"):
            stop = text.find("\n", index, place.at)
            index = stop if stop >= 0 else place.at
        index += 1
    return open_at


def _closed_later(place: _Place, closing: str) -> bool:
    """Whether a bracket closes behind the place that none behind it opens."""
    depth = 0
    for found in re.compile(r"[\[\]{}]").finditer(
        place.text, place.at, min(place.last, place.at + _MOST_SCANNED)
    ):
        depth += 1 if found.group() in _CLOSING_OF else -1
        if depth < 0:
            return found.group() == closing
    return False


def _flow(place: _Place) -> _Finding:
    at = place.at
    open_at = _open_brackets(place)
    if open_at:
        last = open_at[-1]
    elif place.context is not None and place.text[place.context : place.context + 1] in _CLOSING_OF:
        last = place.context
    else:
        return _Finding("KG0113", f"`{place.char}` cannot stand here", "quote the value", at, at + 1)
    opening = place.text[last]
    closing = _CLOSING_OF[opening]
    new_line = place.line_start(at) != place.line_start(last)
    looks_block = new_line and (_ENTRY.match(place.line(at)) or place.line(at).lstrip().startswith("- "))
    if at >= place.last or (looks_block and not _closed_later(place, closing)):
        return _Finding(
            "KG0113", f"this `{opening}` is never closed", f"close it with `{closing}`", last, last + 1
        )
    if place.char in _OPENING_OF and place.char != closing:
        return _Finding(
            "KG0113", f"`{place.char}` cannot close `{opening}`", f"close it with `{closing}`", at, at + 1
        )
    if place.char == ",":
        return _Finding("KG0113", "a value is missing before `,`", "remove the comma", at, at + 1)
    if place.char == ":" and place.text[at + 1 : at + 2].isspace():
        start = place.line_start(at) + len(place.line(at)) - len(place.line(at).lstrip())
        return _Finding(
            "KG0113", f"`,` or `{closing}` is expected before this", "a comma may be missing", start, at
        )
    if place.char == ":":
        return _Finding(
            "KG0113", "`:` needs a space behind it here", "write `key: value`, or quote it", at, at + 1
        )
    return _Finding(
        "KG0113", f"`,` or `{closing}` is expected before this", "a comma may be missing", at, at + 1
    )


def _block(place: _Place, *, in_list: bool) -> _Finding:
    at = place.at
    before = place.before(at)
    said = before.rstrip()
    if place.char in _OPENING_OF or place.char == ",":
        return _stray_bracket(place)
    if place.char == ":" and not said:
        return _Finding(
            "KG0131", "a key is missing before `:`", 'write a key, or "" for an empty one', at, at + 1
        )
    if said[-1:] in _QUOTES:
        return _after_quote(place, said)
    if said[-1:] in _OPENING_OF:
        return _Finding(
            "KG0113",
            f"text behind the closing `{said[-1]}`",
            "put quotes around all of the value, or remove it",
            at,
        )
    if said.strip() and not said.endswith("-"):
        return _Finding("KG0110", "this cannot follow the value before it", "quote all of the value", at)
    return _indentation(place, in_list=in_list)


def _stray_bracket(place: _Place) -> _Finding:
    hint = "remove it, or quote the value that it belongs to"
    return _Finding("KG0113", f"`{place.char}` has no opening bracket", hint, place.at, place.at + 1)


def _after_quote(place: _Place, said: str) -> _Finding:
    quote = said[-1]
    if said.count(quote) % 2:
        # The quote that closes here was opened above, where the nearest line with an odd one forgot to.
        start = place.line_start(place.at)
        while start > place.first:
            start = place.line_start(start - 1)
            line = place.line(start)
            if line.count(quote) % 2:
                return _unclosed_quote(start + line.rindex(quote), place)
    return _Finding(
        "KG0112",
        "text behind the closing quote",
        "put the quotes around all of the value; inside them write \\\" or ''",
        place.at,
    )


def _indentation(place: _Place, *, in_list: bool) -> _Finding:
    at = place.at
    column = len(place.before(at))
    level = None if place.context is None else len(place.before(place.context))
    is_item = place.char == "-" and place.text[at + 1 : at + 2] in ("", " ", "\n", "\r")
    glued = _GLUED.match(place.line(at))
    if glued:
        return _glued(glued, place.line_start(at))
    if level is not None and column == level:
        if is_item:
            return _Finding(
                "KG0114",
                "a list item stands among keys",
                "indent the list under the key it belongs to, or remove `- `",
                at,
            )
        if in_list:
            return _Finding(
                "KG0114",
                "a key stands among list items",
                "indent it under its item, or start it with `- `",
                at,
            )
    spaces = f"{column} space" + ("" if column == 1 else "s")
    levels = _levels_above(place)
    near = [
        max((each for each in levels if each < column), default=None),
        min((x for x in levels if x > column), default=None),
    ]
    wanted = " or ".join(str(each) for each in near if each is not None)
    return _Finding(
        "KG0114",
        f"this line is indented by {spaces}, which fits no line above",
        f"line it up with one of them: {wanted} spaces" if wanted else "line it up with its neighbours",
        at,
    )


def _levels_above(place: _Place) -> set[int]:
    """The columns at which keys and items of still open blocks stand above a line."""
    levels: set[int] = set()
    lowest = 1 << 30
    above = place.line_before(place.at)
    while above is not None and lowest > 0:
        line = above[1]
        indent = len(line) - len(line.lstrip(" "))
        if indent < lowest:
            lowest = indent
            levels.add(indent)
            marks = re.match(r" *((?:- +)+)\S", line)
            if marks and marks.end() - 1 > indent:
                levels.add(marks.end() - 1)
        place = _Place(place.text, place.first, place.last, above[0], None)
        above = place.line_before(place.at)
    return levels


def _after_document(place: _Place) -> _Finding:
    if place.char in _OPENING_OF:
        return _stray_bracket(place)
    directive = re.compile(r"^%", re.MULTILINE).search(place.text, place.first, place.at + 1)
    if directive:
        return _directive_at(directive.start())
    glued = _continued(place, place.at)
    if glued and glued.code == "KG0118":
        return glued
    return _Finding(
        "KG0110",
        "the document's value ended before this",
        "start another document with `---`, or indent this under a key",
        place.at,
    )
