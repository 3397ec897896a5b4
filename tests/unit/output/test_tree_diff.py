"""Git can apply the diff of `render --check`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.output.index import INDEX_NAME
from kaigen.output.tree import LARGEST, diff_tree, plan_tree, unified_diff, write_tree
from tests.unit.output.trees import contents, snapshot

OLD = {"apps/a.yaml": b"one\ntwo\nthree\n", "gone.yaml": b"x\n", "same.yaml": b"s\n", "cut": b"no end"}
NEW = {"apps/a.yaml": b"one\nTWO\nthree\n", "b/new.yaml": b"n\n", "same.yaml": b"s\n", "cut": b"no end\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deploy"


def test_the_diff_of_a_plan_names_every_file_and_touches_none(root: Path) -> None:
    write_tree(root, OLD)
    before = snapshot(root)
    lines = list(diff_tree(root, NEW, plan_tree(root, NEW)))
    assert snapshot(root) == before
    assert [line for line in lines if line.startswith(("--- ", "+++ "))] == [
        f"--- a/{INDEX_NAME}", f"+++ b/{INDEX_NAME}",
        "--- a/apps/a.yaml", "+++ b/apps/a.yaml",
        "--- /dev/null", "+++ b/b/new.yaml",
        "--- a/cut", "+++ b/cut",
        "--- a/gone.yaml", "+++ /dev/null",
    ]  # fmt: skip
    assert lines[lines.index("+++ b/apps/a.yaml") + 1 :][:5] == [
        "@@ -1,3 +1,3 @@", " one", "-two", "+TWO", " three"
    ]  # fmt: skip
    assert "\\ No newline at end of file" in lines


def test_git_turns_the_old_tree_into_the_new_one_by_the_diff(root: Path) -> None:
    write_tree(root, OLD)
    diff = "\n".join(diff_tree(root, NEW, plan_tree(root, NEW))) + "\n"
    subprocess.run(["git", "apply", "-p1", "-"], cwd=root, input=diff.encode(), check=True)
    assert contents(root) == NEW
    assert plan_tree(root, NEW).is_empty


def test_the_diff_of_an_up_to_date_tree_is_empty(root: Path) -> None:
    write_tree(root, NEW)
    assert list(diff_tree(root, NEW, plan_tree(root, NEW))) == []


def test_the_diff_of_a_partial_render_keeps_other_files_in_the_index(root: Path) -> None:
    def scope(path: str) -> bool:
        return path.startswith("apps/")

    write_tree(root, OLD)
    files = {"apps/b.yaml": b"b\n"}
    lines = list(diff_tree(root, files, plan_tree(root, files, scope=scope), scope=scope))
    index = lines[: lines.index("--- a/apps/a.yaml")]
    assert [line for line in index if line[0] in "+-"][2:] == ["-apps/a.yaml", "+apps/b.yaml"]


def test_the_diff_of_a_removed_tree_includes_its_index(root: Path) -> None:
    write_tree(root, {"a": b"1\n"})
    assert list(diff_tree(root, {}, plan_tree(root, {})))[-4:] == ["--- a/a", "+++ /dev/null", "@@ -1 +0,0 @@", "-1"]


@pytest.mark.parametrize(("old", "new"), [(b"a\0", b"b"), (b"text\n", b"\xff"), (None, b"\0")])
def test_binary_files_are_named_only(old: bytes | None, new: bytes) -> None:
    (line,) = unified_diff("x", old, new)
    assert line == f"Binary files {'/dev/null' if old is None else 'a/x'} and b/x differ"


@pytest.mark.parametrize(
    ("old", "new"), [(b"", b"x\n" * LARGEST), (b"x\n" * LARGEST, b"x\n"), (None, b"x" * LARGEST * 2)]
)
def test_a_file_that_is_too_large_to_review_is_named_only(old: bytes | None, new: bytes) -> None:
    (line,) = unified_diff("f", old, new)
    assert line.endswith(f"b/f ({len(new)} bytes) differ")
    assert list(unified_diff("f", new, new)) == []


def test_a_new_empty_file_is_named() -> None:
    assert list(unified_diff("x", None, b"")) == ["--- /dev/null", "+++ b/x"]


LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"c\rd", b"e\x0cf", "\u2028".encode()]), max_size=4)


@given(LINES, LINES)
def test_the_diff_has_the_lines_of_both_sides(old: list[bytes], new: list[bytes]) -> None:
    one, other = b"\n".join(old), b"\n".join(new)
    lines = list(unified_diff("x", one, other))
    assert bool(lines) == (one != other)
    assert all("\n" not in line for line in lines)
    minus = [line[1:] for line in lines[2:] if line.startswith("-")]
    plus = [line[1:] for line in lines[2:] if line.startswith("+")]
    kept = [line[1:] for line in lines[2:] if line.startswith(" ")]
    if lines:
        # With three lines of context and at most four lines, a diff shows all of both sides.
        assert sorted(minus + kept) == sorted(one.decode().removesuffix("\n").split("\n") if one else [])
        assert sorted(plus + kept) == sorted(other.decode().removesuffix("\n").split("\n") if other else [])
