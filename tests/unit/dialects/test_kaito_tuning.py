"""KAITO's Workspace that tunes: a Job with `tune`, the Model that it trains, and the Job that pushes the adapter."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml

from kaigen.config.settings import Config
from kaigen.dialects.kaito.training import SECTIONS
from kaigen.dialects.kaito.training_rules import RULES
from kaigen.kinds.block import Block, document_name, set_fields
from kaigen.kinds.tune import Tune
from kaigen.pipeline.run import Run, compile_specs
from tests.unit.dialects.kaito_case import A100, Object, compiled, config_map, errors, hints, warnings, workspace

CLAIM: Object = {"volumeSource": {"persistentVolumeClaim": {"claimName": "data"}}}
ADAPTERS: Object = {"volumeSource": {"persistentVolumeClaim": {"claimName": "adapters"}}}
IMAGE: Object = {"image": "registry.example/adapter:1", "imagePushSecret": "login"}
SCRIPT = 'data["training_config.yaml"].training_config.'


def tuning(name: str = "phi-3-mini-128k-instruct", *, top: Object | None = None, **more: Any) -> Object:
    """Return a run with data and results in volumes, with the given changes."""
    block = {"preset": {"name": name}, "method": "qlora", "input": CLAIM, "output": ADAPTERS, **more}
    return workspace(tuning=block, **(top or {}))


def settings_map(**sections: Object) -> Object:
    """Return the ConfigMap `settings`; `qlora` needs its 4 bits."""
    whole = {"QuantizationConfig": {"load_in_4bit": True}, **sections}
    return config_map("settings", {"training_config": whole}, "training_config.yaml")


def apps(*documents: Object) -> dict[str, dict[str, Object]]:
    """Return the objects of each app by kind; the first of each."""
    found: dict[str, dict[str, Object]] = {}
    for app in compiled(*documents).apps:
        assert app.spec is not None
        kinds = found.setdefault(app.spec.block.metadata.name, {})
        for item in app.objects:
            kinds.setdefault(item.body["kind"], item.body)
    return found


def run(*documents: Object) -> Object:
    """Return the spec of the pod that trains."""
    spec: Object = apps(*documents)["it"]["Job"]["spec"]["template"]["spec"]
    return spec


def container(*documents: Object) -> Object:
    found: Object = run(*documents)["containers"][0]
    return found


def settings(*documents: Object) -> Object:
    """Return the settings that the program reads."""
    found: Object = json.loads(apps(*documents)["it"]["ConfigMap"]["data"]["params.json"])
    return found


def tuned(section: str, **given: Any) -> Object:
    """Return the settings of a run with settings of KAITO's."""
    return settings(tuning(config="settings"), settings_map(**{section: given}))


def test_the_run_is_kaigens_own_with_the_defaults_of_kaitos_script() -> None:
    made = container(tuning())
    assert made["image"].startswith("ghcr.io/kaigen-dev/train:")
    assert made["args"] == [
        "--model=/model",
        "--dataset=/mnt/data",
        "--output=/mnt/results",
        "--flat",
        "--params=/etc/kaigen/params.json",
    ]
    expected = {
        "method": "qlora",
        "rank": 8,
        "alpha": 8,
        "dropout": 0.0,
        "learningRate": 5e-5,
        "schedule": "linear",
        "warmup": 0.0,
        "weightDecay": 0.0,
        "epochs": 3,
        "batchSize": 1,
        "gradientAccumulation": 1,
        "evaluation": 0,
        "targetModules": ["down_proj", "gate_up_proj", "o_proj", "qkv_proj"],
    }
    found = settings(tuning())
    assert {name: found[name] for name in expected} == expected
    assert warnings(tuning()) == []


