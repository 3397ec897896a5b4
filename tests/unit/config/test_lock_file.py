"""kaigen.lock: what its text gives, what its entries are found by, the text that is written, and invalid files."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.lock_file import (
    Lock,
    LockedArtifact,
    LockedBucket,
    LockedFile,
    LockedModel,
    LockedObject,
    git_key,
    lock_of,
    lock_ref,
    lock_text,
    lock_with,
    model_key,
    namespace_of,
    source_key,
)
from kaigen.config.settings import LockRef
from kaigen.diagnostics.errors import InputError
from kaigen.kinds.blocks import HubRepository, HuggingFace
from kaigen.kinds.build import GitContext
from kaigen.kinds.sources import S3, Oci
from tests.unit.config.reports import report

A, B, C = ("a" * 40, "b" * 40, "c" * 40)
SHA = "0" * 64
DIGEST, OTHER = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
TEXT = f"""\
{{
  "apiVersion": "kaigen.dev/v1alpha1",
  "kind": "Lock",
  "models": {{
    "org/a@main": {{
      "commit": "{A}",
      "licence": "mit",
      "gated": true,
      "architecture": "Llama",
      "parameters": {{
        "BF16": 7,
        "F32": 1
      }},
      "weights": 14,
      "config": {{
        "a": {{"z": null}},
        "b": "é"
      }},
      "files": {{
        "a.json": {{"size": 1, "sha256": "{SHA}"}},
        "b.json": {{"size": 2, "sha256": "{SHA}"}}
      }}
    }},
    "org/b@main": {{
      "commit": "{B}",
      "licence": "",
      "gated": false,
      "architecture": "",
      "parameters": {{}},
      "weights": 0,
      "config": {{}},
      "files": {{}}
    }}
  }},
  "images": {{
    "a:1": "{DIGEST}",
    "b:1": "{OTHER}"
  }},
  "buckets": {{
    "bucket/a": {{
      "architecture": "",
      "parameters": {{}},
      "weights": 0,
      "config": {{}},
      "files": {{
        "a": {{"size": 1, "etag": "e1"}},
        "b": {{"size": 2, "etag": "e2", "sha256": "{SHA}", "version": "v"}}
      }}
    }},
    "bucket/b": {{
      "architecture": "",
      "parameters": {{}},
      "weights": 0,
      "config": {{}},
      "files": {{}}
    }}
  }},
  "artifacts": {{
    "r.io/a:1": {{
      "digest": "{DIGEST}",
      "licence": "mit",
      "isImage": true,
      "architecture": "",
      "parameters": {{}},
      "weights": 0,
      "config": {{}},
      "files": {{}}
    }},
    "r.io/b:1": {{
      "digest": "{OTHER}",
      "licence": "",
      "isImage": false,
      "architecture": "",
      "parameters": {{}},
      "weights": 0,
      "config": {{}},
      "files": {{}}
    }}
  }},
  "git": {{
    "https://a.example/a@main": "{A}",
    "https://b.example/b@main": "{B}"
  }}
}}
"""
FULL = Lock(
    models={
        "org/b@main": LockedModel(commit=B),
        "org/a@main": LockedModel(
            commit=A,
            licence="mit",
            gated=True,
            architecture="Llama",
            parameters={"F32": 1, "BF16": 7},
            weights=14,
            config={"b": "é", "a": {"z": None}},
            files={"b.json": LockedFile(size=2, sha256=SHA), "a.json": LockedFile(size=1, sha256=SHA)},
        ),
    },
    images={"b:1": OTHER, "a:1": DIGEST},
    buckets={
        "bucket/b": LockedBucket(files={}),
        "bucket/a": LockedBucket(
            files={
                "b": LockedObject(size=2, etag="e2", sha256=SHA, version="v"),
                "a": LockedObject(size=1, etag="e1"),
            }
        ),
    },
    artifacts={
        "r.io/b:1": LockedArtifact(digest=OTHER, files={}),
        "r.io/a:1": LockedArtifact(digest=DIGEST, licence="mit", is_image=True, files={}),
    },
    git={"https://b.example/b@main": B, "https://a.example/a@main": A},
)


def read(root: Path, text: str) -> Lock:
    """Return the lock of a repository whose file has this text."""
    (root / "kaigen.lock").write_text(text, encoding="utf-8")
    return lock_of(root, LockRef(sha256(text.encode()).hexdigest()))


def problems_of(root: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        read(root, text)
    return report(raised.value.diagnostics)


def lock(**tables: Any) -> str:
    """Return the text of a lock, with each entry of a table on a line of its own."""
    rows = [f'"{table}": {{\n' + ",\n".join(entries) + "\n}" for table, entries in tables.items()]
    return "{" + ",\n".join(rows) + "}\n"


def test_the_text_is_sorted_and_has_a_line_for_each_file() -> None:
    assert lock_text(FULL) == TEXT


def test_the_text_is_read_as_what_was_written(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT) == FULL


def test_a_lock_without_entries_has_models_and_images_only() -> None:
    assert json.loads(lock_text(Lock())) == {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Lock",
        "models": {},
        "images": {},
    }


def test_a_repository_without_the_file_has_an_empty_lock(tmp_path: Path) -> None:
    (tmp_path / "kaigen.lock").write_text("not read", encoding="utf-8")
    assert lock_of(tmp_path, LockRef()) == Lock()


def test_a_lock_that_is_not_in_a_file_applies_in_place_of_it(tmp_path: Path) -> None:
    ref = lock_ref(FULL)
    assert ref == LockRef(sha256(TEXT.encode()).hexdigest(), TEXT.encode())
    (tmp_path / "kaigen.lock").write_text("not read", encoding="utf-8")
    assert lock_of(tmp_path, ref) == FULL


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert read(tmp_path, lock()) == Lock()
    assert read(tmp_path, TEXT) == FULL


@pytest.mark.parametrize("text", ["{}", '{"models": {}}', '{"kind": "Lock", "apiVersion": "kaigen.dev/v1alpha1"}'])
def test_every_table_is_optional(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == Lock()


RESTORE = "restore it from Git, or delete it and run `kaigen lock`"
OTHER_ONE = "and the entry has another one"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["kaigen.lock KG0108 the file contains no document | add a document, or remove the file"]),
        ("models: {}\n", [f"KG0750 kaigen.lock is not JSON | {RESTORE}"]),
        ("[]", ["kaigen.lock:1:1 KG0750 kaigen.lock must contain a mapping"]),
        (
            lock(models=['"a@main": {"commit": "b"}']),
            [
                'kaigen.lock:2:22 KG0204 [models["a@main"].commit] `commit: b` is not text that matches ^[0-9a-f]{40}$ '
                "| Commit of the revision"
            ],
        ),
        (
            lock(images=[f'"a": "{DIGEST}"', f'"a": "{OTHER}"']),
            ["kaigen.lock:3:1 KG0130 [images.a] duplicate key `a`, first on line 2 | keep one of them"],
        ),
        (
            lock(models=[f'"a@main": {{"commit": "{B}"}}', f'"a@{A}": {{"commit": "{B}"}}']),
            [f"kaigen.lock:3:58 KG0750 the name of this entry has `{A}`, {OTHER_ONE} | {RESTORE}"],
        ),
        (
            lock(artifacts=[f'"r.io/a@{DIGEST}": {{"digest": "{OTHER}", "files": {{}}}}']),
            [f"kaigen.lock:2:94 KG0750 the name of this entry has `{DIGEST}`, {OTHER_ONE} | {RESTORE}"],
        ),
        (
            lock(git=[f'"https://a@b.example/c@{A}": "{B}"', f'"https://b@{B}": "{A}"']),
            [
                f"kaigen.lock:2:67 KG0750 the name of this entry has `{A}`, {OTHER_ONE} | {RESTORE}",
                f"kaigen.lock:3:55 KG0750 the name of this entry has `{B}`, {OTHER_ONE} | {RESTORE}",
            ],
        ),
    ],
    ids=["empty", "YAML", "list", "value", "duplicate", "commit", "digest", "Git"],
)
def test_each_problem_of_an_invalid_file_is_reported_at_its_line(
    tmp_path: Path, text: str, problems: list[str]
) -> None:
    assert problems_of(tmp_path, text) == problems


@pytest.mark.parametrize(
    "text",
    [
        lock(models=[f'"a@{A}": {{"commit": "{A}"}}', f'"a@v1.0": {{"commit": "{B}"}}']),
        lock(artifacts=[f'"r/a@{DIGEST}": {{"digest": "{DIGEST}", "files": {{}}}}']),
        lock(git=[f'"https://a/b@{A}": "{A}"', f'"https://a/b@main": "{B}"']),
    ],
)
def test_entries_whose_names_have_their_commits_and_digests_are_valid(tmp_path: Path, text: str) -> None:
    read(tmp_path, text)


def test_the_problems_of_a_lock_that_is_not_in_a_file_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "kaigen.lock").write_text('{"models": []}', encoding="utf-8")
    with pytest.raises(InputError) as raised:
        lock_of(tmp_path, LockRef("x", b"{"))
    assert [str(item.mark) for item in raised.value.diagnostics] == [f"{tmp_path / 'kaigen.lock'}:1:12"]


def test_entries_about_weights_are_those_of_models_buckets_and_artifacts() -> None:
    assert FULL.entries == {**FULL.models, **FULL.buckets, **FULL.artifacts}
    assert len(FULL.entries) == 6


@pytest.mark.parametrize(
    ("ref", "digest"),
    [
        ("r.io/a:1", DIGEST),
        (f"r.io/a:1@{DIGEST}", DIGEST),
        (f"r.io/a:1@{OTHER}", None),
        (f"r.io/c@{OTHER}", OTHER),
        ("r.io/c", None),
        ("r.io/a", None),
    ],
)
def test_an_artifact_is_found_by_its_reference_also_with_its_digest(ref: str, digest: str | None) -> None:
    artifacts = {
        "r.io/a:1": LockedArtifact(digest=DIGEST, files={}),
        f"r.io/c@{OTHER}": LockedArtifact(digest=OTHER, files={}),
    }
    found = Lock(artifacts=artifacts).artifact(ref)
    assert (found and found.digest) == digest


@pytest.mark.parametrize(
    ("repo", "revision", "endpoint", "commit"),
    [
        ("org/a", "main", None, A),
        ("org/a", A, None, A),
        ("org/a", B, None, B),
        ("org/a", "v1", None, None),
        ("org/a", "main", "https://hub.example", C),
        ("org/a", "main", "https://hub.example//", C),
        ("org/a", C, "https://hub.example/", C),
        ("org/b", "main", None, None),
    ],
)
def test_a_revision_is_found_by_its_name_and_by_its_commit(
    repo: str, revision: str, endpoint: str | None, commit: str | None
) -> None:
    models = {
        "org/a@main": LockedModel(commit=A),
        f"org/a@{B}": LockedModel(commit=B),
        "https://hub.example/org/a@main": LockedModel(commit=C),
    }
    known = Lock(models=models)
    for _ in range(2):  # The second time from the index.
        found = known.find(repo, revision, endpoint)
        assert (found and found.commit) == commit
        assert known.of(HuggingFace(repo=repo, revision=revision, endpoint=endpoint)) == found


class Data(HubRepository):
    """A repository of another folder of the Hub."""

    namespace = "datasets/"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (S3(uri="s3://bucket/a/"), "s3://bucket/a"),
        (Oci(ref="r.io/a:1"), "r.io/a:1"),
        (HuggingFace(repo="org/a"), "org/a@main"),
        (HuggingFace(repo="org/a", revision="v1", endpoint="https://hub.example/"), "https://hub.example/org/a@v1"),
        (Data(repo="org/a", revision=A), f"datasets/org/a@{A}"),
    ],
)
def test_a_source_has_a_name_in_the_lock(source: Any, name: str) -> None:
    assert source_key(source) == name


def test_only_repositories_of_other_types_have_a_folder_of_the_hub() -> None:
    assert (namespace_of(HuggingFace(repo="a/b")), namespace_of(Data(repo="a/b"))) == ("", "datasets/")


def test_a_git_reference_is_named_by_its_url() -> None:
    assert git_key(GitContext(url="https://a.example/b.git", commit="main")) == "https://a.example/b.git@main"
    assert model_key("a/b", "v1", "") == "a/b@v1"


def test_entries_are_put_into_the_table_of_their_type() -> None:
    assert lock_with(FULL.entries, FULL.images, FULL.git) == FULL
    assert lock_with({}, {"a": DIGEST}) == Lock(images={"a": DIGEST})
