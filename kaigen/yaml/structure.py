"""Mistakes in what holds values together: quotes, colons, brackets and indentation."""

from __future__ import annotations

import re

from kaigen.yaml.error_context import CLOSING_OF, MOST_SCANNED, OPENING_OF, QUOTES, Finding, Place

_GLUED = re.compile(r"[ ]*(?:- +)*([A-Za-z_][\w./-]*):(?![ \t\r\n/]|$)(\S.*)")
_ENTRY = re.compile(r"[ ]*(?:- +)*(?:[^\s\"'#\[{][^#]*?|\"[^\"]*\"|'[^']*'):(?:[ \t]|$)")


def unclosed_quote(start: int, place: Place) -> Finding:
    """A quote that nothing closes."""
    quote = place.text[start] if place.text[start : start + 1] in QUOTES else '"'
    hint = f"close it with `{quote}`"
    if quote == "'":
        hint += "; an apostrophe inside is written twice, or the text stands in double quotes"
    return Finding("KG0112", f"this {QUOTES[quote]} quote is never closed", hint, start)


def directive_at(start: int) -> Finding:
    """A line that starts with `%`."""
    return Finding(
        "KG0116",
        "a line that starts with `%` is a directive to the parser",
        "quote it where text is meant",
        start,
    )


def misplaced_colon(place: Place) -> Finding:
    """A colon where no key can be."""
    before = place.before(place.at)
    entry = _ENTRY.match(before)
    line = place.line(place.at)
    if entry and before[entry.end() :].strip():
        start = place.line_start(place.at) + entry.end()
        start += len(before) - len(before[entry.end() :].lstrip()) - entry.end()
        value = line[start - place.line_start(place.at) :].rstrip()
        quoted = f"'{value}'" if '"' in value or "\\" in value else f'"{value}"'
        return Finding(
            "KG0115",
            "an unquoted value cannot hold `: `",
            f"quote it: {quoted}" if len(value) <= 60 else "quote the value",
            start,
        )
    return _continued(place, place.at) or Finding(
        "KG0115", "`:` cannot stand here", "quote the value that it belongs to", place.at, place.at + 1
    )


def _continued(place: Place, index: int) -> Finding | None:
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
        return Finding(
            "KG0114",
            f"this line is indented under `{key}`, which has a value already",
            "indent it like the line above, or remove that value",
            at,
        )
    if not _ENTRY.match(line) and line.rstrip()[-1:] not in ("]", "}", '"', "'"):
        at = start + len(line) - len(line.lstrip())
        return Finding(
            "KG0118", "`:` is missing: this is neither a key nor a value", "write `key: value`", at
        )
    return None


def _glued(found: re.Match[str], line_start: int) -> Finding:
    key, value = found.groups()
    shown = f"{key}: {value.strip()}"
    return Finding(
        "KG0118",
        f"a space is missing after `{key}:`",
        f"write `{shown}`" if len(shown) <= 60 else f"write `{key}: …`",
        line_start + found.start(1),
        line_start + found.end(1) + 1,
    )


def missing_colon(place: Place) -> Finding:
    """A line that is no key and no value, among keys."""
    start = place.context if place.context is not None else place.at
    if place.text[start : start + 1] in CLOSING_OF:
        return in_brackets(place)
    line_start = place.line_start(start)
    glued = _GLUED.match(place.line(start))
    if glued:
        return _glued(glued, line_start)
    if place.text[start : start + 1] in QUOTES and "\n" in place.text[start : place.at].strip():
        return unclosed_quote(start, place)
    return Finding("KG0118", "`:` is missing: this is neither a key nor a value", "write `key: value`", start)


def open_brackets(place: Place) -> list[int]:
    """Where brackets are open at the place, as far as a look at quotes and comments can tell."""
    open_at: list[int] = []
    text = place.text
    index = max(place.first, place.at - MOST_SCANNED)
    while index < place.at:
        char = text[index]
        if char in CLOSING_OF:
            if open_at or not text[max(index - 1, 0)].isalnum():
                open_at.append(index)
        elif char in OPENING_OF and open_at:
            open_at.pop()
        elif char in QUOTES and text[index - 1 : index] in ("", " ", ",", "[", "{", ":", "\n", "\t"):
            close = text.find(char, index + 1, place.at)
            index = close if close >= 0 else index
        elif char == "#" and text[index - 1 : index] in ("", " ", "\n", "\t"):
            stop = text.find("\n", index, place.at)
            index = stop if stop >= 0 else place.at
        index += 1
    return open_at


def item_of(text: str) -> str:
    """The first value of a text between brackets: what stands before a comma or bracket that ends it."""
    depth = 0
    for found in re.finditer(r"[\[\]{},]", text):
        char = found.group()
        depth += 1 if char in CLOSING_OF else -1 if char in OPENING_OF else 0
        if depth < 0 or (depth == 0 and char == ","):
            return text[: found.start()].rstrip()
    return text


def _closed_later(place: Place, closing: str) -> bool:
    """Whether a bracket closes behind the place that none behind it opens."""
    depth = 0
    for found in re.compile(r"[\[\]{}]").finditer(
        place.text, place.at, min(place.last, place.at + MOST_SCANNED)
    ):
        depth += 1 if found.group() in CLOSING_OF else -1
        if depth < 0:
            return found.group() == closing
    return False


