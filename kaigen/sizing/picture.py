"""A plan as an SVG or PNG: a bar for each GPU of a replica, with its memory."""

from __future__ import annotations

import re
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from msgspec import Struct

from kaigen.core.text import plural, printable
from kaigen.sizing.format import hardware_text
from kaigen.sizing.plan import gib_text, layout_text

if TYPE_CHECKING:
    from kaigen.sizing.plan import Plan


_FONTS = Path(__file__).parent / "fonts"
_FAMILY = "DejaVu Sans"
_SCALE = 2
"""Pixels per unit of the SVG."""
_DARK = re.compile(r"@media [^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}\n?")
_VALUE = re.compile(r"--([a-z-]+): ([^;]+);\s*")
_USE = re.compile(r"var\(--([a-z-]+)\)")
_UNKNOWN = re.compile("[^\n -~\u00a0-\u00ff\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2192\ufffd]")
"""Characters that the fonts do not have; see `fonts/README.md`."""

_WIDTH = 780
_MARGIN = 20
_LABEL = 168
"""Width of the label to the left of a bar: the GPU and two words."""
_WORD = 48
"""Additional width for a third word."""
_BAR = 18
_STEP = 24
_MOST_NODES = 4
"""Maximum number of drawn nodes; the others look the same."""
_DIGIT = 7
"""Width of a digit on the axis."""
_NARROW, _WIDE = frozenset(" !'()*,-./:;I[]fijlrt|"), frozenset("%@MWmw—…")
_TITLE, _TEXT = 15, 12 * 0.85
"""Font sizes of the style sheet."""


class _Part(Struct, frozen=True):
    """A segment of a bar: its class in the style sheet, its name and its size."""

    look: str
    name: str
    gib: float


def _parts(plan: Plan) -> list[_Part]:
    memory = plan.memory
    return [
        _Part("weights", "weights", memory.weights + memory.draft),
        _Part("cache", "KV cache", memory.kv_cache),
        _Part("runtime", "runtime", memory.runtime),
        _Part("activations", "activations", memory.activations),
        _Part("free", "free for more cache", max(0.0, memory.free)),
        _Part("rest", "not the engine's", memory.usable - memory.budget),
    ]


def read_style() -> str:
    """Return the style sheet of the picture, with a light and a dark theme."""
    return (Path(__file__).parent / "picture.css").read_text(encoding="utf-8")


def render_svg(plan: Plan, style: str | None = None) -> str:
    """Return the picture as an SVG file.

    Args:
        plan: the plan.
        style: style sheet; default: `read_style()`.
    """
    drawn = min(plan.nodes, _MOST_NODES)
    parts: list[str] = []
    y = 92
    for node in range(drawn):
        parts += _node(plan, node, y)
        y += _node_height(plan) + 12
    if plan.nodes > drawn:
        parts.append(
            f'<text class="faint" x="{_MARGIN}" y="{y + 8}">and {plural(plan.nodes - drawn, "node")} more alike</text>'
        )
        y += 24
    parts += _axis(plan, y)
    y += 34
    parts += _legend(plan, y)
    height = y + 80
    name = printable(plan.facts.name, "\ufffd")
    title = f"{name} on {hardware_text(plan)}"
    load, replicas = plan.load, plan.request.replicas
    where = f"{hardware_text(plan)}: {layout_text(plan.layout)}"
    elements = (
        f"{plural(load.concurrency, 'sequence')} of {plural(load.context, 'token')} at once, "
        f"of {plan.max_concurrency} that would fit" + (f", in each of {replicas} replicas" if replicas > 1 else "")
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="kp" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">\n'
        f"<style>\n{read_style() if style is None else style}</style>\n"
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>\n'
        f'<text class="title" x="{_MARGIN}" y="32">{escape(_fit_text(name, _TITLE))}</text>\n'
        f'<text class="faint" x="{_MARGIN}" y="53">{escape(_fit_text(where, _TEXT))}</text>\n'
        f'<text class="faint" x="{_MARGIN}" y="72">{escape(_fit_text(elements, _TEXT))}</text>\n'
        + "".join(f"{part}\n" for part in parts)
        + "</svg>\n"
    )


def _em(letter: str) -> float:
    """Return the approximate width of a bold letter, in units of the font size."""
    if letter in _NARROW:
        return 0.45
    if letter in _WIDE or not letter.isascii():
        return 1.0
    return 0.8 if letter.isupper() else 0.73


def _fit_text(text: str, size: float) -> str:
    """Return a text shortened in the middle to fit the width."""
    room = (_WIDTH - 2 * _MARGIN) / size
    shown, kept = text, len(text)
    while sum(map(_em, shown)) > room:
        kept = min(kept, 200) - 1
        shown = f"{text[: kept // 3]}…{text[kept // 3 - kept :]}"
    return shown


def _node_height(plan: Plan) -> int:
    return 28 + plan.hardware.count * _STEP + 6


def _x(plan: Plan, gib: float) -> float:
    """Return the x coordinate of a number of GiB."""
    layout = plan.layout
    label = _LABEL + (_WORD if min(layout.dp, layout.pp, layout.tp) > 1 else 0)
    room = _WIDTH - 2 * _MARGIN - label - 16
    return round(_MARGIN + label + room * gib / plan.memory.usable, 1)


def _unit(plan: Plan) -> str:
    """Return what a bar represents."""
    return "slice" if plan.hardware.mig else "GPU"


