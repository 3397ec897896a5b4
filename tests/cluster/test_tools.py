"""Finding and building the cluster's programs."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.tools import parts
from tests.cluster.tools.build import BuildFailed, build
from tests.cluster.tools.parts import ALL_PARTS, PARTS, Part, find, locate

_ROOT = Path(__file__).parents[2]
_BY_NAME = {part.name: part for part in PARTS}


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of programs; Go's own cache stays."""
    gocache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("GOCACHE", gocache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return parts.cache()


def program(folder: Path, name: str, prints: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{prints}'\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("part", ALL_PARTS, ids=lambda part: part.name)
def test_every_part_is_pinned_and_builds_what_its_go_mod_names(part: Part) -> None:
    text = (part.folder / "go.mod").read_text()
    tools = set(re.findall(r"^(?:tool |\t)([^\s()]+)$", text, re.MULTILINE))
    built = {package for each in ALL_PARTS if each.folder == part.folder for package in each.packages.values()}
    assert built == tools
    assert re.fullmatch(r"v\d+\.\d+\.\d+", part.version)
    assert (part.folder / "go.sum").stat().st_size > 0


@pytest.mark.parametrize(("part", "name"), [pytest.param(part, name, id=name) for part in PARTS for name in part.asks])
def test_every_program_prints_the_version_it_was_built_from(part: Part, name: str) -> None:
    output = subprocess.run([locate()[name], *part.asks[name]], capture_output=True, text=True, check=True).stdout
    assert part.version.removeprefix("v") in output


def test_two_runs_at_once_build_a_part_once(empty_cache: Path) -> None:
    script = (
        "from tests.cluster.tools.build import build\n"
        "from tests.cluster.tools.parts import ALL_PARTS\n"
        "build(next(part for part in ALL_PARTS if part.name == 'kustomize'))"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", script], cwd=_ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = "".join(run.communicate()[1] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    kustomize = _BY_NAME["kustomize"]
    assert said.count(f"kustomize {kustomize.version}: building with go") == 1
    [built] = [entry for entry in empty_cache.iterdir() if entry.is_dir()]
    assert find(kustomize) == {"kustomize": built / "kustomize"}
    version = subprocess.run([built / "kustomize", "version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == kustomize.version


def test_a_failed_build_leaves_nothing_behind(empty_cache: Path) -> None:
    broken = dataclasses.replace(
        _BY_NAME["kustomize"], packages={"kustomize": "sigs.k8s.io/kustomize/kustomize/v5/nothing"}
    )
    with pytest.raises(BuildFailed, match=r"(?s)kustomize v\S+: go build failed\n.*nothing"):
        build(broken)
    assert [entry.name for entry in empty_cache.iterdir()] == ["kustomize.lock"]


@pytest.mark.parametrize(("prints", "used"), [("etcd Version: 3.6.1", True), ("etcd Version: 3.5.9", False)])
def test_an_installed_program_is_used_when_its_version_fits(
    prints: str, used: bool, empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "assets", "etcd", prints)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    found = find(_BY_NAME["etcd"])
    assert found == ({"etcd": tmp_path / "assets" / "etcd"} if used else None)


def test_an_installed_part_is_used_only_whole(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "assets", "kube-apiserver", "Kubernetes v1.36.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    assert find(_BY_NAME["kubernetes"]) is None


def without_go(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "bin").mkdir()
    env = os.environ | {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tests.cluster.tools"]
    return subprocess.run(command, cwd=_ROOT, env=env, capture_output=True, text=True, check=False)


def test_a_machine_without_go_gets_one_clear_line(tmp_path: Path) -> None:
    done = without_go(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == "cluster-tools: go is not on the PATH: the cluster's programs are built with Go 1.26 or newer\n"
    )


@pytest.mark.parametrize("processes", [[], ["-n", "2"]])
def test_the_cluster_tests_fail_in_one_line_without_the_programs(tmp_path: Path, processes: list[str]) -> None:
    env = os.environ | {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    one = "tests/cluster/test_plane.py::test_every_custom_kind_is_served"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *processes, one]
    done = subprocess.run(command, cwd=_ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if "cluster tests:" in line]
    assert all(f"{part.name} {part.version}" in line for part in PARTS)
    assert "; run `make cluster-tools` first" in line
