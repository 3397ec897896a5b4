"""The state of a tree saves reading files, and is ignored whenever it could be wrong."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from kaigen.output import changeset, index
from kaigen.output.contents import FileContent, TreeState
from kaigen.output.tree import TreeChange, diff_tree, plan_tree, write_tree
from tests.unit.output.trees import at_the_swap, read_tree

HOUR = 3600 * 10**9


@dataclass
class Lazy:
    """Content whose bytes are counted when they are asked for."""

    data: bytes
    reads: int = 0

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def read(self) -> bytes:
        self.reads += 1
        return self.data


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deploy"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of trees that are read."""
    names: list[str] = []
    real, real_index = changeset.read_file, index.read_index_file

    def read_file(path: str) -> bytes:
        names.append(os.path.basename(path))
        return real(path)

    def read_index_file(path: str, shown: str) -> bytes:
        names.append(os.path.basename(path))
        return real_index(path, shown)

    monkeypatch.setattr(changeset, "read_file", read_file)
    monkeypatch.setattr(changeset, "read_index_file", read_index_file)
    return names


def age(root: Path, *paths: str) -> None:
    """Let files look as if they had been written long ago."""
    for path in paths:
        then = time.time_ns() - HOUR
        os.utime(root / path, ns=(then, then))


def warm(root: Path, files: dict[str, bytes]) -> TreeState:
    state = TreeState()
    write_tree(root, files)
    age(root, *files)
    plan_tree(root, files, state=state)
    assert len(state) == len(files)
    return state


def test_only_the_index_is_read_with_a_complete_state(root: Path, opened: list[str]) -> None:
    files = {"a": b"a", "b/c": b"c"}
    state = warm(root, files)
    opened.clear()
    lazy: dict[str, FileContent] = {path: Lazy(data) for path, data in files.items()}
    assert plan_tree(root, lazy, state=state).is_empty
    assert write_tree(root, lazy, state=state).is_empty
    assert opened == [".kaigen-index"] * 2
    assert [content.reads for content in lazy.values() if isinstance(content, Lazy)] == [0, 0]


def test_an_empty_state_compares_digests_without_fetching_content(root: Path, opened: list[str]) -> None:
    write_tree(root, {"a": b"a"})
    content = Lazy(b"a")
    assert write_tree(root, {"a": content}, state=TreeState()).is_empty
    assert write_tree(root, {"a": content}).is_empty
    assert content.reads == 0
    assert opened.count("a") == 2


def test_content_is_fetched_once_when_it_is_written(root: Path) -> None:
    state = TreeState()
    contents = {"a": Lazy(b"1"), "b/c": Lazy(b"2")}
    write_tree(root, contents, state=state)
    assert read_tree(root) == {"a": b"1", "b/c": b"2"}
    contents["a"] = Lazy(b"3")
    assert write_tree(root, contents, state=state).changed == ("a",)
    assert [content.reads for content in contents.values()] == [1, 1]


@pytest.mark.parametrize("number", range(4))
def test_a_file_with_another_stamp_is_read(number: int) -> None:
    state = TreeState()
    stamp = (5, 10, 20, 30)
    state.remember("a", stamp, "0" * 64, checked_ns=HOUR)
    assert state.digest("a", stamp) == "0" * 64
    other = list(stamp)
    other[number] += 1
    assert state.digest("a", (other[0], other[1], other[2], other[3])) is None
    assert state.digest("b", stamp) is None


@pytest.mark.parametrize(
    ("before_the_check", "fraction", "believed"),
    [
        (-1, 1, False),
        (0, 1, False),
        (19_000_000, 1, False),
        (21_000_000, 1, True),
        (10**9, 0, False),
        (3 * 10**9, 0, True),
    ],
)
def test_a_file_modified_at_the_time_of_the_check_is_not_remembered(
    before_the_check: int, fraction: int, believed: bool
) -> None:
    mtime = HOUR + fraction
    state = TreeState()
    state.remember("a", (1, 0, 0, 0), "f" * 64, checked_ns=HOUR)
    state.remember("a", (1, mtime, 0, 0), "0" * 64, checked_ns=mtime + before_the_check)
    assert (state.digest("a", (1, mtime, 0, 0)) is not None) == believed
    assert state.digest("a", (1, 0, 0, 0)) is None


def test_an_edit_right_after_a_write_with_the_same_size_and_time_is_detected(root: Path) -> None:
    state = TreeState()
    for n in range(20):
        write_tree(root, {"a": b"%02d" % n, "b": b"x"}, state=state)
        mtime = (root / "a").stat().st_mtime_ns
        with (root / "a").open("r+b") as file:
            file.write(b"xx")
        os.utime(root / "a", ns=(mtime, mtime))
        assert plan_tree(root, {"a": b"%02d" % n, "b": b"x"}, state=state).changed == ("a",)


