"""The Job that `kaigen notebook promote` writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from kaigen.cli.main import run
from kaigen.scaffold.checkout import read_checkout
from tests.unit.scaffold.checkout_case import checkout, git

NOTEBOOK = """\
apiVersion: kaigen.dev/v1alpha1
kind: Notebook
metadata: {name: research, namespace: ml}
spec:
  models: [qwen]
  datasets: DATASETS
  params: {epochs: 3}
  storage: {size: 20Gi}
  resources: {cpu: 2, memory: 4Gi}
---
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen, namespace: ml}
spec: {source: {volume: {claimName: qwen-files}}}
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kaigen.yaml").write_text("profile: k3s\n")
    (tmp_path / "specs").mkdir()
    subprocess.run(["git", "init", "-q", "-b", "Feature/LoRA_2", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(repository: Path, datasets: str) -> None:
    text = NOTEBOOK.replace("DATASETS", datasets)
    for name in ("squad", "alpaca"):
        text += f"---\napiVersion: kaigen.dev/v1alpha1\nkind: Dataset\nmetadata: {{name: {name}, namespace: ml}}\n"
        text += f"spec: {{source: {{volume: {{claimName: {name}-files}}}}}}\n"
    (repository / "specs" / "research.yaml").write_text(text)


def promote(*arguments: str) -> int:
    return run(["notebook", "promote", "research", *arguments])


def test_a_job_has_the_weights_data_parameters_and_resources_of_the_notebook(repository: Path) -> None:
    write(repository, "[squad]")
    assert promote("--image", "registry.example/train:1", "--command", "python train.py --lora") == 0
    made = repository / "specs" / "model-feature-lora-2.yaml"
    assert yaml.safe_load(made.read_text()) == {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "research-feature-lora-2", "namespace": "ml"},
        "spec": {
            "image": "registry.example/train:1",
            "command": ["python", "train.py", "--lora"],
            "model": {"name": "qwen", "mountPath": "/models/qwen"},
            "inputs": {"files": [{"dataset": "squad", "path": "squad"}], "mountPath": "/datasets"},
            "output": {"volume": {"size": "20Gi"}},
            "resources": {"cpu": 2, "memory": "4Gi"},
            "params": {"epochs": 3},
        },
    }
    assert run(["validate"]) == 0


@pytest.mark.promise("Substratus", "`dataset` is left blank with a comment unless the notebook has a single one")
@pytest.mark.parametrize(("datasets", "count"), [("[]", "none"), ("[squad, alpaca]", "2")])
def test_what_the_notebook_does_not_answer_is_a_comment(
    repository: Path, datasets: str, count: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository, datasets)
    assert promote("--image", "registry.example/train:1", "--label", "one") == 0
    text = (repository / "specs" / "model-one.yaml").read_text()
    assert f"# inputs: [{{dataset: DATASET}}]  # Name the dataset: the notebook has {count}.\n" in text
    assert "inputs" not in yaml.safe_load(text)["spec"]
    assert "fill in `inputs`" in capsys.readouterr().err
    completed = text.replace("# inputs: [{dataset: DATASET}]", "inputs: [{dataset: squad}]")
    (repository / "specs" / "model-one.yaml").write_text(completed)
    assert run(["validate"]) == 0


def test_nothing_is_overwritten_and_nothing_invalid_stays(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository, "[squad]")
    assert promote() == 1
    assert "--image" in capsys.readouterr().err
    assert promote("--image", "not an image", "--label", "one") == 2
    assert [path.name for path in (repository / "specs").iterdir()] == ["research.yaml"]
    (repository / "specs" / "model-one.yaml").write_text("# mine\n")
    assert promote("--image", "registry.example/train:1", "--label", "one") == 1
    assert (repository / "specs" / "model-one.yaml").read_text() == "# mine\n"
    assert run(["notebook", "promote", "other", "--image", "registry.example/train:1"]) == 1


COMMIT = "7ae557604adf67be50417f59c2c2f167def9a775"
HOW = {"repository": "registry.example.com/acme/train", "pushSecret": {"name": "registry-push"}}


@pytest.mark.parametrize(
    "context",
    [
        {"git": {"url": "https://git.example.com/acme/lab.git", "commit": COMMIT, "path": "lab"}},
        {"artifact": f"registry.example.com/acme/context@sha256:{'a' * 64}"},
    ],
    ids=["git", "artifact"],
)
def test_the_image_of_a_notebook_is_built_again(repository: Path, context: dict[str, object]) -> None:
    write(repository, "[squad]")
    path = repository / "specs" / "research.yaml"
    notebook, *others = yaml.safe_load_all(path.read_text())
    notebook["spec"] |= {"build": {**context, **HOW}, "imagePullSecrets": [{"name": "registry-pull"}]}
    path.write_text(yaml.safe_dump_all([notebook, *others]))
    assert promote("--label", "one") == 0
    spec = yaml.safe_load((repository / "specs" / "model-one.yaml").read_text())["spec"]
    assert spec["build"] == {**context, **HOW}
    assert spec["imagePullSecrets"] == [{"name": "registry-pull"}]

    folder, commit = checkout(repository / "code")
    assert promote("--label", "two", "--folder", str(folder)) == 0
    spec = yaml.safe_load((repository / "specs" / "model-two.yaml").read_text())["spec"]
    source = {"url": "https://git.example.com/acme/train.git", "commit": commit, "path": "images/train"}
    assert spec["build"] == {"git": source, **HOW}


def test_changes_that_are_not_in_the_commit_are_named(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository, "[squad]")
    (repository / "kaigen.yaml").write_text("profile: k3s\nbuilds: {registry: registry.example.com/acme}\n")
    folder, _ = checkout(repository / "code")
    assert promote("--label", "one", "--folder", str(folder)) == 0
    assert "changes" not in capsys.readouterr().err
    (folder / "train.py").write_text("print(2)\n")
    assert promote("--label", "two", "--folder", str(folder)) == 0
    assert f"{folder} has changes that are not in the commit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("commit", "--allow-empty", "-qm", "not pushed"), "the remote `origin` does not have the commit"),
        (("remote", "set-url", "origin", "/srv/train.git"), "has no remote `origin` that a cluster can fetch"),
        (("mv", "images/train/Dockerfile", "images/train/Containerfile"), "has no Dockerfile"),
        (("update-ref", "-d", "HEAD"), "is in no Git repository with a commit"),
    ],
)
def test_a_folder_that_no_cluster_can_build_is_an_error(
    repository: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, ...], message: str
) -> None:
    write(repository, "[squad]")
    folder, _ = checkout(repository / "code")
    git(repository / "code", *change)
    assert promote("--label", "one", "--folder", str(folder)) == 1
    assert message in capsys.readouterr().err
    assert [path.name for path in (repository / "specs").iterdir()] == ["research.yaml"]


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("git@git.example.com:acme/train.git", "https://git.example.com/acme/train.git"),
        ("ssh://git@git.example.com:2222/acme/train", "https://git.example.com/acme/train.git"),
        ("https://me:secret@git.example.com:8443/acme/train/", "https://git.example.com:8443/acme/train.git"),
    ],
)
def test_a_remote_is_fetched_with_https_and_without_credentials(tmp_path: Path, remote: str, url: str) -> None:
    folder, _ = checkout(tmp_path)
    git(tmp_path, "remote", "set-url", "origin", remote)
    assert read_checkout(folder).source.url == url


def test_an_image_and_a_folder_exclude_each_other(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert promote("--image", "registry.example/train:1", "--folder", str(repository)) == 2
    assert "give one of --image, --folder and --artifact" in capsys.readouterr().err
