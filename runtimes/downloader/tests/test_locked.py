"""`--locked`: only the files that a review has seen are marked complete."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hub import Hub
from runs import Runner, content, marker


def locked(files: dict[str, bytes]) -> str:
    """Return the argument for these files."""
    lines = (f"{hashlib.sha256(data).hexdigest()} {len(data)} {path}\n" for path, data in sorted(files.items()))
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return f"--locked={len(files)}:{sum(map(len, files.values()))}:{digest}"


@pytest.fixture
def files(hub: Hub) -> dict[str, bytes]:
    """The files of the Hub: large and small, at the top and in a folder."""
    found = {"model.safetensors": content(200_000), "config.json": b"{}", "a/b.txt": b"text"}
    hub.files.clear()
    for path, data in found.items():
        hub.add(path, data)
    return found


def test_the_files_of_the_lock_are_marked_complete(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, run: Runner
) -> None:
    assert run.fetch(hub, tmp_path, locked(files)).code == 0
    assert marker(tmp_path) is not None
    assert "already complete" in run.fetch(hub, tmp_path, locked(files)).err


def test_a_small_file_with_another_checksum_is_refused(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, run: Runner
) -> None:
    done = run.fetch(hub, tmp_path, locked({**files, "config.json": b"[]"}))
    assert done.code == 10
    assert "not those of kaigen.lock" in done.err
    assert marker(tmp_path) is None


def test_a_missing_file_is_refused_before_the_first_byte(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, run: Runner
) -> None:
    done = run.fetch(hub, tmp_path, locked({**files, "LICENSE": b"..."}))
    assert done.code == 10
    assert "the source has 3 files with 200006 bytes, and kaigen.lock has 4 with 200009" in done.err
    assert hub.sent == 0


@pytest.mark.parametrize("other", [{"config.json": b"[]"}, {"LICENSE": b"..."}])
def test_complete_files_that_are_not_those_of_the_lock_are_not_accepted(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, run: Runner, other: dict[str, bytes]
) -> None:
    assert run.fetch(hub, tmp_path).code == 0
    done = run.fetch(hub, tmp_path, locked(files | other))
    assert done.code == 10
    assert "marked complete, but the files are not those of kaigen.lock" in done.err
    assert marker(tmp_path) is None


@pytest.mark.parametrize("text", ["", "3", "3:x:" + "0" * 64, "3:10:" + "0" * 63])
def test_an_argument_of_another_form_is_refused(hub: Hub, tmp_path: Path, run: Runner, text: str) -> None:
    done = run.fetch(hub, tmp_path, f"--locked={text}")
    assert done.code == 13
    assert "FILES:BYTES:SHA256" in done.err
