"""Explain why a text is not YAML in terms of what its author wrote.

libyaml names the grammar rule that was broken, sometimes far from the mistake. Its message only selects the explanation
below; the explanation comes from the text around the position.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from yaml.error import MarkedYAMLError, YAMLError

from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.suggest import nearest
from kaigen.yaml.sources import Source
from kaigen.yaml.structure import (
    MOST_SCANNED,
    OPENING_OF,
    ErrorContext,
    Explanation,
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
_TAB_HINT = "use spaces, two for each level"


def explain(error: YAMLError, source: Source, first: int, last: int) -> Diagnostic:
    """Return the diagnostic of a parser's error.

    Args:
        error: the parser's error; its marks count from `first`.
        source: the text.
        first: index at which the document begins.
        last: index at which it ends.
    """
    if not isinstance(error, MarkedYAMLError):
        return Diagnostic("KG0110", f"not valid YAML: {error}", source.mark_at(first, first + 1))
    began = None if error.context_mark is None else first + error.context_mark.index
    at = began if error.problem_mark is None else first + error.problem_mark.index
    # White space at the end belongs to the next document or to none.
    end = first + len(source.text[first:last].rstrip())
    context = ErrorContext(source.text, first, end, at or first, began)
    found = _explanation(error, context)
    return Diagnostic(found.code, found.message, source.mark_at(found.start, found.end), found.hint)


def _explanation(error: MarkedYAMLError, context: ErrorContext) -> Explanation:
    message = f"{error.context or ''} | {error.problem or ''}"
    for pattern, rule in _RULES:
        if re.search(pattern, message):
            explanation = rule(context)
            if explanation is not None:
                return explanation
    reason = error.problem or error.context
    return Explanation("KG0110", f"not valid YAML: {reason}", "", context.at, context.at + 1)


def _duplicate_anchor(error: ErrorContext) -> Explanation:
    first = error.text.count("\n", 0, error.began or 0) + 1
    name = re.compile(r"&[^\s,\[\]{}]*").match(error.text, error.at)
    anchor = name.group() if name else "&"
    return Explanation(
        "KG0137",
        f"duplicate anchor `{anchor}`, first defined on line {first}",
        "rename one of the anchors",
        error.at,
        error.at + len(anchor),
    )


def _undefined_alias(error: ErrorContext) -> Explanation:
    name = re.compile(r"\*[^\s,\[\]{}]*").match(error.text, error.at)
    shown = name.group() if name else "*"
    known = re.findall(r"&([^\s,\[\]{}]+)", error.text[error.first : min(error.at, error.first + MOST_SCANNED)])
    hint = ""
    if known:
        close = nearest(shown[1:], known)
        hint = f"did you mean `*{close[0]}`?" if close else ""
    return Explanation(
        "KG0136",
        f"`{shown}` refers to an unknown anchor",
        hint or f'quote it to make it text: "{shown}"',
        error.at,
        error.at + len(shown),
    )


def _tab(error: ErrorContext) -> Explanation:
    return Explanation("KG0111", "this line is indented with a tab", _TAB_HINT, error.at, error.at + 1)


def _hidden_tab(error: ErrorContext) -> Explanation | None:
    """Explain a tab that the parser reports as another error, on this line or the one below."""
    line_start = error.line_start(error.at)
    for index in {error.at, line_start - 1 if line_start > error.first else error.at}:
        line = error.line(index)
        indent = line[: len(line) - len(line.lstrip())]
        if "\t" in indent and line.strip():
            start = error.line_start(index) + indent.index("\t")
            end = start + indent.count("\t")
            return Explanation("KG0111", "this line is indented with a tab", _TAB_HINT, start, end)
    if error.char == "\t":
        return Explanation("KG0111", "unexpected tab", _TAB_HINT, error.at, error.at + 1)
    return None


def _escape(error: ErrorContext) -> Explanation:
    at = error.at
    for index in (at, at - 1):
        if error.text[index : index + 1] == "\\":
            at = index
            break
    else:
        at = max(error.text.rfind("\\", error.first, at + 1), error.first)
    shown = error.text[at : at + 2].strip() or "\\"
    return Explanation(
        "KG0120",
        f"`{shown}` is not a valid escape in double quotes"
        if shown[1:] not in ("u", "x", "U")
        else f"`{shown}` requires the hex digits of an existing character",
        "write the backslash twice, or use single quotes",
        at,
        at + len(shown),
    )


def _template_text(error: ErrorContext) -> Explanation | None:
    for index in (error.at, error.began):
        if index is None:
            continue
        line = error.line(index)
        found = _TEMPLATE.search(line)
        if found and not line[: found.start()].rstrip().endswith(('"', "'")):
            start = error.line_start(index) + found.start()
            return Explanation(
                "KG0117",
                "templates are not expanded here, and without quotes this is not YAML",
                "write the value itself, or quote the whole value",
                start,
                start + 2,
            )
    return None


def _reserved_start(start: int, char: str, error: ErrorContext) -> Explanation:
    value = error.text[start : error.line_start(start) + len(error.line(start))].strip()
    value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
    if open_brackets(error):
        value = item_of(value)
    quoted = f"'{value}'" if '"' in value or "\\" in value else f'"{value}"'
    hint = f"quote it: {quoted}" if 0 < len(value) <= 40 else "quote it"
    shown = "a backtick" if char == "`" else f"`{char}`"
    return Explanation(
        "KG0116", f"an unquoted value cannot start with {shown}", hint, start, start + max(len(value), 1)
    )


def _alias_start(error: ErrorContext) -> Explanation:
    return _reserved_start(error.start, "*", error)


def _anchor_start(error: ErrorContext) -> Explanation:
    return _reserved_start(error.start, "&", error)


def _indicator_start(error: ErrorContext) -> Explanation:
    return _reserved_start(error.at, error.char, error)


def _missing_node(error: ErrorContext) -> Explanation | None:
    if error.char in OPENING_OF:
        return stray_bracket(error)
    return _reserved_start(error.at, ",", error) if error.char == "," else None


def _tag(error: ErrorContext) -> Explanation:
    start = error.start
    return Explanation("KG0132", "this tag is not supported", "remove it, or quote the value", start, start + 1)


def _list_after_key(error: ErrorContext) -> Explanation:
    return Explanation(
        "KG0114",
        "a list cannot start on the line of its key",
        "put each item on a line of its own, indented under the key",
        error.at,
        error.at + 1,
    )


def _explicit_key(error: ErrorContext) -> Explanation:
    return Explanation("KG0116", "unexpected `? `", "quote the value", error.at, error.at + 1)


def _unclosed_quote(error: ErrorContext) -> Explanation:
    return unclosed_quote(error.start, error)


def _in_list(error: ErrorContext) -> Explanation:
    return in_block(error, in_list=True)


def _in_mapping(error: ErrorContext) -> Explanation:
    return in_block(error, in_list=False)


def _directive(error: ErrorContext) -> Explanation:
    start = error.line_start(error.start)
    if error.text[start : start + 1] != "%":
        start = error.line_start(error.at)
    return directive_at(start)


def _block_scalar(error: ErrorContext) -> Explanation:
    return Explanation(
        "KG0110",
        "only `+`, `-`, an indentation from 1 to 9 and a comment may follow `|` or `>`",
        "start the text on the next line, or quote a value of one line",
        error.at,
        error.at + 1,
    )


_RULES: tuple[tuple[str, Callable[[ErrorContext], Explanation | None]], ...] = (
    (r"duplicate anchor|second occurrence", _duplicate_anchor),
    (r"undefined alias", _undefined_alias),
    (r"\| .*tab character", _tab),
    (r"", _hidden_tab),
    (r"quoted scalar.* \| .*(?:end of stream|document)", _unclosed_quote),
    (r"\| .*(?:escape|hexdecimal|hexadecimal)", _escape),
    (r"", _template_text),
    (r"scanning an alias", _alias_start),
    (r"scanning an anchor", _anchor_start),
    (r"\btag\b(?!>)", _tag),
    (r"directive|incompatible YAML", _directive),
    (r"block scalar.* \|", _block_scalar),
    (r"cannot start any token", _indicator_start),
    (r"sequence entries are not allowed", _list_after_key),
    (r"mapping values are not allowed", misplaced_colon),
    (r"mapping keys are not allowed", _explicit_key),
    (r"could not find expected ':'", missing_colon),
    (r"flow.* \||unexpected ':'", in_brackets),
    (r"block collection.* \|", _in_list),
    (r"block mapping.* \|", _in_mapping),
    (r"node content", _missing_node),
    (r"document start", after_document),
)
"""Explanations by libyaml's message, `context | problem`; the first that matches and applies is used."""
