"""Files of kaigen's own say whose they are, whatever the spec's file is called."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kaigen.check.references import check_references
from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.pipeline.run import render
from tests import helm
from tests.kustomize import build

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: work}
spec: {image: i}
"""

SCALED = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  model: {folder: /weights}
  image: acme/vllm:0.33.0
  autoscale: {max: 4, prometheus: {address: "http://prometheus:9090"}}
  monitoring: {}
"""

NAMES = [
    "plain.yaml",
    "sp ace.yaml",
    "näme–カ.yaml",
    "new\nline: x.yaml",
    "tab\t.yaml",
    "a`b|c{{d}}.yaml",
    "\x85\u2028.yaml",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_readable_whatever_the_spec_is_called(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SPEC)
    files = render([str(tmp_path)], Config(root=tmp_path), form="both")
    for path, content in files.items():
        (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / path).write_bytes(content)
        if path.endswith(".yaml") and "/templates/" not in path:
            assert content.startswith(b"# Rendered by kaigen from ")
            assert isinstance(yaml.safe_load(content), dict)
        if path.endswith("README.md"):
            assert content.decode().split("\n")[4].endswith("(Job). Change the spec, not this chart.")
    objects = helm.template(tmp_path / "out/default/work/chart", "work", "default", fast=True)
    assert "Job" in {found["kind"] for found in objects}
    helm.lint(tmp_path / "out/default/work/chart")


def test_the_name_is_there_as_it_is_where_it_can_be(tmp_path: Path) -> None:
    (tmp_path / "näme.yaml").write_text(SPEC)
    files = render([str(tmp_path)], Config(root=tmp_path))
    header = files["default/work/manifests/job.yaml"].decode().split("\n")[0]
    assert header == "# Rendered by kaigen from näme.yaml. Change the spec, not this file."


def test_kustomize_knows_the_target_of_a_scaled_object(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(SCALED)
    files = render([str(tmp_path)], Config(root=tmp_path))
    folder = "default/chat/manifests"
    assert yaml.safe_load(files[f"{folder}/kustomization.yaml"])["configurations"] == ["name-references.kustomize"]
    fields = [{"kind": "ScaledObject", "path": "spec/scaleTargetRef/name"}]
    found = yaml.safe_load(files[f"{folder}/name-references.kustomize"])
    assert found == {"nameReference": [{"kind": "Deployment", "fieldSpecs": fields}]}


@pytest.mark.parametrize("change", ["namePrefix: eu-", "nameSuffix: -eu"])
def test_the_scaler_follows_the_name_that_an_overlay_gives_the_server(
    change: str, kubectl: Path, tmp_path: Path
) -> None:
    (tmp_path / "chat.yaml").write_text(SCALED)
    folder = "default/chat/manifests"
    for path, content in render([str(tmp_path)], Config(root=tmp_path)).items():
        (tmp_path / "rendered" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "rendered" / path).write_bytes(content)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(f"{change}\nresources: [../rendered/{folder}]\n")
    objects = build(kubectl, overlay)
    assert [problem for _, problem in check_references(objects) if problem.severity is Severity.ERROR] == []
    (scaler,) = [each for each in objects if each["kind"] == "ScaledObject"]
    (server,) = [each for each in objects if each["kind"] == "Deployment"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == server["metadata"]["name"] != "chat"
