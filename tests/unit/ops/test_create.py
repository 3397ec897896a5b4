"""What `create` makes of its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kaigen.cli.console import Console
from kaigen.cli.live.create import _classification, _run
from kaigen.cli.live.flavor import EGPU, KAIGEN, Flavor
from kaigen.cli.live.session import Session
from kaigen.config.block_settings import ObjectPatch
from kaigen.config.settings import Config
from kaigen.dialects.ephemeral_gpu.lower import COMMAND
from kaigen.dialects.ephemeral_gpu.model import DEFAULT_IMAGE
from kaigen.ops.build import Claim, Run, run_objects


def options(project: Path | None, **changed: str) -> dict[str, Any]:
    given = {
        "model": "resnet50",
        "weights": "",
        "image": "",
        "input_path": "/artifacts/input.jpg",
        "output_path": "/artifacts/output.json",
        "target_path": "/artifacts",
        "input_wait": "3600",
    }
    return {**given, "project_dir": project, **changed}


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    spec = {**spec, "resources": {"cpu": "1", "memory": "1Gi"}}
    template = run_objects(Run("cat", "ml", "cat", Claim("artifacts-cat"), spec), Config()).job["spec"]["template"]
    body: dict[str, Any] = template["spec"]
    return body


def test_a_job_waits_for_an_image_that_the_project_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "resnet50.safetensors").write_bytes(b"")
    waits = pod(_classification(options(tmp_path)))
    (gate,) = waits["initContainers"]
    assert gate["args"][:3] == ["wait-files", "--dest=/artifacts", "--file=input.jpg"]
    assert "--weights=/artifacts/resnet50.safetensors" in waits["containers"][0]["args"]
    (tmp_path / "input.jpg").write_bytes(b"")
    assert "initContainers" not in pod(_classification(options(tmp_path)))
    assert "inputs" not in _classification(options(tmp_path, input_path="/artifacts/images"))


@pytest.mark.promise("Ephemeral GPU", "`model: resnet50`")
def test_weights_of_the_hub_are_pinned_by_commit_and_checksum() -> None:
    spec = _classification(options(None))
    source = spec["model"]["source"]["huggingFace"]
    assert source["repo"] == "timm/resnet50.tv_in1k"
    assert re.fullmatch("[0-9a-f]{40}", source["revision"])
    made = pod(spec)
    assert [item["name"] for item in made["initContainers"]] == ["fetch-model", "wait-for-upload"]
    assert f"--revision={source['revision']}" in made["initContainers"][0]["args"]
    (checksum,) = (word for word in made["containers"][0]["args"] if word.startswith("--weights-sha256="))
    assert re.fullmatch("--weights-sha256=[0-9a-f]{64}", checksum)
    assert "--weights-version=IMAGENET1K_V1" in made["containers"][0]["args"]


@pytest.mark.promise("Ephemeral GPU", "`model: mobilenet_v3_small`")
def test_weights_of_a_web_server_are_a_file_with_its_checksum() -> None:
    spec = _classification(options(None, model="mobilenet_v3_small"))
    (file,) = spec["model"]["source"]["http"]["files"]
    settings = spec["classify"]["weights"]
    assert settings == {"version": "IMAGENET1K_V1", "sha256": file["sha256"], "file": file["url"].rsplit("/")[-1]}
    assert file["sha256"].startswith(file["url"].removesuffix(".pth").rsplit("-")[-1])


def test_settings_for_the_apps_of_a_repository_do_not_apply_to_a_live_job() -> None:
    config = Config(
        profile="k3s",
        labels={"team": "a"},
        values=({"ml/chat": {"image": "other"}},),
        pins={"ml/chat": {"image": "1"}},
        patches=(ObjectPatch("chat", None, None, {"spec": {}}, ("patches", 0)),),
    )
    made = run_objects(Run("cat", "ml", "cat", Claim("artifacts-cat"), {"image": "i"}), config)
    assert made.job["metadata"]["labels"]["team"] == "a"
    assert made.claim["spec"]["storageClassName"] == "local-path"


def run_of(flavor: Flavor, **changed: Any) -> dict[str, Any]:
    """Return the spec of a run, as the options of a program make it."""
    given = {**options(None), "cpu": "1", "memory": "1Gi", "gpu": 1, "ttl": "", "words": [], **changed}
    volume = {"pvc_name": "", "pvc_size": "1Gi", "storage_class": None, "pvc_ttl": ""}
    spec: dict[str, Any] = _run(Session(Console(), flavor, namespace="ml"), "cat", {**given, **volume}).spec
    return spec


@pytest.mark.promise("Ephemeral GPU", "`egpu create --image`, `--command`: as the operator runs them")
def test_egpu_runs_an_image_as_the_operator_does(capsys: pytest.CaptureFixture[str]) -> None:
    own = run_of(EGPU, image="registry.example.com/infer:2")
    assert (own["image"], own["command"]) == ("registry.example.com/infer:2", list(COMMAND))
    paths = ("--input", "/artifacts/input.jpg", "--output", "/artifacts/output.json")
    assert own["args"] == ["--model", "resnet50", *paths]
    assert own["inputs"]["files"] == [{"path": "input.jpg", "wait": "3600s"}]
    words = run_of(EGPU, image="registry.example.com/infer:2", words=["python", "-c", "print()"])
    assert words["command"] == ["python", "-c", "print()"]
    assert "args" not in words
    assert "inputs" not in words
    # The image of the README is in no registry.
    assert run_of(EGPU, image=DEFAULT_IMAGE) == run_of(EGPU)
    assert "gpu-job-inference:latest is in no registry" in capsys.readouterr().err
    # kaigen's own command runs the entry point of an image, with the arguments of its own one.
    assert run_of(KAIGEN, image="registry.example.com/infer:2")["classify"]["image"] == "registry.example.com/infer:2"
