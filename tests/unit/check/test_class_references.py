"""Storage, priority and runtime classes are checked once `external` lists some of their kind."""

from __future__ import annotations

from pathlib import Path

from kaigen.config.load import load_config
from kaigen.pipeline.check_manifests import check_manifests
from kaigen.pipeline.run import render
from kaigen.pipeline.validate import validate

SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  image: busybox
  output: {volume: {size: 5Gi, storageClassName: fast}}
  placement: {priorityClassName: reserch, runtimeClassName: nvidia}
"""
MADE = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: reserch}
value: 10
"""


def warnings(root: Path, external: str, specs: str = SPECS) -> list[str]:
    (root / "specs").mkdir(exist_ok=True)
    (root / "specs" / "train.yaml").write_text(specs, encoding="utf-8")
    text = f"namespace: ml\npassthrough: true\nexternal: [{external}]\n"
    (root / "kaigen.yaml").write_text(text, encoding="utf-8")
    found, _ = validate((), load_config(root), use_cache=False)
    return [f"{item.mark.line if item.mark else 0} {item.message} ({item.hint})" for item in found]


def test_nothing_is_checked_until_a_class_is_listed(tmp_path: Path) -> None:
    assert warnings(tmp_path, "") == []


def test_a_class_that_is_not_listed_is_a_warning_at_its_line(tmp_path: Path) -> None:
    classes = "{kind: PriorityClass, name: research}, {kind: StorageClass, name: 'fast*'}"
    assert warnings(tmp_path, classes) == ["7 Job: there is no PriorityClass `reserch` (did you mean `research`?)"]
    found = warnings(tmp_path, "{kind: RuntimeClass, name: gvisor}, {kind: StorageClass, name: slow}")
    assert [item.partition(" (")[0] for item in found] == [
        "6 PersistentVolumeClaim: there is no StorageClass `fast`",
        "7 Job: there is no RuntimeClass `nvidia`",
    ]


def test_a_class_of_the_repository_is_known(tmp_path: Path) -> None:
    assert warnings(tmp_path, "{kind: PriorityClass, name: research}", SPECS + MADE) == []


def test_check_knows_the_same_classes(tmp_path: Path) -> None:
    warnings(tmp_path, "{kind: PriorityClass, name: research}")
    config = load_config(tmp_path)
    for path, data in render((), config).items():
        (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / path).write_bytes(bytes(data))
    found = check_manifests([str(tmp_path / "out")], config)
    assert any("there is no PriorityClass `reserch`" in item.message for item in found.diagnostics)
