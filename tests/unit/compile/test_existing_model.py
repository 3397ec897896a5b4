"""A Model whose weights are in a volume already, or will be: nothing is downloaded, and other apps mount its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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


EMPTY = MODEL.replace("{volume: {claimName: models, path: qwen/v3}}", "{empty: {}}\n  store: STORE")
VOLUME = "{volume: {size: 7Gi, accessModes: [ReadWriteMany], storageClassName: nfs}}"
BUCKET = "{bucket: {uri: gs://acme/qwen}}"


@pytest.mark.parametrize(
    ("store", "kinds"),
    [(VOLUME, ["PersistentVolumeClaim"]), (BUCKET, ["PersistentVolume", "PersistentVolumeClaim"])],
    ids=["volume", "bucket"],
)
def test_an_empty_place_is_made_and_mounted_as_it_is(tmp_path: Path, store: str, kinds: list[str]) -> None:
    place = EMPTY.replace("STORE", store)
    assert sorted(each["kind"] for each in objects(tmp_path, place)) == kinds
    found = objects(tmp_path, place + READERS)
    (claim,) = [each["metadata"]["name"] for each in found if each["kind"] == "PersistentVolumeClaim"]
    for kind in ("Deployment", "Job"):
        (body,) = [each for each in found if each["kind"] == kind]
        pod = body["spec"]["template"]["spec"]
        assert "initContainers" not in pod
        assert claim in [each.get("persistentVolumeClaim", {}).get("claimName") for each in pod["volumes"]]
        mounts = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "model"]
        assert ["subPath" in each for each in mounts] == [False]


@pytest.mark.parametrize(
    ("store", "code"),
    [
        ("{}", "KG0206"),
        ("{volume: {size: auto}}", "KG0320"),
        (f"{VOLUME}\n  retries: 3", "KG0340"),
        (f"{VOLUME[:-1]}, keepRevisions: 2}}", "KG0340"),
        ("{bucket: {uri: gs://acme/qwen, mount: {driver: csi-s3}}}", "KG0316"),
    ],
)
def test_what_makes_no_place_is_an_error(tmp_path: Path, store: str, code: str) -> None:
    assert [each.split()[0] for each in problems(tmp_path, EMPTY.replace("STORE", store))] == [code]
