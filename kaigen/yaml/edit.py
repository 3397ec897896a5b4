"""Changes single values of a YAML text; comments and formatting stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from kaigen.diagnostics.collector import Diagnostics
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source

_LINE_END = re.compile(r"\r?$|\r?(?=\n)", re.MULTILINE)
_COMMENT = re.compile(r"[ \t]#")


class Edit(Struct, frozen=True):
    """A new value of a field.

    Attributes:
        document: the document.
        path: the field; its last step may be new in the mapping.
        value: the new value.
        after: existing field of the same mapping that a new field follows.
        note: comment for the end of the line; empty for none.
        old_note: the comment that it replaces.
    """

    document: Document
    path: tuple[str | int, ...]
    value: str
    after: str = ""
    note: str = ""
    old_note: str = ""


def edit_text(source: Source, edits: Sequence[Edit]) -> str | None:
    """Return a text with new values; None when it cannot be changed without changing something else.

    Args:
        source: the text.
        edits: the changes; their documents are those of the text.
    """
    for with_notes in (True, False):
        pieces: dict[tuple[int, int], str] = {}
        for edit in edits:
            pieces |= _pieces(source, edit, with_notes=with_notes and not source.path.endswith(".json"))
        text = source.text
        for (start, end), new in sorted(pieces.items(), reverse=True):
            text = text[:start] + new + text[end:]
        if _data(Source(source.path, text)) == _expected(source, edits):
            return text
    return None


def _pieces(source: Source, edit: Edit, *, with_notes: bool) -> dict[tuple[int, int], str]:
    """Return the texts to insert, by the place of what they replace."""
    text = source.text
    span = edit.document.span(edit.path)
    pieces: dict[tuple[int, int], str] = {}
    if span is not None:
        start, end = span
        quote = text[start] if text[start] in "\"'" else ""
        pieces[start, end] = f"{quote}{edit.value}{quote}"
    else:
        sibling = (*edit.path[:-1], edit.after)
        place = edit.document.span(sibling)
        if place is None:
            return {}
        end = place[1]
        field = _field(source, edit)
        if edit.document.is_flow(edit.path[:-1]):
            pieces[end, end] = f", {field}"
        else:
            key = edit.document.mark(sibling, key=True)
            note = f" # {edit.note}" if edit.note and with_notes else ""
            line_end = _line_end(text, end)
            newline = "\r\n" if "\r\n" in text else "\n"
            pieces[line_end, line_end] = f"{newline}{' ' * (key.column - 1)}{field}{note}"
            return pieces
    if edit.note and with_notes:
        pieces |= _note(text, end, edit)
    return pieces


def _field(source: Source, edit: Edit) -> str:
    name = str(edit.path[-1])
    return f'"{name}": "{edit.value}"' if source.path.endswith(".json") else f"{name}: {edit.value}"


def _note(text: str, end: int, edit: Edit) -> dict[tuple[int, int], str]:
    line_end = _line_end(text, end)
    comment = _COMMENT.search(text, end, line_end)
    if comment is None:
        return {(line_end, line_end): f" # {edit.note}"}
    if edit.old_note:
        return {}  # The same name is there already.
    return {(comment.end(), comment.end()): f" {edit.note};"}


def _line_end(text: str, start: int) -> int:
    found = _LINE_END.search(text, start)
    return found.start() if found else len(text)


def _data(source: Source) -> list[Any] | None:
    problems = Diagnostics()
    documents = parse(source, problems)
    return None if problems.has_errors else [document.data for document in documents]


def _expected(source: Source, edits: Sequence[Edit]) -> list[Any] | None:
    data = _data(source)
    if data is None:
        return None
    numbers = {document.index: number for number, document in enumerate(parse(source, Diagnostics()))}
    for edit in edits:
        node: Any = data[numbers[edit.document.index]]
        for step in edit.path[:-1]:
            node = node[step]
        node[edit.path[-1]] = edit.value
    return data
