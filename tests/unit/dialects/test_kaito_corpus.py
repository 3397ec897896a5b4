"""Every example that KAITO ships, by its facts: it renders on as many nodes as it needs, or is refused with the reason.

Source: `examples/` of KAITO v0.1.0, of the last state of Azure's repository, and of v0.12.0; rebuilt from model,
instance type and what is special.
"""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.diagnostics.errors import InputError
from tests.unit.dialects.kaito_case import (
    A100,
    LABELS,
    annotated,
    compiled,
    config_map,
    errors,
    objects,
    preset,
    workspace,
)

Object = dict[str, Any]

A10 = "Standard_NV36ads_A10_v5"
TWO_A100, FOUR_A100 = "Standard_NC48ads_A100_v4", "Standard_NC96ads_A100_v4"
TWO_H100 = "Standard_NC80adis_H100_v5"
TWO_V100, V100 = "Standard_NC12s_v3", "Standard_NC6s_v3"
TOKEN = {"modelAccessSecret": "hf-token"}


def on(name: str, instance: str, version: str, **more: Any) -> Object:
    resource = {"instanceType": instance, **more.pop("resource", {})}
    return preset(name, version=version, resource=resource, **more)


def nodes_of(document: Object) -> int:
    """Nodes of one copy."""
    made = objects(document)
    group = made.get("LeaderWorkerSet")
    return group["spec"]["leaderWorkerTemplate"]["size"] if group else 1


OLD = [
    *((name, TWO_V100) for name in ("falcon-7b", "falcon-7b-instruct")),
    *((name, FOUR_A100) for name in ("falcon-40b", "falcon-40b-instruct")),
    ("falcon-7b", "g5.4xlarge"),
    *(
        (name, A100)
        for name in (
            *("mistral-7b", "mistral-7b-instruct", "phi-2", "phi-3.5-mini-instruct"),
            *("phi-3-mini-4k-instruct", "phi-3-mini-128k-instruct"),
            *("phi-3-medium-4k-instruct", "phi-3-medium-128k-instruct", "qwen2.5-coder-7b-instruct"),
        )
    ),
]
NEW = [
    *(
        (name, A100)
        for name in (
            *("phi-4", "phi-4-mini-instruct", "phi-3.5-mini-instruct", "mistral-7b", "mistral-7b-instruct"),
            *("phi-3-mini-4k-instruct", "phi-3-mini-128k-instruct"),
            *("phi-3-medium-4k-instruct", "phi-3-medium-128k-instruct"),
            *("deepseek-r1-distill-llama-8b", "deepseek-r1-distill-qwen-14b"),
            *("ministral-3-8b-instruct", "ministral-3-14b-instruct"),
            *("qwen2.5-coder-7b-instruct", "qwen2.5-coder-32b-instruct", "gpt-oss-120b"),
        )
    ),
    ("ministral-3-3b-instruct", A10),
    ("gpt-oss-20b", A10),
]


@pytest.mark.promise("KAITO", "Preset configurations instead of deployment parameters")
@pytest.mark.parametrize(("name", "instance"), OLD)
def test_examples_of_old_render_on_one_node(name: str, instance: str) -> None:
    assert nodes_of(on(name, instance, "v1alpha1")) == 1


@pytest.mark.promise("KAITO", "Preset configurations instead of deployment parameters")
@pytest.mark.parametrize(("name", "instance"), NEW)
def test_examples_of_today_render_on_one_node(name: str, instance: str) -> None:
    assert nodes_of(on(name, instance, "v1beta1")) == 1


@pytest.mark.parametrize(
    ("name", "instance"),
    [("gemma-3-4b-instruct", A10), ("gemma-3-27b-instruct", A100), ("llama-3.1-8b-instruct", FOUR_A100)],
)
def test_gated_models_render_with_their_secret(name: str, instance: str) -> None:
    document = on(name, instance, "v1beta1", options=TOKEN)
    assert nodes_of(document) == 1
    assert [item.code for item in compiled(document).diagnostics] == []


