"""The committed output of the demo: a Job of AI Operator and the same work in kaigen's own kinds."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.output.tree import diff_tree, plan_tree
from kaigen.pipeline.run import render
from tools import tour

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = EXAMPLES / "demo"
README_RESOURCE = "02a9f02f5533fc1ad7b6a512eeb9135c189535bdc000abcbcbc9ba4857fe7ade"
"""SHA-256 of the resource in AI Operator's README (github.com/re-cinq/ai-operator at commit 4252ee7)."""

Object = dict[str, Any]


@pytest.mark.parametrize("environment", load_config(DEMO).environments)
def test_committed_output_is_current(environment: str) -> None:
    files = render([], load_config(DEMO, environment))
    tree = DEMO / "rendered" / environment
    change = plan_tree(tree, files)
    difference = "\n".join(line.rstrip("\n") for line in diff_tree(tree, files, change))
    assert difference == "", "run `kaigen render` in examples/demo, and look at git diff"
    assert change.is_empty


def test_every_file_in_the_tour_exists(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    assert tour.main() == 0
    output = capsys.readouterr().out
    named = re.findall(r"^  (examples/demo/\S+)", output, re.MULTILINE)
    assert len(named) > 8
    assert [path for path in named if not (root / path).exists()] == []


def test_the_operator_example_is_an_unchanged_copy_of_its_readme() -> None:
    for file in (EXAMPLES / "ai-operator" / "finetune-job.yaml", DEMO / "specs" / "finetune-job.yaml"):
        assert hashlib.sha256(file.read_bytes()).hexdigest() == README_RESOURCE


def committed(app: str) -> dict[str, Object]:
    """Return the objects of one app in the committed output by kind."""
    folder = DEMO / "rendered" / "dev" / "ml-dev" / app / "manifests"
    objects = [yaml.safe_load(file.read_text()) for file in folder.glob("*.yaml")]
    found = {o["kind"]: o for o in objects if o["kind"] != "Kustomization"}
    assert len(found) == len(objects) - 1
    return found


def pod(app: str) -> Object:
    spec: Object = committed(app)["Job"]["spec"]["template"]["spec"]
    return spec


def containers(app: str) -> list[Object]:
    return [*pod(app).get("initContainers", []), *pod(app)["containers"]]


@pytest.mark.parametrize(
    ("app", "downloader"), [("finetune-job", "fetch-model"), ("qwen", "fetch")], ids=["operator", "twin"]
)
def test_only_the_downloader_reads_the_token(app: str, downloader: str) -> None:
    with_token = [
        (container["name"], entry["valueFrom"]["secretKeyRef"])
        for container in containers(app)
        for entry in container.get("env", [])
        if "secretKeyRef" in entry.get("valueFrom", {})
    ]
    assert with_token == [(downloader, {"name": "hf-token", "key": "token"})]


def test_the_training_job_reads_no_secret() -> None:
    assert "secret" not in yaml.safe_dump(committed("finetune")).lower()


@pytest.mark.parametrize("app", ["finetune-job", "finetune"])
def test_the_gpu_is_requested(app: str) -> None:
    resources = pod(app)["containers"][0]["resources"]
    assert resources["requests"]["nvidia.com/gpu"] == resources["limits"]["nvidia.com/gpu"] == 1
    assert {"cpu", "memory"} <= resources["requests"].keys()
    assert pod(app)["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize("app", ["finetune-job", "finetune"])
def test_trained_weights_are_kept_when_the_spec_is_deleted(app: str) -> None:
    volume = committed(app)["PersistentVolumeClaim"]
    assert volume["spec"]["resources"]["requests"]["storage"] == "50Gi"
    assert volume["spec"]["storageClassName"] == "local-path"
    kept = {
        "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
        "helm.sh/resource-policy": "keep",
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
    }
    assert kept.items() <= volume["metadata"]["annotations"].items()
    template = DEMO / "rendered" / "dev" / "ml-dev" / app / "chart" / "templates" / "persistentvolumeclaim.yaml"
    assert "helm.sh/resource-policy: keep" in template.read_text()


def test_weights_that_can_be_downloaded_again_are_deleted_with_the_spec() -> None:
    annotations = committed("qwen")["PersistentVolumeClaim"]["metadata"].get("annotations", {})
    assert not any("prune" in key or "policy" in key or "options" in key for key in annotations)


@pytest.mark.parametrize("app", ["finetune-job", "finetune", "qwen"])
def test_a_finished_job_does_not_run_again(app: str) -> None:
    job = committed(app)["Job"]
    prefix, _, digest = job["metadata"]["name"].rpartition("-")
    assert prefix == app
    assert len(digest) == 8
    assert int(digest, 16) >= 0
    assert "ttlSecondsAfterFinished" not in job["spec"]
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("app", ["finetune-job", "finetune", "qwen"])
def test_pods_are_hardened(app: str) -> None:
    assert pod(app)["securityContext"]["runAsNonRoot"] is True
    for container in containers(app):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
    assert pod(app)["automountServiceAccountToken"] is False


def test_paths_of_the_operator_are_kept() -> None:
    """The default configuration of torchtune reads and writes below /tmp."""
    fetch, train = containers("finetune-job")
    assert "--dest=/tmp/Qwen2.5-0.5B-Instruct" in fetch["args"]
    assert {"name": "output", "mountPath": "/tmp"} in train["volumeMounts"]
    assert train["command"] == [
        *("tune", "run", "full_finetune_single_device", "-r=3", "--config", "qwen2_5/0.5B_full_single_device")
    ]


def test_the_training_job_waits_for_the_weights_of_the_model() -> None:
    def identity(app: str) -> list[str]:
        return [a for c in containers(app) for a in c.get("args", []) if a.startswith("--identity=")]

    assert identity("finetune") == identity("qwen") != identity("finetune-job")
    volumes = {v["name"]: v for v in pod("finetune")["volumes"]}
    claim = committed("qwen")["PersistentVolumeClaim"]["metadata"]["name"]
    assert volumes["model"]["persistentVolumeClaim"] == {"claimName": claim, "readOnly": True}


def test_apps_are_applied_in_order() -> None:
    def wave(app: str, kind: str) -> int:
        annotations = committed(app)[kind]["metadata"].get("annotations", {})
        return int(annotations.get("argocd.argoproj.io/sync-wave", 0))

    assert wave("qwen", "ServiceAccount") < wave("qwen", "Job") < wave("finetune", "Job")
    assert wave("qwen", "PersistentVolumeClaim") <= wave("qwen", "Job")
