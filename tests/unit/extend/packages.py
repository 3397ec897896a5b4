"""Installed packages for tests: real distributions on the path, with entry points."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(encoding="utf-8")
"""The page with a package of a kind and one of a dialect."""


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    points: dict[str, str],
    name: str = "acme-kaigen",
    group: str = "kaigen.kinds",
) -> None:
    """A distribution in a folder of its own on the path."""
    site = folder / "site"
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{name.replace('-', '_')}.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = "".join(f"{key} = {value}\n" for key, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}", encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))


def of_the_page(language: str, heading: str) -> str:
    """The only block of a language in a section of the page."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = [each for each in section if each.startswith(f"{heading}\n")]
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(block)
