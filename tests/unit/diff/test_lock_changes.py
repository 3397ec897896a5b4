"""Each change of a lock in words."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kaigen.config.lock_file import (
    Lock,
    LockedArtifact,
    LockedBucket,
    LockedFile,
    LockedModel,
    LockedObject,
    LockedWeights,
)
from kaigen.diff.lock import lock_changes

OLD, NEW = "a" * 40, "b" * 40
FILE = LockedFile(size=2048, sha256="1" * 64)
MODEL = LockedModel(commit=OLD, licence="mit", architecture="A", weights=2048, files={"x": FILE, "y": FILE})
BUCKET = LockedBucket(files={"x": LockedObject(size=2048, etag="e1")}, weights=2048)
ARTIFACT = LockedArtifact(digest="sha256:" + OLD[:32] * 2, licence="mit", files={"x": FILE})


def lock(entry: LockedWeights | None) -> Lock:
    """A lock of this entry, `m`, alone; None for an empty one."""
    match entry:
        case LockedModel():
            return Lock(models={"m": entry})
        case LockedBucket():
            return Lock(buckets={"m": entry})
        case LockedArtifact():
            return Lock(artifacts={"m": entry})
    return Lock()


def changes(old: LockedWeights | None, new: LockedWeights | None) -> list[str]:
    """The lines about one entry."""
    return list(lock_changes(lock(old), lock(new)))


@pytest.mark.parametrize(
    ("new", "line"),
    [
        (MODEL, "m is commit aaaaaaaaaaaa, 2 files, 4.0 KiB, licence mit, A"),
        (BUCKET, "m is 1 file, 2.0 KiB"),
        (ARTIFACT, "m is sha256:aaaaaaaaaaaa, 1 file, 2.0 KiB, licence mit"),
        (replace(ARTIFACT, is_image=True), "m is sha256:aaaaaaaaaaaa, 1 layer, 2.0 KiB, licence mit"),
    ],
)
def test_a_new_entry_is_summed_up(new: LockedWeights, line: str) -> None:
    assert changes(None, new) == [line]
    assert changes(new, None) == ["m is removed"]
    assert changes(new, new) == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"commit": NEW}, "moves from aaaaaaaaaaaa to bbbbbbbbbbbb"),
        ({"licence": ""}, "licence mit becomes unknown"),
        ({"gated": True}, "a token is needed now"),
        ({"architecture": "B"}, "architecture A becomes B"),
        ({"architecture": ""}, "architecture A becomes unknown"),
        ({"weights": 4096}, "weights of 2.0 KiB become 4.0 KiB"),
        ({"parameters": {"F32": 1000, "BF16": 2}, "weights": 4096}, "parameters unknown become 2 BF16 and 1,000 F32"),
        ({"config": {"b": 1, "a": 2}}, "config.json changes a and b"),
    ],
)
def test_each_changed_fact_of_a_model_is_named(changed: dict[str, Any], text: str) -> None:
    assert changes(MODEL, replace(MODEL, **changed)) == [f"m {text}"]


def test_changes_back_are_named_too() -> None:
    assert changes(replace(MODEL, gated=True), MODEL) == ["m no token is needed any more"]
    assert changes(replace(MODEL, licence="", architecture="", parameters={"F32": 1}), MODEL) == [
        "m licence unknown becomes mit; architecture unknown becomes A; parameters 1 F32 become unknown"
    ]


def test_files_are_counted_and_only_unknown_content_is_new() -> None:
    files = {"y": LockedFile(size=4096, sha256="2" * 64), "copy": FILE, "z": LockedFile(size=1024, sha256="3" * 64)}
    assert changes(MODEL, replace(MODEL, files=files)) == [
        "m 2 files added (copy and z), 1 file changed (y), 1 file removed (x); "
        "4.0 KiB become 7.0 KiB, of which 5.0 KiB are new"
    ]
    image = replace(ARTIFACT, is_image=True)
    assert changes(image, replace(image, files={"x": FILE, "z": files["z"]})) == [
        "m 1 layer added (z); 2.0 KiB become 3.0 KiB, of which 1.0 KiB are new"
    ]


def test_a_file_of_a_bucket_is_compared_by_its_etag() -> None:
    same = replace(BUCKET, files={"x": LockedObject(size=2048, etag="e1", version="2")})
    assert changes(BUCKET, same) == ["m the same files have other versions"]
    other = replace(BUCKET, files={"x": LockedObject(size=2048, etag="e2")})
    assert changes(BUCKET, other) == ["m 1 file changed (x); 2.0 KiB become 2.0 KiB, of which 2.0 KiB are new"]


def test_images_and_repositories_are_named_by_the_start_of_their_digest_or_commit() -> None:
    digest, other = "sha256:" + "a" * 64, "sha256:" + "b" * 64
    before = Lock(images={"i": digest, "j": digest, "k": digest}, git={"g": OLD})
    after = Lock(images={"i": other, "k": digest, "l": digest}, git={"g": NEW})
    assert list(lock_changes(before, after)) == [
        "i moves from sha256:aaaaaaaaaaaa to sha256:bbbbbbbbbbbb",
        "j is removed",
        "l is sha256:aaaaaaaaaaaa",
        "g moves from aaaaaaaaaaaa to bbbbbbbbbbbb",
    ]
