"""The files of the lock that a spec asks for, and the digests by which they are compared."""

from __future__ import annotations

from hashlib import sha256

import pytest

from kaigen.config.lock_file import Lock, LockedArtifact, LockedBucket, LockedFile, LockedModel, LockedObject
from kaigen.config.locked_files import (
    bucket_revision,
    chosen_files,
    duplicates,
    files_digest,
    files_of,
    known_files,
    locked_files,
    locked_source,
    selected_files,
)
from kaigen.kinds.blocks import FileSource, Http, HubRepository, HuggingFace
from kaigen.kinds.sources import S3, Oci, WeightsArtifact, WeightsBucket

SHA = "0" * 64
COMMIT = "a" * 40
DIGEST = f"sha256:{'1' * 64}"
NAMES = ("a.json", "model.safetensors", "pytorch_model.bin", "sub/b.json")
FILES = {name: LockedFile(size=len(name), sha256=SHA) for name in NAMES}
OBJECTS = {name: LockedObject(size=len(name), etag=name[0]) for name in NAMES}


@pytest.mark.parametrize(
    ("include", "exclude", "chosen"),
    [
        ([], [], "a.json b.md sub/a.json sub/c/d"),
        (["*.json"], [], "a.json sub/a.json"),
        (["sub/"], [], "sub/a.json sub/c/d"),
        (["sub"], [], ""),
        (["a.json", "b.md"], [], "a.json b.md"),
        ([], ["sub/"], "a.json b.md"),
        (["*.json"], ["sub/*"], "a.json"),
        (["A.json"], [], ""),
    ],
)
def test_globs_select_files_across_slashes(include: list[str], exclude: list[str], chosen: str) -> None:
    files = {name: name for name in ("a.json", "b.md", "sub/a.json", "sub/c/d")}
    assert selected_files(files, include, exclude) == {name: name for name in chosen.split()}


@pytest.mark.parametrize(
    ("paths", "skipped"),
    [
        ("model.bin", ""),
        ("model.safetensors model.bin", "model.bin"),
        (
            "x.safetensors pytorch_model-1.bin pytorch_model.bin.index.json",
            "pytorch_model-1.bin pytorch_model.bin.index.json",
        ),
        ("x.safetensors tf_model.h5 flax_model.msgpack rust_model.ot", "tf_model.h5 flax_model.msgpack rust_model.ot"),
        ("x.safetensors training_args.bin model.json", ""),
        ("x.safetensors sub/model.bin", ""),
        ("sub/x.safetensors sub/model.bin model.bin", "sub/model.bin"),
        ("x.safetensors consolidated.00.pth consolidated.safetensors", "consolidated.00.pth consolidated.safetensors"),
        ("consolidated.safetensors model.bin", ""),
        ("x.safetensors original/a.pth original/sub/b", "original/a.pth original/sub/b"),
        ("sub/x.safetensors original/a.pth", ""),
        ("original/x.safetensors original/model.bin", ""),
    ],
)
def test_weights_that_others_have_as_safetensors_are_duplicates(paths: str, skipped: str) -> None:
    assert duplicates(paths.split()) == {*skipped.split()}


@pytest.mark.parametrize(
    ("source", "chosen"),
    [
        (HuggingFace(repo="o/a"), ("a.json", "model.safetensors", "sub/b.json")),
        (HubRepository(repo="o/a", exclude=["*.json"]), ("model.safetensors",)),
        (HuggingFace(repo="o/a", duplicates=True), NAMES),
        (HuggingFace(repo="o/a", include=["*model*"]), ("model.safetensors", "pytorch_model.bin")),
        (WeightsBucket(uri="s3://acme/a"), ("a.json", "model.safetensors", "sub/b.json")),
        (WeightsBucket(uri="s3://acme/a", duplicates=True), NAMES),
        (WeightsBucket(uri="s3://acme/a", include=["*model*"]), ("model.safetensors", "pytorch_model.bin")),
        (WeightsArtifact(ref="r.io/a", exclude=["*.json"]), ("model.safetensors",)),
        (WeightsArtifact(ref="r.io/a", duplicates=True), NAMES),
        (S3(uri="s3://acme/a"), NAMES),
        (Oci(ref="r.io/a", exclude=["*.json"]), ("model.safetensors", "pytorch_model.bin")),
    ],
)
def test_only_weights_without_globs_leave_out_duplicates(
    source: HubRepository | S3 | Oci, chosen: tuple[str, ...]
) -> None:
    assert tuple(files_of(FILES, source)) == chosen
    if isinstance(source, HubRepository):
        assert tuple(chosen_files(LockedModel(commit=COMMIT, files=FILES), source)) == chosen


