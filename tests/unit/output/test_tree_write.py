"""Writing an output tree changes files of kaigen and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kaigen.output.index import INDEX_NAME
from kaigen.output.tree import TreeChange, plan_tree, write_tree
from tests.unit.output.trees import contents, in_child, leftovers, read_tree, snapshot, unprivileged, write_files

FILES = {
    "apps/llama/deployment.yaml": b"kind: Deployment\n",
    "apps/llama/service.yaml": b"kind: Service\n",
    "apps/phi/job.yaml": b"kind: Job\n",
    "kustomization.yaml": b"resources: []\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "repo" / "deploy"


def test_a_first_write_creates_the_tree_and_its_parents(root: Path) -> None:
    change = write_tree(root, FILES)
    assert change == TreeChange(added=(INDEX_NAME, *sorted(FILES)), changed=(), removed=(), unchanged=0)
    assert contents(root) == FILES
    assert read_tree(root) == FILES
    assert leftovers(root.parent) == []


def test_the_index_lists_sorted_paths_and_does_not_depend_on_content(root: Path) -> None:
    write_tree(root, FILES)
    before = (root / INDEX_NAME).read_bytes()
    header, paths = before.decode().split("both sides.\n")
    assert all(line.startswith("#") for line in header.splitlines())
    assert paths.splitlines() == sorted(FILES)
    write_tree(root, {path: data + b"# more\n" for path, data in FILES.items()})
    assert (root / INDEX_NAME).read_bytes() == before


def test_a_plan_equals_the_write_and_writes_nothing(root: Path) -> None:
    write_tree(root, FILES)
    new = {**FILES, "apps/llama/service.yaml": b"kind: Service # changed\n", "apps/new.yaml": b"new\n"}
    del new["apps/phi/job.yaml"]
    before = snapshot(root.parent)
    plan = plan_tree(root, new)
    assert snapshot(root.parent) == before
    assert plan == TreeChange(
        added=("apps/new.yaml",),
        changed=(INDEX_NAME, "apps/llama/service.yaml"),
        removed=("apps/phi/job.yaml",),
        unchanged=2,
    )
    assert not plan.is_empty
    assert write_tree(root, new) == plan
    assert plan_tree(root, new).is_empty


def test_a_plan_of_a_missing_tree_creates_no_directory(root: Path) -> None:
    assert plan_tree(root, FILES).added == (INDEX_NAME, *sorted(FILES))
    assert not root.parent.exists()


def test_writing_the_same_files_again_changes_nothing(root: Path) -> None:
    write_tree(root, FILES)
    paths = [root, *root.rglob("*"), root.parent]
    before = {path: path.lstat() for path in paths}
    assert write_tree(root, FILES).is_empty
    assert {path: path.lstat() for path in paths} == before


def test_writing_no_files_creates_no_directory(root: Path) -> None:
    assert write_tree(root, {}).is_empty
    assert not root.parent.exists()


def test_only_a_changed_file_is_replaced(root: Path) -> None:
    write_tree(root, FILES)
    inode = (root / "apps/llama").stat().st_ino
    change = write_tree(root, {**FILES, "apps/llama/service.yaml": b"x"})
    assert (change.changed, change.unchanged) == (("apps/llama/service.yaml",), 4)
    assert (root / "apps/llama").stat().st_ino == inode
    assert contents(root)["apps/llama/service.yaml"] == b"x"


def test_changes_below_one_directory_swap_only_that_directory(root: Path) -> None:
    write_tree(root, FILES)
    outer, inner = (root / "apps").stat().st_ino, (root / "apps/llama").stat().st_ino
    write_tree(root, {path: data + (b"#\n" if "llama" in path else b"") for path, data in FILES.items()})
    assert (root / "apps").stat().st_ino == outer
    assert (root / "apps/llama").stat().st_ino != inner


def test_unchanged_files_keep_inode_and_mtime_through_a_swap(root: Path) -> None:
    write_tree(root, FILES)
    os.utime(root / "apps/phi/job.yaml", ns=(1_000, 2_000))
    before = (root / "apps/phi/job.yaml").stat()
    write_tree(root, {**FILES, "apps/a.yaml": b"", "z/b.yaml": b""})
    after = (root / "apps/phi/job.yaml").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_nlink) == (before.st_ino, 2_000, 1)


def test_directories_that_become_empty_are_removed(root: Path) -> None:
    write_tree(root, {**FILES, "a/b/c/d.yaml": b"", "e/f/g.yaml": b""})
    (root / "e/mine").mkdir(mode=0o700)
    write_tree(root, FILES)
    assert not (root / "a").exists()
    assert sorted(os.listdir(root / "e")) == ["mine"]
    assert (root / "e/mine").stat().st_mode & 0o777 == 0o700


def test_removing_all_files_removes_the_index_and_keeps_the_root(root: Path) -> None:
    write_tree(root, FILES)
    assert write_tree(root, {}).removed == (INDEX_NAME, *sorted(FILES))
    assert snapshot(root) == {}
    assert root.is_dir()
    assert write_tree(root, {}).is_empty


def test_removing_missing_files_removes_the_index(root: Path) -> None:
    write_tree(root, {"a": b""})
    (root / "a").unlink()
    assert write_tree(root, {}) == TreeChange((), (), (INDEX_NAME,), 0)
    assert snapshot(root) == {}


def test_foreign_files_keep_content_mode_and_time_in_every_write(root: Path) -> None:
    write_files(root, {"README.md": b"mine", "apps/llama/notes.txt": b"mine too", "bin/tool": b"#!"})
    (root / "bin/tool").chmod(0o750)
    (root / "bin").chmod(0o711)
    (root / "empty").mkdir(mode=0o700)
    (root / "link").symlink_to("nowhere")
    os.mkfifo(root / "pipe", 0o600)
    os.utime(root / "README.md", ns=(1, 2))
    os.utime(root / "bin", ns=(3, 4))
    mine = snapshot(root)
    for files in (FILES, {"kustomization.yaml": b"x", "apps/one.yaml": b"1"}, FILES, {}):
        write_tree(root, files)
        found = snapshot(root)
        assert {path: found[path] for path in mine} == mine
        assert {p for p, entry in found.items() if entry[0] == "file"} == {
            *files, *([INDEX_NAME] if files else []), "README.md", "apps/llama/notes.txt", "bin/tool"
        }  # fmt: skip
    assert (root / "README.md").stat().st_mtime_ns == 2
    assert (root / "bin").stat().st_mtime_ns == 4


def test_a_foreign_directory_stays_write_protected(open_to_all: Path) -> None:
    root = open_to_all / "deploy"

    def work() -> None:
        write_files(root, {"locked/file": b"mine", "locked/deep/file": b"mine"})
        (root / "locked/deep").chmod(0o500)
        (root / "locked").chmod(0o555)
        write_tree(root, FILES)
        write_tree(root, {"one.yaml": b""})

    assert unprivileged(work) == 0
    assert snapshot(root)["locked"] == ("directory", b"", 0o555)
    assert snapshot(root)["locked/deep"] == ("directory", b"", 0o500)
    assert contents(root) == {"one.yaml": b"", "locked/file": b"mine", "locked/deep/file": b"mine"}
    assert leftovers(root.parent) == []
    (root / "locked").chmod(0o755)
    (root / "locked/deep").chmod(0o755)


def test_a_foreign_file_with_the_same_content_is_adopted(root: Path) -> None:
    write_files(root, {"kustomization.yaml": FILES["kustomization.yaml"]})
    inode = (root / "kustomization.yaml").stat().st_ino
    change = write_tree(root, FILES)
    assert "kustomization.yaml" not in change.added + change.changed
    assert change.unchanged == 1
    assert (root / "kustomization.yaml").stat().st_ino == inode
    assert "kustomization.yaml" in write_tree(root, {}).removed


def test_adopting_a_file_writes_only_the_index(root: Path) -> None:
    write_files(root, FILES)
    assert write_tree(root, FILES) == TreeChange((INDEX_NAME,), (), (), 4)


def test_an_edited_or_deleted_file_of_kaigen_is_restored(root: Path) -> None:
    write_tree(root, FILES)
    (root / "apps/phi/job.yaml").write_bytes(b"edited")
    (root / "kustomization.yaml").unlink()
    change = write_tree(root, FILES)
    assert (change.added, change.changed) == (("kustomization.yaml",), ("apps/phi/job.yaml",))
    assert contents(root) == FILES


def test_a_deleted_directory_is_restored_without_other_changes(root: Path) -> None:
    write_tree(root, {**FILES, "apps/deep/er/a.yaml": b"a", "apps/deep/er/b.yaml": b"b"})
    inode = (root / "apps").stat().st_ino
    (root / "apps/deep/er/a.yaml").unlink()
    (root / "apps/deep/er/b.yaml").unlink()
    (root / "apps/deep/er").rmdir()
    (root / "apps/deep").rmdir()
    write_tree(root, {**FILES, "apps/deep/er/a.yaml": b"a", "apps/deep/er/b.yaml": b"b"})
    assert contents(root / "apps/deep") == {"er/a.yaml": b"a", "er/b.yaml": b"b"}
    assert (root / "apps").stat().st_ino == inode
    (root / "apps/phi/job.yaml").unlink()
    (root / "apps/phi").rmdir()
    write_tree(root, {**FILES, "apps/deep/er/a.yaml": b"a", "apps/deep/er/b.yaml": b"b"})
    assert contents(root)["apps/phi/job.yaml"] == FILES["apps/phi/job.yaml"]


def test_a_file_can_become_a_directory_and_back(root: Path) -> None:
    write_tree(root, {"apps": b"a file", "x": b""})
    write_tree(root, {"apps/a/b.yaml": b"b", "x": b""})
    assert contents(root) == {"apps/a/b.yaml": b"b", "x": b""}
    write_tree(root, {"apps": b"a file", "x": b""})
    assert contents(root) == {"apps": b"a file", "x": b""}


def test_a_partial_render_removes_only_files_in_its_scope(root: Path) -> None:
    write_tree(root, FILES)

    def scope(path: str) -> bool:
        return path.startswith("apps/llama/")

    change = write_tree(root, {"apps/llama/deployment.yaml": b"new\n"}, scope=scope)
    assert (change.changed, change.removed, change.unchanged) == (
        (INDEX_NAME, "apps/llama/deployment.yaml"), ("apps/llama/service.yaml",), 0
    )  # fmt: skip
    assert set(read_tree(root)) == set(FILES) - {"apps/llama/service.yaml"}
    assert write_tree(root, {}, scope=lambda path: False).is_empty
    assert set(write_tree(root, {}).removed) == {INDEX_NAME, *FILES} - {"apps/llama/service.yaml"}


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    for umask in (0o000, 0o027, 0o077, 0o777):
        root = tmp_path / f"{umask:o}" / "deploy"
        root.parent.mkdir()

        def work(root: Path = root, umask: int = umask) -> None:
            os.umask(umask)
            write_tree(root, FILES)
            write_tree(root, {**FILES, "apps/more/a.yaml": b""})
            write_tree(root, {**FILES, "apps/more/a.yaml": b"x"})

        assert in_child(work) == 0
        found = snapshot(root)
        assert {mode for kind, _, mode in found.values() if kind == "file"} == {0o644}
        assert {mode for kind, _, mode in found.values() if kind == "directory"} == {0o755}
        assert root.stat().st_mode & 0o777 == 0o755


def test_the_mode_of_unchanged_files_and_directories_stays(root: Path) -> None:
    write_tree(root, FILES)
    (root / "kustomization.yaml").chmod(0o664)
    (root / "apps").chmod(0o2775)
    assert write_tree(root, FILES).is_empty
    write_tree(root, {**FILES, "apps/x.yaml": b""})
    found = snapshot(root)
    assert found["kustomization.yaml"][2] == 0o664
    assert found["apps"][2] == 0o2775


def test_the_root_may_be_a_link_to_a_sibling(root: Path) -> None:
    root.mkdir(parents=True)
    link = root.parent / "current"
    link.symlink_to("deploy")
    write_tree(link, FILES)
    write_tree(link, {"a/b.yaml": b"b"})
    assert link.is_symlink()
    assert contents(root) == read_tree(link) == {"a/b.yaml": b"b"}


def test_names_beyond_ascii_are_kept(root: Path) -> None:
    files = {"äpps/été.yaml": b"1", "日本/モデル.yaml": b"2", "with space/-x.yaml": b"3"}
    write_tree(root, files)
    assert read_tree(root) == files
    assert write_tree(root, files).is_empty


def test_foreign_names_that_are_not_utf8_are_preserved(root: Path) -> None:
    root.mkdir(parents=True)
    name = os.fsencode(root) + b"/caf\xe9"
    with open(name, "wb") as file:
        file.write(b"mine")
    write_tree(root, FILES)
    write_tree(root, {})
    assert os.listdir(os.fsencode(root)) == [b"caf\xe9"]


def test_a_shared_hard_link_is_not_written_through(root: Path) -> None:
    write_tree(root, FILES)
    elsewhere = root.parent / "elsewhere"
    os.link(root / "kustomization.yaml", elsewhere)
    write_tree(root, {path: b"new" for path in FILES})
    assert elsewhere.read_bytes() == FILES["kustomization.yaml"]


@pytest.mark.parametrize("blank", [b"", b"x" * 3_000_000])
def test_empty_and_large_files_are_written_whole(root: Path, blank: bytes) -> None:
    write_tree(root, {"a": blank, "b": b"1"})
    assert write_tree(root, {"a": blank, "b": b"1"}).is_empty
    assert read_tree(root)["a"] == blank
