"""Every example of Substratus' design, with what it leaves out: apiVersion, metadata, and the Models that it names."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import yaml

from tests.unit.dialects.substratus_case import COMMIT, codes, config, errors, loaded, objects, specs, warnings

HEAD = "apiVersion: substratus.ai/v1\n"

OVERVIEW = """
kind: Model
metadata: {name: falcon-7b, namespace: other-namespace}
spec:
  container:
  loader: {}
  trainer: {}
"""
LOADED = """
kind: Model
metadata: {name: falcon-7b, namespace: other-namespace}
spec:
  container:
    git:
      url: https://github.com/substratusai/hf-model-loader
    image: substratusai/hf-model-loader
  loader:
    params: {name: tiuu/falcon-7b}
  status:
    url: gcs://my-bucket/my-model/
    files: ["pytorch-001.bin", "config.json"]
    size: 27Gi
"""
TRAINED = """
kind: Model
metadata: {name: falcon-7b-k8s, namespace: other-namespace}
spec:
  container:
    git:
      url: https://github.com/substratusai/hf-llm-trainer
      ref: refs/branch/main
    image: substratusai/hf-llm-peft-trainer
  trainer:
    baseModel:
      name: falcon-7b
      namespace: other-namespace
    dataset:
      name: k8s-instructions
      namespace: other-namespace
    resources: {}
    params: {epochs: 1}
"""
ANYTHING = """
kind: Notebook
metadata: {name: notebooks-for-anything, namespace: other-namespace}
spec:
  container:
    image: substratusai/notebook-gpu
  resources: {gpuCount: 4, type: L4}
"""
EXPERIMENT = """
kind: Notebook
metadata: {name: notebook-training-experiment, namespace: other-namespace}
spec:
  container:
    local: true
  sourceModel: falcon-7b
  resources: {}
status:
    uploadUrl: gs://substratusai-notebooks/workspace.tar
"""
GENERATED = """
kind: Model
metadata: {name: falcon-7b-k8s-main, namespace: other-namespace}
spec:
  container:
    image: my-org/model-falcon-7b-k8s-trainer-main
  trainer:
    sourceModel:
      name: falcon-7b
      namespace: other-namespace
    dataset:
      name: k8s-instructions
      namespace: other-namespace
    resources: {}
    params:
      epochs: 1
"""
SERVED = """
kind: ModelServer
metadata: {name: falcon-7b-k8s, namespace: other-namespace}
spec:
  container:
    image: substratusai/basaran
  model: falcon-7b-k8s
  quantization:
    bits: 4
  resources: {}
"""
INSTRUCTIONS = """
kind: Dataset
metadata: {name: k8s-instructions, namespace: other-namespace}
spec:
  image: substratusai/dataset-loader-http
  params: {urls: "https://example.com/k8s-instructions.jsonl"}
