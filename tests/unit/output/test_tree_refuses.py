"""kaigen rejects impossible writes before it changes anything."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.output import root as output_root
from kaigen.output.index import INDEX_NAME
from kaigen.output.tree import plan_tree, write_tree
from tests.unit.output.trees import in_child, leftovers, read_tree, snapshot, unprivileged, write_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deploy"


def refusal(root: Path, files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The codes and files of what both a plan and a write refuse; nothing may have changed."""
    before = snapshot(root.parent)
    refused = []
    for act in (plan_tree, write_tree):
        with pytest.raises(InputError) as caught:
            act(root, files)
        found = sorted(caught.value.diagnostics, key=lambda d: d.sort_key())
        assert all(d.hint for d in found)
        refused.append([(d.code, str(d.mark)) for d in found])
    assert refused[0] == refused[1]
    assert snapshot(root.parent) == before
    return [(code, mark.removeprefix(f"{root}").lstrip("/")) for code, mark in refused[0]]


def test_all_foreign_files_in_the_way_are_reported_together(root: Path) -> None:
    write_files(root, {"a.yaml": b"mine", "b.yaml": b"same", "d/c.yaml": b"mine", "free.yaml": b"x"})
    files = {"a.yaml": b"new", "b.yaml": b"same", "d/c.yaml": b"new", "new.yaml": b""}
    assert refusal(root, files) == [("KG0601", "a.yaml"), ("KG0601", "d/c.yaml")]


def test_a_link_or_pipe_at_the_path_of_an_output_is_not_replaced(root: Path) -> None:
    write_tree(root, {"a.yaml": b"a", "b.yaml": b"b", "c.yaml": b"c"})
    (root / "a.yaml").unlink()
    (root / "a.yaml").symlink_to("b.yaml")
    (root / "b.yaml").unlink()
    os.mkfifo(root / "b.yaml")
    assert refusal(root, {"a.yaml": b"b", "b.yaml": b"b"}) == [("KG0601", "a.yaml"), ("KG0601", "b.yaml")]


def test_a_link_at_the_path_of_an_own_file_does_not_become_a_directory(root: Path) -> None:
    write_tree(root, {"a": b"", "b/c": b"", "b/d": b""})
    (root / "a").unlink()
    (root / "a").symlink_to("b")
    assert refusal(root, {"a/x": b"", "b/c": b""}) == [("KG0603", "a")]
    (root / "b/c").unlink()
    (root / "b/c").symlink_to("d")
    assert refusal(root, {"b": b""}) == [("KG0603", "b")]


def test_a_foreign_entry_at_the_path_of_an_own_file_is_not_removed(root: Path) -> None:
    write_tree(root, {"a": b"a", "b": b"b", "c": b"c", "d/e": b"e"})
    for name in "abc":
        (root / name).unlink()
    (root / "a").symlink_to("elsewhere")
    (root / "b").mkdir()
    os.mkfifo(root / "c")
    assert write_tree(root, {"new": b""}).removed == ("d/e",)
    assert {path: entry[0] for path, entry in snapshot(root).items()} == {
        "a": "link", "b": "directory", "c": "special", "new": "file", INDEX_NAME: "file"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("files", "where"),
    [
        ({"apps/a.yaml": b"", "apps/A.yaml": b""}, "apps/A.yaml"),
        ({"Apps/a.yaml": b"", "apps/a.yaml": b"", "apps/c.yaml": b""}, "Apps"),
        ({"é.yaml": b"", "e\u0301.yaml": b""}, "e\u0301.yaml"),
        ({"straße": b"", "STRASSE": b""}, "STRASSE"),
        ({"app": b"", "app/a.yaml": b""}, "app"),
    ],
)
def test_conflicting_output_paths_are_rejected(root: Path, files: dict[str, bytes], where: str) -> None:
    assert refusal(root, files) == [("KG0603", where)]


def test_an_output_that_conflicts_with_another_render_is_rejected(root: Path) -> None:
    write_tree(root, {"app/a.yaml": b""})
    for files in ({"App/a.yaml": b""}, {"app": b""}):
        with pytest.raises(InputError, match=r"outputs differ|one output"):
            write_tree(root, files, scope=lambda path: False)


