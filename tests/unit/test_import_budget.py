"""What a command may import: start-up time is import time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.importtime import Import, imports_of, read_imports
from benchmarks.workload import write_repository

ROOT = Path(__file__).parents[2]

# Nothing but a cluster, the Hub, an error or a user's own template or package needs these.
NEVER = (
    "jinja2",
    "jsonschema",
    "pydantic",
    "kubernetes",
    "kubernetes_validate",
    "huggingface_hub",
    "torch",
    "kaigen.extend.process",
)
ONLINE = ("asyncio", "http.client", "http.server", "urllib.request", "ssl", "concurrent.futures")
WHEN_SPECS_ARE_READ = ("yaml", "kaigen.kinds", "kaigen.dialects")
WHEN_ONE_IS_WRONG = ("kaigen.kinds.errors", "kaigen.kinds.schema", "kaigen.kinds.block_schema")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of a Model and a Job that refers to it."""
    return write_repository(tmp_path / "repository", 2)


# Python runs this before the program. A lazily imported module that was not used is still a lazy one at the end.
_RECORDER = """
import atexit, os, sys

def record():
    executed = [name for name, module in sys.modules.items() if type(module).__name__ != "_LazyModule"]
    with open(os.environ["EXECUTED"], "w") as file:
        file.write("\\n".join(executed))

atexit.register(record)
"""


def imports(repository: Path, *arguments: str) -> list[Import]:
    """Return the modules whose code a successful call runs; later calls find the cache of earlier ones."""
    recorder = repository / "recorder"
    recorder.mkdir(exist_ok=True)
    (recorder / "sitecustomize.py").write_text(_RECORDER)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(repository),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(recorder)]),
        "KAIGEN_CACHE_DIR": str(repository / "cache"),
        "EXECUTED": str(recorder / "executed"),
    }
    found, done = imports_of(sys.executable, arguments, repository, env)
    assert done.returncode == 0, done.stderr[-2000:]
    executed = set((recorder / "executed").read_text().split())
    assert "kaigen.cli.main" in executed
    return [item for item in found if item.name in executed]


def over(found: Iterable[Import], *forbidden: str) -> list[str]:
    """Return the chain of imports that led to each forbidden package, one per package."""
    chains: dict[str, str] = {}
    for item in found:
        for name in forbidden:
            if item.name == name or item.name.startswith(f"{name}."):
                chains.setdefault(name, " imports ".join(item.chain))
    return list(chains.values())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["render", "--help"], ["validate", "--help"]])
def test_help_reads_no_specs_and_loads_no_kinds(repository: Path, arguments: list[str]) -> None:
    found = imports(repository, *arguments)
    assert over(found, *NEVER, *ONLINE, *WHEN_SPECS_ARE_READ, "kaigen.compile", "kaigen.pipeline.run") == []


def test_help_of_one_command_imports_no_other(repository: Path) -> None:
    found = imports(repository, "render", "--help")
    others = [f"kaigen.cli.{path.stem}" for path in (ROOT / "kaigen" / "cli").glob("*.py")]
    shared = {f"kaigen.cli.{name}" for name in ("__init__", "main", "console", "limits", "options", "render")}
    assert over(found, *(set(others) - shared)) == []


def test_validate_imports_nothing_that_only_writing_or_a_network_takes(repository: Path) -> None:
    forbidden = (*NEVER, *ONLINE, *WHEN_ONE_IS_WRONG, "difflib", "kaigen.emit.chart")
    assert over(imports(repository, "validate"), *forbidden) == []


def test_render_of_manifests_imports_no_template_engine_and_no_differ(repository: Path) -> None:
    forbidden = (*NEVER, *ONLINE, *WHEN_ONE_IS_WRONG, "difflib", "kaigen.emit.chart")
    assert over(imports(repository, "render"), *forbidden) == []


@pytest.mark.parametrize("command", ["validate", "render"])
def test_specs_of_own_kinds_import_no_dialect_and_read_no_packages(repository: Path, command: str) -> None:
    packages = [f"kaigen.dialects.{path.parent.name}" for path in (ROOT / "kaigen/dialects").glob("*/__init__.py")]
    assert "kaigen.dialects.kaito" in packages
    forbidden = (*packages, "kaigen.dialects.packages", "kaigen.kinds.packages", "importlib.metadata")
    assert over(imports(repository, command), *forbidden) == []


def test_a_plan_without_a_spec_imports_no_models_and_no_yaml(repository: Path) -> None:
    imports(repository, "presets")  # Reads kaigen.yaml, which may name a catalogue, into the cache.
    for arguments in (["plan", "--preset", "phi-4"], ["presets"], ["gpus", "fit", "phi-4"]):
        assert over(imports(repository, *arguments), *NEVER, *ONLINE, "kaigen.kinds.topology", "yaml") == []


@pytest.mark.parametrize("environment", ["", "prod"])
def test_a_render_of_what_is_unchanged_validates_nothing_again(repository: Path, environment: str) -> None:
    config = repository / "kaigen.yaml"
    overrides = """
overrides:
  - match: {app: [model-00000, job-00000], labels: {}}
    spec: {retries: 3}
environments:
  staging: {}
  prod: {overrides: [{match: {kind: Job}, spec: {retries: 4}}]}
"""
    config.write_text(config.read_text(encoding="utf-8") + overrides, encoding="utf-8")
    imports(repository, "promote", "--from", "staging", "--to", "prod")
    assert (repository / "pins" / "prod.yaml").is_file()
    arguments = ["render", f"--env={environment}"]
    assert over(imports(repository, *arguments), "kaigen.config.file") != []
    unused = ("kaigen.kinds.base", "kaigen.kinds.model", "kaigen.kubernetes", "kaigen.check")
    forbidden = (*NEVER, *ONLINE, "kaigen.config.file", *unused)
    assert over(imports(repository, *arguments), *forbidden) == []


def test_an_import_is_reported_with_the_chain_of_its_importers() -> None:
    text = """\
import time: self [us] | cumulative | imported package
import time:       120 |        120 |   zipimport
import time:        31 |         31 |     heavy.part
import time:       204 |        235 |   heavy
some other line that the program printed
import time:        12 |        367 | light
import time:         9 |          9 | last
"""
    found = read_imports(text)
    assert [item.name for item in found] == ["zipimport", "heavy.part", "heavy", "light", "last"]
    assert [item.own_us for item in found] == [120, 31, 204, 12, 9]
    assert over(found, "heavy") == ["light imports heavy imports heavy.part"]
    assert over(found, "heavy.part", "last") == ["light imports heavy imports heavy.part", "last"]
    assert over(found, "heav") == []
