"""What kaigen renders on purpose in another way than KAITO, and the list of it in docs/dialects/kaito.md."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
import yaml

ROOT = Path(__file__).parent.parent
PAGE = "docs/dialects/kaito.md"
_DATA = Path(__file__).parent / "kaito_differences.yaml"
_BEGIN, _END = "<!-- kaito_differences.yaml: begin -->\n", "<!-- kaito_differences.yaml: end -->\n"


class Difference(msgspec.Struct, frozen=True):
    """A difference, and its reason.

    Attributes:
        fields: names of fields.
        kaito: regular expression of the value in KAITO; empty for none.
        kaigen: the same in kaigen.
        reason: one or two sentences.
        presets: only these presets; empty for all.
    """

    fields: tuple[str, ...]
    kaito: str
    kaigen: str
    reason: str
    presets: tuple[str, ...] = ()

    def explains(self, field: str, kaito: str, kaigen: str, preset: str) -> bool:
        """Return whether this is the reason of two different values."""
        return (
            field in self.fields
            and (not self.presets or preset in self.presets)
            and re.fullmatch(self.kaito, kaito) is not None
            and re.fullmatch(self.kaigen, kaigen) is not None
        )


class Differences(msgspec.Struct, frozen=True):
    """The content of kaito_differences.yaml.

    Attributes:
        source: version of KAITO.
        date: when it was compared.
        differences: all differences.
    """

    source: str
    date: str
    differences: tuple[Difference, ...]


@cache
def known() -> Differences:
    """Return the content of kaito_differences.yaml."""
    data = yaml.load(_DATA.read_text(encoding="utf-8"), yaml.BaseLoader)
    return msgspec.convert(data, Differences)


def section() -> str:
    """Return the list of differences as Markdown."""
    found = known()
    lines = [
        f"A test compares flags, variables, GPUs and nodes with what the controller of {found.source} makes, for each",
        "preset in its catalog. Everything else is equal; these differ:",
        "",
        "| field | in KAITO | in kaigen | reason |",
        "| --- | --- | --- | --- |",
    ]
    for each in found.differences:
        fields = ", ".join(f"`{field}`" for field in each.fields)
        only = f" ({', '.join(each.presets)})" if each.presets else ""
        lines.append(f"| {fields}{only} | {_value(each.kaito)} | {_value(each.kaigen)} | {each.reason} |")
    return "\n".join(lines) + "\n"


def _value(pattern: str) -> str:
    """Return a pattern for people: `any` for a pattern with several values."""
    if not pattern:
        return "not set"
    return f"`{pattern}`" if re.fullmatch(r"[\w./-]+", pattern) else "varies"


def page() -> str:
    """Return docs/dialects/kaito.md with the current list."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{section()}\n{_END}{after}"