def expected(lines: list[str], size: int) -> str:
    return f"{len(lines)}:{size}:{sha256(''.join(lines).encode()).hexdigest()}"


def test_the_digest_of_files_is_of_their_checksums_sizes_and_paths_in_order() -> None:
    files = {"b": LockedFile(size=2, sha256=SHA), "a": LockedFile(size=1, sha256="f" * 64)}
    assert files_digest(files) == expected([f"{'f' * 64} 1 a\n", f"{SHA} 2 b\n"], 3)


def test_the_revision_of_a_bucket_is_of_the_files_that_are_chosen() -> None:
    bucket = LockedBucket(files=OBJECTS)
    json = S3(uri="s3://acme/a", include=["*.json"], exclude=["sub/"])
    assert bucket_revision(bucket, json) == expected(["a 6 a.json\n"], 6)


def test_the_revision_of_a_bucket_has_weights_that_are_not_downloaded() -> None:
    bucket = LockedBucket(files=OBJECTS)
    assert bucket_revision(bucket, WeightsBucket(uri="s3://acme/a")) == REVISION


BUCKET = S3(uri="s3://acme/a")
REVISION = bucket_revision(LockedBucket(files=OBJECTS), BUCKET)
LOCK = Lock(
    models={"o/a@main": LockedModel(commit=COMMIT, files=FILES)},
    buckets={"s3://acme/a": LockedBucket(files=OBJECTS)},
    artifacts={
        "r.io/a:1": LockedArtifact(digest=DIGEST, files=FILES),
        "r.io/image:1": LockedArtifact(digest=DIGEST, is_image=True, files=FILES),
    },
)


@pytest.mark.parametrize(
    ("source", "entry", "known", "asked"),
    [
        (
            FileSource(hugging_face=HuggingFace(repo="o/a")),
            LOCK.models["o/a@main"],
            FILES,
            ("a.json", "model.safetensors", "sub/b.json"),
        ),
        (FileSource(hugging_face=HuggingFace(repo="o/b")), None, None, None),
        (FileSource(s3=BUCKET), LOCK.buckets["s3://acme/a"], OBJECTS, NAMES),
        (
            FileSource(s3=S3(uri="s3://acme/a", revision=REVISION, exclude=[])),
            LOCK.buckets["s3://acme/a"],
            OBJECTS,
            NAMES,
        ),
        (FileSource(s3=S3(uri="s3://acme/a", revision=REVISION, include=["a*"])), None, None, None),
        (FileSource(s3=S3(uri="s3://acme/a", include=["a*"])), LOCK.buckets["s3://acme/a"], OBJECTS, ("a.json",)),
        (FileSource(s3=S3(uri="s3://acme/b")), None, None, None),
        (
            FileSource(oci=Oci(ref="r.io/a:1", exclude=["*.json"])),
            LOCK.artifacts["r.io/a:1"],
            FILES,
            ("model.safetensors", "pytorch_model.bin"),
        ),
        (FileSource(oci=Oci(ref="r.io/image:1")), LOCK.artifacts["r.io/image:1"], None, None),
        (FileSource(oci=Oci(ref="r.io/b:1")), None, None, None),
        (FileSource(http=Http(files=[])), None, None, None),
    ],
)
def test_the_lock_knows_the_entry_of_a_source_its_files_and_those_that_are_asked_for(
    source: FileSource, entry: object, known: object, asked: tuple[str, ...] | None
) -> None:
    assert locked_source(source, LOCK) is entry
    assert known_files(source, LOCK) == known
    files = locked_files(source, LOCK)
    assert (None if files is None else tuple(files)) == asked
