"""Moving values of a YAML or JSON text into blocks: comments, order and formatting stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source

Moves = Mapping[int, Sequence[tuple[FieldPath, FieldPath]]]
"""Where values are and where they belong, by the index of their document. The new place is a field of a block that is a
sibling of the old place, or the old place itself."""

_AFTER = re.compile(r"[ \t]*(?:,[ \t]*)?")
_BEFORE = re.compile(r",[ \t]*\Z")


def move_values(source: Source, moves: Moves, expected: Callable[[int, Any], Any]) -> str | None:
    """Return a text with values moved; None when that would change something else, as with an anchor.

    Args:
        source: the text.
        moves: the values.
        expected: returns the data of a document afterwards, by its index and its data.
    """
    pieces: dict[tuple[int, int], str] = {}
    documents = parse(source, Diagnostics())
    for document in documents:
        groups: dict[FieldPath, list[tuple[FieldPath, str]]] = {}
        for old, new in moves.get(document.index, ()):
            groups.setdefault(new[:-1], []).append((old, str(new[-1])))
        for block, members in groups.items():
            added = _pieces(source, document, block, members)
            if added is None:
                return None
            pieces |= added
    text = source.text
    for (start, end), new_text in sorted(pieces.items(), reverse=True):
        text = text[:start] + new_text + text[end:]
    problems = Diagnostics()
    found = [document.data for document in parse(Source(source.path, text), problems)]
    wanted = [expected(document.index, document.data) for document in documents]
    return text if found == wanted and not problems.has_errors else None


def _pieces(
    source: Source, document: Document, block: FieldPath, members: list[tuple[FieldPath, str]]
) -> dict[tuple[int, int], str] | None:
    """Return the texts that replace others: the block in the place of one of its values, and nothing in that of others.

    Args:
        source: the text.
        document: a document of it.
        block: path of the block.
        members: where its values are, and their names in the block.
    """
    is_json = source.file.lower().endswith(".json")
    texts: dict[FieldPath, tuple[int, int]] = {}
    for old, _ in members:
        span = document.span(old)
        if span is None:
            return None
        texts[old] = span
    first, name = next(((old, name) for old, name in members if old == block), members[0])
    ordered = [(first, name), *((old, each) for old, each in members if old != first)]
    inner = ", ".join(f"{_key(each, is_json=is_json)}: {source.text[slice(*texts[old])]}" for old, each in ordered)
    pieces = {texts[first]: f"{{{inner}}}"}
    if first != block:
        key = _key_span(document, first)
        if key is None:
            return None
        pieces[key] = _key(str(block[-1]), is_json=is_json)
    for old, _ in ordered[1:]:
        key = _key_span(document, old)
        if key is None:
            return None
        place, rest = remove_text(source.text, key[0], texts[old][1], in_braces=document.is_flow(old[:-1]))
        pieces[place] = rest
    return pieces


def _key_span(document: Document, path: FieldPath) -> tuple[int, int] | None:
    """Return where the key at the end of a path starts and ends in the text; None where there is none."""
    pair = document.pair(path)
    return (pair[0].start_mark.index, pair[0].end_mark.index) if pair is not None else None


def _key(name: str, *, is_json: bool) -> str:
    return f'"{name}"' if is_json else name


def remove_text(text: str, start: int, end: int, *, in_braces: bool) -> tuple[tuple[int, int], str]:
    """Return the place of a member of a mapping with what separates it from the others, and what is left there."""
    if in_braces:
        before = _BEFORE.search(text, 0, start)
        if before is not None:
            return (before.start(), end), ""
        after = _AFTER.match(text, end)
        return (start, after.end() if after else end), ""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    comment = text[end:line_end].strip()
    if comment:
        return (start, line_end), comment
    return (line_start, min(line_end + 1, len(text))), ""
