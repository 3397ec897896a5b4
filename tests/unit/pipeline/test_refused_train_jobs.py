"""TrainJobs that are applied before their TrainingRuntimes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.pipeline.run import Run

CONFIG = """\
apiVersion: kaigen.dev/v1alpha1
kind: Config
namespace: ml
gitops: {repository: 'https://git.example.com/ml.git'}
environments:
  argo: {format: manifests, gitops: {argocd: {}}}
  flux: {format: manifests, gitops: {flux: {}}}
  chart: {format: both, gitops: {argocd: {}}}
"""
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec: {image: 'train:1', nodes: 2, groups: GROUPS, command: [train]}
"""


@pytest.mark.parametrize(
    ("environment", "groups", "expected"),
    [
        ("argo", "trainJob", []),
        ("flux", "trainJob", ["--custom-apply-stage-kinds=trainer.kubeflow.org/TrainingRuntime"]),
        ("chart", "trainJob", ["format: manifests"]),
        ("flux", "jobSet", []),
        ("chart", "jobSet", []),
    ],
)
def test_train_job_that_is_made_first_is_reported(
    tmp_path: Path, environment: str, groups: str, expected: list[str]
) -> None:
    (tmp_path / "kaigen.yaml").write_text(CONFIG)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/train.yaml").write_text(JOB.replace("GROUPS", groups))
    run = Run.load((), load_config(tmp_path, environment), use_cache=False)
    found = [each for each in run.diagnostics if each.code == "KG0484"]
    assert len(found) == len(expected)
    for each, text in zip(found, expected, strict=True):
        assert each.path == "spec.groups"
        assert text in (each.hint or "")
    run.raise_errors()
