"""Why a text is not YAML, in the words of the person who wrote it.

libyaml and PyYAML's own parser name the rule that was broken, in different words and sometimes far from the
mistake. Here their messages only choose the question; the answer comes from the text around the place.
"""

from __future__ import annotations

import re

from yaml.error import MarkedYAMLError, YAMLError

from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.yaml.error_context import MOST_SCANNED, OPENING_OF, Finding, Place
from kaigen.yaml.sources import Source
from kaigen.yaml.structure import (
    after_document,
    directive_at,
    in_block,
    in_brackets,
    item_of,
    misplaced_colon,
    missing_colon,
    open_brackets,
    stray_bracket,
    unclosed_quote,
)

_TEMPLATE = re.compile(r"\{\{|\{%")


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
    place = Place(source.text, first, end, problem or first, context)
    found = _finding(error.problem or "", error.context or "", place)
    return Diagnostic(found.code, found.message, source.mark_at(found.start, found.end), found.hint)


def _finding(problem: str, context: str, place: Place) -> Finding:
    if "anchor;" in problem or "duplicate anchor" in (context + problem) or "second occurrence" in problem:
        return _duplicate_anchor(place)
    if "undefined alias" in problem:
        return _undefined_alias(place)
    tab = _tab(problem, place)
    if tab:
        return tab
    if "quoted scalar" in context and ("end of stream" in problem or "document" in problem):
        return unclosed_quote(place.context if place.context is not None else place.at, place)
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
        return Finding(
            "KG0132", "this tag is not supported", "remove it, or quote the value", start, start + 1
        )
    if "directive" in context or "directive" in problem or "incompatible YAML" in problem:
        return _directive(place)
    if "block scalar" in context:
        return _block_scalar(place)
    if "cannot start any token" in problem:
        return _start(place.at, place.char, place)
    if "sequence entries are not allowed" in problem:
        return Finding(
            "KG0114",
            "`- ` cannot stand on the line of its key",
            "put each item on a line of its own, indented under the key",
            place.at,
            place.at + 1,
        )
    if "mapping values are not allowed" in problem:
        return misplaced_colon(place)
    if "mapping keys are not allowed" in problem:
        return Finding("KG0116", "`? ` cannot stand here", "quote the value", place.at, place.at + 1)
    if "could not find expected ':'" in problem:
        return missing_colon(place)
    if "flow" in context or "unexpected ':'" in problem:
        return in_brackets(place)
    if "block collection" in context or "block mapping" in context:
        return in_block(place, in_list="collection" in context)
    if "node content" in problem and place.char in OPENING_OF:
        return stray_bracket(place)
    if "node content" in problem and place.char == ",":
        return _start(place.at, ",", place)
    if "document start" in problem:
        return after_document(place)
    return Finding("KG0110", f"not valid YAML: {problem or context}", "", place.at, place.at + 1)


def _duplicate_anchor(place: Place) -> Finding:
    first = place.text.count("\n", 0, place.context or 0) + 1
    name = re.compile(r"&[^\s,\[\]{}]*").match(place.text, place.at)
    shown = name.group() if name else "&"
    return Finding(
        "KG0137",
        f"the anchor `{shown}` is given twice, first on line {first}",
        "give each anchor a name of its own",
        place.at,
        place.at + len(shown),
    )


def _undefined_alias(place: Place) -> Finding:
    name = re.compile(r"\*[^\s,\[\]{}]*").match(place.text, place.at)
    shown = name.group() if name else "*"
    known = re.findall(
        r"&([^\s,\[\]{}]+)", place.text[place.first : min(place.at, place.first + MOST_SCANNED)]
    )
    hint = ""
    if known:
        from kaigen.diagnostics.suggest import nearest

        close = nearest(shown[1:], known)
        hint = f"did you mean `*{close[0]}`?" if close else ""
    return Finding(
        "KG0136",
        f"`{shown}` refers to no anchor",
        hint or f'quote it where text is meant: "{shown}"',
        place.at,
        place.at + len(shown),
    )


def _tab(problem: str, place: Place) -> Finding | None:
    hint = "YAML takes spaces only: two a level"
    if "tab character" in problem:
        return Finding("KG0111", "a tab indents this line", hint, place.at, place.at + 1)
    # A tab in an indentation breaks other rules too, which are named for their effect, here or a line above.
    for index in {
        place.at,
        place.line_start(place.at) - 1 if place.line_start(place.at) > place.first else place.at,
    }:
        line = place.line(index)
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent and line.strip():
            start = place.line_start(index) + indent.index("\t")
            return Finding("KG0111", "a tab indents this line", hint, start, start + indent.count("\t"))
    if place.char == "\t":
        return Finding("KG0111", "a tab cannot stand here", hint, place.at, place.at + 1)
    return None


def _escape(place: Place) -> Finding:
    at = place.at
    for index in (at, at - 1):
        if place.text[index : index + 1] == "\\":
            at = index
            break
    else:
        at = max(place.text.rfind("\\", place.first, at + 1), place.first)
    shown = place.text[at : at + 2].strip() or "\\"
    return Finding(
        "KG0120",
        f"`{shown}` is no escape in double quotes"
        if shown[1:] not in ("u", "x", "U")
        else f"`{shown}` needs hex digits of a character that exists",
        "write a backslash twice, or use single quotes",
        at,
        at + len(shown),
    )


def _template(place: Place) -> Finding | None:
    for index in (place.at, place.context):
        if index is None:
            continue
        line = place.line(index)
        found = _TEMPLATE.search(line)
        if found and not line[: found.start()].rstrip().endswith(('"', "'")):
            start = place.line_start(index) + found.start()
            return Finding(
                "KG0117",
                "template text is not expanded here, and unquoted it is not YAML",
                "write the value itself, or put quotes around all of it",
                start,
                start + 2,
            )
    return None


def _start(start: int, char: str, place: Place) -> Finding:
    value = place.text[start : place.line_start(start) + len(place.line(start))].strip()
    value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
    if open_brackets(place):
        value = item_of(value)
    quoted = f"'{value}'" if '"' in value or "\\" in value else f'"{value}"'
    hint = f"quote it: {quoted}" if 0 < len(value) <= 40 else "quote it"
    shown = "a backtick" if char == "`" else f"`{char}`"
    return Finding(
        "KG0116", f"an unquoted value cannot start with {shown}", hint, start, start + max(len(value), 1)
    )


def _directive(place: Place) -> Finding:
    start = place.context if place.context is not None else place.at
    start = place.line_start(start)
    if place.text[start : start + 1] != "%":
        start = place.line_start(place.at)
    return directive_at(start)


def _block_scalar(place: Place) -> Finding:
    return Finding(
        "KG0110",
        "only `+`, `-`, an indentation from 1 to 9 and a comment may follow `|` or `>`",
        "start the text on the next line, or quote the value where it is one line",
        place.at,
        place.at + 1,
    )