def test_a_foreign_file_where_a_directory_is_needed_is_reported_once(root: Path) -> None:
    write_files(root, {"apps": b"mine"})
    assert refusal(root, {"apps/a/x.yaml": b"", "apps/b.yaml": b""}) == [("KG0603", "apps")]


@pytest.mark.parametrize("foreign", ["app/notes.txt", "app/deep/notes.txt"])
def test_a_directory_with_foreign_files_does_not_become_a_file(root: Path, foreign: str) -> None:
    write_tree(root, {"app/a.yaml": b"", "app/deep/b.yaml": b""})
    write_files(root, {foreign: b"mine"})
    assert refusal(root, {"app": b""}) == [("KG0603", "app")]


def test_an_empty_foreign_directory_does_not_become_a_file(root: Path) -> None:
    write_tree(root, {"app/a.yaml": b""})
    (root / "app/mine").mkdir()
    assert refusal(root, {"app": b""}) == [("KG0603", "app")]


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a/.", "a\\b", "a\nb", "a\0b", "\x7f",
        "#a", ".git/config", "a/.GIT/hooks/x", ".kaigen-index", "a/.Kaigen-Index", ".kaigen-staging-0/x",
        "<<<<<<< HEAD", "=======", "\udc80",
    ],
)  # fmt: skip
def test_an_invalid_output_path_is_a_bug_of_the_caller(root: Path, path: str) -> None:
    for act in (plan_tree, write_tree):
        with pytest.raises(ValueError, match="output path"):
            act(root, {"ok": b"", path: b""})
    assert not root.exists()


@pytest.mark.parametrize(
    ("index", "places"),
    [
        (b"# kaigen index 1: x\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n", ["2:1", "4:1", "6:1"]),
        (b"<<<<<<< HEAD\n# kaigen index 1: x\n=======\n>>>>>>> other\n", ["1:1", "3:1", "4:1"]),
        (
            b"# kaigen index 1: x\nok\n../../etc/passwd\n/etc/shadow\na/./b\n.git/config\n",
            ["3:1", "4:1", "5:1", "6:1"],
        ),
        (b"# kaigen index 2: x\na\n", ["1:1"]),
        (b"a.yaml\n", ["1:1"]),
        (b"", ["1:1"]),
        (b"# kaigen index 1: x\n\xff\n", [""]),
    ],
)  # fmt: skip
def test_a_damaged_index_is_reported_by_line(root: Path, index: bytes, places: list[str]) -> None:
    write_files(root, {INDEX_NAME: index, "a.yaml": b"mine"})
    expected = [("KG0605", INDEX_NAME + (f":{at}" if at else "")) for at in places]
    assert refusal(root, {"new": b""}) == expected
    with pytest.raises(InputError):
        read_tree(root)


def test_an_index_that_is_a_link_is_rejected(root: Path) -> None:
    write_files(root, {"real": b"# kaigen index 1: x\nreal\n"})
    (root / INDEX_NAME).symlink_to("real")
    assert refusal(root, {}) == [("KG0605", INDEX_NAME)]


def test_an_index_after_a_union_merge_or_with_crlf_is_read(root: Path) -> None:
    write_files(root, {"a": b"a", "b": b"b"})
    write_files(root, {INDEX_NAME: b"# kaigen index 1: x\r\nb\r\na\r\nb\r\n\r\n"})
    assert read_tree(root) == {"a": b"a", "b": b"b"}
    assert write_tree(root, {"a": b"a", "b": b"b"}).changed == (INDEX_NAME,)


def test_a_file_as_output_directory_is_rejected(root: Path) -> None:
    write_files(root.parent, {"deploy": b"a file"})
    assert refusal(root, {"a": b""}) == [("KG0602", "")]


def test_a_file_above_the_output_directory_is_rejected(root: Path) -> None:
    write_files(root.parent, {"deploy": b"a file"})
    with pytest.raises(InputError, match="a parent of the output directory is a file"):
        write_tree(root / "below", {"a": b""})


