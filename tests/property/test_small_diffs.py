"""A change of one field changes only the lines that depend on it."""

from __future__ import annotations

import difflib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.settings import Config
from kaigen.pipeline.run import render

SPECS: dict[str, dict[str, Any]] = yaml.safe_load("""\
model:
  apiVersion: kaigen.dev/v1alpha1
  kind: Model
  metadata: {name: app}
  spec:
    source: {huggingFace: {repo: a/b, revision: 0123456789abcdef0123456789abcdef01234567}}
    store: {volume: {size: 5Gi}}
job:
  apiVersion: kaigen.dev/v1alpha1
  kind: Job
  metadata: {name: app}
  spec:
    image: train:1
    args: [--epochs, "3"]
    env: {A: a}
    params: {rate: 0.1}
    output: {volume: {size: 5Gi}}
operator:
  apiVersion: ai.re-cinq.com/v1
  kind: Job
  metadata: {name: app}
  spec: {huggingFaceSecret: hf-token}
""")

CHANGES: list[tuple[str, str, Any, dict[str, tuple[int, int]]]] = [
    (
        "model",
        "metadata.labels",
        {"team": "a"},
        {
            "chart/README.md": (2, 2),
            "chart/values.yaml": (2, 4),
            "manifests/job.yaml": (1, 3),
            "manifests/networkpolicy.yaml": (0, 1),
            "manifests/persistentvolumeclaim.yaml": (0, 1),
            "manifests/role.yaml": (0, 1),
            "manifests/rolebinding.yaml": (0, 1),
            "manifests/serviceaccount.yaml": (0, 1),
        },
    ),
    (
        "model",
        "spec.source.huggingFace.revision",
        "f" * 40,
        {
            "chart/Chart.yaml": (1, 1),
            "chart/templates/job.yaml": (3, 3),
            "chart/templates/tests/pod.yaml": (2, 2),
            "manifests/job.yaml": (4, 4),
        },
    ),
    (
        "model",
        "spec.source.huggingFace.include",
        ["*.json"],
        {"chart/templates/job.yaml": (2, 3), "chart/templates/tests/pod.yaml": (2, 2), "manifests/job.yaml": (3, 4)},
    ),
    (
        "model",
        "spec.source.huggingFace.tokenSecret",
        {"name": "hub"},
        {
            "chart/README.md": (0, 2),
            "chart/templates/job.yaml": (1, 6),
            "chart/values.schema.json": (0, 21),
            "chart/values.yaml": (0, 5),
            "manifests/job.yaml": (1, 6),
        },
    ),
    (
        "model",
        "spec.store.volume.size",
        "6Gi",
        {"chart/README.md": (1, 1), "chart/values.yaml": (1, 1), "manifests/persistentvolumeclaim.yaml": (1, 1)},
    ),
    (
        "model",
        "spec.store.volume.retain",
        True,
        {"chart/templates/persistentvolumeclaim.yaml": (1, 4), "manifests/persistentvolumeclaim.yaml": (0, 3)},
    ),
    (
        "model",
        "spec.transfer",
        {"memory": "1Gi"},
        {"chart/README.md": (1, 1), "chart/values.yaml": (2, 2), "manifests/job.yaml": (3, 3)},
    ),
    (
        "model",
        "spec.retries",
        7,
        {"chart/README.md": (1, 1), "chart/values.yaml": (1, 1), "manifests/job.yaml": (1, 1)},
    ),
    (
        "model",
        "spec.deadline",
        "1h",
        {"chart/README.md": (1, 1), "chart/values.yaml": (1, 1), "manifests/job.yaml": (0, 1)},
    ),
    (
        "model",
        "spec.placement",
        {"nodeSelector": {"disk": "nvme"}},
        {"chart/README.md": (1, 1), "chart/values.yaml": (1, 2), "manifests/job.yaml": (1, 3)},
    ),
    (
        "job",
        "metadata.annotations",
        {"note": "x"},
        {
            "chart/README.md": (2, 2),
            "chart/values.yaml": (2, 4),
            "manifests/configmap-params.yaml": (0, 2),
            "manifests/job.yaml": (1, 4),
            "manifests/networkpolicy.yaml": (1, 3),
            "manifests/persistentvolumeclaim.yaml": (0, 1),
        },
    ),
    (
        "job",
        "spec.image",
        "train:2",
        {
            "chart/README.md": (1, 1),
            "chart/values.yaml": (1, 1),
            "manifests/job.yaml": (2, 2),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "job",
        "spec.args",
        ["--epochs", "4"],
        {
            "chart/README.md": (1, 1),
            "chart/values.yaml": (1, 1),
            "manifests/job.yaml": (2, 2),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "job",
        "spec.env.A",
        "b",
        {
            "chart/README.md": (1, 1),
            "chart/values.yaml": (1, 1),
            "manifests/job.yaml": (2, 2),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "job",
        "spec.env.B",
        "b",
        {
            "chart/README.md": (0, 1),
            "chart/templates/job.yaml": (1, 3),
            "chart/values.schema.json": (1, 10),
            "chart/values.yaml": (0, 2),
            "manifests/job.yaml": (1, 3),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "job",
        "spec.params.rate",
        0.2,
        {
            "chart/README.md": (1, 1),
            "chart/values.yaml": (1, 1),
            "manifests/configmap-params.yaml": (2, 2),
            "manifests/job.yaml": (3, 3),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "job",
        "spec.output.volume.size",
        "6Gi",
        {"chart/README.md": (1, 1), "chart/values.yaml": (1, 1), "manifests/persistentvolumeclaim.yaml": (1, 1)},
    ),
    (
        "job",
        "spec.output.volume.retain",
        False,
        {"chart/templates/persistentvolumeclaim.yaml": (4, 1), "manifests/persistentvolumeclaim.yaml": (3, 0)},
    ),
    (
        "job",
        "spec.resources",
        {"gpus": 1},
        {
            "chart/README.md": (2, 2),
            "chart/templates/job.yaml": (3, 9),
            "chart/values.yaml": (4, 9),
            "manifests/job.yaml": (5, 17),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    ("job", "spec.retries", 3, {"chart/README.md": (1, 1), "chart/values.yaml": (1, 1), "manifests/job.yaml": (1, 1)}),
    (
        "job",
        "spec.deadline",
        "1h",
        {"chart/README.md": (1, 1), "chart/values.yaml": (1, 1), "manifests/job.yaml": (0, 1)},
    ),
    (
        "job",
        "spec.security",
        {"podSecurity": "baseline"},
        {
            "chart/Chart.yaml": (1, 1),
            "chart/templates/job.yaml": (6, 2),
            "manifests/job.yaml": (6, 3),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "operator",
        "spec.diskSize",
        60,
        {"chart/README.md": (1, 1), "chart/values.yaml": (1, 1), "manifests/persistentvolumeclaim.yaml": (1, 1)},
    ),
    (
        "operator",
        "spec.image",
        "tune:2",
        {
            "chart/README.md": (1, 1),
            "chart/values.yaml": (1, 1),
            "manifests/job.yaml": (2, 2),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "operator",
        "spec.huggingFaceSecret",
        "other",
        {
            "chart/README.md": (1, 1),
            "chart/values.yaml": (1, 1),
            "manifests/job.yaml": (2, 2),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
    (
        "operator",
        "spec.runtimeClassName",
        "",
        {
            "chart/README.md": (1, 1),
            "chart/values.yaml": (1, 1),
            "manifests/job.yaml": (2, 1),
            "manifests/networkpolicy.yaml": (1, 1),
        },
    ),
]
"""A spec, a field, its new value, and the numbers of removed and added lines by file."""


def changed_lines(folder: Path, name: str, path: str, value: Any) -> dict[str, tuple[int, int]]:
    """Return the numbers of removed and added lines by file."""
    spec = SPECS[name]
    changed = deepcopy(spec)
    *parents, last = path.split(".")
    here = changed
    for key in parents:
        here = here.setdefault(key, {})
    here[last] = value
    before, after = rendered(folder, spec), rendered(folder, changed)
    counts = {}
    for file in sorted(before.keys() | after.keys()):
        lines = difflib.ndiff(before.get(file, []), after.get(file, []))
        marks = [line[0] for line in lines]
        removed, added = marks.count("-"), marks.count("+")
        if removed or added:
            counts[file.removeprefix("ns/app/")] = (removed, added)
    return counts


def rendered(folder: Path, spec: dict[str, Any]) -> dict[str, list[str]]:
    file = folder / "spec.yaml"
    file.write_text(yaml.safe_dump(spec))
    files = render([str(file)], Config(root=folder, namespace="ns"), form="both")
    return {path: content.decode().splitlines() for path, content in files.items()}


@pytest.mark.parametrize(("name", "path", "value", "expected"), CHANGES, ids=lambda value: str(value)[:40])
def test_changing_one_field_changes_only_lines_that_depend_on_it(
    tmp_path: Path, name: str, path: str, value: Any, expected: dict[str, tuple[int, int]]
) -> None:
    assert changed_lines(tmp_path, name, path, value) == expected
