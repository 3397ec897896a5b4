"""A plan as a PNG: the SVG of `picture.py`, rendered with kaigen's own fonts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from kaigen.sizing.picture import read_style, render_svg

if TYPE_CHECKING:
    from kaigen.sizing.result import Plan

_FONTS = Path(__file__).parent / "fonts"
_FAMILY = "DejaVu Sans"
_SCALE = 2
"""Pixels per unit of the SVG."""
_DARK = re.compile(r"@media [^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}\n?")
_VALUE = re.compile(r"--([a-z-]+): ([^;]+);\s*")
_USE = re.compile(r"var\(--([a-z-]+)\)")
_UNKNOWN = re.compile("[^\n -~\u00a0-\u00ff\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2192\ufffd]")
"""Characters that the fonts do not have; see `fonts/README.md`."""


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
