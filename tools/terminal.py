"""Text of a terminal as SVG: one font, one row of text a line, colours of ANSI escape sequences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m")
_LINK = re.compile(r"\x1b\]8;;.*?\x1b\\")
"""The start or end of a hyperlink."""
_SIZE = 13
_WIDTH = 7.83
"""Width of a character, in pixels. `textLength` makes it the same with every font."""
_HEIGHT = 19
_MARGIN = 16
_TITLE = 34

_COLOURS = {
    "30": "#64748b",
    "31": "#f87171",
    "32": "#4ade80",
    "33": "#fbbf24",
    "34": "#60a5fa",
    "35": "#c084fc",
    "36": "#22d3ee",
    "90": "#94a3b8",
}
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def terminal_svg(title: str, text: str) -> str:
    """Return a picture of a terminal.

    Args:
        title: the command, in the bar at the top.
        text: its output, with ANSI escape sequences.
    """
    lines = _LINK.sub("", text).rstrip("\n").split("\n")
    columns = max(len(title) + 10, *(len(_SEQUENCE.sub("", line)) for line in lines))
    width = round(columns * _WIDTH) + 2 * _MARGIN
    height = _TITLE + len(lines) * _HEIGHT + 2 * _MARGIN - 6
    rows = [
        f'<text y="{_TITLE + _MARGIN + (number + 1) * _HEIGHT - 8}">{_row(line)}</text>'
        for number, line in enumerate(lines)
        if line
    ]
    dots = "".join(
        f'<circle cx="{_MARGIN + 4 + 18 * number}" cy="17" r="5.5" fill="{colour}"/>'
        for number, colour in enumerate(("#f87171", "#fbbf24", "#4ade80"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">\n'
        f"<style>text {{ font: {_SIZE}px {_FONT}; fill: #e2e8f0; white-space: pre; }}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0f172a"/>\n'
        f'<path d="M0 8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v{_TITLE - 8}h-{width}z" fill="#1e293b"/>\n'
        f"{dots}\n"
        f'<text x="{_MARGIN + 62}" y="22" style="fill:#94a3b8">$ {escape(title)}</text>\n'
        + "\n".join(rows)
        + "\n</svg>\n"
    )


def _row(line: str) -> str:
    """Return the parts of a line, each at its column."""
    parts = []
    column = 0
    for style, text in _styled(line):
        stripped = text.strip(" ")
        start = column + len(text) - len(text.lstrip(" "))
        column += len(text)
        if stripped:
            x, length = _MARGIN + start * _WIDTH, len(stripped) * _WIDTH
            parts.append(f'<tspan x="{x:.1f}" textLength="{length:.1f}"{style}>{escape(stripped)}</tspan>')
    return "".join(parts)


def _styled(line: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a line with the attributes of their style."""
    colour, bold, dim = "", False, False
    position = 0
    for found in [*_SEQUENCE.finditer(line), None]:
        end = found.start() if found else len(line)
        if end > position:
            attributes = f' fill="{colour}" style="fill:{colour}"' if colour else ""
            attributes += ' font-weight="700"' if bold else ""
            attributes += ' opacity="0.65"' if dim else ""
            yield attributes, line[position:end]
        if found is None:
            return
        position = found.end()
        for code in (found[1] or "0").split(";"):
            if code in ("0", ""):
                colour, bold, dim = "", False, False
            bold = bold or code == "1"
            dim = dim or code == "2"
            colour = _COLOURS.get(code, "" if code == "39" else colour)