def test_the_job_is_that_of_the_spec_that_a_person_would_write() -> None:
    """Same fields, same objects: only the Workspace's settings in a ConfigMap of KAITO's are read in another way."""
    written = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "it"},
        "spec": {
            "tune": {
                "method": "lora",
                "dataset": "/mnt/data/chats.parquet",
                "columns": {"messages": "chat"},
                "output": "/mnt/out",
                "rank": 32,
                "alpha": 64,
                "dropout": 0.05,
                "targetModules": ["q_proj"],
                "learningRate": 1e-4,
                "schedule": "cosine",
                "warmup": 0.1,
                "epochs": 2,
                "batchSize": 2,
                "gradientAccumulation": 8,
                "evaluation": 0.1,
                "precision": "bfloat16",
                "seed": 7,
            },
            "model": "it-model",
            "volumes": {
                "data": {"claimName": "data", "mountPath": "/mnt/data", "readOnly": True},
                "results": {"claimName": "adapters", "mountPath": "/mnt/out"},
            },
            "resources": {"instanceType": A100, "gpus": 1},
            "placement": {
                "nodeSelector": {"pool": "gpu"},
                "tolerations": [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
            },
        },
    }
    given = settings_map(
        ModelConfig={"torch_dtype": "bfloat16"},
        QuantizationConfig={"load_in_4bit": False},
        LoraConfig={"r": 32, "lora_alpha": 64, "lora_dropout": 0.05, "target_modules": ["q_proj"]},
        TrainingArguments={
            "output_dir": "/mnt/out",
            "num_train_epochs": 2,
            "per_device_train_batch_size": 2,
            "gradient_accumulation_steps": 8,
            "learning_rate": "1e-4",
            "warmup_ratio": 0.1,
            "lr_scheduler_type": "cosine",
            "seed": 7,
        },
        DatasetConfig={"dataset_path": "data/chats.parquet", "messages_column": "chat", "train_test_split": 0.9},
    )
    foreign = apps(tuning(method="lora", config="settings"), given)["it"]
    model = next(
        document for document in lowered(tuning(method="lora", config="settings"), given) if document["kind"] == "Model"
    )
    own = apps(model, written)["it"]
    assert own == foreign


def lowered(*documents: Object) -> list[Object]:
    """Return the specs that documents are lowered to, as a person would write them."""
    text = yaml.safe_dump_all(documents, sort_keys=False)
    config = Config()
    specs = Run.load(["-"], config, stdin=io.BytesIO(text.encode()), use_cache=False).specs
    return [plain(spec.block) for spec in specs]


def plain(block: Any) -> Any:
    """Return a block as plain data, with the fields that it sets."""
    if isinstance(block, Block):
        return {
            document_name(block, name): plain(getattr(block, name))
            for name in block.__struct_fields__
            if name in set_fields(block)
        }
    if isinstance(block, dict):
        return {key: plain(value) for key, value in block.items()}
    return [plain(each) for each in block] if isinstance(block, list) else block


def test_weights_are_a_model_at_the_commit_of_the_catalogue_on_the_nodes_of_the_run() -> None:
    document = tuning()
    document["tuning"]["preset"]["presetOptions"] = {"modelAccessSecret": "hf"}
    made = apps(document)
    assert set(made) == {"it", "it-model"}
    pod = made["it-model"]["Job"]["spec"]["template"]["spec"]
    text = json.dumps(pod["containers"])
    assert "microsoft/Phi-3-mini-128k-instruct" in text
    assert "072cb7562cb8c4adf682a8e186aaafa49469eb5d" in text
    assert '"name": "hf"' in text
    assert '"name": "hf"' not in json.dumps(made["it"])
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": A100, "pool": "gpu"}
    assert {each["key"] for each in pod["tolerations"]} == {"nvidia.com/gpu", "sku"}
    assert "nvidia.com/gpu" not in text
    (gate,) = [each for each in run(document)["initContainers"] if each["name"] == "wait-for-model"]
    assert gate["args"]


def test_the_annotation_names_a_model_that_exists() -> None:
    annotations = {"annotations": {"kaigen.dev/model": "phi"}}
    model = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "phi"},
        "spec": {
            "source": {"huggingFace": {"repo": "org/phi", "revision": "0" * 40}},
            "store": {"volume": {"size": "9Gi", "accessModes": ["ReadWriteMany"]}},
        },
    }
    made = apps(tuning(top={"metadata": annotations}), model)
    assert set(made) == {"it", "phi"}
    claims = [volume.get("persistentVolumeClaim", {}).get("claimName") for volume in run_volumes(made["it"])]
    assert "phi" in claims or "phi-weights" in claims or any("phi" in str(claim) for claim in claims)


def run_volumes(app: dict[str, Object]) -> list[Object]:
    volumes: list[Object] = app["Job"]["spec"]["template"]["spec"]["volumes"]
    return volumes