def in_brackets(place: Place) -> Finding:
    """Something wrong between brackets."""
    at = place.at
    open_at = open_brackets(place)
    if open_at:
        last = open_at[-1]
    elif place.context is not None and place.text[place.context : place.context + 1] in CLOSING_OF:
        last = place.context
    else:
        return Finding("KG0113", f"`{place.char}` cannot stand here", "quote the value", at, at + 1)
    opening = place.text[last]
    closing = CLOSING_OF[opening]
    new_line = place.line_start(at) != place.line_start(last)
    looks_block = new_line and (_ENTRY.match(place.line(at)) or place.line(at).lstrip().startswith("- "))
    if at >= place.last or (looks_block and not _closed_later(place, closing)):
        return Finding(
            "KG0113", f"this `{opening}` is never closed", f"close it with `{closing}`", last, last + 1
        )
    if place.char in OPENING_OF and place.char != closing:
        return Finding(
            "KG0113", f"`{place.char}` cannot close `{opening}`", f"close it with `{closing}`", at, at + 1
        )
    if place.char == ",":
        return Finding("KG0113", "a value is missing before `,`", "remove the comma", at, at + 1)
    if place.char == ":" and place.text[at + 1 : at + 2].isspace():
        before = place.before(at).rstrip()
        start = at - len(place.before(at)) + max(before.rfind(char) for char in " \t,[{") + 1
        return Finding(
            "KG0113", f"`,` or `{closing}` is expected before this", "a comma may be missing", start, at
        )
    if place.char == ":":
        return Finding(
            "KG0113", "`:` needs a space behind it here", "write `key: value`, or quote it", at, at + 1
        )
    return Finding(
        "KG0113", f"`,` or `{closing}` is expected before this", "a comma may be missing", at, at + 1
    )


def in_block(place: Place, *, in_list: bool) -> Finding:
    """Something wrong among indented keys or items."""
    at = place.at
    before = place.before(at)
    said = before.rstrip()
    if place.char in OPENING_OF or place.char == ",":
        return stray_bracket(place)
    if place.char == ":" and not said:
        return Finding(
            "KG0131", "a key is missing before `:`", 'write a key, or "" for an empty one', at, at + 1
        )
    if said[-1:] in QUOTES:
        return _after_quote(place, said)
    if said[-1:] in OPENING_OF:
        return Finding(
            "KG0113",
            f"text behind the closing `{said[-1]}`",
            "put quotes around all of the value, or remove it",
            at,
        )
    if said.strip() and not said.endswith("-"):
        return Finding("KG0110", "this cannot follow the value before it", "quote all of the value", at)
    return _indentation(place, in_list=in_list)


def stray_bracket(place: Place) -> Finding:
    """A closing bracket or a comma that nothing opened."""
    hint = "remove it, or quote the value that it belongs to"
    return Finding("KG0113", f"`{place.char}` has no opening bracket", hint, place.at, place.at + 1)


def _after_quote(place: Place, said: str) -> Finding:
    quote = said[-1]
    if said.count(quote) % 2:
        # The quote that closes here was opened above, where the nearest line with an odd one forgot to.
        start = place.line_start(place.at)
        while start > place.first:
            start = place.line_start(start - 1)
            line = place.line(start)
            if line.count(quote) % 2:
                return unclosed_quote(start + line.rindex(quote), place)
    return Finding(
        "KG0112",
        "text behind the closing quote",
        "put the quotes around all of the value; inside them write \\\" or ''",
        place.at,
    )


def _indentation(place: Place, *, in_list: bool) -> Finding:
    at = place.at
    column = len(place.before(at))
    level = None if place.context is None else len(place.before(place.context))
    is_item = place.char == "-" and place.text[at + 1 : at + 2] in ("", " ", "\n", "\r")
    glued = _GLUED.match(place.line(at))
    if glued:
        return _glued(glued, place.line_start(at))
    if level is not None and column == level:
        if is_item:
            return Finding(
                "KG0114",
                "a list item stands among keys",
                "indent the list under the key it belongs to, or remove `- `",
                at,
            )
        if in_list:
            return Finding(
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
    return Finding(
        "KG0114",
        f"this line is indented by {spaces}, which fits no line above",
        f"line it up with one of them: {wanted} spaces" if wanted else "line it up with its neighbours",
        at,
    )


def _levels_above(place: Place) -> set[int]:
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
        place = Place(place.text, place.first, place.last, above[0], None)
        above = place.line_before(place.at)
    return levels


def after_document(place: Place) -> Finding:
    """Text behind the end of the only value of a document."""
    if place.char in OPENING_OF:
        return stray_bracket(place)
    directive = re.compile(r"^%", re.MULTILINE).search(place.text, place.first, place.at + 1)
    if directive:
        return directive_at(directive.start())
    glued = _continued(place, place.at)
    if glued and glued.code == "KG0118":
        return glued
    return Finding(
        "KG0110",
        "the document's value ended before this",
        "start another document with `---`, or indent this under a key",
        place.at,
    )