def test_an_edit_with_the_old_mtime_is_detected_by_its_ctime(root: Path) -> None:
    files = {"a": b"one", "b": b"two"}
    state = warm(root, files)
    mtime = (root / "a").stat().st_mtime_ns
    time.sleep(0.02)
    (root / "a").write_bytes(b"uno")
    os.utime(root / "a", ns=(mtime, mtime))
    assert write_tree(root, files, state=state).changed == ("a",)
    assert read_tree(root) == files


def test_a_swap_keeps_the_state_of_linked_files(root: Path, opened: list[str]) -> None:
    files = {"a": b"a", "b/c": b"c", "b/d": b"d"}
    state = warm(root, files)
    files["e"] = b"e"
    write_tree(root, files, state=state)
    opened.clear()
    assert write_tree(root, files, state=state).is_empty
    assert set(opened) <= {".kaigen-index", "e"}
    del files["b/d"]
    write_tree(root, files, state=state)
    opened.clear()
    assert write_tree(root, files, state=state).is_empty
    assert set(opened) <= {".kaigen-index", "e"}
    assert len(state) == 3 or (len(state) == 2 and "e" in opened)


def test_an_edit_during_a_write_is_detected_by_the_next(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a": b"one", "b": b"two"}
    state = warm(root, files)
    long_ago = time.time_ns() - 2 * HOUR

    def edit() -> None:
        (root / "a").write_bytes(b"uno")
        os.utime(root / "a", ns=(long_ago, long_ago))

    at_the_swap(monkeypatch, edit)
    write_tree(root, {**files, "c": b""}, state=state)
    assert plan_tree(root, {**files, "c": b""}, state=state).changed == ("a",)


def test_an_edit_of_a_new_file_during_a_write_is_detected_by_the_next(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a": b"one", "b": b"two"}
    write_tree(root, files)
    os.utime(root / "a")
    mtime = (root / "a").stat().st_mtime_ns

    real = os.link

    def late(*names: str, **options: int) -> None:
        monkeypatch.setattr(os, "link", real)
        time.sleep(0.05)
        (root / "a").write_bytes(b"uno")
        os.utime(root / "a", ns=(mtime, mtime))
        real(*names, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", late)
    state = TreeState()
    write_tree(root, {**files, "c": b""}, state=state)
    assert plan_tree(root, {**files, "c": b""}, state=state).changed == ("a",)


def test_replacing_one_file_keeps_the_state_of_the_others(root: Path, opened: list[str]) -> None:
    files = {"a": b"a", "b/c": b"c"}
    state = warm(root, files)
    write_tree(root, {**files, "a": b"new"}, state=state)
    opened.clear()
    assert write_tree(root, {**files, "a": b"new"}, state=state).is_empty
    assert "c" not in opened


def test_files_that_are_adopted_are_remembered(root: Path, opened: list[str]) -> None:
    root.mkdir()
    (root / "a").write_bytes(b"a")
    age(root, "a")
    state = TreeState()
    assert write_tree(root, {"a": b"a"}, state=state).added == (".kaigen-index",)
    opened.clear()
    assert write_tree(root, {"a": b"a"}, state=state).is_empty
    assert opened == [".kaigen-index"]


def test_a_partial_render_keeps_the_state_of_other_files(root: Path, opened: list[str]) -> None:
    files = {"a/x": b"x", "b/y": b"y"}
    state = warm(root, files)
    write_tree(root, {"a/x": b"new"}, scope=lambda path: path.startswith("a/"), state=state)
    opened.clear()
    write_tree(root, {"b/y": b"y"}, scope=lambda path: path.startswith("b/"), state=state)
    assert opened == [".kaigen-index"]


def test_a_loaded_state_equals_the_dumped_one(root: Path, opened: list[str]) -> None:
    files = {"a": b"a", "日本/c d": b"c"}
    state = TreeState.load(warm(root, files).dump())
    opened.clear()
    assert plan_tree(root, files, state=state).is_empty
    assert opened == [".kaigen-index"]
    assert TreeState.load(state.dump()).dump() == state.dump()


@pytest.mark.parametrize("data", [b"", b"\xff", b"kaigen tree state 0\n", b"kaigen tree state 1\na\t1\t2\n", b"[]"])
def test_a_damaged_dump_is_an_empty_state(data: bytes) -> None:
    assert len(TreeState.load(data)) == 0


def test_a_cut_or_altered_dump_is_an_empty_state(root: Path) -> None:
    dump = warm(root, {"a": b"a", "b": b"b"}).dump()
    for place in range(len(dump)):
        assert len(TreeState.load(dump[:place])) == 0
        assert len(TreeState.load(dump[:place] + b"x" + dump[place + 1 :])) == 0
    assert len(TreeState.load(dump)) == 2


def test_a_diff_fetches_lazy_content(root: Path) -> None:
    write_tree(root, {"a": b"old\n"})
    change = TreeChange((), ("a",), (), 0)
    assert list(diff_tree(root, {"a": Lazy(b"new\n")}, change))[2:] == ["@@ -1 +1 @@", "-old", "+new"]
