"""References of images."""

from __future__ import annotations

import pytest

from kaigen.kubernetes.images import ImageName, is_image, parse_image

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
    assert parse_image(text) == ImageName(*expected)


@pytest.mark.parametrize(
    "text",
    [
        "a/b__c-d---e.f:1",
        "REGISTRY.example.com:5000/a",
        "[fd00::1]:5000/a/b:1",
        "localhost/a",
        "a.b/c",
        "a@sha512:" + "0" * 128,
        "a" * 255,
    ],
)
def test_the_grammar_has_other_forms(text: str) -> None:
    assert is_image(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "Python:3.12",
        "a:",
        f"a@{DIGEST}0",
        "${IMAGE}",
        "a/../b:1",
        "a//b:1",
        "a/./b",
        "../a",
        "/a",
        "a/",
        "a..b",
        "a._b",
        "a___b",
        "a_-b",
        "a-/b",
        "a/-b",
        "a/.b",
        "-a",
        "registry.example.com//a",
        "registry.example.com/a/../b:1",
        "registry.example.com/A:1",
        "https://registry.example.com/a",
        "user@registry.example.com/a",
        "-x.example.com/a",
        "a%2fb",
        "a\\b",
        "a:1\n",
        "a:.1",
        "a:" + "x" * 129,
        "a@sha256:0",
        "a@md5:" + "0" * 32,
        "a" * 256,
    ],
)
def test_other_texts_are_no_references(text: str) -> None:
    assert not is_image(text)
