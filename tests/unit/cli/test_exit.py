"""The command exits without freeing its objects, but still does what programs do when they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(before: str, *arguments: str, stdout: int | None = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, after some code."""
    code = f"{before}\nfrom kaigen.cli import main\nmain({list(arguments)})"
    return subprocess.run([sys.executable, "-c", code], check=False, stdout=stdout, stderr=subprocess.PIPE, text=True)


def test_objects_are_not_freed_one_by_one() -> None:
    code = "class Slow:\n    def __del__(self):\n        print('freed')\nslow = Slow()"
    done = run(code, "--version")
    assert (done.returncode, "freed" in done.stdout) == (0, False)


def test_functions_registered_to_run_at_exit_run() -> None:
    done = run("import atexit\natexit.register(print, 'the end')", "--version")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "the end")


def test_a_thread_that_still_works_is_waited_for() -> None:
    code = (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.5), print('the thread is done'))).start()"
    )
    done = run(code, "--version")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "the thread is done")


@pytest.mark.parametrize("arguments", [["--help"], ["kinds"], ["presets", "--output=json"]])
def test_output_that_cannot_be_written_is_an_error(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run("", *arguments, stdout=full.fileno())
    assert (done.returncode, done.stderr) == (3, "error: No space left on device\n")


def test_exit_code_of_a_wrong_call_is_kept() -> None:
    assert run("", "no-such-command").returncode == 2