def _node(plan: Plan, node: int, top: int) -> list[str]:
    width = _WIDTH - 2 * _MARGIN
    name = f"node {node + 1}" if plan.nodes > 1 else "node"
    elements = [
        f'<rect class="frame" x="{_MARGIN}" y="{top}" width="{width}" height="{_node_height(plan)}" rx="8"/>',
        f'<text class="small" x="{_MARGIN + 12}" y="{top + 19}">{name}</text>',
    ]
    for index in range(plan.hardware.count):
        elements += _gpu(plan, node, index, top + 28 + index * _STEP)
    return elements


def _gpu(plan: Plan, node: int, index: int, y: int) -> list[str]:
    busy = plan.layout.gpus // plan.nodes
    name = f"{_unit(plan)} {index}"
    start = _x(plan, 0)
    if index >= busy:
        width = round(_x(plan, plan.memory.usable) - start, 1)
        return [
            f'<text class="faint" x="{_MARGIN + 12}" y="{y + 13}">{name}<tspan dx="7">not used</tspan></text>',
            f'<rect class="idle" x="{start}" y="{y}" width="{width}" height="{_BAR}" rx="3"/>',
        ]
    role = _role(plan, node * busy + index)
    elements = [
        f'<text x="{_MARGIN + 12}" y="{y + 13}">{name}<tspan class="faint" dx="7">{escape(role)}</tspan></text>'
    ]
    begun = 0.0
    for part in _parts(plan):
        left, right = _x(plan, begun), _x(plan, begun + part.gib)
        begun += part.gib
        elements.append(
            f'<rect class="{part.look}" x="{left}" y="{y}" width="{round(right - left, 1)}" height="{_BAR}">'
            f"<title>{escape(part.name)}: {gib_text(part.gib)} GiB</title></rect>"
        )
    edge = _x(plan, plan.memory.budget)
    elements.append(f'<path class="budget" d="M{edge} {y - 2}v{_BAR + 4}"/>')
    return elements


def _role(plan: Plan, rank: int) -> str:
    """Return the role of a GPU by its rank in the replica: its copy, stage and shard."""
    layout = plan.layout
    each = layout.tp * layout.pp
    parts = []
    if layout.dp > 1:
        parts.append(f"copy {rank // each + 1}")
    if layout.pp > 1:
        parts.append(f"stage {rank % each // layout.tp + 1}")
    if layout.tp > 1:
        parts.append(f"part {rank % layout.tp + 1}")
    return " ".join(parts)


def _axis(plan: Plan, y: int) -> list[str]:
    """Return the axis below the bars, in GiB."""
    usable = plan.memory.usable
    step = next(size for size in (1, 2, 5, 10, 20, 50, 100) if usable / size <= 10)
    elements = [f'<text class="small right" x="{_x(plan, 0) - 14}" y="{y + 11}">GiB</text>']
    end = _x(plan, usable)
    last = f"{usable:.1f}"
    for number in range(ceil(usable / step)):
        label = str(number * step)
        x = _x(plan, number * step)
        if end - x < _DIGIT * (len(last) + len(label) / 2) + 4:
            break
        elements.append(f'<path class="tick" d="M{x} {y - 6}v5"/>')
        elements.append(f'<text class="small middle" x="{x}" y="{y + 11}">{label}</text>')
    elements.append(f'<path class="tick" d="M{end} {y - 6}v5"/>')
    elements.append(f'<text class="small right" x="{end}" y="{y + 11}">{last}</text>')
    return elements


def _legend(plan: Plan, y: int) -> list[str]:
    elements = []
    for index, part in enumerate(_parts(plan)):
        x = _MARGIN + 12 + index % 3 * 245
        line = y + 12 + index // 3 * 24
        elements.append(f'<rect class="{part.look}" x="{x}" y="{line - 10}" width="12" height="12" rx="2"/>')
        elements.append(
            f'<text x="{x + 18}" y="{line}">{escape(part.name)}'
            f'<tspan class="faint" dx="6">{gib_text(part.gib)} GiB</tspan></text>'
        )
    memory = plan.memory
    elements.append(
        f'<text class="small" x="{_MARGIN + 12}" y="{y + 62}">the fullest {_unit(plan)}; dashed: its budget, '
        f"{memory.budget:.1f} of {memory.usable:.1f} GiB</text>"
    )
    return elements


def light_style(style: str) -> str:
    """Return the style sheet with the light theme only, and colours in place of variables."""
    light = _DARK.sub("", style)
    colours = dict(_VALUE.findall(light))
    return _USE.sub(lambda use: colours[use[1]], _VALUE.sub("", light))


def render_png(plan: Plan) -> bytes:
    """Return the picture in the light theme.

    Raises:
        ImportError: the extra `kaigen[png]` is not installed.
    """
    return png_of(render_svg(plan, light_style(read_style())))


def png_of(svg: str) -> bytes:
    """Return an SVG in the light theme as a PNG; the bytes do not depend on installed fonts.

    Raises:
        ImportError: the extra `kaigen[png]` is not installed.
    """
    from resvg_py import svg_to_bytes

    drawn = svg_to_bytes(
        svg_string=_UNKNOWN.sub("\ufffd", svg),
        zoom=_SCALE,
        skip_system_fonts=True,
        font_files=[str(_FONTS / "DejaVuSans.ttf"), str(_FONTS / "DejaVuSans-Bold.ttf")],
        font_family=_FAMILY,
        sans_serif_family=_FAMILY,
        monospace_family=_FAMILY,
    )
    return bytes(drawn)
