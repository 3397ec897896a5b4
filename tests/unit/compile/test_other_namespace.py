"""Topologies that read the weights of a Model of another namespace, from its bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.config.load import load_config
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import render
from tests import plain_yaml
from tests.unit.graph.graphs import edges, repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BUCKET = "{bucket: {uri: s3://acme-models/qwen, region: eu-central-1}}"
VOLUME = "{volume: {size: 30Gi, accessModes: [ReadWriteMany]}}"
MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: qwen, namespace: models}}
spec:
  source: {{huggingFace: {{repo: Qwen/Qwen2.5-7B-Instruct, revision: {commit}}}}}
  store: {store}
"""
CHAT = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: chat, namespace: team}}
spec:
  model: {model}
  resources: {{gpus: 1}}
"""
ELSEWHERE = "{name: qwen, namespace: models}"


def written(root: Path, store: str = BUCKET, model: str = ELSEWHERE, config: str = "") -> None:
    files = {
        "kaigen.yaml": f"apiVersion: kaigen.dev/v1alpha1\nkind: Config\n{config}",
        "specs/models/qwen.yaml": MODEL.format(commit=COMMIT, store=store),
        "specs/team/chat.yaml": CHAT.format(model=model),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def objects(root: Path) -> dict[tuple[str, str], Any]:
    """Return the rendered objects by app and kind."""
    files = render((), load_config(root))
    return {
        (path.split("/")[1], body["kind"]): body
        for path, data in files.items()
        if path.endswith(".yaml") and (body := plain_yaml.load(bytes(data)))["kind"] != "Kustomization"
    }


def codes(root: Path) -> list[tuple[str, str, str]]:
    with pytest.raises(InputError) as caught:
        render((), load_config(root))
    return [(each.code, each.path, each.hint) for each in caught.value.diagnostics if each.severity is Severity.ERROR]


def test_the_app_mounts_the_bucket_in_its_own_namespace(tmp_path: Path) -> None:
    written(tmp_path)
    found = objects(tmp_path)
    theirs, ours = found["qwen", "PersistentVolume"], found["chat", "PersistentVolume"]
    claim = found["chat", "PersistentVolumeClaim"]["metadata"]
    assert theirs["metadata"]["name"] != ours["metadata"]["name"]
    assert theirs["spec"]["csi"]["volumeAttributes"] == ours["spec"]["csi"]["volumeAttributes"]
    assert theirs["spec"]["mountOptions"] == ours["spec"]["mountOptions"]
    assert (ours["spec"]["claimRef"]["namespace"], ours["spec"]["claimRef"]["name"]) == ("team", claim["name"])
    pod = found["chat", "Deployment"]["spec"]["template"]["spec"]
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": claim["name"], "readOnly": True}
    fetch = found["qwen", "Job"]["spec"]["template"]["spec"]["containers"][0]["args"]
    identity = next(each for each in fetch if each.startswith("--identity="))
    assert identity in pod["initContainers"][0]["args"]


def test_only_the_model_fills_the_folder(tmp_path: Path) -> None:
    written(tmp_path)
    found = objects(tmp_path)
    annotation = {"kaigen.dev/location": "s3://acme-models/qwen"}
    assert annotation.items() <= found["qwen", "PersistentVolume"]["metadata"]["annotations"].items()
    assert "kaigen.dev/location" not in found["chat", "PersistentVolume"]["metadata"]["annotations"]


def test_the_namespace_of_the_app_itself_changes_nothing(tmp_path: Path) -> None:
    here = MODEL.replace("namespace: models", "namespace: team")
    written(tmp_path, model="qwen")
    (tmp_path / "specs/models/qwen.yaml").write_text(here.format(commit=COMMIT, store=BUCKET))
    plain = objects(tmp_path)
    written(tmp_path, model="{name: qwen, namespace: team}")
    (tmp_path / "specs/models/qwen.yaml").write_text(here.format(commit=COMMIT, store=BUCKET))
    assert objects(tmp_path) == plain
    assert ("chat", "PersistentVolume") not in plain


def test_weights_in_a_volume_are_an_error_with_the_reason(tmp_path: Path) -> None:
    written(tmp_path, VOLUME)
    ((code, path, hint),) = codes(tmp_path)
    assert (code, path) == ("KG0389", "spec.model.namespace")
    assert "bucket" in hint


@pytest.mark.parametrize(("store", "is_told"), [(BUCKET, True), (VOLUME, False)])
def test_the_hint_names_the_field_where_it_would_help(tmp_path: Path, store: str, is_told: bool) -> None:
    written(tmp_path, store, "qwen")
    ((code, _, hint),) = codes(tmp_path)
    assert code == "KG0301"
    assert ("set `model: {name: qwen, namespace: models}`" in hint) == is_told


def test_a_namespace_without_a_model_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, model="{image: {ref: example.com/qwen:1}, namespace: models}")
    assert ("KG0340", "spec.model.namespace") in [each[:2] for each in codes(tmp_path)]


def test_kaigen_yaml_can_deny_the_bucket_to_a_namespace(tmp_path: Path) -> None:
    written(tmp_path, config="allow: {volumes: [{namespaces: [models]}]}\n")
    assert [each[:2] for each in codes(tmp_path)] == [("KG0581", "spec.model.namespace")]


def test_a_tenant_needs_the_bucket(tmp_path: Path) -> None:
    tenants = """\
tenants:
  team: {{folders: [specs/team], namespaces: [team], images: ["*"], drivers: [s3.csi.aws.com], buckets: {}}}
"""
    written(tmp_path, config=tenants.format("[s3://other]"))
    assert {each[0] for each in codes(tmp_path)} == {"KG0582"}
    written(tmp_path, config=tenants.format("[s3://acme-models/qwen]"))
    assert ("chat", "PersistentVolume") in objects(tmp_path)


def test_the_graph_shows_that_the_app_waits_for_the_download(tmp_path: Path) -> None:
    documents = f"{MODEL.format(commit=COMMIT, store=BUCKET)}---\n{CHAT.format(model=ELSEWHERE)}"
    graph = repository(tmp_path, {"specs/all.yaml": documents})
    assert ("team/chat/deployment", "waits for", "models/qwen/job") in edges(graph)
    assert not [node for node in graph.externals if node.kind == "Marker"]
