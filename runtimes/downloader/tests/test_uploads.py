"""`wait-files`: files that a person uploads."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path

import pytest
from runs import Runner


def wait(run: Runner, folder: Path, *more: str, timeout: str = "0.2", **env: str) -> tuple[int, str]:
    """Wait for input.jpg, and return the exit code and what was printed."""
    argv = ["wait-files", "--dest", str(folder), "--file", "input.jpg", "--timeout", timeout, *more]
    done = run(*argv, **{"KAIGEN_SETTLE": "0.1", **env})
    return done.code, done.err


def test_a_file_that_is_there_is_ready_when_it_does_not_change(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "input.jpg").write_bytes(b"image")
    begin = time.monotonic()
    code, text = wait(run, tmp_path, timeout="20")
    assert (code, text.splitlines()[-1]) == (0, "ready: 1 file, 5 B")
    assert time.monotonic() - begin >= 0.1


def test_an_upload_in_progress_is_not_ready(run: Runner, tmp_path: Path) -> None:
    ended = []

    def upload() -> None:
        with (tmp_path / "input.jpg").open("wb", buffering=0) as file:
            for _ in range(20):
                file.write(b"x" * 100)
                time.sleep(0.02)
            ended.append(time.monotonic())

    thread = threading.Thread(target=upload)
    thread.start()
    code, text = wait(run, tmp_path, timeout="60", KAIGEN_SETTLE="0.3")
    finished = time.monotonic()
    thread.join()
    assert (code, text.splitlines()[-1]) == (0, "ready: 1 file, 2.0 KiB")
    assert finished > ended[0]


def test_a_file_with_a_checksum_is_ready_when_it_has_it(run: Runner, tmp_path: Path) -> None:
    path, whole = tmp_path / "input.jpg", b"the whole image"
    argument = f"--sha256=input.jpg={hashlib.sha256(whole).hexdigest()}"
    path.write_bytes(whole[:3])
    code, text = wait(run, tmp_path, argument)
    assert code == 20
    assert "input.jpg has 3 B and sha256 " in text
    path.write_bytes(whole)
    assert wait(run, tmp_path, argument, KAIGEN_SETTLE="1h")[0] == 0


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link(path: Path) -> None:
    path.with_name("other").write_bytes(b"secret")
    path.symlink_to("other")


@pytest.mark.parametrize(
    ("make", "lack"),
    [
        (lambda path: None, "input.jpg is not there"),
        (lambda path: path.write_bytes(b""), "input.jpg is empty"),
        (make_folder, "input.jpg is not a file"),
        (make_link, "input.jpg cannot be read"),
    ],
)
def test_the_time_limit_names_what_is_missing(run: Runner, tmp_path: Path, make: object, lack: str) -> None:
    assert callable(make)
    make(tmp_path / "input.jpg")
    code, text = wait(run, tmp_path)
    assert code == 20
    last = text.splitlines()[-1]
    assert last.startswith("error: waited ")
    assert f"for 1 file in {tmp_path}: {lack}" in last


def test_a_folder_that_does_not_exist_yet_is_waited_for(run: Runner, tmp_path: Path) -> None:
    code, text = wait(run, tmp_path / "later")
    assert code == 20
    assert "no such folder" in text


@pytest.mark.parametrize("arguments", [("--file=../a",), ("--sha256=b=" + "0" * 64,), ("--sha256=input.jpg=1",)])
def test_wrong_arguments_are_permanent_failures(run: Runner, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert wait(run, tmp_path, *arguments)[0] == 13
