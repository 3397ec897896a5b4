"""Names in a YAML text, changed, added and removed: comments, order and formatting of the rest stay."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from yaml.nodes import CollectionNode, Node

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.yaml.document import Document, parse
from kaigen.yaml.moves import remove_text
from kaigen.yaml.sources import Source

Pieces = dict[tuple[int, int], str]
"""Texts by the place of what they replace."""


class NameChange(Struct, frozen=True):
    """A change of one name.

    Attributes:
        document: the document.
        path: the value or the key.
        action: `set` another value; `rename` a key; `copy` a key with its value to another key; `drop` a key, or the
            entry of a list; `add` an entry to the list of this entry, or make a list of a value.
        name: the other name.
    """

    document: Document
    path: FieldPath
    action: Literal["set", "rename", "copy", "drop", "add"]
    name: str = ""


def change_names(source: Source, changes: Sequence[NameChange]) -> str | None:
    """Return a text with changed names; None when it cannot be changed without changing something else.

    Args:
        source: the text.
        changes: the changes; their documents are those of the text.
    """
    pieces: Pieces = {}
    for change in changes:
        found = _pieces(source.text, change)
        if found is None:
            return None
        pieces |= found
    text = source.text
    for (start, end), new in sorted(pieces.items(), reverse=True):
        text = text[:start] + new + text[end:]
    problems = Diagnostics()
    documents = parse(source, Diagnostics())
    data = {each.index: copy.deepcopy(each.data) for each in documents}
    # From the end, so that the entries of a list keep their numbers.
    for change in sorted(changes, key=lambda each: [str(step).rjust(9) for step in each.path], reverse=True):
        _apply(data[change.document.index], change)
    same = [each.data for each in parse(Source(source.path, text), problems)] == [*data.values()]
    return text if same and not problems.has_errors else None


def insert_after(text: str, pair: tuple[Node, Node], member: str, *, flow: bool) -> str:
    """Return a text with another member of a mapping after one.

    Args:
        text: the text.
        pair: key and value of the one.
        member: the other, on one line.
        flow: whether the mapping is written in braces.
    """
    key, value = pair
    if flow:
        stop = value.end_mark.index
        return f"{text[:stop]}, {member}{text[stop:]}"
    _, last = _lines(text, key.start_mark.index, _last(value))
    before = text[:last] if text[:last].endswith("\n") else f"{text[:last]}\n"
    return f"{before}{' ' * key.start_mark.column}{member}\n{text[last:]}"


def _apply(data: Any, change: NameChange) -> None:
    *above, last = change.path
    for step in above:
        data = data[step]
    if change.action == "set":
        data[last] = change.name
    elif change.action == "drop":
        del data[last]
    elif change.action == "add":
        if isinstance(data, list):
            data.insert(int(last) + 1, change.name)
        else:
            data[last] = [data[last], change.name]
    else:
        data[change.name] = copy.deepcopy(data[last]) if change.action == "copy" else data.pop(last)


def _pieces(text: str, change: NameChange) -> Pieces | None:
    document, path = change.document, change.path
    in_list, flow = isinstance(path[-1], int), document.is_flow(path[:-1])
    pair = document.pair(path)
    if change.action in ("rename", "copy") or (change.action == "drop" and not in_list):
        return None if pair is None else _of_key(text, change, pair, flow=flow)
    span = document.span(path)
    if span is None:
        return None
    start, end = span
    quote = text[start] if text[start] in "\"'" else ""
    new = f"{quote}{change.name}{quote}"
    if change.action == "set":
        return {span: new}
    if change.action == "drop":
        place, rest = remove_text(text, start, end, in_braces=True) if flow else (_lines(text, start, end), "")
        return {place: rest}
    if not in_list:
        return {span: f"[{text[start:end]}, {new}]"}
    if flow:
        return {(end, end): f", {new}"}
    first, last = _lines(text, start, end)
    return {(last, last): text[first:start] + new + "\n"}


def _of_key(text: str, change: NameChange, pair: tuple[Node, Node], *, flow: bool) -> Pieces:
    key, value = pair
    start, end = key.start_mark.index, key.end_mark.index
    quote = text[start] if text[start] in "\"'" else ""
    if change.action == "rename":
        return {(start, end): f"{quote}{change.name}{quote}"}
    stop = value.end_mark.index
    if flow:
        if change.action == "copy":
            return {(stop, stop): f", {quote}{change.name}{quote}{text[end:stop]}"}
        place, rest = remove_text(text, start, stop, in_braces=True)
        return {place: rest}
    first, last = _lines(text, start, _last(value))
    if change.action == "drop":
        return {(first, last): ""}
    return {(last, last): f"{text[first:start]}{quote}{change.name}{quote}{text[end:last]}"}


def _last(node: Node) -> int:
    """Return where the last line of a value is, without the comments and blank lines after it."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    return int(end.index) if end.column else max(int(end.index) - 1, int(node.start_mark.index))


def _lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the lines of a place start and end, with the line end."""
    stop = text.find("\n", end)
    return text.rfind("\n", 0, start) + 1, len(text) if stop < 0 else stop + 1
