"""Names in YAML texts are changed, added and removed, and the rest of the text stays."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.diagnostics.collector import Diagnostics
from kaigen.yaml.document import parse
from kaigen.yaml.names import NameChange, change_names
from kaigen.yaml.sources import Source


def changed(text: str, *changes: tuple[Any, ...]) -> str | None:
    """Return a text with changes of its first document, each an action, a path and a name."""
    source = Source("a.yaml", text)
    document = parse(source, Diagnostics())[0]
    return change_names(source, [NameChange(document, tuple(path), action, *name) for action, path, *name in changes])


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        ("a: 'x' # c\n", ("set", ["a"], "y"), "a: 'y' # c\n"),
        ("a: x # c\n", ("add", ["a"], "y"), "a: [x, y] # c\n"),
        ("a: [x, z]\n", ("add", ["a", 0], "y"), "a: [x, y, z]\n"),
        ("a:\n  - x # c\n  - z\n", ("add", ["a", 0], "y"), "a:\n  - x # c\n  - y\n  - z\n"),
        ("a: [x, z]\n", ("drop", ["a", 0]), "a: [z]\n"),
        ("a: [x, z]\n", ("drop", ["a", 1]), "a: [x]\n"),
        ("a:\n  - x # c\n  - z\n", ("drop", ["a", 0]), "a:\n  - z\n"),
        ("a:\n  x:\n    b: 1\n  # z\n  z: 2\n", ("drop", ["a", "x"]), "a:\n  # z\n  z: 2\n"),
        ("a: {x: {b: 1}, z: 2}\n", ("drop", ["a", "x"]), "a: {z: 2}\n"),
        ("a: {x: {b: 1}}\n", ("copy", ["a", "x"], "y"), "a: {x: {b: 1}, y: {b: 1}}\n"),
        (
            "a:\n  x: # c\n    b: 1\nz: 2\n",
            ("copy", ["a", "x"], "y"),
            "a:\n  x: # c\n    b: 1\n  y: # c\n    b: 1\nz: 2\n",
        ),
        ("a: {'x': 1} # c\n", ("rename", ["a", "x"], "y"), "a: {'y': 1} # c\n"),
    ],
)
def test_one_name_changes(text: str, change: tuple[Any, ...], expected: str) -> None:
    assert changed(text, change) == expected


def test_several_names_of_a_list_change_at_once() -> None:
    assert changed("a: [x, z, x]\n", ("set", ["a", 0], "y"), ("drop", ["a", 2])) == "a: [y, z]\n"
    assert changed("a: [x, z, w]\n", ("drop", ["a", 0]), ("add", ["a", 1], "y")) == "a: [z, y, w]\n"


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("a: &n x\nb: *n\n", ("set", ["a"], "y")),
        ("a: &m {x: 1}\nb: *m\n", ("rename", ["a", "x"], "y")),
        ("a:\n  x: 1\n", ("drop", ["a", "x"])),
        ("a: {x: 1}\n", ("set", ["b"], "y")),
        ("a: >\n  x\n", ("set", ["a"], "y")),
    ],
)
def test_a_change_that_would_change_more_is_refused(text: str, change: tuple[Any, ...]) -> None:
    assert changed(text, change) is None
