"""KAITO's Workspace that tunes, with `kaigen.dev/compat`: a Job with KAITO's image and script."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.dialects.kaito_case import A100, NAME, config_map, errors, hints, objects, pod, warnings, workspace

CLAIM: dict[str, Any] = {"volumeSource": {"persistentVolumeClaim": {"claimName": "data"}}}
IMAGE: dict[str, Any] = {"image": "registry.example/adapter:1", "imagePushSecret": "login"}


def tuning(name: str = "phi-3-mini-128k-instruct", *, top: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a run with data and results in volumes, with the given changes."""
    block = {"preset": {"name": name}, "method": "qlora", "input": CLAIM, "output": CLAIM, **more}
    metadata = {"annotations": {"kaigen.dev/compat": "true"}}
    return workspace(tuning=block, metadata=metadata, **(top or {}))


def containers(document: dict[str, Any], *others: dict[str, Any]) -> dict[str, dict[str, Any]]:
    spec = pod(document, *others)
    return {item["name"]: item for item in [*spec.get("initContainers", []), *spec["containers"]]}


def settings(document: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """What the training script reads."""
    template = objects(document, *others)["Job"]["spec"]["template"]
    text = template["metadata"]["annotations"]["kaigen.dev/training-config"]
    found: dict[str, Any] = yaml.safe_load(text)["training_config"]
    return found


def test_the_training_runs_on_every_gpu_of_the_node_and_once() -> None:
    document = tuning(top={"resource": {"instanceType": "Standard_NC96ads_A100_v4"}})
    container = containers(document)[NAME]
    assert container["args"][0] == "--num_processes=4"
    assert container["args"][-1] == "/workspace/tfs/fine_tuning.py"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 4
    job = objects(document)["Job"]["spec"]
    assert job["backoffLimit"] == 0
    assert "ttlSecondsAfterFinished" not in job
    assert warnings(document) == []


def test_gpu_nodes_are_tolerated_and_chosen() -> None:
    spec = pod(tuning())
    keys = {toleration["key"] for toleration in spec["tolerations"]}
    assert keys == {"nvidia.com/gpu", "sku"}
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": A100, "pool": "gpu"}


def test_only_what_fetches_the_weights_sees_the_token() -> None:
    document = tuning()
    document["tuning"]["preset"]["presetOptions"] = {"modelAccessSecret": "hf"}
    with_token = [
        name for name, item in containers(document).items() if any(entry["name"] == "HF_TOKEN" for entry in item["env"])
    ]
    assert with_token == ["fetch-model"]


def test_weights_come_at_the_commit_of_the_catalogue() -> None:
    command = containers(tuning())["fetch-model"]["command"]
    assert command[-3:-1] == ["microsoft/Phi-3-mini-128k-instruct", "072cb7562cb8c4adf682a8e186aaafa49469eb5d"]


@pytest.mark.parametrize(
    ("source", "volume"),
    [
        ({"urls": ["https://example.com/d.parquet"]}, {"emptyDir": {}}),
        ({"image": "registry.example/data:1"}, {"image": {"reference": "registry.example/data:1"}}),
        (CLAIM, {"persistentVolumeClaim": {"claimName": "data", "readOnly": True}}),
    ],
)
def test_data_comes_from_addresses_images_and_volumes(source: dict[str, Any], volume: dict[str, Any]) -> None:
    document = tuning(input=source)
    volumes = {item["name"]: item for item in pod(document)["volumes"]}
    assert volumes["data"] == {"name": "data", **volume}
    found = containers(document)
    assert {"name": "data", "mountPath": "/mnt/data", "readOnly": True} in found[NAME]["volumeMounts"]
    assert ("fetch-data" in found) == ("urls" in source)


def test_an_adapter_is_pushed_after_the_training_with_the_secret() -> None:
    spec = pod(tuning(output=IMAGE))
    assert [item["name"] for item in spec["initContainers"]] == ["fetch-model", NAME]
    (push,) = spec["containers"]
    assert push["args"][:2] == ["push", "registry.example/adapter:1"]
    volumes = {item["name"]: item for item in spec["volumes"]}
    assert volumes["login"]["secret"]["secretName"] == "login"
    assert "nvidia.com/gpu" not in push["resources"]["limits"]


def test_an_adapter_stays_in_the_volume() -> None:
    document = tuning(output=CLAIM)
    volumes = {item["name"]: item for item in pod(document)["volumes"]}
    assert volumes["results"]["persistentVolumeClaim"] == {"claimName": "data"}
    assert {"name": "results", "mountPath": "/mnt/results"} in containers(document)[NAME]["volumeMounts"]


@pytest.mark.parametrize("method", ["lora", "LoRA", "qlora", "QLoRA"])
def test_the_method_is_taken_in_any_case(method: str) -> None:
    assert ("QuantizationConfig" in settings(tuning(method=method))) == (method.lower() == "qlora")


def test_settings_of_a_config_map_in_the_file_are_checked_and_taken() -> None:
    own = {"training_config": {"LoraConfig": {"r": 32}, "TrainingArguments": {"output_dir": "/mnt/out"}}}
    document = tuning(method="lora", config="settings")
    given = config_map("settings", own, "training_config.yaml")
    assert settings(document, given)["LoraConfig"] == {"r": 32}
    assert {"name": "results", "mountPath": "/mnt/out"} in containers(document, given)[NAME]["volumeMounts"]


def test_settings_of_an_external_config_map_are_mounted_with_a_warning() -> None:
    document = tuning(config="settings")
    volumes = {item["name"]: item for item in pod(document)["volumes"]}
    assert volumes["config"]["configMap"] == {"name": "settings"}
    assert [(code, path) for code, path, _ in warnings(document)] == [("KG0418", "tuning.config")]


@pytest.mark.parametrize(
    ("content", "code", "key"),
    [
        ({"LoraConfig": {}, "QuantizationConfig": {"load_in_4bit": True}}, "KG0412", "QuantizationConfig.load_in_4bit"),
        ({"TrainingArguments": {"output_dir": "/tmp/out"}}, "KG0412", "TrainingArguments.output_dir"),
        ({"TrainingArguments": {"output_dir": "/mnt/../etc"}}, "KG0412", "TrainingArguments.output_dir"),
        ({"LoRAConfig": {}}, "KG0418", "LoRAConfig"),
        ({"LoraConfig": [1]}, "KG0418", "LoraConfig"),
    ],
)
def test_wrong_settings_are_errors_at_their_keys(content: dict[str, Any], code: str, key: str) -> None:
    given = config_map("settings", {"training_config": content}, "training_config.yaml")
    found = errors(tuning(method="lora", config="settings"), given)
    assert [(item[0], item[1]) for item in found] == [(code, f'data["training_config.yaml"].training_config.{key}')]


def test_qlora_needs_one_kind_of_quantization() -> None:
    both = {"QuantizationConfig": {"load_in_4bit": True, "load_in_8bit": True}}
    given = config_map("settings", {"training_config": both}, "training_config.yaml")
    assert errors(tuning(config="settings"), given)[0][0] == "KG0412"


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"method": "full"}, "KG0412", "tuning.method"),
        ({"method": None}, "KG0412", "tuning"),
        ({"input": {"urls": ["ftp://example.com/x"]}}, "KG0412", "tuning.input.urls[0]"),
        ({"input": {"urls": ["http://169.254.169.254/x"]}}, "KG0412", "tuning.input.urls[0]"),
        ({"input": {"image": "<your image>"}}, "KG0410", "tuning.input.image"),
        ({"input": {"volumeSource": {"emptyDir": {}}}}, "KG0413", "tuning.input.volumeSource"),
        ({"output": {"image": "registry.example/a:1"}}, "KG0412", "tuning.output"),
        ({"preset": {"name": "gpt-oss-20b"}}, "KG0412", "tuning.preset.name"),
        ({"preset": None}, "KG0412", "tuning"),
    ],
)
def test_a_run_that_cannot_be_is_an_error(change: dict[str, Any], code: str, path: str) -> None:
    document = tuning(**change)
    document["tuning"] = {key: value for key, value in document["tuning"].items() if value is not None}
    assert [(item[0], item[1]) for item in errors(document)] == [(code, path)]


def test_a_run_takes_one_node() -> None:
    document = tuning(top={"resource": {"count": 2}})
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0412", "resource.count")]


def test_a_preset_that_is_gone_names_its_successor() -> None:
    document = tuning("falcon-7b", top={"version": "v1alpha1"})
    assert [(code, path) for code, path, _ in warnings(document)] == [("KG0408", "tuning.preset.name")]


def test_an_image_of_the_users_own_brings_the_training() -> None:
    document = tuning()
    document["tuning"]["preset"]["presetOptions"] = {"image": "registry.example/tune:2", "imagePullSecrets": ["login"]}
    assert containers(document)[NAME]["image"] == "registry.example/tune:2"
    assert pod(document)["imagePullSecrets"] == [{"name": "login"}]


def test_objects_have_the_names_of_kaitos() -> None:
    made = objects(tuning())
    assert made["Job"]["metadata"]["name"] == NAME
    assert made["Job"]["spec"]["template"]["metadata"]["labels"]["kaito.sh/workspace"] == NAME


def test_hints_say_which_presets_can_be_tuned() -> None:
    assert "phi-4" in hints(tuning("gpt-oss-20b"))[0]
