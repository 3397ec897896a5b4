"""Apps that read the files of a Model or Dataset of another namespace, from its bucket."""

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


JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: chat, namespace: team}
spec:
  image: example.com/train:1
  model: {name: qwen, namespace: PLACE}
  inputs: [{dataset: data, namespace: PLACE}]
  output: {volume: {size: 1Gi}}
"""
NOTEBOOK = """\
apiVersion: kaigen.dev/v1alpha1
kind: Notebook
metadata: {name: chat, namespace: team}
spec:
  models: [{name: qwen, namespace: PLACE}]
  datasets: [{name: data, namespace: PLACE}]
"""
READERS = pytest.mark.parametrize("reader", [JOB, NOTEBOOK], ids=["job", "notebook"])
DATA = MODEL.replace("Model", "Dataset").replace("name: qwen", "name: data").replace("Qwen/Qwen2.5-7B-Instruct", "a/b")


def write_reader(root: Path, reader: str, store: str = BUCKET) -> None:
    written(root, store)
    (root / "specs/models/data.yaml").write_text(DATA.format(commit=COMMIT, store=store.replace("qwen", "data")))
    (root / "specs/team/chat.yaml").write_text(reader.replace("PLACE", "models"))


@READERS
def test_jobs_and_notebooks_mount_each_bucket_in_their_own_namespace(tmp_path: Path, reader: str) -> None:
    write_reader(tmp_path, reader)
    files = {path: data for path, data in render((), load_config(tmp_path)).items() if path.startswith("team/chat/")}
    bodies = [plain_yaml.load(bytes(data)) for path, data in files.items() if "/manifests/" in path]
    volumes = [body for body in bodies if body["kind"] == "PersistentVolume"]
    read = {body["metadata"]["annotations"]["kaigen.dev/reads"]: body["spec"]["claimRef"] for body in volumes}
    assert read.keys() == {"s3://acme-models/qwen", "s3://acme-models/data"}
    assert {claim["namespace"] for claim in read.values()} == {"team"}
    (pod,) = [body["spec"]["template"]["spec"] for body in bodies if body["kind"] in ("Job", "StatefulSet")]
    mounted = {each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "persistentVolumeClaim" in each}
    assert {claim["name"] for claim in read.values()} <= mounted
    waits = [each["args"] for each in pod["initContainers"] if each["args"][0] == "wait"]
    assert len({str(each) for each in waits}) == 2


@READERS
def test_what_jobs_and_notebooks_cannot_mount_is_reported_at_each_namespace(tmp_path: Path, reader: str) -> None:
    write_reader(tmp_path, reader, VOLUME)
    found = {(code, path) for code, path, _ in codes(tmp_path)}
    names = ("model", "inputs[0]") if reader is JOB else ("models[0]", "datasets[0]")
    assert found == {("KG0389", f"spec.{name}.namespace") for name in names}


@pytest.mark.parametrize(
    ("changed", "path", "hint"),
    [
        ("model: qwen", "spec.model", "set `model: {name: qwen, namespace: models}`"),
        ("inputs: [{dataset: data}]", "spec.inputs[0].dataset", "set `{dataset: data, namespace: models}`"),
    ],
)
def test_the_hint_of_a_job_names_the_field(tmp_path: Path, changed: str, path: str, hint: str) -> None:
    field = changed.split(":")[0]
    lines = [f"  {changed}" if line.startswith(f"  {field}:") else line for line in JOB.splitlines()]
    write_reader(tmp_path, "\n".join(lines))
    ((code, at, text),) = codes(tmp_path)
    assert (code, at) == ("KG0301", path)
    assert text.endswith(hint)


def test_a_namespace_without_a_name_in_a_job_is_an_error(tmp_path: Path) -> None:
    url = JOB.replace("dataset: data", f"url: 'https://example.com/a', sha256: {'a' * 64}")
    source = f"source: {{huggingFace: {{repo: a/b, revision: {COMMIT}}}}}, mountPath: /output/m"
    write_reader(tmp_path, url.replace("name: qwen", source))
    found = {(code, path) for code, path, _ in codes(tmp_path)}
    assert found == {("KG0340", "spec.model.namespace"), ("KG0340", "spec.inputs[0].namespace")}


def test_a_circle_over_two_namespaces_is_reported(tmp_path: Path) -> None:
    written(tmp_path)
    for own, other in (("one", "two"), ("two", "one")):
        text = f"""\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: tune, namespace: {own}}}
spec: {{image: "a:1", model: {{name: tuned, namespace: {other}}}, output: {{volume: {{size: 1Gi}}}}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: tuned, namespace: {own}}}
spec: {{source: {{job: {{name: tune}}}}, store: {{bucket: {{uri: s3://acme/{own}, region: eu-central-1}}}}}}
"""
        (tmp_path / f"specs/{own}.yaml").write_text(text)
    assert {code for code, _, _ in codes(tmp_path)} == {"KG0388"}
