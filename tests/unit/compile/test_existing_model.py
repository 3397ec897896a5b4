"""A Model whose weights are in a volume already: nothing is downloaded, and other apps mount its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from kaigen.pipeline.validate import validate
from tests import plain_yaml

MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen, namespace: ml}
spec:
  source: {volume: {claimName: models, path: qwen/v3}}
"""
READERS = """\
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat, namespace: ml}
spec:
  model: qwen
  adapters: [{name: style, model: qwen}]
  resources: {gpus: 1, gpuType: L4}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train, namespace: ml}
spec: {image: "busybox:1.36", model: {name: qwen, mountPath: /weights}}
"""


def objects(root: Path, specs: str) -> list[dict[str, Any]]:
    (root / "specs.yaml").write_text(specs, encoding="utf-8")
    files = render([str(root / "specs.yaml")], Config(root=root))
    return [plain_yaml.load(bytes(data)) for path, data in files.items() if "kustomization" not in path]


def problems(root: Path, specs: str) -> list[str]:
    (root / "specs.yaml").write_text(specs, encoding="utf-8")
    found, _ = validate([str(root / "specs.yaml")], Config(root=root), use_cache=False)
    return [f"{item.code} {item.mark.line if item.mark else 0} {item.message}" for item in found]


def test_nothing_is_downloaded(tmp_path: Path) -> None:
    (only,) = objects(tmp_path, MODEL)
    assert only["kind"] == "ConfigMap"
    assert only["data"] == {"claimName": "models", "path": "qwen/v3"}


def test_pods_mount_the_folder_without_a_gate(tmp_path: Path) -> None:
    found = objects(tmp_path, MODEL + READERS)
    for kind, folder in (("Deployment", "/models/qwen"), ("Job", "/weights")):
        (body,) = [each for each in found if each["kind"] == kind]
        pod = body["spec"]["template"]["spec"]
        assert "initContainers" not in pod
        volumes = {each["name"]: each for each in pod["volumes"]}
        assert volumes["model"]["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
        mounts = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "model"]
        assert [each["subPath"] for each in mounts] == ["qwen/v3"]
        assert all(each["readOnly"] for each in mounts)
        if kind == "Job":
            assert mounts[0]["mountPath"] == folder
        else:
            assert volumes["adapter-style"]["persistentVolumeClaim"]["claimName"] == "models"
            assert body["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_fields_of_a_download_are_errors(tmp_path: Path) -> None:
    assert problems(tmp_path, MODEL + "  store: {volume: {size: 5Gi}}\n  retries: 3\n") == [
        "KG0340 6 `store` has no effect on weights that are in a volume already: nothing is downloaded",
        "KG0340 7 `retries` has no effect on weights that are in a volume already: nothing is downloaded",
    ]


def test_a_download_requires_a_store(tmp_path: Path) -> None:
    spec = MODEL.replace("{volume: {claimName: models, path: qwen/v3}}", "{huggingFace: {repo: a/b}}")
    assert any(item.startswith("KG0203") and "`store`" in item for item in problems(tmp_path, spec))


def test_files_of_a_dataset_have_no_other_names(tmp_path: Path) -> None:
    dataset = MODEL.replace("kind: Model", "kind: Dataset")
    assert problems(tmp_path, dataset) == []
    named = dataset.replace("path: qwen/v3", "files: {model.m: a.m}")
    (problem,) = problems(tmp_path, named)
    assert problem.startswith("KG0201 5 ")
    assert "files" in problem