"""


def text(block: str) -> str:
    return HEAD + block.strip()


def with_git(block: str) -> str:
    """A contradictory example without its image, at a commit."""
    document: Any = yaml.safe_load(text(block))
    del document["spec"]["container"]["image"]
    document["spec"]["container"]["git"]["commit"] = COMMIT
    return yaml.safe_dump(document)


def with_image(block: str) -> str:
    """A contradictory example without its repository."""
    document: Any = yaml.safe_load(text(block))
    del document["spec"]["container"]["git"]
    return yaml.safe_dump(document)


ALL = [
    with_image(LOADED),
    with_git(TRAINED),
    text(ANYTHING),
    text(EXPERIMENT),
    text(GENERATED),
    text(SERVED),
    text(INSTRUCTIONS),
]


def test_the_overview_is_a_place_for_files_that_nothing_writes() -> None:
    (block,) = specs(text(OVERVIEW)).values()
    assert block.spec.source.empty is not None
    assert warnings(text(OVERVIEW)) == [("KG0405", "spec.trainer")]
    found = objects(text(OVERVIEW))
    assert {name.partition("/")[0] for name in found} == {"PersistentVolume", "PersistentVolumeClaim"}
    assert "other-namespace/models/falcon-7b" in str(found)


@pytest.mark.promise("Substratus", "`loader: {}`: just a location is created")
def test_without_a_bucket_the_place_is_a_claim_that_servers_mount_as_it_is() -> None:
    place = text(OVERVIEW).replace("other-namespace}", "other-namespace, annotations: {kaigen.dev/size: 7Gi}}")
    served = text(SERVED).replace("model: falcon-7b-k8s", "model: falcon-7b")
    found = objects(place, served, of=config({}))
    claim = found["PersistentVolumeClaim/falcon-7b-weights"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "7Gi"
    (pod,) = [body["spec"]["template"]["spec"] for body in found.values() if body["kind"] == "Deployment"]
    assert {"persistentVolumeClaim": {"claimName": "falcon-7b-weights", "readOnly": True}}.items() <= pod["volumes"][
        0
    ].items()
    assert "initContainers" not in pod
    (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["mountPath"] == "/model/saved"]
    assert "subPath" not in mount


def test_a_claim_in_the_same_file_is_the_place() -> None:
    claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: files, namespace: other-namespace}\n"
    claim += "spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 5Gi}}}\n"
    place = text(OVERVIEW).replace("other-namespace}", "other-namespace, annotations: {kaigen.dev/claim: files}}")
    assert warnings(place, claim) == [("KG0405", "spec.trainer")]
    assert "PersistentVolumeClaim/files" in objects(place, claim)


@pytest.mark.promise("Substratus", "`container.image` or `container.git`, not both")
@pytest.mark.parametrize(("block", "line"), [(LOADED, 8), (TRAINED, 9)], ids=["loaded", "trained"])
def test_an_image_together_with_git_is_refused(block: str, line: int) -> None:
    (error,) = errors(text(block))
    assert (error.code, error.path) == ("KG0412", "spec.container.image")
    assert error.mark is not None
    assert error.mark.line == line
    assert "allows only one of them" in error.message


@pytest.mark.promise("Substratus", "`container.image` or `container.git`, not both")
@pytest.mark.promise("Substratus", "A Notebook with no `sourceModel`")
def test_each_other_example_renders() -> None:
    found = objects(*ALL)
    apps = {name.partition("/")[2].rpartition("-")[0] for name in found if name.startswith("Job/")}
    assert apps == {
        "falcon-7b-modeller",
        "falcon-7b",
        "falcon-7b-k8s-modeller",
        "falcon-7b-k8s-modeller-build",
        "falcon-7b-k8s",
        "falcon-7b-k8s-main-modeller",
        "falcon-7b-k8s-main",
        "k8s-instructions-data-loader",
        "k8s-instructions",
    }
    assert {"Deployment/falcon-7b-k8s-server", "StatefulSet/notebooks-for-anything"} <= found.keys()


@pytest.mark.promise("Substratus", "`loader` loads a model into its location")
@pytest.mark.promise("Substratus", "`trainer` with `baseModel`, `dataset`, `params`")
@pytest.mark.promise("Substratus", "A Notebook runs `notebook.sh`")
@pytest.mark.promise("Substratus", "`resources: {gpuCount: 4, type: L4}`")
@pytest.mark.promise("Substratus", "ModelServer: the model gets mounted to `/model/saved`")
@pytest.mark.promise("Substratus", "`quantization.bits: 4`")
def test_containers_have_the_contract_of_the_design() -> None:
    found = specs(*ALL)
    assert found["Job/falcon-7b-modeller"].spec.command == ["load.sh"]
    assert found["Job/falcon-7b-modeller"].spec.output.volume.mount_path == "/model/saved"
    trainer = found["Job/falcon-7b-k8s-modeller"].spec
    assert trainer.command == ["train.sh"]
    assert (trainer.model.name, trainer.model.mount_path) == ("falcon-7b", "/base-model/saved")
    assert trainer.inputs.files[0].dataset == "k8s-instructions"
    assert f"{trainer.inputs.mount_path}{trainer.inputs.files[0].path}" == "/data"
    assert trainer.params == {"epochs": 1}
    served = found["Topology/falcon-7b-k8s-server"].spec
    assert served.command == ["serve.sh"]
    assert (served.model.name, served.model.mount_path) == ("falcon-7b-k8s", "/model/saved")
    assert served.env == {"MODEL_LOAD_IN_4BIT": "true"}
    notebook = found["Notebook/notebooks-for-anything"].spec
    assert notebook.command == ["notebook.sh"]
    assert (notebook.resources.gpus, notebook.resources.gpu_type) == (4, "L4")


@pytest.mark.promise("Substratus", "`sourceModel` is mounted in a Notebook")
@pytest.mark.promise("Substratus", "`container.local: true`: the notebook has the contents of the local directory")
def test_a_local_folder_is_synchronized_in_place_of_a_build() -> None:
    found = specs(*ALL)["Notebook/notebook-training-experiment"].spec
    assert (found.image, found.command) == (None, None)
    assert (found.models[0].name, found.models[0].mount_path) == ("falcon-7b", "/model/saved")
    assert warnings(text(EXPERIMENT)) == [("KG0414", "spec.container.local"), ("KG0405", "status")]
    (warning,) = [item for item in loaded(text(EXPERIMENT)).load_diagnostics if item.code == "KG0414"]
    assert "kaigen notebook open notebook-training-experiment --folder ." in warning.hint


def test_a_branch_is_refused_with_the_command_that_prints_its_commit() -> None:
    document = yaml.safe_load(with_git(TRAINED))
    del document["spec"]["container"]["git"]["commit"]
    document["spec"]["trainer"] = {"params": {"epochs": 1}}
    consequence, error = errors(yaml.safe_dump(document))
    assert codes([consequence, error]) == [("KG0301", "metadata.name"), ("KG0397", "spec.container.git.ref")]
    assert "git ls-remote https://github.com/substratusai/hf-llm-trainer main" in error.hint
    assert consequence.hint == "first correct what is wrong with its container"


def test_a_chain_in_any_order_has_the_same_objects() -> None:
    chain = [with_image(LOADED), text(INSTRUCTIONS), with_git(TRAINED), text(SERVED)]
    first = objects(*chain)
    for order in itertools.permutations(chain):
        assert objects(*order) == first


@pytest.mark.promise("Substratus", "`container.git` triggers a container build Job")
def test_each_step_of_a_chain_waits_for_the_one_before() -> None:
    found = objects(with_image(LOADED), text(INSTRUCTIONS), with_git(TRAINED), text(SERVED))

    def waits(app: str) -> list[str]:
        (body,) = [body for name, body in found.items() if name == app or name.rpartition("-")[0] == app]
        containers = body["spec"]["template"]["spec"].get("initContainers", [])
        return [container["name"] for container in containers]

    assert waits("Job/falcon-7b-modeller") == []
    assert waits("Job/falcon-7b") == ["wait-for-job"]
    assert waits("Job/falcon-7b-k8s-modeller-build") == ["find-image"]
    expected = ["wait-for-build", "wait-for-model", "wait-for-k8s-instructions"]
    assert waits("Job/falcon-7b-k8s-modeller") == expected
    assert waits("Job/falcon-7b-k8s") == ["wait-for-job"]
    assert waits("Deployment/falcon-7b-k8s-server") == ["wait-for-model"]


@pytest.mark.promise("Substratus", "`baseModel` can be left out for a new base model")
def test_a_model_that_is_trained_from_nothing_mounts_no_other() -> None:
    document = yaml.safe_load(with_git(TRAINED))
    del document["spec"]["trainer"]["baseModel"]
    job = specs(yaml.safe_dump(document), text(INSTRUCTIONS))["Job/falcon-7b-k8s-modeller"].spec
    assert (job.command, job.model, job.inputs.files[0].dataset) == (["train.sh"], None, "k8s-instructions")
