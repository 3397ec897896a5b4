"""The tests of Endpoints without the real Envoy; `tests/cluster/test_endpoint.py` has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.merge import read_config
from kaigen.pipeline import routing_tests
from kaigen.pipeline.routing_tests import find_envoy, routing_problems
from kaigen.pipeline.run import Run
from kaigen.pipeline.validate import validate_environments

EXAMPLE = Path(__file__).parents[3] / "examples" / "endpoint" / "two-models.yaml"


def stand_in(folder: Path, script: str) -> Path:
    """Return a program."""
    program = folder / "envoy"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def problems(
    monkeypatch: pytest.MonkeyPatch, program: Path | None, spec: Path = EXAMPLE
) -> tuple[list[str], list[str]]:
    """Return what was found and what was printed."""
    monkeypatch.setattr(routing_tests, "find_envoy", lambda: program)
    said: list[str] = []
    found = routing_problems(Run.load([str(spec)], use_cache=False), said.append)
    return [f"{item.code} {item.mark and item.mark.line} {item.message}" for item in found], said


def test_it_says_that_tests_were_not_sent_without_envoy(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "tests of Endpoints: 6 requests compared with the table, not sent to Envoy, which is not installed"
    assert problems(monkeypatch, None) == ([], [text])


def test_environments_with_the_same_tests_say_it_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text("namespace: ml\nenvironments: {dev: {}, staging: {}, prod: {}}\n")
    monkeypatch.setattr(routing_tests, "find_envoy", lambda: None)
    said: list[str] = []
    configs = [read_config(tmp_path, name) for name in ("dev", "staging", "prod")]
    validate_environments([str(EXAMPLE)], configs, stdin=None, folder=tmp_path, say=said.append)
    assert len(said) == 1


def test_an_envoy_that_does_not_start_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found, said = problems(monkeypatch, stand_in(tmp_path, "echo first; echo unknown field; exit 1"))
    line = EXAMPLE.read_text().splitlines().index("  tests:") + 1
    assert found == [f"KG0493 {line + 1} Envoy does not answer the tests: unknown field"]
    assert said == ["tests of Endpoints: 6 requests sent to Envoy, 1 failed"]


def test_specs_without_tests_say_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "".join(line for line in EXAMPLE.read_text().splitlines(True) if "expect" not in line).replace("  tests:\n", "")
    )
    assert problems(monkeypatch, stand_in(tmp_path, "exit 1"), spec) == ([], [])


def test_envoy_is_found_on_the_path_and_not_in_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "envoy" / "_bin").mkdir(parents=True)
    (tmp_path / "envoy" / "__init__.py").touch()
    stand_in(tmp_path / "envoy" / "_bin", "")
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_envoy() is None
    program = stand_in(tmp_path / "bin", "")
    assert find_envoy() == program
