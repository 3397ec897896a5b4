"""References of images."""

from __future__ import annotations

import pytest

from kaigen.kubernetes.image_names import is_image, parse_image

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python:3.12", ("docker.io", "library/python", "3.12", "")),
        ("acme/tune", ("docker.io", "acme/tune", "", "")),
        ("index.docker.io/busybox", ("docker.io", "library/busybox", "", "")),
        ("localhost/a", ("localhost", "a", "", "")),
        ("localhost:5000/a/b:c", ("localhost:5000", "a/b", "c", "")),
        (f"ghcr.io/a/b@{DIGEST}", ("ghcr.io", "a/b", "", DIGEST)),
        (f"ghcr.io/a/b:c@{DIGEST}", ("ghcr.io", "a/b", "c", DIGEST)),
    ],
)
def test_a_reference_has_parts(text: str, expected: tuple[str, str, str, str]) -> None:
    assert is_image(text)
    assert parse_image(text) == expected


@pytest.mark.parametrize("text", ["", "a b", "Python:3.12", "a:", f"a@{DIGEST}0", "${IMAGE}"])
def test_other_texts_are_no_references(text: str) -> None:
    assert not is_image(text)
