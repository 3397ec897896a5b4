"""`kaigen build push` to a real OCI registry, and the downloader that reads it from there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.cli.main import run
from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from tests.cluster.registry import LocalRegistry

DOWNLOADER = Path(__file__).parents[2] / "runtimes" / "downloader"
SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: train}}
spec:
  build:
    repository: {host}/acme/train # of the image
    plainHttp: true
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    running = LocalRegistry(tmp_path_factory.mktemp("registry") / "registry")
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def folder(registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, with credentials for the registry."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "docker" / "config.json"))
    registry.login(tmp_path / "docker")
    made = tmp_path / "train"
    (made / "src").mkdir(parents=True)
    (made / "Dockerfile").write_text("FROM scratch\nCOPY src /\n")
    (made / "src" / "run.sh").write_text("#!/bin/sh\necho trained\n")
    (made / "src" / "run.sh").chmod(0o755)
    (made / "src" / "link").symlink_to("run.sh")
    (made / "empty").mkdir()
    (made / "large.bin").write_bytes(bytes(range(256)) * 40_000)
    (made / "notes.txt").write_text("private")
    (made / ".dockerignore").write_text("*.txt\n")
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def push(capsys: pytest.CaptureFixture[str], folder: Path) -> Callable[..., dict[str, Any]]:
    """Push the folder, and return the result."""

    def call(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        assert run(["build", "push", str(folder), "-o", "json", *arguments]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return call


def test_folder_is_pushed_once_and_has_the_same_digest(
    push: Callable[..., dict[str, Any]], registry: LocalRegistry
) -> None:
    place = f"{registry.host}/acme/pushed"
    planned = push("--to", place, "--dry-run")
    assert registry.manifest("acme/pushed", planned["tag"]) is None
    pushed = push("--to", place)
    assert pushed == {**planned, "status": "published"}
    assert pushed["tag"] == f"context-{pushed['digest'][7:19]}"
    assert push("--to", f"oci://{place}") == {**planned, "status": "unchanged"}
    manifest: Any = registry.manifest("acme/pushed", pushed["digest"])
    assert manifest["artifactType"] == "application/vnd.kaigen.build-context.v1"
    assert registry.get(f"acme/pushed/blobs/{manifest['layers'][0]['digest']}") is not None


def test_tag_moves_to_the_last_push(push: Callable[..., dict[str, Any]], registry: LocalRegistry, folder: Path) -> None:
    place = f"{registry.host}/acme/tagged:main"
    first = push("--to", place)
    (folder / "src" / "run.sh").write_text("#!/bin/sh\necho more\n")
    second = push("--to", place)
    assert first["digest"] != second["digest"]
    assert second["reference"] == f"{place}@{second['digest']}"
    assert registry.manifest("acme/tagged", "main") == registry.manifest("acme/tagged", second["digest"])
    assert registry.manifest("acme/tagged", first["digest"]) is not None


def test_digest_is_written_into_the_spec(
    push: Callable[..., dict[str, Any]], registry: LocalRegistry, tmp_path: Path, folder: Path
) -> None:
    spec = tmp_path / "train.yaml"
    spec.write_text(SPEC.format(host=registry.host))
    first = push("--spec", str(spec))
    assert first["written"]
    line = f"    artifact: {first['reference']}\n"
    assert spec.read_text() == SPEC.format(host=registry.host).replace("    plainHttp", f"{line}    plainHttp")
    assert push("--spec", str(spec)) == {**first, "status": "unchanged", "written": False}
    (folder / "src" / "run.sh").write_text("#!/bin/sh\necho more\n")
    second = push("--spec", str(spec))
    assert second["reference"] in spec.read_text()
    assert first["reference"] not in spec.read_text()


def test_refused_push_changes_no_spec(
    registry: LocalRegistry, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "train.yaml"
    spec.write_text(SPEC.format(host=registry.host))
    registry.login(tmp_path / "docker", "wrong")
    assert run(["build", "push", str(folder), "--spec", str(spec)]) == 3
    assert "rejected the credentials to read acme/train" in capsys.readouterr().err
    assert spec.read_text() == SPEC.format(host=registry.host)


def test_wrong_spec_pushes_nothing(
    registry: LocalRegistry, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "train.yaml"
    spec.write_text(SPEC.format(host=registry.host) + "    git: {url: https://example.com/a.git, commit: main}\n")
    place = f"{registry.host}/acme/nothing:main"
    assert run(["build", "push", str(folder), "--to", place, "--spec", str(spec)]) == 2
    assert f"{spec}:8:5: error[KG0913]" in capsys.readouterr().err
    assert registry.manifest("acme/nothing", "main") is None


def test_rendered_pod_fetches_what_was_pushed_unless_the_image_is_there(
    push: Callable[..., dict[str, Any]], registry: LocalRegistry, tmp_path: Path, folder: Path
) -> None:
    spec = tmp_path / "train.yaml"
    spec.write_text(SPEC.format(host=registry.host))
    push("--spec", str(spec))
    files = render([spec], Config(namespace="research"))
    (content,) = (data for path, data in files.items() if path.endswith("job-build.yaml"))
    pod = yaml.safe_load(content)["spec"]["template"]["spec"]
    (fetcher,) = (each for each in pod["initContainers"] if each["name"] == "fetch-context")
    (builder,) = pod["containers"]
    places = {"/context": tmp_path / "volume", "/status": tmp_path / "status"}

    def fetch() -> str:
        argv = [_here(each, places) for each in fetcher["args"]]
        done = subprocess.run(
            [sys.executable, "-m", "kaigen_downloader", *argv],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(DOWNLOADER),
                "REGISTRY_AUTH": (tmp_path / "docker" / "config.json").read_text(),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    places["/status"].mkdir()
    (places["/status"] / "found").touch()
    assert "nothing is fetched" in fetch()
    assert not places["/context"].exists()
    (places["/status"] / "found").unlink()
    fetch()
    (local,) = (each for each in builder["args"] if each.startswith("--local=context="))
    got = Path(_here(local.removeprefix("--local=context="), places))
    assert sorted(path.relative_to(got).as_posix() for path in got.rglob("*")) == [
        ".dockerignore",
        "Dockerfile",
        "empty",
        "large.bin",
        "src",
        "src/link",
        "src/run.sh",
    ]
    assert (got / "large.bin").read_bytes() == (folder / "large.bin").read_bytes()
    assert os.access(got / "src" / "run.sh", os.X_OK)
    assert (got / "src" / "link").readlink() == Path("run.sh")


def _here(text: str, places: Mapping[str, Path]) -> str:
    """Return an argument of a container with the paths of this machine."""
    for path, there in places.items():
        text = re.sub(rf"(?<![\w/]){path}(?=/|$)", str(there), text)
    return text
