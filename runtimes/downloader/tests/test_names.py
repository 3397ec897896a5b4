"""Names that are the same on some volumes: those of our own folder, and those of two files."""

from __future__ import annotations

import os
import tarfile
import unicodedata
from pathlib import Path

import pytest
from hub import Hub
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kaigen_downloader.errors import BadInput
from kaigen_downloader.folder import Folder
from kaigen_downloader.names import check_volume, folded, is_state
from kaigen_downloader.progress import Display
from kaigen_downloader.remote import Layer, check_names
from kaigen_downloader.unpacking import unpack
from runs import ID, Runner, files, marker
from s3 import S3

STATE = [
    ".kaigen",
    ".KAIGEN",
    ".Kaigen",
    ".kaigen.",
    ".kaigen ",
    ".KAIGEN . .",
    " .kaigen",
    ".ka\u0131gen",
    ".KA\u0130GEN",
    ".\u212aaigen",
    "\uff0ekaigen",
    "\u2024kaigen",
    ".\uff4b\uff41\uff49\uff47\uff45\uff4e",
    ".\U0001d424aigen",
    ".kaigen\u0301",
    ".k\u034faigen",
    ".kaigen\ufe0f",
    ".kaigen\u3164",
    ".kai\uffa0gen",
    ".kaigen:stream",
    ".kaigen::$INDEX_ALLOCATION",
    "KAIGEN~1",
    "kaigen~2",
    "KA1F0B~1",
]
"""Spellings of `.kaigen` that are accepted as names of files by themselves."""
OTHER = [
    "kaigen",
    ".kaigenx",
    ".kaige",
    "x.kaigen",
    "..kaigen",
    "._kaigen",
    ".kaigen-x",
    "kaigen.json",
    ".k\u0430igen",
    ".git",
    "KA~1",
    "a:.kaigen",
]
"""Names that no volume takes for `.kaigen`. One of them has a Cyrillic letter."""


@pytest.mark.parametrize("spelling", STATE)
@pytest.mark.parametrize("below", ["owned.json", "model.json", "x/y", ""])
def test_a_file_of_our_own_folder_is_refused_in_any_spelling(spelling: str, below: str) -> None:
    path = f"{spelling}/{below}".rstrip("/")
    with pytest.raises(BadInput, match="which is a reserved name"):
        check_names(["config.json", path])
    if below:
        with pytest.raises(BadInput, match="which is a reserved name"):
            check_names(["config.json"], [path])


@pytest.mark.parametrize("name", [".kai\u200bgen", ".kaigen\u00ad", ".kaigen\u00a0", ".kaigen\uf029", "\ufeff.kaigen"])
def test_a_character_that_is_not_shown_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="a character that is not accepted"):
        check_names([f"{name}/owned.json"])


@pytest.mark.parametrize("name", OTHER)
def test_other_names_are_accepted(name: str) -> None:
    check_names([f"{name}/owned.json", f"a/{STATE[1]}/x"])


@settings(deadline=None)
@given(st.text(max_size=8))
@example("\u0130")
@example("\u1e9e.")
@example("\u0390\u0301")
def test_spellings_of_a_name_are_folded_to_one_text(name: str) -> None:
    for other in (
        name.upper(),
        name.lower(),
        name.casefold(),
        f"{name}. ",
        *(unicodedata.normalize(form, name) for form in ("NFC", "NFD", "NFKC", "NFKD")),
    ):
        assert folded(other) == folded(name)
    assert is_state(f".kaigen{name}") == is_state(f".KAIGEN{name}")


@pytest.mark.parametrize("spelling", STATE[1:])
def test_a_source_replaces_no_state_of_the_downloader(hub: Hub, run: Runner, dest: Path, spelling: str) -> None:
    hub.add(f"{spelling}/owned.json", b'["mine"]')
    done = run.fetch(hub, dest)
    assert (done.code, "reserved name" in done.err, done.err.count("\n")) == (13, True, 1), done.err
    assert not hub.requests("hub", "/resolve/")
    assert (files(dest), marker(dest)) == (set(), None)
    assert run.fetch(hub, dest, f"--exclude={spelling}/*").code == 0


