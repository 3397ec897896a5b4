"""The PNG of a plan is its SVG in the light theme, and the same on every machine."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from msgspec.structs import replace

import kaigen.sizing.picture
from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.instances import find_instance
from kaigen.catalog.presets import find_preset
from kaigen.sizing.facts import Request, facts_of, hardware_of_instance
from kaigen.sizing.picture import light_style, read_style, render_png, render_svg
from kaigen.sizing.plan import Plan, plan

ROOT = Path(__file__).parents[3]
FONTS = Path(kaigen.sizing.picture.__file__).parent / "fonts"
DRAW = """
import sys
import resvg_py
from kaigen.sizing import picture

plain = resvg_py.svg_to_bytes
if sys.argv[1] == "system":
    resvg_py.svg_to_bytes = lambda **how: plain(**{**how, "skip_system_fonts": False})
from tests.unit.sizing.test_png import planned

sys.stdout.buffer.write(picture.render_png(planned()))
"""


def planned(name: str = "") -> Plan:
    preset, instance = find_preset("phi-4", BUILT_IN), find_instance("g6.12xlarge", BUILT_IN)
    assert preset is not None
    assert instance is not None
    facts = facts_of(preset)
    return plan(replace(facts, name=name or facts.name), Request(), hardware_of_instance(instance))


def renamed(font: bytes, family: str) -> bytes:
    """A font under the name of another."""
    data = bytearray(font)
    (tables,) = struct.unpack_from(">H", data, 4)
    entries = [struct.unpack_from(">4sLLL", data, 12 + 16 * index) for index in range(tables)]
    start = next(offset for tag, _, offset, _ in entries if tag == b"name")
    _, count, strings = struct.unpack_from(">HHH", data, start)
    for record in range(start + 6, start + 6 + 12 * count, 12):
        name, length, offset = struct.unpack_from(">HHH", data, record + 6)
        encoded = family.encode("utf-16-be")
        if name in (1, 16):
            assert len(encoded) <= length
            struct.pack_into(">H", data, record + 8, len(encoded))
            at = start + strings + offset
            data[at : at + len(encoded)] = encoded
    return bytes(data)


def drawn(home: Path, fonts: str) -> bytes:
    """The picture as a process of its own draws it, for a user with that home."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", DRAW, fonts], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout


def test_it_has_two_pixels_for_each_unit_of_the_svg() -> None:
    found = planned()
    image = render_png(found)
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    root = ElementTree.fromstring(render_svg(found))
    assert struct.unpack_from(">LL", image, 16) == (2 * int(root.attrib["width"]), 2 * int(root.attrib["height"]))


def test_the_same_plan_gives_the_same_bytes() -> None:
    assert render_png(planned()) == render_png(planned())


def test_its_letters_are_drawn() -> None:
    assert render_png(planned("phi-4")) != render_png(planned("phi-5"))
    assert render_png(planned("ü")) != render_png(planned("\ufffd"))


def test_a_letter_that_the_fonts_lack_is_drawn_as_unknown() -> None:
    assert render_png(planned("模型")) == render_png(planned("\ufffd\ufffd"))


def test_fonts_of_the_machine_change_nothing(tmp_path: Path) -> None:
    bold = (FONTS / "DejaVuSans-Bold.ttf").read_bytes()
    # Where fonts of a user lie, by system; the first family that the style sheet names and a font has is taken.
    for folder in (".fonts", ".local/share/fonts", "Library/Fonts"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "other.ttf").write_bytes(renamed(bold, "system-ui"))
    ours = drawn(tmp_path, "ours")
    assert ours == render_png(planned())
    assert drawn(tmp_path, "system") != ours, "the fonts in this home would not have been found"


def test_variables_are_replaced_with_the_light_theme() -> None:
    style = light_style(
        ".a { --ink: #000; --paper: #fff; }\n@media (prefers-color-scheme: dark) {\n  .a { --ink: #eee; }\n}\n"
        ".a text { fill: var(--ink); }\n.a rect { fill: var(--paper); stroke: var(--ink); }\n"
    )
    assert style.splitlines()[1:] == [".a text { fill: #000; }", ".a rect { fill: #fff; stroke: #000; }"]


def test_nothing_of_the_style_sheet_is_left_that_a_renderer_may_not_know() -> None:
    style = light_style(read_style())
    assert re.findall(r"var\(|--|@", style) == []
    assert ".kp .weights { fill: #2563eb; }" in style
    assert style.count("{") == style.count("}") == read_style().count("{") - 2


def test_the_fonts_are_small() -> None:
    assert sum(file.stat().st_size for file in FONTS.iterdir()) < 60 * 1024
