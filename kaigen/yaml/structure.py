"""Explain errors in quotes, colons, brackets and indentation."""

from __future__ import annotations

import re

from msgspec import Struct

from kaigen.core.text import plural

OPENING_OF = {"]": "[", "}": "{"}
CLOSING_OF = {"[": "]", "{": "}"}
QUOTES = {'"': "double", "'": "single"}
MOST_SCANNED = 200_000
"""Characters to examine before or after a position at most."""

MISSING_COLON = "KG0118"
_GLUED = re.compile(r"[ ]*(?:- +)*([A-Za-z_][\w./-]*):(?![ \t\r\n/]|$)(\S.*)")
_ENTRY = re.compile(r"[ ]*(?:- +)*(?:[^\s\"'#\[{][^#]*?|\"[^\"]*\"|'[^']*'):(?:[ \t]|$)")


def unclosed_quote(start: int, error: ErrorContext) -> Explanation:
    """Explain a quote that is never closed."""
    quote = error.text[start] if error.text[start : start + 1] in QUOTES else '"'
    hint = f"close it with `{quote}`"
    if quote == "'":
        hint += "; write an apostrophe inside the text twice, or use double quotes"
    return Explanation("KG0112", f"this {QUOTES[quote]} quote is never closed", hint, start)


def directive_at(start: int) -> Explanation:
    """Explain a line that starts with `%`."""
    return Explanation(
        "KG0116", "a line that starts with `%` is a directive to the parser", "quote it to make it text", start
    )


def misplaced_colon(error: ErrorContext) -> Explanation:
    """Explain a colon where no key can be."""
    before = error.before(error.at)
    entry = _ENTRY.match(before)
    line = error.line(error.at)
    if entry and before[entry.end() :].strip():
        start = error.line_start(error.at) + entry.end()
        start += len(before) - len(before[entry.end() :].lstrip()) - entry.end()
        value = line[start - error.line_start(error.at) :].rstrip()
        quoted = f"'{value}'" if '"' in value or "\\" in value else f'"{value}"'
        return Explanation(
            "KG0115",
            "an unquoted value cannot contain `: `",
            f"quote it: {quoted}" if len(value) <= 60 else "quote the value",
            start,
        )
    return _continued(error, error.at) or Explanation(
        "KG0115", "unexpected `:`", "quote the value that it belongs to", error.at, error.at + 1
    )


def _continued(error: ErrorContext, index: int) -> Explanation | None:
    """Explain a line that was parsed as the continuation of the value above it."""
    above = error.line_before(index)
    if above is None:
        return None
    start, line = above
    glued = _GLUED.match(line)
    if glued and not _ENTRY.match(line):
        return _glued(glued, start)
    here = error.line(index)
    indent = len(here) - len(here.lstrip(" "))
    if _ENTRY.match(line) and indent > len(line) - len(line.lstrip(" ")):
        key = line.split(":", 1)[0].strip().lstrip("- ")
        at = error.line_start(index) + indent
        return Explanation(
            "KG0114",
            f"this line is indented under `{key}`, which already has a value",
            "indent it like the line above, or remove that value",
            at,
        )
    if not _ENTRY.match(line) and line.rstrip()[-1:] not in ("]", "}", '"', "'"):
        at = start + len(line) - len(line.lstrip())
        return Explanation(MISSING_COLON, "`:` is missing: this is neither a key nor a value", "write `key: value`", at)
    return None


def _glued(found: re.Match[str], line_start: int) -> Explanation:
    key, value = found.groups()
    shown = f"{key}: {value.strip()}"
    return Explanation(
        MISSING_COLON,
        f"a space is missing after `{key}:`",
        f"write `{shown}`" if len(shown) <= 60 else f"write `{key}: …`",
        line_start + found.start(1),
        line_start + found.end(1) + 1,
    )


def missing_colon(error: ErrorContext) -> Explanation:
    """Explain a line between keys that is neither a key nor a value."""
    start = error.start
    if error.text[start : start + 1] in CLOSING_OF:
        return in_brackets(error)
    line_start = error.line_start(start)
    glued = _GLUED.match(error.line(start))
    if glued:
        return _glued(glued, line_start)
    if error.text[start : start + 1] in QUOTES and "\n" in error.text[start : error.at].strip():
        return unclosed_quote(start, error)
    return Explanation(MISSING_COLON, "`:` is missing: this is neither a key nor a value", "write `key: value`", start)