def test_a_bucket_or_a_folder_has_no_other_spelling_of_it_either(
    s3: S3, run: Runner, dest: Path, tmp_path: Path
) -> None:
    s3.put("in/model", b"x")
    s3.put("in/.kaigen/model.json", b"ours")
    to = ("--dest", str(dest), "--identity", ID)
    assert run("fetch", "s3", "--uri", f"s3://{s3.bucket}/in", "--endpoint", s3.url, *to).code == 0
    s3.put("in/.Kaigen/model.json", b"theirs")
    to = ("--dest", str(dest), "--identity", "other")
    done = run("fetch", "s3", "--uri", f"s3://{s3.bucket}/in", "--endpoint", s3.url, *to)
    assert (done.code, "reserved name" in done.err) == (13, True), done.err
    (tmp_path / "made" / ".KAIGEN").mkdir(parents=True)
    (tmp_path / "made" / ".KAIGEN" / "model.json").write_text("theirs")
    (tmp_path / "made" / "model").write_text("x")
    done = run("put", str(tmp_path / "made"), *to)
    assert (done.code, "reserved name" in done.err) == (13, True), done.err


class Caseless(Folder):
    """A volume that ignores case, as SMB does: every name is stored in small letters."""

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        return super().open(path.lower(), flags, create=create)

    def stat(self, path: str) -> os.stat_result | None:
        return super().stat(path.lower())

    def remove(self, path: str) -> None:
        super().remove(path.lower())


PAIRS = [
    ("README.md", "readme.md"),
    ("A/x", "a/x"),
    ("A/x", "a/X"),
    ("a/b/C/d", "a/B/c/D"),
    ("\u00c9", "\u00e9"),
    ("model.SAFETENSORS", "model.safetensors"),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_two_files_that_the_volume_takes_for_one_are_refused(tmp_path: Path, pair: tuple[str, str]) -> None:
    folder = Caseless(str(tmp_path))
    try:
        with pytest.raises(BadInput, match=f"takes '.*' and '{sorted(pair)[1]}' for one file: exclude one"):
            check_volume(folder, ["config.json", *pair])
        check_volume(folder, ["config.json", pair[0]])
        # Names of one folded text that this volume distinguishes.
        check_volume(folder, ["e", "\u00e9", "e.", "e ", "A/e", "a/\u00e9", "\uff45", "a/y"])
    finally:
        folder.close()
    assert list((tmp_path / ".kaigen").iterdir()) == []


@pytest.mark.parametrize("pair", PAIRS)
def test_two_files_of_a_layer_that_the_volume_takes_for_one_are_refused(tmp_path: Path, pair: tuple[str, str]) -> None:
    with tarfile.open(tmp_path / "layer", "w") as archive:
        for path in pair:
            archive.addfile(tarfile.TarInfo(path))
    layer = Layer("layer", compressed=False, root="", chosen=lambda path: True)
    folder = Caseless(str(tmp_path))
    try:
        with pytest.raises(BadInput, match="for one file: exclude one"):
            unpack(folder, [layer], (), Display())
    finally:
        folder.close()
    assert {path.name for path in tmp_path.iterdir()} == {"layer", ".kaigen"}


@pytest.mark.parametrize("pair", [*PAIRS, ("e\u0301", "\u00e9"), ("a", "a."), ("A", "\uff21")])
def test_a_volume_with_case_has_both_files(hub: Hub, run: Runner, dest: Path, pair: tuple[str, str]) -> None:
    for path in pair:
        hub.add(path, path.encode())
    (dest / ".kaigen" / "names").mkdir(parents=True)
    (dest / ".kaigen" / "names" / "readme.md").touch()  # of a killed run
    done = run.fetch(hub, dest)
    assert done.code == 0, done.err
    assert [(dest / path).read_bytes() for path in pair] == [path.encode() for path in pair]
    assert run("verify", "--dest", str(dest), "--full").code == 0
    assert not (dest / ".kaigen" / "names").exists()
