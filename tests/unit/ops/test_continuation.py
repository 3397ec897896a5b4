"""What `kaigen notebook open` offers at its end: the image of the folder, and the spec that trains with it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kaigen.cli.console import Console
from kaigen.cli.live.notebook_open import continue_work
from kaigen.cli.main import run
from kaigen.cli.options import read_config
from kaigen.diagnostics.errors import CheckFailed
from kaigen.ops.continuation import Continuation, continuation_of
from tests.unit.oci.server import Stored, oci_registry

KAIGEN = """\
apiVersion: kaigen.dev/v1alpha1
kind: Notebook
metadata: {name: research}
spec: {storage: {size: 20Gi}}
"""
SUBSTRATUS = """\
apiVersion: substratus.ai/v1
kind: Notebook
metadata: {name: research}
spec: {container: {local: true}}
"""
FLAT = """\
apiVersion: substratus.ai/v1
kind: Notebook
metadata: {name: research}
spec: {image: "registry.example.com/lab:1", params: {epochs: 3}}
"""
PROGRAM = """
import sys
from pathlib import Path
from kaigen.cli.console import Console
from kaigen.cli.live.notebook_open import continue_work
from kaigen.cli.options import read_config
from kaigen.ops.continuation import continuation_of
continue_work(Console(), None, lambda: continuation_of(read_config(), "research", "", Path("work")))
"""


@pytest.fixture
def registry() -> Iterator[Stored]:
    with oci_registry() as stored:
        yield stored


@pytest.fixture
def repository(tmp_path: Path, registry: Stored, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a folder that has a Dockerfile, and a registry for images."""
    (tmp_path / "kaigen.yaml").write_text(f"profile: k3s\nbuilds: {{registry: {registry.host}/acme}}\n")
    for folder in ("specs", "work"):
        (tmp_path / folder).mkdir()
    (tmp_path / "specs" / "lab.yaml").write_text(KAIGEN)
    (tmp_path / "work" / "Dockerfile").write_text("FROM scratch\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def found(folder: str = "work") -> Continuation:
    return continuation_of(read_config(), "research", "", Path(folder) if folder else None)


def made(repository: Path) -> list[Path]:
    """Return the specs that were written."""
    return sorted((repository / "specs").glob("model-*.yaml"))


@pytest.mark.promise("Substratus", "At the end, a container image is built that can serve as the trainer")
@pytest.mark.promise("Substratus", "`model-EPOCH.yaml` is generated with the just-built image, or with repo and branch")
@pytest.mark.parametrize("text", [KAIGEN, SUBSTRATUS, FLAT])
def test_the_folder_is_pushed_and_a_job_builds_and_trains_with_it(
    repository: Path, registry: Stored, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text != KAIGEN:
        where = f"{{substratus: {{registry: {registry.host}/acme}}}}"
        (repository / "kaigen.yaml").write_text(f"profile: k3s\ndialects: {where}\n")
    (repository / "specs" / "lab.yaml").write_text(text)
    continue_work(Console(), True, found)
    (path,) = made(repository)
    assert path.stem.removeprefix("model-").isdecimal()
    document = yaml.safe_load(path.read_text())
    artifact = (
        document["spec"]["build"]["artifact"]
        if text == KAIGEN
        else document["metadata"]["annotations"]["kaigen.dev/build-context"]
    )
    name, _, digest = artifact.partition("@")
    assert name == f"{registry.host}/acme/research"
    assert ("acme/research", digest) in registry.manifests
    assert document["kind"] == ("Job" if text == KAIGEN else "Model")
    assert str(path.relative_to(repository)) in capsys.readouterr().out
    assert run(["validate"]) == 0


def test_the_printed_commands_do_the_same(
    repository: Path, registry: Stored, capsys: pytest.CaptureFixture[str]
) -> None:
    continue_work(Console(), None, found)
    _, push, promote = capsys.readouterr().err.splitlines()
    assert push.split() == ["kaigen", "build", "push", "work", "--to", f"{registry.host}/acme/research"]
    assert made(repository) == []
    assert run(push.split()[1:]) == 0
    reference = capsys.readouterr().out.strip()
    assert run([*promote.replace("REFERENCE", reference).split()[1:], "--label", "one"]) == 0
    assert reference in (repository / "specs" / "model-one.yaml").read_text()


@pytest.mark.promise("Substratus", "At the end, the user is prompted for the generation of a manifest")
@pytest.mark.parametrize(("answer", "count"), [("y\n", 1), ("n\n", 0), ("\n", 0)])
def test_a_user_at_a_terminal_is_asked(repository: Path, answer: str, count: int) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        shown = b""
        while b"[y/N]: " not in shown:
            shown += os.read(ours, 4096)
        assert shown.startswith(b"Build the image and write a manifest? ")
        os.write(ours, answer.encode())
        os.close(theirs)
        assert process.wait(60) == 0
    os.close(ours)
    assert len(made(repository)) == count


def test_nothing_is_offered_that_cannot_be_done(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    continue_work(Console(), None, lambda: found(""))
    (repository / "kaigen.yaml").write_text("profile: k3s\n")
    continue_work(Console(), None, found)
    continue_work(Console(), False, found)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(CheckFailed, match="no repository for the image"):
        continue_work(Console(), True, found)
    with pytest.raises(CheckFailed, match="kaigen's own image, which trains nothing"):
        continue_work(Console(), True, lambda: found(""))


def test_without_a_dockerfile_the_image_is_that_of_the_notebook(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "work" / "Dockerfile").unlink()
    (repository / "specs" / "lab.yaml").write_text(FLAT)
    continue_work(Console(), None, found)
    assert capsys.readouterr().err.splitlines()[1:] == ["  kaigen notebook promote research"]
    continue_work(Console(), True, found)
    (path,) = made(repository)
    assert yaml.safe_load(path.read_text())["spec"]["image"] == "registry.example.com/lab:1"
