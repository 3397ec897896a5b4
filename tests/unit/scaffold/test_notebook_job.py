"""The Job that `kaigen notebook promote` writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from kaigen.cli.main import run

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
