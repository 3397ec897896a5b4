"""How a field's path is written."""

from __future__ import annotations

import pytest

from kaigen.diagnostics.problem import dotted_path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec", "store", "volume"), "spec.store.volume"),
        (("spec", "command", 2), "spec.command[2]"),
        ((0, "a"), "[0].a"),
        (("metadata", "labels", "app.kubernetes.io/name"), 'metadata.labels["app.kubernetes.io/name"]'),
        (("a", 'b"\\c', "d"), 'a["b\\"\\\\c"].d'),
        (("a", ""), 'a[""]'),
        (("a", "1"), 'a["1"]'),
        (("hf-token",), "hf-token"),
    ],
)
def test_a_path_is_written_with_dots_and_brackets(path: tuple[str | int, ...], text: str) -> None:
    assert dotted_path(path) == text
