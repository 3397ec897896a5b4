"""Resources of Substratus in the shape of its releases: names, folders, parameters, secrets, resources, storage."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kaigen.dialects.substratus.names import artifact_hash
from tests.unit.dialects.substratus_case import (
    COMMIT,
    SETTINGS,
    Object,
    codes,
    config,
    errors,
    loaded,
    model,
    objects,
    resource,
    server,
    specs,
    warnings,
)

LLAMA = """
apiVersion: substratus.ai/v1
kind: Model
metadata:
  name: llama-2-7b
spec:
  image: substratusai/model-loader-huggingface
  env:
    HUGGING_FACE_HUB_TOKEN: ${{ secrets.ai.HUGGING_FACE_HUB_TOKEN }}
  params:
    name: meta-llama/Llama-2-7b-hf
"""
DATASET = f"""
apiVersion: substratus.ai/v1
kind: Dataset
metadata:
  name: k8s-instructions
spec:
  params:
    urls: https://example.com/k8s-instructions.jsonl
  build:
    git:
      url: https://github.com/substratusai/images
      path: dataset-loader-http
      commit: {COMMIT}
"""
PROMPT = """
apiVersion: substratus.ai/v1
kind: Model
metadata:
  name: llama-2-7b-k8s
spec:
  image: substratusai/model-trainer-huggingface
  model:
    name: llama-2-7b
  dataset:
    name: k8s-instructions
  params:
    num_train_epochs: 1
    prompt_template: |
      ## Instruction
      {prompt}
      ## Response:
      {completion}
  resources:
    gpu:
      count: 4
      type: nvidia-l4
"""
NOTEBOOK = f"""
apiVersion: substratus.ai/v1
kind: Notebook
metadata:
  name: llama-2-7b
spec:
  command: ["notebook.sh"]
  suspend: false
  build:
    git:
      url: https://github.com/substratusai/images.git
      path: model-trainer-huggingface
      tag: {COMMIT}
  model:
    name: llama-2-7b
  dataset:
    name: k8s-instructions
  resources:
    disk: 50
    gpu:
      type: nvidia-l4
      count: 4
"""
SERVER = """
apiVersion: substratus.ai/v1
kind: Server
metadata:
  name: llama-2-7b
spec:
  image: substratusai/model-server-basaran
  model:
    name: llama-2-7b
  env:
    MODEL_LOAD_IN_4BIT: "true"
  resources:
    gpu:
      type: nvidia-a100
      count: 1
