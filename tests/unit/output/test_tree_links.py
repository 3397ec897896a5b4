"""kaigen follows no symbolic link that somebody planted in a tree."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.output.changeset import read_file
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
    for files in ({"app/a.yaml": b"new", "x": b""}, {"app/c.yaml": b"new"}, {"app/deep/b.yaml": b"new", "y": b""}):
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
    [b"../outside\0", b"../stolen\0", b"/outside\0", b"deploy/../../outside\0", b"link/stolen\0", b"", b"deploy"],
)
def test_a_planted_journal_moves_nothing_out_of_the_directory(root: Path, outside: Path, journal: bytes) -> None:
    root.parent.mkdir()
    (root.parent / "link").symlink_to(outside)
    container = root.parent / ".kaigen-staging-0123456789abcdef"
    write_files(container, {"journal": journal, "old/x": b"", "new/y": b""})
    around = snapshot(outside)
    # Either the container is reported, or it is that of another tree and stays.
    with suppress(SystemFailure):
        write_tree(root, {"a": b""})
    assert snapshot(outside) == around
    assert (container / "old/x").exists()
    assert not (root.parent.parent / "stolen").exists()


def test_a_committed_container_plants_no_hook(root: Path) -> None:
    container = root.parent / ".kaigen-staging-0123456789abcdef"
    hooks = root.parent / ".git/hooks"
    hooks.mkdir(parents=True)
    write_files(container, {"journal": b".git/hooks/post-checkout\0", "old": b"", "new": b"#!/bin/sh\n"})
    write_tree(root, {"a": b""})
    assert list(hooks.iterdir()) == []


@pytest.mark.parametrize("journal", [b"deploy/.git\0", b"deploy/.GIT\0"])
def test_a_committed_container_plants_no_repository(root: Path, journal: bytes) -> None:
    root.mkdir(parents=True)
    container = root.parent / ".kaigen-staging-0123456789abcdef"
    write_files(container, {"journal": journal, "old/x": b"", "new/config": b"[core]\n"})
    with pytest.raises(SystemFailure, match="interrupted run"):
        write_tree(root, {"a": b""})
    assert list(root.iterdir()) == []


def test_the_container_of_another_tree_waits_for_that_tree(root: Path) -> None:
    container = root.parent / ".kaigen-staging-0123456789abcdef"
    write_files(container, {"journal": b"other\0", "old/a": b"1", "new/a": b"2"})
    write_tree(root, {"a": b""})
    assert not (root.parent / "other").exists()
    write_tree(root.parent / "third", {"a": b""})
    assert container.exists()
    write_tree(root.parent / "other", {"b": b""})
    assert (root.parent / "other/a").read_bytes() == b"2"
    assert not container.exists()


def test_a_file_does_not_become_a_tree(root: Path) -> None:
    container = root.parent / ".kaigen-staging-0123456789abcdef"
    write_files(container, {"journal": b"deploy\0", "old": b"", "new": b"#!/bin/sh\n"})
    with pytest.raises(SystemFailure, match="interrupted run"):
        write_tree(root, {"a": b""})
    assert not root.exists()


def test_reading_follows_no_link_and_waits_for_no_pipe(tmp_path: Path, outside: Path) -> None:
    # A plan has looked before it reads; this is for what changes in between.
    (tmp_path / "link").symlink_to(outside / "a.yaml")
    with pytest.raises(OSError, match="symbolic links"):
        read_file(str(tmp_path / "link"))
    os.mkfifo(tmp_path / "pipe")
    assert read_file(str(tmp_path / "pipe")) == b""