def open_brackets(error: ErrorContext) -> list[int]:
    """Return the positions of the brackets that are open at the error, judging by quotes and comments."""
    open_at: list[int] = []
    text = error.text
    index = max(error.first, error.at - MOST_SCANNED)
    while index < error.at:
        char = text[index]
        if char in CLOSING_OF:
            if open_at or not text[max(index - 1, 0)].isalnum():
                open_at.append(index)
        elif char in OPENING_OF and open_at:
            open_at.pop()
        elif char in QUOTES and text[index - 1 : index] in ("", " ", ",", "[", "{", ":", "\n", "\t"):
            close = text.find(char, index + 1, error.at)
            index = close if close >= 0 else index
        elif char == "#" and text[index - 1 : index] in ("", " ", "\n", "\t"):
            stop = text.find("\n", index, error.at)
            index = stop if stop >= 0 else error.at
        index += 1
    return open_at


def item_of(text: str) -> str:
    """Return the first value of a text between brackets, up to the comma or bracket that ends it."""
    depth = 0
    for found in re.finditer(r"[\[\]{},]", text):
        char = found.group()
        depth += 1 if char in CLOSING_OF else -1 if char in OPENING_OF else 0
        if depth < 0 or (depth == 0 and char == ","):
            return text[: found.start()].rstrip()
    return text


def _closed_later(error: ErrorContext, closing: str) -> bool:
    """Return whether a bracket opened before the error is closed after it."""
    depth = 0
    for found in re.compile(r"[\[\]{}]").finditer(error.text, error.at, min(error.last, error.at + MOST_SCANNED)):
        depth += 1 if found.group() in CLOSING_OF else -1
        if depth < 0:
            return found.group() == closing
    return False


def in_brackets(error: ErrorContext) -> Explanation:
    """Explain an error between brackets."""
    at = error.at
    open_at = open_brackets(error)
    if open_at:
        last = open_at[-1]
    elif error.began is not None and error.text[error.began : error.began + 1] in CLOSING_OF:
        last = error.began
    else:
        return Explanation("KG0113", f"unexpected `{error.char}`", "quote the value", at, at + 1)
    opening = error.text[last]
    closing = CLOSING_OF[opening]
    new_line = error.line_start(at) != error.line_start(last)
    looks_block = new_line and (_ENTRY.match(error.line(at)) or error.line(at).lstrip().startswith("- "))
    if at >= error.last or (looks_block and not _closed_later(error, closing)):
        return Explanation("KG0113", f"this `{opening}` is never closed", f"close it with `{closing}`", last, last + 1)
    if error.char in OPENING_OF and error.char != closing:
        return Explanation(
            "KG0113", f"`{error.char}` cannot close `{opening}`", f"close it with `{closing}`", at, at + 1
        )
    if error.char == ",":
        return Explanation("KG0113", "a value is missing before `,`", "remove the comma", at, at + 1)
    if error.char == ":" and error.text[at + 1 : at + 2].isspace():
        before = error.before(at).rstrip()
        start = at - len(error.before(at)) + max(before.rfind(char) for char in " \t,[{") + 1
        return Explanation(
            "KG0113", f"`,` or `{closing}` is missing before this", "check for a missing comma", start, at
        )
    if error.char == ":":
        return Explanation("KG0113", "a space is missing after `:`", "write `key: value`, or quote it", at, at + 1)
    return Explanation("KG0113", f"`,` or `{closing}` is missing before this", "check for a missing comma", at, at + 1)


def in_block(error: ErrorContext, *, in_list: bool) -> Explanation:
    """Explain an error among indented keys or items."""
    at = error.at
    before = error.before(at)
    preceding = before.rstrip()
    if error.char in OPENING_OF or error.char == ",":
        return stray_bracket(error)
    if error.char == ":" and not preceding:
        return Explanation("KG0131", "a key is missing before `:`", 'write a key, or "" for an empty one', at, at + 1)
    if preceding[-1:] in QUOTES:
        return _after_quote(error, preceding)
    if preceding[-1:] in OPENING_OF:
        return Explanation(
            "KG0113", f"text after the closing `{preceding[-1]}`", "quote the whole value, or remove the text", at
        )
    if preceding.strip() and not preceding.endswith("-"):
        return Explanation("KG0110", "unexpected text after the value", "quote the whole value", at)
    return _indentation(error, in_list=in_list)


def stray_bracket(error: ErrorContext) -> Explanation:
    """Explain a closing bracket or comma without an opening bracket."""
    hint = "remove it, or quote the value that it belongs to"
    return Explanation("KG0113", f"`{error.char}` has no opening bracket", hint, error.at, error.at + 1)


