"""Prints a change for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kaigen.config.settings import LOCK_NAME
from kaigen.diff.formatting import clean, value
from kaigen.diff.layout import MAX_FIELDS, counts, field_lines, group_apps, headline, more, object_name
from kaigen.diff.model import AppChange, Change, Effect, FieldChange, Level, ObjectChange

MAX_WIDTH = 100
"""The maximum width in columns; longer lines are hard to read."""

_COLORS: dict[str, str] = {"danger": "1;31", "notice": "33", "info": "2", "-": "31", "+": "32", "@": "36", "app": "1"}
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "replaced": "~"}
_SHORT_FIELD = 40


def render_text(change: Change, color: bool = False, width: int = MAX_WIDTH) -> str:
    """Return a change as text for a terminal, ending in a newline.

    Args:
        change: the result of `compare`.
        color: whether to use ANSI colours.
        width: columns of the terminal; at least 60 and at most 100 are used.
    """
    pen = _Pen(color, max(60, min(width, MAX_WIDTH)))
    lines = [headline(change)]
    if change.lock:
        lines += ["", pen.paint(LOCK_NAME, "app")]
        lines += [line for text in change.lock for line in pen.wrap(clean(text), 2, "- ")]
    for app, title in group_apps(change):
        lines.append("")
        lines += _app(app, title, pen)
    return "\n".join(lines) + "\n"


class _Pen:
    """Colour and width of the output."""

    def __init__(self, color: bool, width: int) -> None:
        self.color = color
        self.width = width

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_COLORS[style]}m{text}\x1b[0m" if self.color and text else text

    def wrap(self, text: str, indent: int, first: str = "") -> list[str]:
        """Return the text in lines, with `first` before the first line and the other lines indented to match."""
        lines = textwrap.wrap(text, self.width - indent - len(first), break_long_words=False, break_on_hyphens=False)
        blank = " " * (indent + len(first))
        return [(" " * indent + first if number == 0 else blank) + line for number, line in enumerate(lines)]


def _app(app: AppChange, title: str, pen: _Pen) -> Iterator[str]:
    detail = counts(app)
    yield pen.paint(clean(title), "app") + f" ({clean(app.summary)}){': ' + detail if detail else ''}"
    for effect in app.effects:
        yield from _effect(effect, 2, pen)
    for item in app.objects:
        yield from _object(item, pen)


def _object(item: ObjectChange, pen: _Pen) -> Iterator[str]:
    sign = _SIGNS[item.status]
    yield f"  {pen.paint(sign, sign) if sign != '~' else sign} {object_name(item, '->')} ({item.status})"
    for effect in item.effects:
        yield from _effect(effect, 6, pen)
    for field in item.fields[:MAX_FIELDS]:
        yield from _field(field, pen)
    if len(item.fields) > MAX_FIELDS:
        yield f"      {more(len(item.fields) - MAX_FIELDS, 'field')}"


def _effect(effect: Effect, indent: int, pen: _Pen) -> Iterator[str]:
    label: Level = effect.level
    lines = pen.wrap(clean(effect.text), indent, f"{label}: ")
    head = " " * indent + label
    yield " " * indent + pen.paint(label, label) + lines[0][len(head) :]
    yield from lines[1:]


def _field(field: FieldChange, pen: _Pen) -> Iterator[str]:
    lines = list(field_lines(field))
    if len(lines) == 2:
        short = f"{clean(field.path)}: {value(field.old, _SHORT_FIELD)} -> {value(field.new, _SHORT_FIELD)}"
        if len(short) <= pen.width - 6 and "…" not in short:
            yield f"      {short}"
            return
    for line in lines:
        yield "      " + pen.paint(line, line[0]) if line[0] in "-+@" else f"      {line}"
