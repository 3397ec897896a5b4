"""kaigen's own images: those that kaigen.yaml or pins set, and the mirror of the others."""

from __future__ import annotations

import pytest

from kaigen.catalog.images import default_images
from kaigen.config.images import Images, given_images, own_images

DOWNLOADER = default_images()["downloader"]
REST = DOWNLOADER.partition("/")[2]
PLAIN = DOWNLOADER.partition("@")[0].rpartition(":")[0] or DOWNLOADER.partition("@")[0]
DIGEST = f"sha256:{'a' * 64}"


def test_a_block_gives_the_images_that_it_sets() -> None:
    assert given_images(Images()) == {}
    assert given_images(Images(vllm="a:1", distributed_llama="b:2")) == {"vllm": "a:1", "distributedLlama": "b:2"}


@pytest.mark.parametrize(
    ("named", "registry", "pinned", "image", "plain"),
    [
        ({}, "", {}, DOWNLOADER, DOWNLOADER),
        ({}, "m.example/a", {}, f"m.example/a/{REST}", DOWNLOADER),
        ({"downloader": "own/x:1"}, "m.example", {}, "own/x:1", "own/x:1"),
        ({"downloader": DOWNLOADER}, "m.example", {}, DOWNLOADER, DOWNLOADER),
        (
            {},
            "m.example",
            {"downloader": f"{PLAIN}@{DIGEST}"},
            f"m.example/{PLAIN.partition('/')[2]}@{DIGEST}",
            f"{PLAIN}@{DIGEST}",
        ),
        (
            {},
            "m.example",
            {"downloader": f"{PLAIN}:v9@{DIGEST}"},
            f"m.example/{PLAIN.partition('/')[2]}:v9@{DIGEST}",
            f"{PLAIN}:v9@{DIGEST}",
        ),
        ({}, "m.example", {"downloader": "own.example:5000/x:1"}, "own.example:5000/x:1", "own.example:5000/x:1"),
        ({}, "", {"downloader": f"{PLAIN}:v9"}, f"{PLAIN}:v9", f"{PLAIN}:v9"),
        ({"downloader": "own/x:1"}, "m.example", {"downloader": "own/x:2"}, "own/x:2", "own/x:2"),
    ],
)
def test_the_mirror_has_the_defaults_and_other_versions_of_them(
    named: dict[str, str], registry: str, pinned: dict[str, str], image: str, plain: str
) -> None:
    images, without_mirror = own_images(named, registry, pinned)
    assert (images["downloader"], without_mirror["downloader"]) == (image, plain)
    assert images.keys() == without_mirror.keys() == {*default_images(), *named}


@pytest.mark.parametrize(
    ("ref", "mirrored"),
    [
        ("quay.io/a/b:1", "m/a/b:1"),
        ("localhost/a:1", "m/a:1"),
        ("host:5000/a/b", "m/a/b"),
        ("library/a:1", "m/library/a:1"),
        ("a:1", "m/a:1"),
    ],
)
def test_the_mirror_replaces_the_registry_of_an_image(ref: str, mirrored: str) -> None:
    images, _ = own_images({}, "m", {"without-default": ref})
    assert images["without-default"] == mirrored
