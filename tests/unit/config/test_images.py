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
        ({"downloader": DOWNLOADER}, "m.example", {}, f"m.example/{REST}", DOWNLOADER),
        ({"downloader": f"{PLAIN}:v9"}, "m.example", {}, f"m.example/{PLAIN.partition('/')[2]}:v9", f"{PLAIN}:v9"),
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


def test_an_image_without_a_default_stays_where_it_is() -> None:
    ring = "own.example/distributed-llama:v0.16.4"
    for named, pinned in (({"distributedLlama": ring}, {}), ({}, {"distributedLlama": ring})):
        assert own_images(named, "m.example", pinned)[0]["distributedLlama"] == ring