def test_all_gpus_of_the_node_train() -> None:
    document = tuning(top={"resource": {"instanceType": "Standard_NC96ads_A100_v4"}})
    made = container(document)
    assert made["resources"]["limits"]["nvidia.com/gpu"] == 4
    spec = run(tuning())
    assert {toleration["key"] for toleration in spec["tolerations"]} == {"nvidia.com/gpu", "sku"}
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": A100, "pool": "gpu"}
    without = workspace(tuning=tuning()["tuning"])
    del without["resource"]["instanceType"]
    assert container(without)["resources"]["limits"]["nvidia.com/gpu"] == 1


def test_data_of_urls_is_downloaded_to_the_folder_of_kaitos_script() -> None:
    urls = ["https://example.com/a%20b.parquet?x=1", "https://example.com/b.parquet", "https://example.org/b.parquet"]
    spec = run(tuning(input={"urls": urls}))
    assert "--dataset=/mnt/data" in spec["containers"][0]["args"]
    one = container(tuning(input={"urls": ["https://example.com/test.parquet"]}))
    assert "--dataset=/mnt/data/test.parquet" in one["args"]
    (fetch,) = [each for each in spec["initContainers"] if each["name"] == "fetch-inputs"]
    for url, name in zip(urls, ("a_b.parquet", "b.parquet", "2-b.parquet"), strict=True):
        assert url in json.dumps(fetch)
        assert f"{name}" in json.dumps(fetch)
    mounts = {mount["name"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    assert mounts["inputs"] == {"name": "inputs", "mountPath": "/mnt/data", "readOnly": True}


def test_an_extension_names_the_type_of_files() -> None:
    source = {"urls": ["https://example.com/export", "https://example.com/b.jsonl"]}
    given = settings_map(DatasetConfig={"dataset_extension": "json"})
    (fetch,) = [
        each
        for each in run(tuning(input=source, config="settings"), given)["initContainers"]
        if each["name"] == "fetch-inputs"
    ]
    assert "export.json" in json.dumps(fetch)
    assert "b.jsonl.json" not in json.dumps(fetch)


def test_data_of_an_image_is_mounted() -> None:
    source = {"image": "registry.example/data:1", "imagePullSecrets": ["pull"]}
    spec = run(tuning(input=source))
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["data"] == {"name": "data", "image": {"reference": "registry.example/data:1"}}
    assert {"name": "pull"} in spec["imagePullSecrets"]
    mounts = spec["containers"][0]["volumeMounts"]
    assert {"name": "data", "mountPath": "/mnt/data", "readOnly": True} in mounts


def test_data_and_adapter_are_in_the_users_volumes() -> None:
    spec = run(tuning())
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"] == {"claimName": "data", "readOnly": True}
    assert volumes["results"]["persistentVolumeClaim"] == {"claimName": "adapters"}
    mounts = {mount["name"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    assert mounts["results"] == {"name": "results", "mountPath": "/mnt/results"}


def test_one_volume_for_both_is_mounted_once() -> None:
    document = tuning(output=CLAIM)
    spec = run(document)
    claims = [volume for volume in spec["volumes"] if "data" in str(volume.get("persistentVolumeClaim"))]
    assert claims == [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert {"name": "data", "mountPath": "/mnt/data"} in spec["containers"][0]["volumeMounts"]
    assert container(document)["args"][1:4] == ["--dataset=/mnt/data", "--output=/mnt/data", "--flat"]


def test_an_adapter_is_pushed_as_an_image_when_the_run_has_completed() -> None:
    made = apps(tuning(output=IMAGE))
    assert set(made) == {"it", "it-model", "it-adapter", "it-push"}
    assert "--output=/output" in container(tuning(output=IMAGE))["args"]
    push = made["it-push"]["Job"]["spec"]["template"]["spec"]
    (pusher,) = push["containers"]
    assert pusher["args"] == ["registry.example/adapter:1", "phi-3-mini-128k-instruct"]
    assert {variable["name"]: variable.get("value") for variable in pusher["env"]}["DOCKER_CONFIG"] == "/etc/login"
    volumes = {volume["name"]: volume for volume in push["volumes"]}
    assert volumes["login"]["secret"]["secretName"] == "login"
    assert volumes["login"]["secret"]["items"] == [{"key": ".dockerconfigjson", "path": "config.json"}]
    assert "nvidia.com/gpu" not in json.dumps(push)
    copied = made["it-adapter"]["Job"]["spec"]["template"]["spec"]
    run_name = made["it"]["Job"]["metadata"]["name"]
    assert run_name in json.dumps(copied["initContainers"])


@pytest.mark.parametrize(
    ("section", "given", "expected"),
    [
        ("ModelConfig", {"torch_dtype": "float16"}, {"precision": "float16"}),
        ("ModelConfig", {"torch_dtype": "float32"}, {"precision": "float32"}),
        ("ModelConfig", {"local_files_only": True, "device_map": "auto"}, {"precision": "auto"}),
        ("TrainingArguments", {"bf16": "true"}, {"precision": "bfloat16"}),
        ("TrainingArguments", {"bf16": False, "fp16": True}, {"precision": "float16"}),
        ("LoraConfig", {"r": "16", "lora_alpha": 0.5}, {"rank": 16, "alpha": 0.5}),
        ("LoraConfig", {"lora_dropout": "0.1"}, {"dropout": 0.1}),
        ("LoraConfig", {"target_modules": "q_proj"}, {"targetModules": ["q_proj"]}),
        ("LoraConfig", {"bias": "none", "task_type": "CAUSAL_LM", "use_dora": False}, {"rank": 8}),
        ("TrainingArguments", {"learning_rate": "2e-4", "seed": 123456789}, {"learningRate": 2e-4, "seed": 123456789}),
        ("TrainingArguments", {"num_train_epochs": 1.5}, {"epochs": 1.5, "batchSize": 8, "evaluation": 0.2}),
        ("TrainingArguments", {"per_device_train_batch_size": 4}, {"batchSize": 4}),
        ("TrainingArguments", {"lr_scheduler_type": "constant_with_warmup"}, {"schedule": "constant"}),
        ("TrainingArguments", {"warmup_ratio": 0.1}, {"warmup": 0.1}),
        ("TrainingArguments", {"save_steps": 20}, {"checkpointSteps": 20}),
        ("TrainingArguments", {"gradient_checkpointing": "True"}, {"gradientCheckpointing": True}),
        ("TrainingArguments", {"optim": "adamw_torch", "adam_epsilon": 1e-8, "max_grad_norm": 1.0}, {"epochs": 3}),
        ("DatasetConfig", {"train_test_split": 1}, {"evaluation": 0}),
        ("DatasetConfig", {"response_column": "story"}, {"columns": {"text": "story"}}),
        ("DatasetConfig", {"messages_column": "chat"}, {"columns": {"messages": "chat"}}),
        (
            "DatasetConfig",
            {"context_column": "question", "response_column": "answer"},
            {"columns": {"prompt": "question", "completion": "answer"}},
        ),
        ("DataCollator", {"mlm": False}, {"method": "qlora"}),
    ],
)
def test_settings_of_kaitos_script_are_fields_of_tune(section: str, given: Object, expected: Object) -> None:
    found = tuned(section, **given)
    assert {name: found.get(name) for name in expected} == expected
    assert warnings(tuning(config="settings"), settings_map(**{section: given})) == []


def test_all_linear_is_the_default_of_tune() -> None:
    assert "targetModules" not in tuned("LoraConfig", target_modules="all-linear")
    assert settings(tuning("qwen2.5-coder-7b-instruct"))["targetModules"] == ["q_proj", "v_proj"]


@pytest.mark.parametrize(
    ("section", "given", "code"),
    [
        ("TrainingArguments", {"logging_steps": 10}, "KG0405"),
        ("TrainingArguments", {"eval_strategy": "epoch"}, "KG0405"),
        ("TrainingArguments", {"save_strategy": "epoch"}, "KG0405"),
        ("TrainingArguments", {"report_to": "wandb"}, "KG0405"),
        ("DatasetConfig", {"shuffle_dataset": False}, "KG0405"),
        ("DataCollator", {"mlm": True}, "KG0405"),
        ("QuantizationConfig", {"load_in_4bit": True, "bnb_4bit_use_double_quant": False}, "KG0405"),
    ],
)
def test_settings_without_effect_are_warnings_at_their_keys(section: str, given: Object, code: str) -> None:
    found = warnings(tuning(config="settings"), settings_map(**{section: given}))
    assert [(item[0], item[1]) for item in found] == [(code, f"{SCRIPT}{section}.{list(given)[-1]}")]


@pytest.mark.parametrize(
    ("section", "given", "code"),
    [
        ("ModelConfig", {"torch_dtype": "int8"}, "KG0418"),
        ("ModelConfig", {"trust_remote_code": True}, "KG0413"),
        ("ModelConfig", {"chat_template": "/templates/phi-3.yaml"}, "KG0413"),
        ("ModelConfig", {"dtype": "bfloat16"}, "KG0418"),
        ("QuantizationConfig", {"load_in_8bit": True}, "KG0413"),
        ("QuantizationConfig", {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}, "KG0413"),
        ("LoraConfig", {"r": 0}, "KG0413"),
        ("LoraConfig", {"r": "eight"}, "KG0418"),
        ("LoraConfig", {"r": 8.5}, "KG0418"),
        ("LoraConfig", {"rank": 8}, "KG0418"),
        ("LoraConfig", {"use_dora": True}, "KG0413"),
        ("LoraConfig", {"bias": "all"}, "KG0413"),
        ("LoraConfig", {"modules_to_save": ["lm_head"]}, "KG0413"),
        ("LoraConfig", {"target_modules": ".*q_proj"}, "KG0413"),
        ("LoraConfig", {"target_modules": []}, "KG0418"),
        ("TrainingArguments", {"max_steps": 100}, "KG0413"),
        ("TrainingArguments", {"warmup_steps": 100}, "KG0413"),
        ("TrainingArguments", {"optim": "paged_adamw_8bit"}, "KG0413"),
        ("TrainingArguments", {"lr_scheduler_type": "polynomial"}, "KG0413"),
        ("TrainingArguments", {"gradient_checkpointing": "perhaps"}, "KG0418"),
        ("TrainingArguments", {"save_steps": 0.1}, "KG0418"),
        ("TrainingArguments", {"data_seed": 7}, "KG0413"),
        ("TrainingArguments", {"bf16": True, "fp16": True}, "KG0412"),
        ("TrainingArguments", {"learning_rat": 1}, "KG0418"),
        ("TrainingArguments", {"output_dir": "/tmp/out"}, "KG0412"),
        ("DatasetConfig", {"train_test_split": 0}, "KG0418"),
        ("DatasetConfig", {"train_test_split": 0.3}, "KG0413"),
        ("DatasetConfig", {"dataset_path": "other/train.csv"}, "KG0413"),
        ("DatasetConfig", {"dataset_path": "data/../../etc"}, "KG0413"),
        ("DatasetConfig", {"dataset_extension": "webdataset"}, "KG0413"),
        ("DatasetConfig", {"messages_column": 1}, "KG0418"),
        ("DatasetConfig", {"messages_column": "chat", "response_column": "answer"}, "KG0412"),
        ("LoRAConfig", {}, "KG0418"),
    ],
)
def test_settings_that_cannot_be_honoured_are_errors_at_their_keys(section: str, given: Object, code: str) -> None:
    found = errors(tuning(config="settings"), settings_map(**{section: given}))
    key = f"{section}.{list(given)[-1]}" if given else section
    assert [(item[0], item[1]) for item in found] == [(code, SCRIPT + key)]


def test_lora_does_not_quantize() -> None:
    given = settings_map(QuantizationConfig={"load_in_4bit": False, "bnb_4bit_quant_type": "fp4"})
    document = tuning(method="lora", config="settings")
    assert settings(document, given)["method"] == "lora"
    assert [(code, path) for code, path, _ in warnings(document, given)] == [
        ("KG0405", f"{SCRIPT}QuantizationConfig.bnb_4bit_quant_type")
    ]
    both = settings_map(QuantizationConfig={"load_in_4bit": True})
    assert errors(document, both)[0][0] == "KG0412"


def test_settings_in_the_cluster_cannot_be_read() -> None:
    document = tuning(config="settings")
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0418", "tuning.config")]
    assert "kaigen.dev/compat" in hints(document)[0]


def test_rules_name_fields_of_tune_and_every_section() -> None:
    assert sorted(RULES) == sorted(SECTIONS)
    names = {rule.field for rules in RULES.values() for rule in rules.values()} - {""}
    assert names <= {Tune.__struct_encode_fields__[index] for index in range(len(Tune.__struct_fields__))}


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"method": "full"}, "KG0412", "tuning.method"),
        ({"method": None}, "KG0412", "tuning"),
        ({"input": {"urls": ["ftp://example.com/x"]}}, "KG0412", "tuning.input.urls[0]"),
        ({"input": {"urls": ["http://169.254.169.254/x"]}}, "KG0412", "tuning.input.urls[0]"),
        ({"input": {"image": "<your image>"}}, "KG0410", "tuning.input.image"),
        ({"input": {"volumeSource": {"emptyDir": {}}}}, "KG0413", "tuning.input.volumeSource"),
        ({"output": {"volumeSource": {"emptyDir": {}}}}, "KG0413", "tuning.output.volumeSource"),
        ({"output": {"image": "registry.example/a:1"}}, "KG0412", "tuning.output"),
        ({"preset": {"name": "gpt-oss-20b"}}, "KG0413", "tuning.preset.name"),
        ({"preset": {"name": "org/unknown"}}, "KG0320", "tuning.preset.name"),
        ({"preset": None}, "KG0412", "tuning"),
    ],
)
def test_a_run_that_cannot_be_is_an_error(change: Object, code: str, path: str) -> None:
    document = tuning(**change)
    document["tuning"] = {key: value for key, value in document["tuning"].items() if value is not None}
    assert [(item[0], item[1]) for item in errors(document)] == [(code, path)]


def test_a_run_takes_one_node() -> None:
    document = tuning(top={"resource": {"count": 2}})
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0412", "resource.count")]


def test_a_model_that_does_not_fit_on_the_gpu_is_an_error_at_the_method() -> None:
    document = tuning("phi-4", method="lora", top={"resource": {"instanceType": "Standard_NC4as_T4_v3"}})
    assert [(code, path) for code, path, _ in errors(document)] == [("KG1107", "tuning.method")]


def test_models_that_kaito_does_not_fine_tune_are_trained_with_a_warning() -> None:
    document = tuning("llama-3.1-8b-instruct")
    assert [code for code, _, _ in warnings(document)] == ["KG0411", "KG0414"]
    gone = tuning("falcon-7b", top={"version": "v1alpha1"})
    assert [(code, path) for code, path, _ in warnings(gone)] == [("KG0408", "tuning.preset.name")]


def test_fields_and_annotations_without_effect_are_warnings() -> None:
    annotations = {"kaito.sh/enablelb": "True", "kaito.sh/runtime": "vllm", "kaito.sh/bypass-resource-checks": "true"}
    document = tuning(
        top={"metadata": {"annotations": annotations}},
        input={**CLAIM, "imagePullSecrets": ["pull"]},
        output={**ADAPTERS, "imagePushSecret": "push"},
    )
    document["tuning"]["preset"]["presetOptions"] = {"image": "registry.example/tune:2"}
    found = warnings(document)
    assert {code for code, _, _ in found} == {"KG0405"}
    assert {path for _, path, _ in found} == {
        *(f'metadata.annotations["{key}"]' for key in annotations),
        "tuning.input.imagePullSecrets",
        "tuning.output.imagePushSecret",
        "tuning.preset.presetOptions.image",
    }


def test_an_edit_makes_a_new_run() -> None:
    def name(method: str) -> str:
        return str(apps(tuning(method=method))["it"]["Job"]["metadata"]["name"])

    assert name("lora") != name("qlora")


def test_an_inference_workspace_serves_the_adapter_of_a_volume() -> None:
    serving = workspace(
        metadata={"name": "serving"},
        inference={
            "preset": {"name": "phi-3-mini-128k-instruct"},
            "adapters": [{"source": {"name": "own", **ADAPTERS}}],
        },
    )
    serving["metadata"] = {"name": "serving"}
    made = apps(tuning(), serving)
    (volume,) = [
        volume
        for volume in made["serving"]["Deployment"]["spec"]["template"]["spec"]["volumes"]
        if volume.get("persistentVolumeClaim", {}).get("claimName") == "adapters"
    ]
    (mount,) = [
        mount
        for mount in made["serving"]["Deployment"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        if mount["name"] == volume["name"]
    ]
    # The files of the adapter are in the root of the volume, as those of KAITO's script.
    assert "subPath" not in mount
    assert "--flat" in container(tuning())["args"]


def test_compat_runs_kaitos_script() -> None:
    document = tuning(top={"metadata": {"annotations": {"kaigen.dev/compat": "true", "kaigen.dev/model": "phi"}}})
    (app,) = compile_specs(["-"], Config(), stdin=io.BytesIO(yaml.safe_dump(document).encode())).apps
    assert any("fine_tuning.py" in json.dumps(item.body) for item in app.objects)
    assert [(code, path) for code, path, _ in warnings(document)] == [
        ("KG0405", 'metadata.annotations["kaigen.dev/model"]')
    ]
