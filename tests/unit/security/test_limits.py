"""A run ends within its limits of time and memory, whatever is in the repository, and says which one it reached."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from kaigen.cli.limits import LimitReached, limited
from tests.unit.extend.repository import HEAD, KIND, SCHEMA, SPEC
from tests.unit.security.hostile import CONFIG, JOB, Repository


def test_a_run_that_takes_too_long_is_stopped(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's regular expressions backtrack, and only a signal ends them."""
    schema = SCHEMA.replace("type: string", "type: string, pattern: '^(a+)+$'", 1)
    assert schema != SCHEMA
    repository.write(
        {
            "kaigen.yaml": CONFIG + "kinds: [kinds]\n",
            "kinds/thing/kind.yaml": KIND,
            "kinds/thing/schema.yaml": schema,
            "kinds/thing/templates/object.yaml.jinja": HEAD + "  a: b\n",
            "specs/one.yaml": SPEC.replace("hello", "a" * 60 + "!"),
        }
    )
    monkeypatch.setenv("KAIGEN_TIME_LIMIT", "1")
    begin = time.monotonic()
    done = repository.kaigen("validate")
    assert time.monotonic() - begin < 30
    assert (done.code, done.err) == (
        3,
        "error: stopped after 1 s, the limit of a run\n"
        "  = hint: set KAIGEN_TIME_LIMIT to more seconds, or to 0 for no limit\n",
    )


def test_a_run_that_needs_too_much_memory_is_stopped(repository: Repository) -> None:
    """The Job needs 1100 MiB, an empty repository 60."""
    repository.write(
        {"specs/large.yaml": JOB + "  env:\n" + "".join(f"    A{n}: x\n" for n in range(60_000))}
    )
    code = "from kaigen.cli import main; main(['validate'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"KAIGEN_MEMORY_LIMIT": "100", "PATH": ""},
        cwd=repository.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        3,
        "error: out of memory: a run may use 100 MiB\n"
        "  = hint: set KAIGEN_MEMORY_LIMIT to more MiB, or to 0 for no limit\n",
    )


def test_an_error_that_a_limit_caused_names_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_MEMORY_LIMIT", "1")
    with pytest.raises(LimitReached, match="a run may use 1 MiB"), limited():
        raise ImportError("cannot import a name from a module that the limit interrupted")


def test_a_limit_that_is_no_number_is_an_error(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAIGEN_TIME_LIMIT", "10m")
    done = repository.kaigen("validate")
    assert (done.code, done.err) == (2, "error: KAIGEN_TIME_LIMIT is a whole number, not '10m'\n")


def test_limits_end_with_the_run(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_TIME_LIMIT", "1")
    assert repository.kaigen("validate").code == 0
    time.sleep(1.2)
