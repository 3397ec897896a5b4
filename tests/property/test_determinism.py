"""The same specs give the same bytes in any environment, folder and order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo"

ENVIRONMENTS: dict[str, dict[str, str]] = {
    "plain": {},
    "other-hashes": {"PYTHONHASHSEED": "1"},
    "turkish": {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "77", "TZ": "Asia/Kathmandu"},
    "ascii": {"LANG": "C", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "UTC+11"},
    "optimised": {"PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "4294967295", "COLUMNS": "20", "FORCE_COLOR": "1"},
}


def kaigen(arguments: list[str], folder: Path, variables: Mapping[str, str], umask: int = 0o022) -> str:
    base = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "KAIGEN_CACHE_DIR": "off"}
    done = subprocess.run(
        [sys.executable, "-m", "kaigen", *arguments],
        cwd=folder,
        env={**base, **variables},
        umask=umask,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a repository with the specs of the demo and of the chart tests, rendered in both forms."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "specs").mkdir()
    for file in [*(DEMO / "specs").glob("*.yaml"), *(ROOT / "tests/chart/specs/generic").glob("*.yaml")]:
        shutil.copy(file, folder / "specs" / file.name)
    (folder / "kaigen.yaml").write_text(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nformat: both\nnamespace: ml\n"
        "allow: {volumes: [{drivers: ['*'], secrets: ['*/*'], attributes: ['*'], options: ['*']}]}\n"
        "dialects: {substratus: {registry: registry.example.com/substratus}}\n"
    )
    return folder


@pytest.fixture(scope="module")
def expected(specs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    output = tmp_path_factory.mktemp("expected") / "out"
    kaigen(["-q", "render", "-o", str(output)], specs, {})
    found = tree(output)
    assert len(found) > 100
    return found


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_output_does_not_depend_on_the_environment(
    name: str, specs: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    umask = 0o077 if name == "turkish" else 0o000
    kaigen(["-q", "render", "-o", str(tmp_path / "out")], specs, ENVIRONMENTS[name], umask)
    assert tree(tmp_path / "out") == expected


def test_output_does_not_depend_on_the_working_folder_or_on_modification_times(
    specs: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    for number, file in enumerate(sorted(specs.rglob("*.yaml"))):
        os.utime(file, (number, number))
    below = specs / "specs"
    kaigen(["-q", "render", "-o", str(tmp_path / "out")], below, {})
    assert tree(tmp_path / "out") == expected


def test_output_does_not_depend_on_the_order_of_files(specs: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "specs").mkdir(parents=True)
    for file in sorted((specs / "specs").iterdir(), reverse=True):
        shutil.copy(file, copy / "specs")
    shutil.copy(specs / "kaigen.yaml", copy)
    named = [f"specs/{file.name}" for file in sorted((copy / "specs").iterdir(), reverse=True)]
    kaigen(["-q", "render", "-o", str(tmp_path / "out"), *named], copy, {})
    without_index = {path: data for path, data in tree(tmp_path / "out").items() if path in expected}
    assert without_index == expected


def test_output_does_not_depend_on_the_order_of_documents_in_a_file(
    specs: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(specs, copy)
    reversed_files = 0
    for file in (copy / "specs").iterdir():
        documents = file.read_text().split("\n---\n")
        reversed_files += len(documents) > 1
        file.write_text("\n---\n".join(reversed([text.rstrip("\n") for text in documents])) + "\n")
    assert reversed_files > 2
    kaigen(["-q", "render", "-o", str(tmp_path / "out")], copy, {})
    assert tree(tmp_path / "out") == expected


def test_rendering_twice_changes_nothing(specs: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    output = tmp_path / "out"
    cached = {"KAIGEN_CACHE_DIR": str(tmp_path / "cache")}
    kaigen(["-q", "render", "-o", str(output)], specs, cached)
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    kaigen(["-q", "render", "-o", str(output)], specs, cached)
    kaigen(["-q", "render", "-o", str(output)], specs, {})
    kaigen(["-q", "render", "-o", str(output), "--check"], specs, {})
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*")} == before
    assert tree(output) == expected


def test_the_stream_is_deterministic(specs: Path) -> None:
    first = kaigen(["-q", "render", "--stdout"], specs, {"PYTHONHASHSEED": "3"})
    second = kaigen(["-q", "render", "--stdout"], specs, {"PYTHONHASHSEED": "4", "LC_ALL": "C"})
    assert first == second
    assert first.count("\n---\n") > 50