@pytest.mark.parametrize("name", ["deepseek-r1-0528", "deepseek-v3-0324", "mistral-large-3-675b-instruct"])
def test_the_largest_models_take_the_six_nodes_that_they_ask_for(name: str) -> None:
    assert nodes_of(on(name, TWO_H100, "v1beta1", resource={"count": 6})) == 6


def test_llama_on_two_nodes_with_its_flags_in_the_same_file() -> None:
    document = on("llama-3.3-70b-instruct", TWO_A100, "v1beta1", resource={"count": 2}, options=TOKEN, config="flags")
    flags = config_map("flags", {"vllm": {"max-model-len": 16384, "swap-space": 4}})
    (app,) = compiled(document, flags).apps
    (group,) = [item.body for item in app.objects if item.body["kind"] == "LeaderWorkerSet"]
    assert group["spec"]["leaderWorkerTemplate"]["size"] == 2
    assert (
        "--max-model-len=16384"
        in group["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["containers"][0]["args"]
    )


@pytest.mark.promise("KAITO", "`accessMode: private` with `presetOptions.image` and `imagePullSecrets`")
@pytest.mark.parametrize("name", ["llama-2-7b", "llama-2-7b-chat", "llama-2-13b", "llama-2-13b-chat"])
def test_private_images_of_llama_render_when_they_are_filled_in(name: str) -> None:
    def document(image: str) -> Object:
        return on(name, TWO_V100, "v1alpha1", accessMode="private", options={"image": image})

    assert nodes_of(document("registry.example/llama:1")) == 1
    assert [code for code, _, _ in errors(document("<YOUR IMAGE URL>"))] == ["KG0410"]


@pytest.mark.parametrize("name", ["llama-2-70b", "llama-2-70b-chat"])
def test_a_private_image_over_two_nodes_is_refused_for_its_torchrun(name: str) -> None:
    document = on(
        name,
        FOUR_A100,
        "v1alpha1",
        resource={"count": 2},
        accessMode="private",
        options={"image": "registry.example/llama:1"},
    )
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0413", "resource.count")]


def test_some_gpus_of_nodes_that_are_there_already() -> None:
    document = preset("phi-4-mini-instruct", resource={"partition": {"mode": "accelerator", "count": 2}})
    del document["resource"]["instanceType"]
    assert nodes_of(document) == 1


def test_a_node_of_a_placeholder_is_refused_and_preferred_nodes_are_not() -> None:
    document = on("phi-4", "<your-vm-sku>", "v1beta1", resource={"preferredNodes": ["arc-node"]})
    assert [code for code, _, _ in errors(document)] == ["KG0410"]


def test_blocks_of_a_workspace_below_spec_are_moved_out_of_it() -> None:
    document = on("phi-4", A100, "v1beta1")
    below = {name: document.pop(name) for name in ("resource", "inference")}
    with pytest.raises(InputError) as caught:
        compiled({**document, "spec": below})
    assert "move `resource`, `inference` out of it" in [found.hint for found in caught.value.diagnostics]


def test_a_gpu_that_the_engine_no_longer_runs_on_is_refused_with_the_reason() -> None:
    ((code, path, message),) = errors(on("mistral-7b", V100, "v1alpha1"))
    assert (code, path) == ("KG1104", "resource.instanceType")
    assert "compute capability" in message


def test_flags_for_two_gpus_on_a_node_with_one_are_refused() -> None:
    document = on("phi-4-mini-instruct", A100, "v1beta1", config="flags")
    flags = config_map("flags", {"vllm": {"tensor-parallel-size": 2, "swap-space": 4}})
    ((code, path, message),) = errors(document, flags)
    assert (code, path) == ("KG0416", 'data["inference_config.yaml"].vllm.tensor-parallel-size')
    assert message.endswith("requires 2 GPUs, and the nodes have 1")


@pytest.mark.parametrize("strategy", ["mixed", "single"])
def test_sets_of_slices(strategy: str) -> None:
    document = {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "InferenceSet",
        "metadata": {"name": f"mig-{strategy}"},
        "spec": {
            "labelSelector": LABELS,
            "template": {
                "resource": {"instanceType": A100, "partition": {"mode": "mig", "profile": "3g.40gb"}},
                "inference": {"preset": {"name": "phi-4-mini-instruct"}},
            },
        },
    }
    assert nodes_of(document) == 1


@pytest.mark.parametrize(
    ("name", "instance", "replicas"),
    [("llama-3.1-8b-instruct", A100, 2), ("mistral-7b-instruct", A100, 1), ("phi-4-mini-instruct", A100, 1)],
)
def test_sets_that_are_scaled(name: str, instance: str, replicas: int) -> None:
    annotations = {
        "scaledobject.kaito.sh/auto-provision": "true",
        "scaledobject.kaito.sh/metricName": "vllm:num_requests_waiting",
        "scaledobject.kaito.sh/threshold": "10",
    }
    document = {
        "apiVersion": "kaito.sh/v1alpha1",
        "kind": "InferenceSet",
        "metadata": {"name": "it", "annotations": annotations},
        "spec": {
            "replicas": replicas,
            "nodeCountLimit": 5,
            "labelSelector": LABELS,
            "template": {
                "resource": {"instanceType": instance},
                "inference": {"preset": {"name": name, "presetOptions": TOKEN}},
            },
        },
    }
    assert objects(document)["HorizontalPodAutoscaler"]["spec"]["maxReplicas"] == 5


@pytest.mark.parametrize(
    ("name", "instance", "version"), [("phi-3-mini-128k-instruct", A100, "v1alpha1"), ("falcon-7b", A100, "v1alpha1")]
)
def test_tuning_from_an_address_into_an_image(name: str, instance: str, version: str) -> None:
    run = {
        "preset": {"name": name},
        "method": "qlora",
        "input": {"urls": ["https://example.com/train.parquet?download=true"]},
        "output": {"image": "registry.example/adapter:0.0.1", "imagePushSecret": "login"},
    }
    document = workspace(version=version, resource={"instanceType": instance}, tuning=run)
    runs = {
        app.spec.block.metadata.name: next(item.body for item in app.objects if item.body["kind"] == "Job")
        for app in compiled(document).apps
        if app.spec is not None
    }
    (push,) = runs["it-push"]["spec"]["template"]["spec"]["containers"]
    assert push["args"] == ["registry.example/adapter:0.0.1", name]
    document["metadata"] = {"name": "it", "annotations": {"kaigen.dev/compat": "true"}}
    assert objects(document)["Job"]["spec"]["template"]["spec"]["containers"][0]["name"] == "push"


def test_a_mode_for_throughput() -> None:
    document = annotated({"kaito.sh/performance-mode": "throughput"}, "phi-4-mini-instruct")
    assert nodes_of(document) == 1


@pytest.mark.parametrize("compute", [None, {"instanceType": V100, "labelSelector": LABELS}])
def test_retrieval_on_a_cpu_and_on_a_gpu_of_old(compute: Object | None) -> None:
    document = {
        "apiVersion": "kaito.sh/v1alpha1",
        "kind": "RAGEngine",
        "metadata": {"name": "rag"},
        "spec": {
            "embedding": {"local": {"modelID": "BAAI/bge-small-en-v1.5"}},
            "inferenceService": {"url": "http://phi-3/v1/completions", "contextWindowSize": 512},
            **({"compute": compute} if compute else {}),
        },
    }
    assert objects(document)["Service"]["spec"]["ports"][0]["targetPort"] == 5000


def test_prefill_and_decode_are_refused_until_they_may_be_one() -> None:
    def document(annotations: dict[str, str]) -> Object:
        return {
            "apiVersion": "kaito.sh/v1alpha1",
            "kind": "MultiRoleInference",
            "metadata": {"name": "roles", "annotations": annotations},
            "spec": {
                "labelSelector": LABELS,
                "model": {"name": "deepseek-v3-0324"},
                "roles": [
                    {"type": "prefill", "replicas": 1, "instanceType": "Standard_ND96isr_H200_v5"},
                    {"type": "decode", "replicas": 1, "instanceType": "Standard_ND96isr_H200_v5"},
                ],
            },
        }

    assert [code for code, _, _ in errors(document({}))] == ["KG0413"]
    assert nodes_of(document({"kaigen.dev/roles": "merged"})) == 1
