"""File systems without atomic swap or hard links, and obstacles to cleaning up."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.output import replacement
from kaigen.output.changeset import Disk
from kaigen.output.index import INDEX_NAME
from kaigen.output.replacement import link_or_copy
from kaigen.output.root import resolve_root
from kaigen.output.tree import write_tree
from tests.unit.output.trees import at_the_swap, contents, leftovers, no_exchange, read_tree, snapshot, write_files

OLD = {"a.yaml": b"a", "apps/one/x.yaml": b"x", "apps/two/y.yaml": b"y"}
NEW = {"a.yaml": b"A", "apps/one/x.yaml": b"x", "apps/three/z.yaml": b"z"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deploy"


def furnish(root: Path) -> None:
    """An old tree with all kinds of things of others in it."""
    write_tree(root, OLD)
    write_files(root, {"README.md": b"mine", "apps/one/notes": b"mine"})
    (root / "README.md").chmod(0o604)
    os.utime(root / "README.md", ns=(1, 2_000_000_000))
    (root / "link").symlink_to("README.md")
    (root / "empty").mkdir(mode=0o750)
    if hasattr(os, "setxattr"):
        os.setxattr(root / "README.md", "user.kaigen", b"kept")


def check_new(root: Path) -> None:
    found = snapshot(root)
    assert read_tree(root) == NEW
    assert contents(root) == {**NEW, "README.md": b"mine", "apps/one/notes": b"mine"}
    assert found["README.md"][2] == 0o604
    assert (root / "README.md").stat().st_mtime_ns == 2_000_000_000
    assert found["link"] == ("link", b"README.md", 0)
    assert found["empty"] == ("directory", b"", 0o750)
    if hasattr(os, "getxattr"):
        assert os.getxattr(root / "README.md", "user.kaigen") == b"kept"
    assert leftovers(root.parent) == []


def test_a_swap_is_atomic_where_supported(root: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_files(tmp_path, {f"{name}/file": name.encode()})
    parent = os.open(tmp_path, os.O_RDONLY)
    replacement.exchange(parent, "one", parent, "two")
    assert (tmp_path / "one/file").read_bytes() == b"two"
    with pytest.raises(FileNotFoundError):
        replacement.exchange(parent, "one", parent, "three")
    os.close(parent)


@pytest.mark.parametrize("number", sorted(replacement.UNSUPPORTED))
def test_two_renames_replace_an_unsupported_exchange(root: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    furnish(root)
    monkeypatch.setattr(replacement, "exchange", refuse)
    write_tree(root, NEW)
    check_new(root)


def test_without_a_wrapper_in_the_c_library_the_kernel_is_called_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ctypes

    class Musl:
        """A C library that knows `syscall` but no `renameat2`."""

        def __init__(self, name: None, use_errno: bool) -> None:
            self.syscall = real(name, use_errno=use_errno).syscall

    real = ctypes.CDLL
    write_files(tmp_path, {"one/file": b"one", "two/file": b"two"})
    parent = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(ctypes, "CDLL", Musl)
    replacement.exchange(parent, "one", parent, "two")
    assert (tmp_path / "one/file").read_bytes() == b"two"
    monkeypatch.setattr(replacement, "_SYSCALL", {})
    with pytest.raises(OSError, match="not implemented") as caught:
        replacement.exchange(parent, "one", parent, "two")
    assert caught.value.errno in replacement.UNSUPPORTED
    os.close(parent)


def test_when_the_second_rename_fails_the_first_is_undone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(root)
    before = snapshot(root)
    real = os.rename

    def rename(source: str, target: str, **options: int) -> None:
        if (source, target) == ("new", "deploy"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(source, target, **options)

    monkeypatch.setattr(os, "rename", rename)
    with no_exchange(), pytest.raises(SystemFailure, match="Input/output error"):
        write_tree(root, NEW)
    assert snapshot(root) == before
    assert leftovers(root.parent) == []


def test_when_undoing_fails_too_the_next_write_finishes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(root)
    real = os.rename

    def rename(source: str, target: str, **options: int) -> None:
        if target == "deploy":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(source, target, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with no_exchange(), pytest.raises(SystemFailure, match="Input/output error"):
            write_tree(root, NEW)
    assert not root.exists()
    assert write_tree(root, NEW).is_empty
    check_new(root)


def test_a_tree_created_after_an_interrupted_swap_is_not_overwritten(root: Path) -> None:
    container = root.parent / ".kaigen-staging-0123456789abcdef"
    write_files(container, {"journal": b"deploy\0", "old/mine": b"only here", "new/a": b""})
    write_files(root, {"b": b""})
    before = snapshot(root.parent)
    with pytest.raises(SystemFailure, match="another tree was created since") as caught:
        write_tree(root, {"a": b""})
    assert container.name in caught.value.hint
    assert snapshot(root.parent) == before


def test_where_files_cannot_be_linked_they_are_copied(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    furnish(root)
    monkeypatch.setattr(os, "link", refuse)
    mtime = (root / "apps/one/x.yaml").stat().st_mtime_ns
    write_tree(root, NEW)
    check_new(root)
    assert (root / "apps/one/x.yaml").stat().st_mtime_ns == mtime
    os.mkfifo(root / "pipe")
    before = snapshot(root)
    with pytest.raises(SystemFailure):
        write_tree(root, OLD)  # a pipe can be linked but not copied
    assert snapshot(root) == before
    assert leftovers(root.parent) == []


def test_a_mount_point_missing_from_the_mount_table_is_detected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    furnish(root)
    before = snapshot(root.parent)
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(InputError, match="contains a mount point") as caught:
        write_tree(root, NEW)
    assert caught.value.diagnostics[0].code == "KG0604"
    assert snapshot(root.parent) == before


def test_an_output_whose_name_changes_in_case_only_is_found_under_its_old_name(root: Path) -> None:
    # On a file system that ignores case, `apps/x` finds what is listed as `Apps/X`.
    write_tree(root, {"Apps/X": b"", "Apps/Y": b"", "plain": b""})
    disk = Disk(resolve_root(root), frozenset({"Apps/X", "plain"}))
    assert disk.is_stale_alias("apps/x")
    assert disk.is_stale_alias("Apps/x")
    assert not disk.is_stale_alias("apps/y")
    assert not disk.is_stale_alias("apps/z")


def test_a_name_that_changes_in_case_only_changes_on_the_disk(root: Path) -> None:
    write_tree(root, {"Apps/x.yaml": b"1", "Read.me": b"2"})
    write_tree(root, {"apps/x.yaml": b"1", "READ.me": b"2"})
    assert contents(root) == {"apps/x.yaml": b"1", "READ.me": b"2"}
    assert sorted(os.listdir(root)) == [INDEX_NAME, "READ.me", "apps"]


def test_a_written_file_is_not_overwritten_by_the_old_one(tmp_path: Path) -> None:
    # On a file system that ignores case the old name of a written file is in the way of itself.
    write_files(tmp_path, {"old/a": b"old", "new/a": b"new"})
    parent = os.open(tmp_path, os.O_RDONLY)
    link_or_copy(parent, "old/a", parent, "new/a")
    os.close(parent)
    assert (tmp_path / "new/a").read_bytes() == b"new"


def test_files_added_by_others_during_a_write_are_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(root)

    def work() -> None:
        write_files(root, {"late.txt": b"1", "apps/two/late.txt": b"2", "fresh/deep/late.txt": b"3"})
        (root / "hollow").mkdir(mode=0o700)
        (root / "README.md.tmp").write_bytes(b"edited by rename")
        (root / "README.md.tmp").replace(root / "README.md")
        (root / "apps/one/notes").write_bytes(b"edited in place")
        (root / "apps/two/y.yaml").unlink()
        (root / "apps/two/y.yaml").symlink_to("elsewhere")

    at_the_swap(monkeypatch, work)
    write_tree(root, NEW)
    assert contents(root) == {
        **NEW,
        "README.md": b"edited by rename",
        "apps/one/notes": b"edited in place",
        "late.txt": b"1",
        "apps/two/late.txt": b"2",
        "fresh/deep/late.txt": b"3",
    }
    assert snapshot(root)["hollow"] == ("directory", b"", 0o700)
    assert snapshot(root)["apps/two/y.yaml"] == ("link", b"elsewhere", 0)
    assert leftovers(root.parent) == []
    assert write_tree(root, NEW).is_empty


def test_a_file_added_at_the_path_of_a_new_output_is_kept_under_another_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(root)
    at_the_swap(monkeypatch, lambda: write_files(root, {"apps/three/z.yaml": b"mine", "b": b"mine"}))
    write_tree(root, {**NEW, "b/c.yaml": b""})
    found = contents(root)
    kept = {path: data for path, data in found.items() if ".kept-" in path}
    assert sorted(path.partition(".kept-")[0] for path in kept) == ["apps/three", "b"]
    assert set(kept.values()) == {b"mine"}
    assert found["apps/three/z.yaml"] == b"z"
    assert found["b/c.yaml"] == b""


def test_a_copied_file_edited_during_a_write_keeps_the_edit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    furnish(root)
    monkeypatch.setattr(os, "link", refuse)
    at_the_swap(monkeypatch, lambda: write_files(root, {"README.md": b"edited in place"}))
    write_tree(root, NEW)
    assert (root / "README.md").read_bytes() == b"edited in place"


def test_an_old_tree_that_cannot_be_removed_is_kept_and_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(root)
    real = os.unlink

    def unlink(name: str, *, dir_fd: int) -> None:
        if name == "y.yaml":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(name, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", unlink)
        with pytest.raises(SystemFailure, match="the output tree is written") as caught:
            write_tree(root, NEW)
    (kept,) = leftovers(root.parent)
    assert kept in caught.value.hint
    assert (root.parent / kept / "new/apps/two/y.yaml").exists()
    assert read_tree(root) == NEW
    assert write_tree(root, NEW).is_empty
    assert leftovers(root.parent) == [kept]


def test_an_interrupt_leaves_the_old_tree_and_no_leftovers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    furnish(root)
    before = snapshot(root.parent)
    at_the_swap(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_tree(root, NEW)
    assert snapshot(root.parent) == before
