"""Names and links that would lead out of the folder, and folders that cannot be written."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hub import Hub
from kaigen_downloader.errors import BadInput
from kaigen_downloader.remote import check_names
from runs import Runner, files, holds, marker


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "a/../../evil",
        "a//b",
        "./evil",
        "a/.",
        "..",
        "",
        ".kaigen/model.json",
        "a\\..\\b",
        "a\nb",
        "a\x00b",
        "x" * 256,
        "/".join(["x" * 200] * 6),
        "a/" * 64_000 + "b",
        "x" * 1_000_000 + "\\",
    ],
    ids=lambda name: repr(name[:20]),
)
def test_a_name_that_leads_out_is_refused(hub: Hub, run: Runner, dest: Path, name: str) -> None:
    hub.add(name, b"evil", lfs=False)
    done = run.fetch(hub, dest)
    assert done.code == 13, done.err
    assert "name" in done.err
    assert (done.err.count("\n"), len(done.err) < 500) == (1, True)
    assert files(dest) == set()
    assert marker(dest) is None
    assert not hub.requests("hub", "/resolve/")
    assert {path.name for path in dest.parent.iterdir()} == {dest.name}


def test_a_name_that_is_file_and_folder_is_refused(hub: Hub, run: Runner, dest: Path) -> None:
    hub.add("config.json/x", b"")
    done = run.fetch(hub, dest)
    assert done.code == 13
    assert "'config.json' as a file and as a folder" in done.err


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["a/b", "a.b", "a"], "'a' as a file and as a folder"),
        (["a/b/c/d", "a/b"], "'a/b' as a file and as a folder"),
        (["b", "a/b", "b"], "lists 'b' twice"),
    ],
)
def test_names_that_exclude_each_other_are_refused(names: list[str], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        check_names(names)
    check_names(sorted(set(names))[1:])


def test_a_folder_may_have_files_and_be_empty() -> None:
    check_names(["a/b", "c"], {"a", "d", "a/e"})
    with pytest.raises(BadInput, match="'a/b' as a file and as a folder"):
        check_names(["a/b"], {"a/b", "a"})


def test_names_with_many_folders_are_checked_in_linear_time() -> None:
    names = [f"{number}/" + "a/" * 500 + "b" for number in range(4000)]
    begin = time.process_time()
    check_names(names)
    assert time.process_time() - begin < 2


def test_a_linked_folder_is_not_written_through(hub: Hub, run: Runner, dest: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    dest.mkdir()
    (dest / "tokenizer").symlink_to(outside)
    done = run.fetch(hub, dest)
    assert done.code == 13
    assert "'tokenizer' is a link or a file where a folder is needed" in done.err
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["", "/partial", "/lock"])
def test_our_own_folder_may_not_be_a_link_either(hub: Hub, run: Runner, dest: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = dest / f".kaigen{name}"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / "file" if name == "/lock" else outside)
    assert run.fetch(hub, dest).code == 13
    assert list(outside.iterdir()) == []


def test_a_linked_file_is_replaced_and_its_target_stays(hub: Hub, run: Runner, dest: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("mine")
    dest.mkdir()
    (dest / "config.json").symlink_to(outside)
    assert run.fetch(hub, dest).code == 0
    assert holds(dest, hub)
    assert not (dest / "config.json").is_symlink()
    assert outside.read_text() == "mine"


def test_a_folder_of_someone_else_in_the_place_of_a_file_is_left_alone(hub: Hub, run: Runner, dest: Path) -> None:
    (dest / "config.json").mkdir(parents=True)
    (dest / "config.json" / "mine").write_text("mine")
    done = run.fetch(hub, dest)
    assert done.code == 13
    assert "a folder where the model has a file" in done.err
    assert (dest / "config.json" / "mine").read_text() == "mine"


def test_a_destination_that_is_a_file_is_refused(hub: Hub, run: Runner, dest: Path) -> None:
    dest.write_text("a file")
    done = run.fetch(hub, dest)
    assert done.code == 13
    assert "not a folder" in done.err
    assert run.fetch(hub, dest / "below").code == 13


def test_a_marker_that_names_a_file_outside_is_not_followed(hub: Hub, run: Runner, dest: Path, tmp_path: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    outside = tmp_path / "outside"
    outside.write_text("mine")
    path = dest / ".kaigen" / "model.json"
    path.write_text(path.read_text().replace('"empty"', '"../outside"'))
    assert run("verify", "--dest", str(dest)).code == 1
    done = run.fetch(hub, dest, identity="other")
    assert done.code == 0, done.err
    assert outside.read_text() == "mine"


@pytest.mark.parametrize(
    "argv",
    [
        ["fetch", "huggingface", "--repo", "a/b"],
        ["fetch", "s3", "--repo", "a/b"],
        ["fetch", "huggingface", "--repo", "a/b/c", "--dest", "{dest}", "--identity", "x"],
        ["fetch", "huggingface", "--repo", "a b", "--dest", "{dest}", "--identity", "x"],
        ["fetch", "huggingface", "--repo", "a/b", "--dest", "{dest}", "--identity", ""],
        ["fetch", "huggingface", "--repo", "a/b", "--dest", "{dest}", "--identity", "x", "--part-size", "5X"],
        ["fetch", "huggingface", "--repo", "a/b", "--dest", "{dest}", "--identity", "x", "--part-size", "1"],
        ["fetch", "huggingface", "--repo", "a/b", "--dest", "{dest}", "--identity", "x", "--connections", "0"],
        ["fetch", "huggingface", "--repo", "a/b", "--dest", "{dest}", "--identity", "x", "--timeout", "-1"],
        ["fetch", "huggingface", "--repo", "a/b", "--dest", "{dest}", "--identity", "x", "--endpoint", "ftp://x"],
        ["fetch", "huggingface", "--repo", "a/b", "--dest", "{dest}", "--identity", "x", "--facts", "Not_A_Name"],
        ["wait", "--dest", "{dest}", "--identity", "x", "--timeout", "soon"],
        ["verify"],
        ["go"],
        [],
    ],
)
def test_bad_arguments_end_with_13_and_one_line(run: Runner, dest: Path, argv: list[str]) -> None:
    done = run(*(word.format(dest=dest) for word in argv))
    assert done.code == 13
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