"""
ALL = (LLAMA, DATASET, PROMPT, NOTEBOOK, SERVER)


def spec_of(found: dict[str, Any], kind: str) -> Any:
    (block,) = [block for name, block in found.items() if name.startswith(f"{kind}/")]
    return block.spec


def test_examples_of_the_releases_become_these_apps() -> None:
    assert set(specs(*ALL)) == {
        "Job/llama-2-7b-modeller",
        "Model/llama-2-7b",
        "Job/k8s-instructions-data-loader",
        "Dataset/k8s-instructions",
        "Job/llama-2-7b-k8s-modeller",
        "Model/llama-2-7b-k8s",
        "Notebook/llama-2-7b-notebook",
        "Topology/llama-2-7b-server",
    }


def test_examples_in_any_order_have_the_same_objects() -> None:
    first = objects(*ALL)
    for order in itertools.islice(itertools.permutations(ALL), 1, None, 23):
        assert objects(*order) == first


def test_containers_have_the_contract_of_the_releases() -> None:
    found = specs(*ALL)
    trainer = found["Job/llama-2-7b-k8s-modeller"].spec
    assert trainer.command is None
    assert (trainer.model.name, trainer.model.mount_path) == ("llama-2-7b", "/content/model")
    assert (trainer.inputs.mount_path, trainer.inputs.files[0].path) == ("/content", "data")
    assert trainer.output.volume.mount_path == "/content/artifacts"
    assert trainer.params_file == "/content/params.json"
    served = found["Topology/llama-2-7b-server"].spec
    assert (served.port, served.service.port, served.probes.ready) == (8080, 8080, "/")
    assert served.model.mount_path == "/content/model"
    notebook = found["Notebook/llama-2-7b-notebook"].spec
    assert notebook.models[0].mount_path == "/content/model"
    assert notebook.datasets[0].mount_path == "/content/data"
    assert notebook.storage.mount_path == "/content/artifacts"
    assert notebook.env["NOTEBOOK_TOKEN"].secret.name == "llama-2-7b-notebook-token"


@pytest.mark.promise("Substratus", "`params` are converted to environment variables")
def test_parameters_are_in_the_file_and_in_variables_without_dashes() -> None:
    document = resource("Dataset", {"image": "a:1", "params": {"learning-rate": 3e-5, "epochs": 2, "on": True}})
    (job,) = [body for name, body in objects(document).items() if name.startswith("Job/it-data-loader-")]
    container = job["spec"]["template"]["spec"]["containers"][0]
    variables = {item["name"]: item["value"] for item in container["env"]}
    assert variables["PARAM_LEARNING_RATE"] == "0.00003"
    assert variables["PARAM_EPOCHS"] == "2"
    mounts = {mount["mountPath"]: mount.get("subPath") for mount in container["volumeMounts"]}
    assert mounts["/content/params.json"] == "params.json"


def test_a_multi_line_parameter_stays_as_it_is() -> None:
    (params,) = [
        body for name, body in objects(*ALL).items() if name.startswith("ConfigMap/llama-2-7b-k8s-modeller-params")
    ]
    assert r"## Instruction\n{prompt}\n## Response:\n{completion}\n" in params["data"]["params.json"]


def test_parameters_that_become_the_same_variable_are_refused() -> None:
    document = resource("Dataset", {"image": "a:1", "params": {"a-b": 1, "A_B": 2}})
    assert ("KG0313", "spec.params.A_B") in codes(errors(document))


@pytest.mark.parametrize(
    ("value", "name", "key"),
    [
        ("${{ secrets.ai.HUGGING_FACE_HUB_TOKEN }}", "ai", "HUGGING_FACE_HUB_TOKEN"),
        ("${{secrets.ai.token}}", "ai", "token"),
        ("${{ secrets.a.b.key }}", "a.b", "key"),
    ],
)
def test_variables_name_keys_of_secrets(value: str, name: str, key: str) -> None:
    found = spec_of(specs(model({"env": {"AWS_SECRET_ACCESS_KEY": value}})), "Job")
    reference = found.env["AWS_SECRET_ACCESS_KEY"].secret
    assert (reference.name, reference.key) == (name, key)


@pytest.mark.parametrize(
    "value", ["Bearer ${{ secrets.ai.token }}", "${{ secrets.ai }}", "${{ env.TOKEN }}", "${{ secrets.Ai_.token }}"]
)
def test_what_is_no_whole_reference_is_refused(value: str) -> None:
    assert codes(errors(model({"env": {"TOKEN": value}}))) == [("KG0412", "spec.env.TOKEN")]


def test_a_token_in_a_parameter_is_refused() -> None:
    found = loaded(model({"params": {"hugging_face_hub_token": "hf_" + "aB3dE5gH7jK9" * 3}}))
    assert ("KG0150", "spec.params.hugging_face_hub_token") in codes(list(found.load_diagnostics))


@pytest.mark.promise("Substratus", "`resources: {}`")
def test_resources_have_the_defaults_of_the_operator() -> None:
    cases: list[Object] = [{}, {"resources": {}}, {"resources": {"gpu": {"count": 1, "type": "nvidia-l4"}}}]
    for given in cases:
        found = spec_of(specs(model(given)), "Job").resources
        assert (found.cpu, found.memory, found.ephemeral_storage) == ("2", "10Gi", "10Gi")


@pytest.mark.parametrize(
    ("given", "gpu"),
    [("nvidia-l4", "L4"), ("nvidia-t4", "T4"), ("nvidia-a100", "A100-40GB"), ("nvidia-h100", "H100"), ("L40S", "L40S")],
)
def test_gpu_types_are_those_of_the_catalogue(given: str, gpu: str) -> None:
    document = model({"resources": {"gpu": {"count": 2, "type": given}}})
    found = spec_of(specs(document), "Job").resources
    assert (found.gpus, found.gpu_type) == (2, gpu)
    assert objects(document)


def test_an_unknown_gpu_type_is_refused_at_its_line() -> None:
    document = server({"resources": {"gpu": {"count": 1, "type": "nvidia-l5"}}})
    assert "spec.resources.gpu.type" in {item.path for item in errors(model(), document)}


def test_gpus_without_a_number_are_one() -> None:
    document = model({"resources": {"gpu": {"type": "nvidia-l4"}}})
    assert spec_of(specs(document), "Job").resources.gpus == 1
    assert warnings(document) == [("KG0414", "spec.resources.gpu.type")]


def test_gpus_without_a_type_are_any_gpu() -> None:
    document = server({"resources": {"gpu": {"count": 1}}})
    assert spec_of(specs(model(), document), "Topology").resources.gpu_type is None
    assert warnings(model(), document) == []
    assert warnings(document, of=config(profile="gke")) == [("KG0414", "spec.resources.gpu.count")]


@pytest.mark.promise("Substratus", "Model files in a bucket")
def test_files_have_a_readable_folder_in_the_bucket() -> None:
    found = specs(model(name="falcon-7b"))["Model/falcon-7b"].spec.store
    assert found.bucket.uri == "s3://acme-artifacts/substratus/ml/models/falcon-7b"


def test_with_compat_files_have_the_folder_of_the_operator() -> None:
    found = specs(model(name="falcon-7b", compat="true"), resource("Dataset", {"image": "a"}, "x", compat="true"))
    folder = artifact_hash("substratus", "ml", "Model", "falcon-7b")
    assert found["Model/falcon-7b"].spec.store.bucket.uri == f"s3://acme-artifacts/{folder}"
    assert found["Dataset/x"].spec.store.bucket.uri.endswith(artifact_hash("substratus", "ml", "Dataset", "x"))


@pytest.mark.parametrize(
    ("cluster", "namespace", "name", "expected"),
    [
        ("my-cluster", "my-ns", "my-model", "93ea94b18012ca14d84e1468d65e8709"),
        ("substratus-1", "team-a", "falcon-7b", "f94a0d128bcbd9c1b824e9e5572baf86"),
        ("substratus", "default", "facebook-opt-125m", "23d8064939b7314ff48157890fab44bb"),
    ],
)
def test_hashes_equal_those_of_the_operator(cluster: str, namespace: str, name: str, expected: str) -> None:
    assert artifact_hash(cluster, namespace, "Model", name) == expected


def test_with_compat_the_name_of_the_cluster_is_required_for_a_bucket() -> None:
    without = config({"artifacts": "s3://acme-artifacts"})
    assert codes(errors(model(compat="true"), of=without)) == [("KG0412", 'metadata.annotations["kaigen.dev/compat"]')]


def test_without_a_bucket_files_are_in_volumes() -> None:
    found = specs(model(size="40Gi"), of=config({"storageClassName": "shared"}))
    store, output = found["Model/it"].spec.store.volume, found["Job/it-modeller"].spec.output.volume
    for volume in (store, output):
        assert (volume.size, volume.storage_class_name, volume.access_modes) == ("40Gi", "shared", ["ReadWriteMany"])
    assert (store.retain, output.retain) == (True, False)
    assert spec_of(specs(model(), of=config({})), "Model").store.volume.size == "100Gi"


def test_a_bucket_of_a_server_has_its_settings() -> None:
    artifacts = {"uri": "s3://models/kaigen/", "endpoint": "http://minio:9000"}
    bucket = spec_of(specs(model(), of=config({"artifacts": artifacts})), "Model").store.bucket
    assert (bucket.uri, bucket.endpoint) == ("s3://models/kaigen/ml/models/it", "http://minio:9000")


@pytest.mark.parametrize("compat", ["false", "true"])
def test_a_bucket_of_google_needs_no_keys(compat: str) -> None:
    google = config({"clusterName": "substratus", "artifacts": "gs://acme-artifacts"}, "gke")
    found = objects(model(compat=compat), server(compat=compat), of=google)
    stores = [body for name, body in found.items() if name.startswith("Job/") and "gs://acme-artifacts/" in str(body)]
    (store,) = stores
    assert "AWS_" not in str(store)
    (volume,) = [body for name, body in found.items() if name.startswith("PersistentVolume/")]
    assert volume["spec"]["csi"]["driver"] == "gcsfuse.csi.storage.gke.io"


def test_built_images_have_the_name_of_the_operator() -> None:
    build = specs(DATASET, of=config({**SETTINGS, "pushSecret": "push", "pullSecret": "pull"}))
    job = build["Job/k8s-instructions-data-loader"].spec
    assert job.build.git.url == "https://github.com/substratusai/images.git"
    assert job.build.repository == "registry.example.com/substratus/substratus-dataset-ml-k8s-instructions"
    assert (job.build.push_secret.name, [each.name for each in job.image_pull_secrets]) == ("push", ["pull"])


CONTEXT = "registry.example.com/contexts/it@sha256:" + "0" * 64


@pytest.mark.parametrize(
    "spec",
    [
        {"build": {"upload": {"md5Checksum": "0" * 32, "requestID": "first"}}, "params": {"a": 1}},
        {"container": {"local": True}, "loader": {"params": {"a": 1}}},
    ],
    ids=["upload", "local"],
)
def test_a_folder_that_was_pushed_is_built(spec: Object) -> None:
    document = resource("Model", spec, build_context=CONTEXT)
    build = spec_of(specs(document), "Job").build
    assert (build.git, build.artifact) == (None, CONTEXT)
    assert build.repository == "registry.example.com/substratus/substratus-model-ml-it"
    assert any(name.startswith("Job/it-modeller-build-") for name in objects(document))
    notebook = resource("Notebook", {key: spec[key] for key in spec if key != "loader"}, build_context=CONTEXT)
    assert spec_of(specs(notebook), "Notebook").build.artifact == CONTEXT
    assert warnings(notebook) == []


def test_a_folder_for_no_build_is_refused() -> None:
    assert codes(errors(resource("Model", {"params": {"a": 1}}, build_context=CONTEXT)))[:1] == [
        ("KG0406", 'metadata.annotations["kaigen.dev/build-context"]')
    ]


def test_a_folder_without_its_digest_is_refused() -> None:
    document = resource("Notebook", {"container": {"local": True}}, build_context="registry.example.com/it:1")
    assert [path for _, path in codes(errors(document))] == ['metadata.annotations["kaigen.dev/build-context"]']


def test_a_build_without_a_registry_is_refused() -> None:
    (error,) = errors(DATASET, of=config({}))
    assert codes([error]) == [("KG0413", "spec.build.git")]
    assert "dialects.substratus.registry" in error.hint


@pytest.mark.parametrize(
    ("git", "field", "name"),
    [
        ({}, "url", "HEAD"),
        ({"branch": "main"}, "branch", "main"),
        ({"tag": "v1.0"}, "tag", "v1.0"),
        ({"tag": "v1.0", "branch": "main"}, "tag", "v1.0"),
    ],
)
def test_a_build_of_a_moving_name_is_refused(git: dict[str, str], field: str, name: str) -> None:
    build = {"git": {"url": "https://example.com/a/b", **git}}
    error = errors(resource("Notebook", {"build": build}))[0]
    assert codes([error]) == [("KG0397", f"spec.build.git.{field}")]
    assert f"git ls-remote https://example.com/a/b {name}" in error.hint


def test_containers_run_as_another_user_than_root() -> None:
    found = specs(*ALL)
    for name in ("Job/llama-2-7b-modeller", "Topology/llama-2-7b-server", "Notebook/llama-2-7b-notebook"):
        security = found[name].spec.security
        assert (security.pod_security, security.read_only_root_filesystem) == ("restricted", False)
    rooted = spec_of(specs(model(pod_security="baseline")), "Job").security
    assert (rooted.pod_security, rooted.fs_group) == ("baseline", 3003)


def test_runs_are_retried_unless_they_train() -> None:
    found = specs(*ALL)
    assert found["Job/llama-2-7b-modeller"].spec.retries == 2
    assert found["Job/k8s-instructions-data-loader"].spec.retries == 2
    assert found["Job/llama-2-7b-k8s-modeller"].spec.retries == 0


def test_a_notebook_without_a_command_starts_jupyter() -> None:
    document = resource("Notebook", {"image": "substratusai/base"})
    command = spec_of(specs(document), "Notebook").command
    assert command[:2] == ["jupyter", "lab"]
    assert "--allow-root" not in command
    rooted = spec_of(specs(resource("Notebook", {"image": "a"}, pod_security="baseline")), "Notebook").command
    assert "--allow-root" in rooted
    compat = spec_of(specs(resource("Notebook", {"image": "a"}, compat="true")), "Notebook").command
    assert "--NotebookApp.token=$(NOTEBOOK_TOKEN)" in compat


def test_older_names_of_references_are_read() -> None:
    tuned = model({"baseModel": {"name": "it"}, "trainingDataset": {"name": "squad"}}, "tuned")
    squad = resource("Dataset", {"image": "a"}, "squad")
    job = specs(tuned, squad, model())["Job/tuned-modeller"].spec
    assert (job.model.name, job.inputs.files[0].dataset) == ("it", "squad")