@pytest.mark.parametrize("target", ["..", ".", "../elsewhere", "/", "deploy"])
def test_a_link_that_leaves_its_parent_is_rejected(root: Path, target: str) -> None:
    root.symlink_to(target)
    assert [code for code, _ in refusal(root, {"a": b""})] == ["KG0602"]


def test_a_git_working_tree_is_rejected(root: Path) -> None:
    (root / ".git").mkdir(parents=True)
    assert refusal(root, {"a": b""}) == [("KG0604", "")]
    (root / ".git").rmdir()
    write_files(root, {".git": b"gitdir: ../.git/worktrees/deploy\n"})
    assert refusal(root, {"a": b""}) == [("KG0604", "")]


@pytest.mark.parametrize("inside", ["", "apps"])
@pytest.mark.parametrize("given", ["absolute", "relative"])
def test_the_working_directory_and_its_parents_are_rejected(
    root: Path, inside: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(root, {"apps/a.yaml": b""})
    monkeypatch.chdir(root / inside)
    path = root if given == "absolute" else Path(".." if inside else ".")
    for act in (plan_tree, write_tree):
        with pytest.raises(InputError, match="working directory") as caught:
            act(path, {"apps/a.yaml": b""})
        assert caught.value.diagnostics[0].code == "KG0604"


def test_a_deleted_working_directory_is_no_obstacle(root: Path) -> None:
    def work() -> None:
        root.mkdir()
        os.chdir(root)
        root.rmdir()
        write_tree(root, {"a": b""})

    assert in_child(work) == 0


def test_mount_points_are_rejected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal_code(Path("/")) == refusal_code(Path("/dev")) == "KG0604"
    (root / "in side").mkdir(parents=True)
    table = root.parent / "mountinfo"
    escaped = str(root).replace(" ", "\\040")
    line = "36 35 98:0 /mnt1 {} rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    monkeypatch.setattr(output_root, "_MOUNT_TABLE", str(table))
    for point, message in (
        (escaped, "is a mount point"),
        (escaped + "/in\\040side", "contains a mount point, in side"),
    ):
        table.write_text(line.format("/proc") + line.format(point))
        with pytest.raises(InputError, match=message):
            plan_tree(root, {"a": b""})
    table.write_text(line.format(escaped + "er"))
    assert not plan_tree(root, {"a": b""}).is_empty


def refusal_code(root: Path) -> str:
    with pytest.raises(InputError) as caught:
        plan_tree(root, {"a": b""})
    return caught.value.diagnostics[0].code


def test_a_write_protected_directory_is_a_system_failure(open_to_all: Path) -> None:
    root = open_to_all / "deploy"
    write_tree(root, {"a": b"a", "d/b": b"b"})
    open_to_all.chmod(0o555)
    before = snapshot(open_to_all)

    def work() -> None:
        for files in ({"a": b"new", "d/b": b"b"}, {"c": b""}):
            with pytest.raises(SystemFailure, match="Permission denied") as caught:
                write_tree(root, files)
            assert "parent" in caught.value.hint
        assert not plan_tree(root, {"c": b""}).is_empty

    assert unprivileged(work) == 0
    assert snapshot(open_to_all) == before
    open_to_all.chmod(0o755)


def test_an_unreadable_file_is_a_system_failure_that_names_it(open_to_all: Path) -> None:
    def work() -> None:
        root = open_to_all / "deploy"
        write_tree(root, {"a": b"a"})
        (root / "a").chmod(0)
        with pytest.raises(SystemFailure, match="deploy/a"):
            write_tree(root, {"a": b"b"})

    assert unprivileged(work) == 0


def test_a_full_disk_leaves_the_tree_unchanged(root: Path) -> None:
    write_tree(root, {"a": b"a", "b/c": b"c"})
    before = snapshot(root.parent)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        for files in ({"a": b"x" * 20_000, "b/c": b"c"}, {"a": b"new", "z/y": b"x" * 20_000}):
            with pytest.raises(SystemFailure, match="File too large"):
                write_tree(root, files)

    assert in_child(work) == 0
    assert snapshot(root.parent) == before
    assert leftovers(root.parent) == []