def _after_quote(error: ErrorContext, preceding: str) -> Explanation:
    quote = preceding[-1]
    if preceding.count(quote) % 2:
        # This quote closes one opened above: the nearest line with an odd number of quotes lacks its own.
        start = error.line_start(error.at)
        while start > error.first:
            start = error.line_start(start - 1)
            line = error.line(start)
            if line.count(quote) % 2:
                return unclosed_quote(start + line.rindex(quote), error)
    return Explanation(
        "KG0112", "text after the closing quote", "quote the whole value; inside the quotes write \\\" or ''", error.at
    )


def _indentation(error: ErrorContext, *, in_list: bool) -> Explanation:
    at = error.at
    column = len(error.before(at))
    level = None if error.began is None else len(error.before(error.began))
    is_item = error.char == "-" and error.text[at + 1 : at + 2] in ("", " ", "\n", "\r")
    glued = _GLUED.match(error.line(at))
    if glued:
        return _glued(glued, error.line_start(at))
    if level is not None and column == level:
        if is_item:
            return Explanation(
                "KG0114", "a list item between keys", "indent the list under the key it belongs to, or remove `- `", at
            )
        if in_list:
            return Explanation(
                "KG0114", "a key between list items", "indent it under its item, or start it with `- `", at
            )
    levels = _levels_above(error)
    near = [
        max((each for each in levels if each < column), default=None),
        min((x for x in levels if x > column), default=None),
    ]
    columns = " or ".join(str(each) for each in near if each is not None)
    return Explanation(
        "KG0114",
        f"this line is indented by {plural(column, 'space')}, which matches no line above",
        f"indent it by {columns} spaces" if columns else "align it with the lines around it",
        at,
    )


def _levels_above(error: ErrorContext) -> set[int]:
    """Return the columns of keys and items in the blocks that are open above a line."""
    levels: set[int] = set()
    lowest = 1 << 30
    above = error.line_before(error.at)
    while above is not None and lowest > 0:
        line = above[1]
        indent = len(line) - len(line.lstrip(" "))
        if indent < lowest:
            lowest = indent
            levels.add(indent)
            marks = re.match(r" *((?:- +)+)\S", line)
            if marks and marks.end() - 1 > indent:
                levels.add(marks.end() - 1)
        error = ErrorContext(error.text, error.first, error.last, above[0], None)
        above = error.line_before(error.at)
    return levels


def after_document(error: ErrorContext) -> Explanation:
    """Explain text after the end of a document's only value."""
    if error.char in OPENING_OF:
        return stray_bracket(error)
    directive = re.compile(r"^%", re.MULTILINE).search(error.text, error.first, error.at + 1)
    if directive:
        return directive_at(directive.start())
    glued = _continued(error, error.at)
    if glued and glued.code == MISSING_COLON:
        return glued
    return Explanation(
        "KG0110",
        "unexpected text after the end of the document's value",
        "start another document with `---`, or indent this under a key",
        error.at,
    )


class Explanation(Struct, frozen=True):
    """An error of a text and its position.

    Attributes:
        code: of the diagnostic.
        message: the error.
        hint: how to fix it.
        start: index into the whole text of the first wrong character.
        end: index after the last one; None for the rest of the line.
    """

    code: str
    message: str
    hint: str
    start: int
    end: int | None = None


class ErrorContext:
    """The text around the position that a parser reports, in one document.

    Attributes:
        text: the whole text; all positions are indexes into it.
        first: where the document begins.
        last: where it ends.
        at: where the parser noticed the error.
        began: where the construct that it was reading began; None when it does not report that.
    """

    def __init__(self, text: str, first: int, last: int, at: int, began: int | None) -> None:
        self.text = text
        self.first = first
        self.last = last
        self.at = min(max(at, first), last)
        self.began = None if began is None else min(max(began, first), last)

    @property
    def start(self) -> int:
        """Where the construct began, or where the parser noticed the error."""
        return self.at if self.began is None else self.began

    @property
    def char(self) -> str:
        """The character at the error; empty at the end of the document."""
        return self.text[self.at] if self.at < self.last else ""

    def line_start(self, index: int) -> int:
        """Return where the line of a position begins."""
        return max(self.text.rfind("\n", self.first, index) + 1, self.first)

    def line(self, index: int) -> str:
        """Return the line of a position, without its line end."""
        stop = self.text.find("\n", index, self.last)
        return self.text[self.line_start(index) : self.last if stop < 0 else stop].rstrip("\r")

    def before(self, index: int) -> str:
        """Return the text before a position on its line."""
        return self.text[self.line_start(index) : index]

    def line_before(self, index: int) -> tuple[int, str] | None:
        """Return the start and text of the nearest line above that is not blank or a comment."""
        start = self.line_start(index)
        while start > self.first:
            start = self.line_start(start - 1)
            line = self.line(start)
            if line.strip() and not line.lstrip().startswith("#"):
                return start, line
        return None
