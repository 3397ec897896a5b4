"""kaigen follows no symbolic link that somebody planted in a tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import InputError
from kaigen.output.disk import read_file
from kaigen.output.index import INDEX_NAME, format_index
from kaigen.output.tree import plan_tree, write_tree
from tests.unit.output.trees import leftovers, read_tree, snapshot, write_files

SECRETS = {"a.yaml": b"kind: Deployment\n", "deep/b.yaml": b"b"}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    write_files(tmp_path / "outside", SECRETS)
    return tmp_path / "outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "repo" / "deploy"


def replace_by_link(path: Path, target: Path) -> None:
    import shutil

    shutil.rmtree(path)
    path.symlink_to(target)


def test_nothing_is_written_through_a_linked_directory(root: Path, outside: Path) -> None:
    write_tree(root, {"app/a.yaml": b"old", "x": b""})
    replace_by_link(root / "app", outside)
    before = snapshot(outside)
    for files in (
        {"app/a.yaml": b"new", "x": b""},
        {"app/c.yaml": b"new"},
        {"app/deep/b.yaml": b"new", "y": b""},
    ):
        with pytest.raises(InputError) as caught:
            write_tree(root, files)
        assert [d.code for d in caught.value.diagnostics] == ["KG0603"]
    assert snapshot(outside) == before


def test_nothing_is_removed_through_a_linked_directory(root: Path, outside: Path) -> None:
    write_tree(root, {"app/a.yaml": b"", "app/deep/b.yaml": b"", "x": b""})
    replace_by_link(root / "app", outside)
    before = snapshot(outside)
    assert plan_tree(root, {"x": b""}).removed == ()
    assert read_tree(root) == {"x": b""}
    write_tree(root, {"x": b""})
    write_tree(root, {})
    assert snapshot(outside) == before
    assert (root / "app").readlink() == outside


def test_an_index_that_names_files_behind_a_link_changes_nothing_there(root: Path, outside: Path) -> None:
    write_files(root, {INDEX_NAME: format_index(["app/a.yaml", "app/deep/b.yaml", "link"])})
    (root / "app").symlink_to(outside)
    (root / "link").symlink_to(outside / "a.yaml")
    before = snapshot(outside)
    write_tree(root, {"new": b""})
    assert snapshot(outside) == before
    assert sorted(path.name for path in root.iterdir()) == [INDEX_NAME, "app", "link", "new"]


def test_a_link_with_the_wanted_content_behind_it_is_not_adopted(root: Path, outside: Path) -> None:
    root.mkdir(parents=True)
    (root / "a.yaml").symlink_to(outside / "a.yaml")
    with pytest.raises(InputError) as caught:
        write_tree(root, {"a.yaml": SECRETS["a.yaml"]})
    assert [d.code for d in caught.value.diagnostics] == ["KG0601"]


def test_links_survive_a_swap_and_their_targets_stay(root: Path, outside: Path) -> None:
    write_tree(root, {"app/a.yaml": b""})
    (root / "app/away").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    before = snapshot(outside)
    write_tree(root, {"app/a.yaml": b"new", "app/b.yaml": b"new"})
    write_tree(root, {})
    assert snapshot(outside) == before
    assert snapshot(root) == {
        "app": ("directory", b"", 0o755),
        "app/away": ("link", str(outside).encode(), 0),
        "loop": ("link", b"loop", 0),
    }


def test_a_link_with_the_name_of_a_leftover_is_not_followed(root: Path, outside: Path) -> None:
    root.parent.mkdir()
    planted = root.parent / ".kaigen-staging-0123456789abcdef"
    planted.symlink_to(outside)
    before = snapshot(outside)
    write_tree(root, {"a": b""})
    assert snapshot(outside) == before
    assert leftovers(root.parent) == [planted.name]


def test_links_in_a_leftover_are_removed_and_their_targets_stay(root: Path, outside: Path) -> None:
    write_files(root.parent / ".kaigen-staging-0123456789abcdef", {"new/x": b""})
    (root.parent / ".kaigen-staging-0123456789abcdef/new/away").symlink_to(outside)
    before = snapshot(outside)
    write_tree(root, {"a": b""})
    assert snapshot(outside) == before
    assert leftovers(root.parent) == []


@pytest.mark.parametrize(
    "journal",
    [
        b"../outside\0",
        b"../stolen\0",
        b"/outside\0",
        b"deploy/../../outside\0",
        b"link/stolen\0",
        b"",
        b"deploy",
    ],
)
def test_a_planted_journal_moves_nothing_out_of_the_directory(
    root: Path, outside: Path, journal: bytes
) -> None:
    root.parent.mkdir()
    (root.parent / "link").symlink_to(outside)
    container = root.parent / ".kaigen-staging-0123456789abcdef"
    write_files(container, {"journal": journal, "old/x": b"", "new/y": b""})
    around = snapshot(outside)
    with pytest.raises(Exception, match=r"interrupted run|Not a directory"):
        write_tree(root, {"a": b""})
    assert snapshot(outside) == around
    assert (container / "old/x").exists()
    assert not (root.parent.parent / "stolen").exists()


def test_reading_follows_no_link_and_waits_for_no_pipe(tmp_path: Path, outside: Path) -> None:
    # A plan has looked before it reads; this is for what changes in between.
    (tmp_path / "link").symlink_to(outside / "a.yaml")
    with pytest.raises(OSError, match="symbolic links"):
        read_file(str(tmp_path / "link"))
    os.mkfifo(tmp_path / "pipe")
    assert read_file(str(tmp_path / "pipe")) == b""
