"""A run ends within its limits of time and memory, whatever is in the repository, and says which one it reached."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from kaigen.cli.limits import LimitReached, apply_limits
from tests.unit.security.hostile import JOB, Repository

LARGE_JOB = JOB + "  env:\n" + "".join(f"    A{n}: x\n" for n in range(60_000))
"""Takes one second and 1100 MiB; an empty repository needs 60 MiB."""


@pytest.mark.parametrize(
    ("variable", "limit", "message"),
    [
        (
            "KAIGEN_TIME_LIMIT",
            "1",
            "error: stopped after 1 s, the limit of a run\n"
            "  = hint: set KAIGEN_TIME_LIMIT to more seconds, or to 0 for no limit\n",
        ),
        (
            "KAIGEN_MEMORY_LIMIT",
            "100",
            "error: out of memory: a run may use 100 MiB\n"
            "  = hint: set KAIGEN_MEMORY_LIMIT to more MiB, or to 0 for no limit\n",
        ),
    ],
    ids=["time", "memory"],
)
def test_a_run_that_needs_too_much_is_stopped(repository: Repository, variable: str, limit: str, message: str) -> None:
    """In a process of its own: in this one, plugins of pytest run code of theirs that a signal may interrupt."""
    names = [f"large-{number}" for number in range(20)]
    repository.write({f"specs/{name}.yaml": LARGE_JOB.replace("evaluate}", f"{name}}}") for name in names})
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", "from kaigen.cli import main; main(['validate'])"],
        env={variable: limit, "PATH": ""},
        cwd=repository.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert time.monotonic() - begin < 30
    assert (done.returncode, done.stderr) == (3, message)


def test_an_error_that_a_limit_caused_names_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_MEMORY_LIMIT", "1")
    with pytest.raises(LimitReached, match="a run may use 1 MiB"), apply_limits():
        raise ImportError("cannot import a name from a module that the limit interrupted")


def test_a_limit_that_is_no_number_is_an_error(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_TIME_LIMIT", "10m")
    done = repository.kaigen("validate")
    assert (done.code, done.err) == (2, "error: KAIGEN_TIME_LIMIT is a whole number, not '10m'\n")


def test_limits_end_with_the_run(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_TIME_LIMIT", "1")
    assert repository.kaigen("validate").code == 0
    time.sleep(1.2)
