"""The synchronization of a folder with a notebook: what is copied, and that no version of a file is lost."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.ops.folder_sync import Base, Direction, Step, conflict_name, digest_of, step_of, synchronize
from kaigen.ops.local_folder import LocalFolder, Record


class Files(dict[str, bytes]):
    """A side in memory. With `fails`, the write of that number raises, before or after it has written."""

    fails = 0
    late = False

    def digests(self) -> dict[str, str]:
        return {path: digest_of(data) for path, data in self.items()}

    def read(self, path: str) -> bytes:
        return self[path]

    def write(self, path: str, data: bytes, expected: str | None) -> bool:
        if self.digests().get(path) != expected:
            return False
        self.fails -= 1
        if self.fails == 0 and not self.late:
            raise SystemFailure("the connection broke")
        self[path] = data
        if self.fails == 0:
            raise SystemFailure("the connection broke")
        return True


@pytest.mark.parametrize(
    ("base", "local", "remote", "expected"),
    [
        (None, "a", None, Step.UPLOAD),
        (None, None, "a", Step.DOWNLOAD),
        (None, "a", "a", Step.NOTHING),
        (None, "a", "b", Step.CONFLICT),
        ("a", "a", "a", Step.NOTHING),
        ("a", "b", "a", Step.UPLOAD),
        ("a", "a", "b", Step.DOWNLOAD),
        ("a", "b", "b", Step.NOTHING),
        ("a", "b", "c", Step.CONFLICT),
        ("a", "a", None, Step.NOTHING),
        ("a", None, "a", Step.NOTHING),
        ("a", "b", None, Step.UPLOAD),
        ("a", None, "b", Step.DOWNLOAD),
        ("a", None, None, Step.NOTHING),
    ],
)
def test_step_of_a_file(base: str | None, local: str | None, remote: str | None, expected: Step) -> None:
    assert step_of(base, local, remote) is expected


PATHS = st.sampled_from(["a.txt", "b", "b/c.txt", "d/e.ipynb"])
CONTENTS = st.sampled_from([b"", b"1", b"2", b"3"])
EDITS = st.tuples(st.sampled_from(["local", "remote"]), PATHS, st.one_of(st.none(), CONTENTS))
SYNCS = st.tuples(
    st.just("sync"), st.sampled_from(Direction), st.integers(0, 4), st.sampled_from(["local", "remote"]), st.booleans()
)


@pytest.mark.promise("Substratus", "At the end, files are synced from the Notebook back to the local directory")
@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(EDITS, SYNCS), max_size=14))
def test_no_version_that_only_one_side_has_is_lost(steps: list[tuple[object, ...]]) -> None:
    local, remote = Files(), Files()
    sides = {"local": local, "remote": remote}
    base: Base = {}
    for name, *values in steps:
        if name != "sync":
            path, data = values
            side = sides[str(name)]
            if any(other.startswith(f"{path}/") or str(path).startswith(f"{other}/") for other in side):
                continue
            side.pop(str(path), None)
            if isinstance(data, bytes):
                side[str(path)] = data
            continue
        direction, fails, where, late = values
        broken = sides[str(where)]
        broken.fails, broken.late = int(str(fails)), bool(late)
        before = {key: dict(files) for key, files in sides.items()}
        common = dict(base)
        with suppress(SystemFailure):
            synchronize(local, remote, base, Direction(direction))
        broken.fails = 0
        for key, files in sides.items():
            assert before[key].keys() <= files.keys(), "no file is deleted"
            for path, data in before[key].items():
                known = common.get(path) == digest_of(data)
                assert known or data in files.values(), "a version that the other side never had is still here"
        if direction is Direction.TO_NOTEBOOK:
            assert local == before["local"]
        if direction is Direction.FROM_NOTEBOOK:
            assert remote == before["remote"]
    result = synchronize(local, remote, base)
    assert synchronize(local, remote, base).copied == []
    if not result.skipped:
        assert all(local[path] == remote[path] for path in local.keys() & remote.keys())


def test_versions_of_a_conflict_are_side_by_side_on_both_sides() -> None:
    local, remote = Files({"src/train.py": b"ours"}), Files({"src/train.py": b"theirs"})
    lines: list[str] = []
    synchronize(local, remote, {}, say=lines.append)
    name = conflict_name("src/train.py", digest_of(b"theirs"))
    assert local == remote == {"src/train.py": b"ours", name: b"theirs"}
    assert lines == [f"src/train.py: changed on both sides; the version of the notebook is {name}"]


def test_one_way_leaves_a_conflict_and_reports_it() -> None:
    local, remote = Files(a=b"ours"), Files(a=b"theirs")
    result = synchronize(local, remote, {}, Direction.TO_NOTEBOOK)
    assert result.skipped == ["a: changed on both sides; synchronize both ways to keep both versions"]
    assert (local, remote) == ({"a": b"ours"}, {"a": b"theirs"})


def test_hidden_ignored_large_files_and_links_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaigen.ops.local_folder.MOST_BYTES", 10)
    (tmp_path / ".gitignore").write_text("out/\n*.log\n")
    for name in ("a.py", ".env", "x.log", "out/big.bin", "deep/b.py", "weights.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"0" * (11 if name == "weights.bin" else 1))
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    (tmp_path / "file").symlink_to(tmp_path / "a.py")
    folder = LocalFolder(tmp_path)
    assert folder.digests().keys() == {"a.py", "deep/b.py"}
    assert folder.skipped == {"weights.bin"}


@pytest.mark.promise("Substratus", "The directory is packed respecting dockerignore")
def test_files_that_docker_or_git_ignores_stay_out(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("*.ckpt\ndata\n!data/keep.txt\n**/cache\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    names = ("a.py", "x.ckpt", "deep/x.ckpt", "data/big.bin", "data/keep.txt", "deep/cache/x", "x.log")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("0")
    folder = LocalFolder(tmp_path)
    # Docker's patterns without a folder are those of the top.
    assert folder.digests().keys() == {"a.py", "deep/x.ckpt", "data/keep.txt"}
    assert not folder.write("new.ckpt", b"theirs", None)
    assert not folder.write("data/new.bin", b"theirs", None)
    assert folder.write("deep/new.ckpt", b"theirs", None)
    (tmp_path / ".kaigenignore").write_text("a.py\n")
    assert folder.digests().keys() == {*names, "deep/new.ckpt"} - {"a.py"}


def test_a_pattern_that_docker_cannot_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("[a\n")
    with pytest.raises(InputError, match=r"\.dockerignore:1:1"):
        LocalFolder(tmp_path).digests()


@pytest.mark.parametrize("path", ["../a", "/a", "b/../../a", ".ssh/key", "out/x", "a\\b", "x\n", "", "here"])
def test_a_hostile_or_taken_path_is_not_written(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".gitignore").write_text("out/\n")
    (root / "here").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert not LocalFolder(root).write(path, b"theirs", None)
    assert sorted(tmp_path.rglob("*")) == before
    assert (root / "here").read_text() == "mine"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (root / "link").symlink_to(outside)
    with pytest.raises(SystemFailure, match="link is not a folder"):
        LocalFolder(root).write("link/a", b"theirs", None)
    assert list(outside.iterdir()) == []


def test_a_local_change_during_the_synchronization_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    folder = LocalFolder(tmp_path)
    before = folder.digests()["a"]
    (tmp_path / "a").write_text("two")
    assert not folder.write("a", b"theirs", before)
    assert (tmp_path / "a").read_text() == "two"
    assert folder.write("a", b"theirs", digest_of(b"two"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_record_of_another_volume_does_not_count(tmp_path: Path) -> None:
    record = Record(tmp_path, "ns.lab", "uid-1")
    record.base["a"] = "hash"
    record.save()
    assert Record(tmp_path, "ns.lab", "uid-1").base == {"a": "hash"}
    assert Record(tmp_path, "ns.lab", "uid-2").base == {}
    assert LocalFolder(tmp_path).digests() == {}
