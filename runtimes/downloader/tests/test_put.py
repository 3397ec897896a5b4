"""`put`: the files of a folder, stored in a bucket or another folder and marked complete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import ID, Runner, content, files, marker, sha256
from s3 import S3

FILES = {"model.m": content((11 << 20) + 5, 7), "sub/tokenizer.t": b"tokens", "empty": b""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a large, a small and an empty file."""
    root = tmp_path / "made"
    for path, data in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def test_a_folder_is_stored_in_a_bucket_with_checksums_and_the_marker_last(folder: Path, s3: S3, run: Runner) -> None:
    argv = ("put", str(folder), "--dest", f"s3://{s3.bucket}/out", "--identity", ID, "--s3-endpoint", s3.url)
    done = run(*argv, "--part-size", "5Mi")
    assert done.code == 0, done.err
    assert {key: s3.get(f"out/{key}") for key in FILES} == FILES
    found = json.loads(s3.get("out/.kaigen/model.json") or b"")
    assert {file["path"]: file["sha256"] for file in found["files"]} == {
        path: sha256(data) for path, data in FILES.items()
    }
    assert "already complete" in run(*argv).err


def test_a_folder_is_copied_to_another_one(folder: Path, dest: Path, run: Runner) -> None:
    done = run("put", str(folder), "--dest", str(dest), "--identity", ID, "--exclude", "empty")
    assert done.code == 0, done.err
    assert files(dest) == {"model.m", "sub/tokenizer.t"}
    assert (dest / "model.m").read_bytes() == FILES["model.m"]
    assert run("verify", "--dest", str(dest), "--identity", ID, "--full").code == 0


def test_a_folder_is_marked_where_it_is(folder: Path, run: Runner) -> None:
    before = (folder / "model.m").stat().st_ino
    done = run("put", str(folder), "--dest", str(folder), "--identity", ID)
    assert done.code == 0, done.err
    found = marker(folder)
    assert found is not None
    assert {file["path"] for file in found["files"]} == FILES.keys()
    assert (folder / "model.m").stat().st_ino == before
    (folder / "sub/tokenizer.t").write_bytes(b"others")
    assert run("put", str(folder), "--dest", str(folder), "--identity", ID).code == 0
    assert run("verify", "--dest", str(folder), "--full").code == 0


def test_a_link_is_refused(folder: Path, dest: Path, run: Runner) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    done = run("put", str(folder), "--dest", str(dest), "--identity", ID)
    assert (done.code, marker(dest)) == (13, None)
    assert "link: not a regular file" in done.err


def test_a_link_to_a_folder_is_refused_and_named_unless_it_is_excluded(folder: Path, dest: Path, run: Runner) -> None:
    (folder / "linked").symlink_to(folder / "sub")
    argv = ("put", str(folder), "--dest", str(dest), "--identity", ID)
    for more in ((), ("--include", "*.m"), ("--include", "linked/*")):
        done = run(*argv, *more)
        assert (done.code, "linked: a link to a folder: put" in done.err) == (13, True), done.err
        assert marker(dest) is None
    for exclude in ("linked", "linked/", "linked/*"):
        assert run(*argv, "--exclude", exclude).code == 0
    assert files(dest) == FILES.keys()


@pytest.fixture
def unprivileged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work as a user to whom modes apply, in the folder: those above it may be closed to this user."""
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, -1)
    monkeypatch.chdir(folder)
    before = os.geteuid()
    os.seteuid(user)
    yield
    os.seteuid(before)


@pytest.mark.usefixtures("unprivileged")
@pytest.mark.parametrize("name", ["sub", "model.m"])
def test_what_cannot_be_read_is_refused_and_named_unless_it_is_excluded(folder: Path, run: Runner, name: str) -> None:
    mode = Path(name).stat().st_mode
    Path(name).chmod(0)
    argv = ("put", ".", "--dest", ".", "--identity", ID)
    done = run(*argv)
    assert (done.code, f"./{name}: Permission denied: uid" in done.err) == (13, True), done.err
    assert marker(Path()) is None
    assert run(*argv, "--exclude", name).code == 0
    Path(name).chmod(mode)
    found = marker(Path())
    assert found is not None
    assert {file["path"] for file in found["files"]} == {path for path in FILES if not path.startswith(name)}


@pytest.mark.usefixtures("unprivileged")
def test_what_the_file_system_itself_keeps_at_the_top_may_be_unreadable(run: Runner) -> None:
    Path("lost+found").mkdir(0)
    assert run("put", ".", "--dest", ".", "--identity", ID).code == 0


def test_an_empty_folder_is_refused(tmp_path: Path, dest: Path, run: Runner) -> None:
    (tmp_path / "none").mkdir()
    done = run("put", str(tmp_path / "none"), "--dest", str(dest), "--identity", ID)
    assert done.code == 13
    assert "has no files to store" in done.err
