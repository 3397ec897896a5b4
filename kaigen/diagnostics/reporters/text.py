"""Text for people: place, message, the underlined line, and the hint."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.reporters.summary import safe_text, sentence
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import unicodedata

    from kaigen.diagnostics import codes


TAB = 4
"""Columns of a tab in an excerpt."""
WIDTH = 120
"""Columns that an excerpt takes at most; more of a line is cut off around the place."""

_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_FRAME = "1;34"
_BOLD = "1"


def render(diagnostics: Sequence[Diagnostic], *, color: bool = False, files: Sequence[str] = ()) -> str:
    """The report."""
    blocks = [_block(item, color) for item in diagnostics]
    closing = sentence(diagnostics, files)
    if closing:
        blocks.append(closing + "\n")
    return "\n".join(blocks)


def _paint(text: str, style: str, color: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if color and text else text


def _one_line(text: str) -> str:
    return safe_text(" ".join(text.split("\n"))).replace("\t", " ")


def _block(item: Diagnostic, color: bool) -> str:
    style = _COLORS[item.severity]
    place = f"{_one_line(str(item.mark))}: " if item.mark else ""
    code = f"\x1b]8;;{codes.code_url(item.code)}\x1b\\{item.code}\x1b]8;;\x1b\\" if color else item.code
    label = _paint(f"{item.severity.label}[{code}]", style, color)
    lines = [f"{_paint(place, _BOLD, color)}{label}: {_paint(_one_line(item.message), _BOLD, color)}"]
    gutter = 1
    mark = item.mark
    if mark and mark.line and mark.column and mark.text.strip():
        number = str(mark.line)
        gutter = len(number)
        bar = _paint("|", _FRAME, color)
        shown, start, length = excerpt(mark)
        lines.append(f"{' ' * gutter} {bar}")
        lines.append(f"{_paint(number, _FRAME, color)} {bar} {shown}")
        lines.append(f"{' ' * gutter} {bar} {' ' * start}{_paint('^' * length, style, color)}")
    for name, text in (("hint", item.hint), ("field", item.path)):
        if text:
            lines.append(f"{' ' * gutter} {_paint('=', _FRAME, color)} {name}: {_one_line(text)}")
    return "\n".join(lines) + "\n"


def excerpt(mark: Mark) -> tuple[str, int, int]:
    """The line of a mark as a terminal shows it, the column at which its place starts, and its width."""
    text = mark.text
    begin = min(mark.column - 1, len(text))
    stop = min(begin + max(mark.length, 1), max(len(text), begin + 1))
    first, last = 0, len(text)
    cells = _cells(text) if len(text) <= 8 * WIDTH else None
    if cells is None or sum(width for _, width in cells) > WIDTH:
        # Some text before the place, and as much as fits after it.
        first = max(0, begin - WIDTH // 3)
        cells = _cells(text[first : first + WIDTH])
        kept, room = 0, WIDTH - 2
        for _, width in cells:
            room -= width
            if room < 0:
                break
            kept += 1
        last = min(first + kept, len(text))
        cells = cells[: last - first]
    shown = "".join(char for char, _ in cells)
    start = sum(width for _, width in cells[: begin - first])
    length = max(1, sum(width for _, width in cells[begin - first : stop - first]))
    if first:
        shown, start = "…" + shown, start + 1
    if last < len(text):
        shown += "…"
    else:
        shown = shown.rstrip()
    return shown, start, length


def _cells(text: str) -> list[tuple[str, int]]:
    """Each character as printed, with its width in columns."""
    if text.isascii() and text.isprintable():
        return [(char, 1) for char in text]
    cells = []
    for char in text:
        if char == "\t":
            cells.append((" " * TAB, TAB))
        elif unicodedata.category(char) in ("Mn", "Me") or char in "\u200b\u200d\ufe0e\ufe0f":
            cells.append((char, 0))
        elif not char.isprintable():
            cells.append(("�", 1))
        else:
            cells.append((char, 2 if unicodedata.east_asian_width(char) in "WF" else 1))
    return cells
