"""KAITO's Workspace that serves: the result of each field, and the diagnostics for invalid values."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.programs.files import program
from tests.unit.dialects.kaito_case import (
    A100,
    annotated,
    compiled,
    config_map,
    engine,
    errors,
    hints,
    objects,
    pod,
    preset,
    warnings,
    workspace,
)

FALCON = preset("falcon-7b", version="v1alpha1", resource={"instanceType": "Standard_NC12s_v3"})


def codes(*documents: Any) -> list[str]:
    return [code for code, _, _ in errors(*documents)]


# Presets and engines.


@pytest.mark.promise("KAITO", "`Workspace`: the deployment is created from the preset")
@pytest.mark.promise("KAITO", "`inference.preset.name: falcon-7b`")
@pytest.mark.promise("KAITO", "The Service listens on port 80")
def test_the_quick_start_is_served_by_the_server_that_answers_chat() -> None:
    container = engine(FALCON)
    assert container["command"] == ["kaigen-chat"]
    assert "--served-model-name=falcon-7b" in container["args"]
    service = objects(FALCON)["Service"]
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [(80, "http")]
    assert container["ports"] == [{"name": "http", "containerPort": 5000, "protocol": "TCP"}]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert warnings(FALCON) == []


def test_weights_are_fetched_once_and_not_in_every_form_that_the_repository_has() -> None:
    """Falcon's repository holds them three times, which no disk of the pod's has room for."""
    (fetch,) = pod(FALCON)["initContainers"]
    assert {"--exclude=*.bin", "--exclude=coreml/*"} <= set(fetch["args"])


def test_a_preset_of_today_is_served_by_vllm_at_the_commit_of_the_catalogue() -> None:
    arguments = engine(preset("phi-4"))["args"]
    assert engine(preset("phi-4"))["command"][-2:] == ["vllm", "serve"]
    assert arguments[0] == "microsoft/phi-4"
    assert "--revision=187ef0342fff0eb3333be9f00389385e95ef0b61" in arguments
    assert warnings(preset("phi-4")) == []


@pytest.mark.parametrize(
    ("name", "runtime", "command"),
    [("falcon-7b", "vllm", ["vllm", "serve"]), ("phi-4-mini-instruct", "transformers", ["kaigen-chat"])],
)
def test_the_runtime_annotation_decides_which_engine_serves(name: str, runtime: str, command: list[str]) -> None:
    document = annotated({"kaito.sh/runtime": runtime}, name, version="v1alpha1")
    assert engine(document)["command"][-len(command) :] == command


@pytest.mark.promise("KAITO", "`/chat` of presets that need several GPUs")
@pytest.mark.parametrize("name", ["falcon-40b", "falcon-40b-instruct", "llama-2-70b", "llama-2-70b-chat"])
@pytest.mark.parametrize("compat", ["true", "false"])
def test_a_preset_of_old_that_needs_several_gpus_is_served_by_vllm_with_the_route_chat(name: str, compat: str) -> None:
    document = annotated({"kaigen.dev/compat": compat, "kaigen.dev/token-secret": "hf"}, name, version="v1alpha1")
    document["resource"]["instanceType"] = "Standard_NC96ads_A100_v4"
    container = engine(document)
    assert container["command"][-2:] == ["vllm", "serve"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 4
    # Pods of the engine's own middleware close connections, so it must see the answers of this one.
    middlewares = [each for each in container["args"] if each.startswith("--middleware")]
    assert middlewares == ["--middleware=kaito_chat.KaitoChat", "--middleware=kaigen_connections.Connections"]
    assert "/etc/kaigen-programs/kaito_chat.py" in container["command"]
    assert [message for _, _, message in warnings(document) if "chat" in message] == []


def test_who_asks_for_vllm_gets_the_routes_of_vllm() -> None:
    resource = {"instanceType": "Standard_NC96ads_A100_v4"}
    for given, name in (({"kaito.sh/runtime": "vllm"}, "falcon-40b"), ({}, "phi-4")):
        document = annotated(given, name, version="v1alpha1", resource=resource)
        assert "--middleware=kaito_chat.KaitoChat" not in engine(document)["args"]


@pytest.mark.parametrize("name", ["PHI-4", "microsoft/phi-4"])
def test_presets_go_by_any_case_and_by_their_repository(name: str) -> None:
    assert engine(preset(name))["args"][0] == "microsoft/phi-4"


def test_any_repository_of_the_hub_is_a_preset() -> None:
    document = preset("org/some-model", options={"modelAccessSecret": "hf"})
    container = engine(document)
    assert container["args"][0] == "org/some-model"
    token = [entry for entry in container["env"] if entry["name"] == "HF_TOKEN"]
    assert token[0]["valueFrom"]["secretKeyRef"] == {"name": "hf", "key": "HF_TOKEN"}
    assert [code for code, _, _ in warnings(document)] == ["KG0310"]


def test_an_unknown_preset_is_an_error_with_the_nearest_name() -> None:
    document = preset("phi-4-mini-instrukt")
    assert errors(document) == [("KG0407", "inference.preset.name", "unknown preset `phi-4-mini-instrukt`")]
    assert hints(document) == ["did you mean `phi-4-mini-instruct`?"]


def test_a_removed_preset_names_its_successor() -> None:
    document = preset("phi-2")
    ((code, path, message),) = warnings(document)
    assert (code, path) == ("KG0408", "inference.preset.name")
    assert "v0.8.0 removed" in message
    (item,) = compiled(document).diagnostics
    assert "phi-4-mini-instruct" in item.hint


def test_a_gated_model_without_a_token_is_reported() -> None:
    ((code, path, message),) = warnings(preset("llama-3.1-8b-instruct"))
    assert (code, path) == ("KG0411", "inference.preset.name")
    assert "gated" in message
    assert warnings(preset("llama-3.1-8b-instruct", options={"modelAccessSecret": "hf"})) == []


def test_preset_and_template_exclude_each_other() -> None:
    document = workspace(inference={"preset": {"name": "phi-4"}, "template": {"spec": {"containers": []}}})
    ((code, path, message),) = errors(document)
    assert (code[:4], path) == ("KG02", "inference")
    assert "`preset` and `template`" in message


def test_inference_and_tuning_exclude_each_other() -> None:
    document = preset("phi-4") | {"tuning": {"input": {"urls": ["https://x/y"]}, "output": {"image": "a/b:c"}}}
    assert "`inference` and `tuning`" in errors(document)[0][2]


def test_an_unknown_field_is_an_error_with_the_nearest_name() -> None:
    document = preset("phi-4", resource={"instancetype": A100, "labelSelector": {"matchLabels": {"a": "b"}}})
    assert any("instanceType" in hint for hint in hints(document))


def test_fields_of_the_newer_version_are_unknown_to_the_older() -> None:
    document = preset("phi-4", version="v1alpha1", options={"modelAccessSecret": "hf"})
    ((_, path, message),) = errors(document)
    assert path == "inference.preset.presetOptions.modelAccessSecret"
    assert "unknown" in message


# Nodes.


@pytest.mark.promise("KAITO", "`resource.instanceType`, `resource.labelSelector`")
def test_labels_and_instance_type_choose_the_nodes() -> None:
    spec = pod(preset("phi-4"))
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": A100, "pool": "gpu"}
    assert {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"} in spec["tolerations"]


@pytest.mark.promise("KAITO", "`resource.instanceType`, `resource.labelSelector`")
def test_conditions_on_labels_become_affinity() -> None:
    selector = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    spec = pod(preset("phi-4", resource={"labelSelector": selector}))
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}


@pytest.mark.promise("KAITO", "`resource.count`, `resource.preferredNodes`")
def test_preferred_nodes_are_preferred() -> None:
    spec = pod(preset("phi-4", resource={"preferredNodes": ["gpu-1", "gpu-2"]}))
    (entry,) = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = entry["preference"]["matchExpressions"]
    assert expression["values"] == ["gpu-1", "gpu-2"]


def test_labels_reserved_by_kaito_are_left_out_with_a_warning() -> None:
    labels = {"matchLabels": {"kaito.sh/workspace": "x", "pool": "gpu"}}
    document = preset("phi-4", resource={"labelSelector": labels})
    assert "kaito.sh/workspace" not in pod(document)["nodeSelector"]
    assert [code for code, _, _ in warnings(document)] == ["KG0405"]


def test_a_selector_without_labels_is_reported() -> None:
    document = preset("phi-4", resource={"labelSelector": {}})
    assert [(code, path) for code, path, _ in warnings(document)] == [("KG0414", "resource.labelSelector")]


def test_an_unknown_instance_type_is_an_error_with_the_nearest_name() -> None:
    document = preset("phi-4", resource={"instanceType": "Standard_NC24ads_A100_v5"})
    assert errors(document) == [("KG0409", "resource.instanceType", "unknown instance type `Standard_NC24ads_A100_v5`")]
    assert hints(document) == ["did you mean `Standard_NC24ads_A100_v4`?"]


def test_an_instance_type_without_gpus_is_an_error() -> None:
    document = preset("phi-4", resource={"instanceType": "Standard_D8s_v5"})
    ((code, _, message),) = errors(document)
    assert (code, message) == ("KG0409", "`Standard_D8s_v5` has no GPU")


@pytest.mark.parametrize("value", ["<your-vm-sku>", "<YOUR SKU>"])
def test_a_placeholder_is_an_error(value: str) -> None:
    ((code, path, _),) = errors(preset("phi-4", resource={"instanceType": value}))
    assert (code, path) == ("KG0410", "resource.instanceType")


def test_the_older_version_has_a_default_instance_type() -> None:
    document = preset("phi-4", version="v1alpha1")
    del document["resource"]["instanceType"]
    assert pod(document)["nodeSelector"]["node.kubernetes.io/instance-type"] == A100
    assert [(code, path) for code, path, _ in warnings(document)] == [("KG0403", "resource")]


@pytest.mark.promise("KAITO", "GPU nodes are provisioned based on model requirements")
@pytest.mark.parametrize("profile", ["aks", "eks"])
def test_nodes_are_made_where_the_profile_has_karpenter(profile: str) -> None:
    made = objects(preset("phi-4"), profile=profile)
    requirements = {
        item["key"]: item["values"] for item in made["NodePool"]["spec"]["template"]["spec"]["requirements"]
    }
    assert requirements["node.kubernetes.io/instance-type"] == [A100]


def test_no_nodes_are_made_elsewhere_or_where_it_is_said() -> None:
    assert "NodePool" not in objects(preset("phi-4"))
    assert "NodePool" not in objects(annotated({"kaigen.dev/provisioning": "none"}), profile="aks")


def test_a_node_class_is_named_by_its_annotation() -> None:
    document = annotated({"kaito.sh/node-class-name": "big-disk"})
    reference = objects(document, profile="aks")["NodePool"]["spec"]["template"]["spec"]["nodeClassRef"]
    assert reference["name"] == "big-disk"
    assert [code for code, _, _ in warnings(document)] == ["KG0405"]


@pytest.mark.promise("KAITO", "`resource.count`, `resource.preferredNodes`")
def test_several_nodes_hold_one_copy_with_vllm() -> None:
    group = objects(preset("phi-4", resource={"count": 2}))["LeaderWorkerSet"]["spec"]
    assert group["leaderWorkerTemplate"]["size"] == 2
    assert group["replicas"] == 1


def test_count_is_used_with_a_warning_where_kaito_would_use_fewer_nodes() -> None:
    (code, path, message), (slow, _, why) = warnings(preset("phi-4", resource={"count": 2}))
    assert (slow, "Ethernet" in why) == ("KG0358", True)
    assert (code, path) == ("KG0414", "resource.count")
    assert message == "one replica of `phi-4` uses 2 nodes; KAITO would use 1"
    assert warnings(preset("phi-4", resource={"count": 1})) == []


def test_several_nodes_hold_a_copy_each_with_the_server_that_cannot_spread() -> None:
    document = preset("falcon-7b", version="v1alpha1", resource={"count": 3})
    assert objects(document)["Deployment"]["spec"]["replicas"] == 3


# Parts of GPUs.


def test_a_gpu_slice_is_requested() -> None:
    document = preset("phi-4-mini-instruct", resource={"partition": {"mode": "mig", "profile": "3g.40gb"}})
    assert engine(document)["resources"]["limits"]["nvidia.com/mig-3g.40gb"] == 1


def test_some_of_the_gpus_are_requested() -> None:
    partition = {"mode": "accelerator", "count": 2}
    document = preset("phi-4", resource={"partition": partition, "instanceType": "Standard_NC96ads_A100_v4"})
    container = engine(document)
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 2


@pytest.mark.parametrize(
    ("partition", "part", "code"),
    [
        ({"mode": "mig"}, "partition", "KG0412"),
        ({"mode": "mig", "profile": "9g.99gb"}, "partition.profile", "KG0412"),
        ({"mode": "mig", "profile": "3g.40gb", "count": 2}, "partition.count", "KG0412"),
        ({"mode": "accelerator"}, "partition", "KG0412"),
        ({"mode": "accelerator", "count": 2}, "partition.count", "KG0416"),
        ({"mode": "accelerator", "count": 1, "profile": "3g.40gb"}, "partition.profile", "KG0412"),
    ],
)
def test_parts_that_cannot_be_are_errors(partition: dict[str, Any], part: str, code: str) -> None:
    found = errors(preset("phi-4", resource={"partition": partition}))
    assert [(item[0], item[1]) for item in found] == [(code, f"resource.{part}")]


def test_slices_cannot_share_a_model_by_tensor_parallel() -> None:
    document = preset(
        "phi-4-mini-instruct", resource={"partition": {"mode": "mig", "profile": "3g.40gb"}}, config="flags"
    )
    flags = config_map("flags", {"vllm": {"tensor-parallel-size": 2}})
    ((code, path, message),) = errors(document, flags)
    assert (code, path) == ("KG0412", 'data["inference_config.yaml"].vllm.tensor-parallel-size')
    assert "tensor parallel" in message
    several = preset("phi-4-mini-instruct", resource={"partition": {"mode": "mig", "profile": "3g.40gb"}, "count": 2})
    assert "KG0412" in codes(several)


# Annotations.


def test_a_load_balancer_requires_its_exact_value_and_gets_a_warning() -> None:
    document = annotated({"kaito.sh/enablelb": "True"})
    assert objects(document)["Service"]["spec"]["type"] == "LoadBalancer"
    assert [code for code, _, _ in warnings(document)] == ["KG0352"]
    guarded = annotated({"kaito.sh/enablelb": "True", "kaigen.dev/api-key-secret": "key"})
    assert [code for code, _, _ in warnings(guarded)] == ["KG0359"], "the key guards only a part of the paths"
    assert any(entry["name"] == "KAIGEN_API_KEYS" for entry in engine(guarded)["env"])


def test_the_hint_for_an_open_load_balancer_names_fields_of_the_workspace() -> None:
    (warned,) = compiled(annotated({"kaito.sh/enablelb": "True"})).diagnostics
    assert warned.code == "KG0352"
    assert warned.hint == "set the annotation `kaigen.dev/api-key-secret`"
    metadata = {"annotations": {"kaito.sh/enablelb": "True"}}
    template = workspace(metadata=metadata, inference={"template": TEMPLATE})
    assert [item.hint for item in compiled(template).diagnostics if item.code == "KG0352"] == [
        "delete it, since this server does not support API keys"
    ]


def test_a_value_that_kaito_does_not_read_as_true_is_reported_as_ignored() -> None:
    document = annotated({"kaito.sh/enablelb": "true"})
    assert objects(document)["Service"]["spec"]["type"] == "ClusterIP"
    ((code, _, message),) = warnings(document)
    assert code == "KG0405"
    assert 'only "True"' in message


def test_a_performance_mode_is_a_flag_of_the_engine() -> None:
    assert "--performance-mode=throughput" in engine(annotated({"kaito.sh/performance-mode": "throughput"}))["args"]
    assert not any(
        "performance" in argument for argument in engine(annotated({"kaito.sh/performance-mode": "balanced"}))["args"]
    )


@pytest.mark.parametrize("key", ["kaito.sh/runtime", "kaito.sh/performance-mode"])
def test_an_unknown_word_in_an_annotation_is_an_error(key: str) -> None:
    assert codes(annotated({key: "fastest"})) == ["KG0412"]


@pytest.mark.parametrize(
    "key",
    [
        "kaito.sh/use-local-weights",
        "kaito.sh/node-image-family",
        "kaito.sh/model-streaming",
        "kaito.sh/upgrade-to-version",
        "inference.kaito.sh/stream-account",
        "inference.kaito.sh/static-model-mirror",
    ],
)
def test_an_annotation_without_effect_is_reported(key: str) -> None:
    ((code, path, _),) = warnings(annotated({key: "true"}))
    assert (code, path) == ("KG0405", f'metadata.annotations["{key}"]')


def test_a_role_is_reported_as_ignored() -> None:
    document = preset("phi-4", metadata={"labels": {"kaito.sh/inference-role": "prefill"}})
    assert [(code, path) for code, path, _ in warnings(document)] == [
        ("KG0405", 'metadata.labels["kaito.sh/inference-role"]')
    ]


def test_annotations_of_kaitos_are_not_copied_and_others_are() -> None:
    document = annotated({"kaito.sh/disable-benchmark": "true", "team.example.com/owner": "ml"})
    annotations = objects(document)["Service"]["metadata"]["annotations"]
    assert annotations == {"team.example.com/owner": "ml"}
    assert warnings(document) == []


def test_weights_of_a_model_of_kaigens_are_shared() -> None:
    model = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "weights"},
        "spec": {
            "source": {
                "huggingFace": {"repo": "microsoft/phi-4", "revision": "187ef0342fff0eb3333be9f00389385e95ef0b61"}
            },
            "store": {"volume": {"size": "40Gi", "accessModes": ["ReadWriteMany"]}},
        },
    }
    apps = {item.app.name: item for item in compiled(annotated({"kaigen.dev/model": "weights"}), model).apps}
    (workload,) = [item.body for item in apps["it"].objects if item.body["kind"] == "Deployment"]
    volumes = workload["spec"]["template"]["spec"]["volumes"]
    assert {"name": "model", "persistentVolumeClaim": {"claimName": "weights-weights", "readOnly": True}} in volumes


# Templates.

TEMPLATE: dict[str, Any] = {
    "spec": {
        "containers": [
            {
                "name": "server",
                "image": "registry.example/server:1",
                "ports": [{"containerPort": 9000}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            }
        ]
    }
}


@pytest.mark.promise("KAITO", "A pod template in `inference` serves a containerized model")
def test_a_template_is_served_on_its_own_port_with_as_many_pods_as_nodes() -> None:
    made = objects(workspace(inference={"template": TEMPLATE}, resource={"count": 2}))
    assert made["Service"]["spec"]["ports"][0] == {"name": "http", "port": 80, "targetPort": 9000, "protocol": "TCP"}
    assert made["Deployment"]["spec"]["replicas"] == 2
    spec = made["Deployment"]["spec"]["template"]["spec"]
    assert spec["containers"] == TEMPLATE["spec"]["containers"]
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": A100, "pool": "gpu"}


@pytest.mark.promise("KAITO", "A pod template uses all provisioned GPU nodes")
@pytest.mark.parametrize(
    ("profile", "instance", "limit"),
    [("aks", A100, {"nvidia.com/gpu": "3"}), ("eks", "g5.12xlarge", {"nvidia.com/gpu": "12"})],
)
def test_a_template_gets_nodes_as_a_preset_does(profile: str, instance: str, limit: dict[str, str]) -> None:
    resource = {"instanceType": instance, "count": 2}
    document = workspace(inference={"template": TEMPLATE}, resource=resource)
    made = objects(document, profile=profile)
    pool, spec = made["NodePool"]["spec"], made["Deployment"]["spec"]["template"]["spec"]
    requirements = {item["key"]: item["values"] for item in pool["template"]["spec"]["requirements"]}
    assert requirements["node.kubernetes.io/instance-type"] == [instance]
    assert pool["limits"] == limit
    labels = pool["template"]["metadata"]["labels"]
    assert labels == {"kaigen.dev/nodes": "default.it", "nvidia.com/gpu.present": "true", "pool": "gpu"}
    assert spec["nodeSelector"].items() - labels.items() == {("node.kubernetes.io/instance-type", instance)}
    (taint,) = pool["template"]["spec"]["taints"]
    assert {"key": taint["key"], "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    assert warnings(document, profile=profile) == []


@pytest.mark.parametrize("inference", [{"preset": {"name": "phi-4"}}, {"template": TEMPLATE}])
def test_nodes_have_the_labels_that_expressions_require(inference: dict[str, Any]) -> None:
    """KAITO reads them as labels (`LabelSelectorAsMap` of k8s.io/apimachinery): `In` with one value."""
    expressions = [{"key": "disk", "operator": "In", "values": ["ssd"]}, {"key": "zone", "operator": "Exists"}]
    document = workspace(inference=inference)
    document["resource"]["labelSelector"] = {"matchExpressions": expressions}
    labels = objects(document, profile="aks")["NodePool"]["spec"]["template"]["metadata"]["labels"]
    assert labels == {"disk": "ssd", "kaigen.dev/nodes": "default.it", "nvidia.com/gpu.present": "true"}


def test_a_template_gets_no_nodes_elsewhere_or_where_it_is_said() -> None:
    assert "NodePool" not in objects(workspace(inference={"template": TEMPLATE}))
    metadata = {"annotations": {"kaigen.dev/provisioning": "none"}}
    document = workspace(inference={"template": TEMPLATE}, metadata=metadata)
    assert "NodePool" not in objects(document, profile="aks")
    assert "kaigen.dev/nodes" not in pod(document, profile="aks")["nodeSelector"]


def test_a_template_without_an_instance_type_gets_no_nodes() -> None:
    document = workspace(inference={"template": TEMPLATE})
    del document["resource"]["instanceType"]
    assert "NodePool" not in objects(document, profile="aks")


def test_the_affinity_of_a_template_is_kept_with_the_selectors() -> None:
    own = {"key": "disk", "operator": "In", "values": ["ssd"]}
    more = {"key": "zone", "operator": "In", "values": ["a"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [own]}]}}}
    template = {"spec": {**TEMPLATE["spec"], "affinity": affinity}}
    document = workspace(inference={"template": template}, resource={"labelSelector": {"matchExpressions": [more]}})
    assert pod(document)["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] == [
        {"matchExpressions": [own, more]}
    ]


# Images of the user's own.


@pytest.mark.promise("KAITO", "`accessMode: private` with `presetOptions.image` and `imagePullSecrets`")
@pytest.mark.promise("KAITO", "Large model files are managed by container images")
def test_a_private_image_brings_its_server_and_its_weights() -> None:
    document = preset(
        "llama-2-13b-chat",
        version="v1alpha1",
        resource={"instanceType": "Standard_NC12s_v3"},
        options={"image": "registry.example/llama:1", "imagePullSecrets": ["login"]},
        accessMode="private",
    )
    spec = pod(document)
    (container,) = spec["containers"]
    folder = "/workspace/llama/llama-2"
    assert container["image"] == "registry.example/llama:1"
    assert spec["imagePullSecrets"] == [{"name": "login"}]
    assert container["command"][1:6] == [
        program("in_folder.sh"),
        folder,
        "torchrun",
        "--nnodes=1",
        "--nproc_per_node=2",
    ]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert container["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}


@pytest.mark.promise("KAITO", "An image with the weights of a public registry, by `presetOptions.image`")
def test_an_image_with_weights_of_a_public_registry_needs_no_secret_and_downloads_nothing() -> None:
    image = "mcr.microsoft.com/aks/kaito/kaito-falcon-7b-instruct:0.0.8"
    document = preset("falcon-7b-instruct", version="v1alpha1", options={"image": image})
    spec = pod(document)
    assert [container["image"] for container in spec["containers"]] == [image]
    assert "imagePullSecrets" not in spec
    assert "fetch-model" not in [container["name"] for container in spec.get("initContainers", ())]
    assert "HF_TOKEN" not in str(spec)


def test_a_private_preset_without_an_image_is_an_error() -> None:
    document = preset("llama-2-7b", version="v1alpha1", accessMode="private")
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0412", "inference.preset.accessMode")]


def test_a_private_server_that_would_meet_over_several_nodes_is_refused_with_the_way_out() -> None:
    document = preset(
        "llama-2-70b-chat",
        version="v1alpha1",
        resource={"instanceType": "Standard_NC96ads_A100_v4", "count": 2},
        options={"image": "registry.example/llama:70b"},
        accessMode="private",
    )
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0413", "resource.count")]
    assert "use vLLM" in hints(document)[0]


# Flags of the engine.


def test_flags_of_a_config_map_in_the_same_file_become_fields_and_flags() -> None:
    flags = config_map(
        "flags",
        {"vllm": {"max-model-len": 8192, "max-num-seqs": "32", "enable-prefix-caching": "True", "swap-space": 4}},
    )
    document = preset("phi-4", config="flags")
    arguments = engine(document, flags)["args"]
    assert {"--max-model-len=8192", "--max-num-seqs=32", "--enable-prefix-caching"} <= set(arguments)
    assert not any("swap" in argument for argument in arguments)
    assert [(code, path) for code, path, _ in warnings(document, flags)] == [
        ("KG0358", "inference.preset.name"),
        ("KG0418", 'data["inference_config.yaml"].vllm.swap-space'),
    ]


@pytest.mark.parametrize(
    "content",
    [
        {"vllm": {"port": 80}},
        {"vllm": {"compilation-config": {"level": 3}}},
        {"vllm": [1]},
        {"vlm": {"max-model-len": 1}},
    ],
)
def test_flags_that_cannot_be_are_errors(content: dict[str, Any]) -> None:
    assert codes(preset("phi-4", config="flags"), config_map("flags", content)) == ["KG0418"]


def test_a_config_map_that_is_not_in_the_file_is_an_error_that_says_what_to_do() -> None:
    document = preset("phi-4", config="flags")
    assert [(code, path) for code, path, _ in errors(document)] == [("KG0418", "inference.config")]
    assert "this file" in hints(document)[0]


def test_a_config_map_is_found_in_the_namespace_of_its_workspace() -> None:
    flags = config_map("flags", {"vllm": {"max-model-len": 8192}})
    flags["metadata"]["namespace"] = "default"
    assert "--max-model-len=8192" in engine(preset("phi-4", config="flags"), flags)["args"]
    elsewhere = preset("phi-4", config="flags", metadata={"namespace": "ml"})
    assert [(code, path) for code, path, _ in errors(elsewhere, flags)] == [("KG0418", "inference.config")]
    del flags["metadata"]["namespace"]
    assert [(code, path) for code, path, _ in errors(elsewhere, flags)] == [("KG0418", "inference.config")]


# Adapters.


def adapter(name: str, **source: Any) -> dict[str, Any]:
    return {"source": {"name": name, **source}}


def test_adapters_come_from_images_and_volumes() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "billing"}}
    document = preset(
        "phi-3-mini-128k-instruct",
        adapters=[
            adapter("support", image="registry.example/support:1", imagePullSecrets=["login"]),
            adapter("billing", volumeSource=claim),
        ],
    )
    spec = pod(document)
    assert "--enable-lora" in spec["containers"][0]["args"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["adapter-support"]["image"]["reference"] == "registry.example/support:1"
    assert volumes["adapter-billing"]["persistentVolumeClaim"]["claimName"] == "billing"
    assert {"name": "login"} in spec["imagePullSecrets"]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ({"urls": ["https://example.com/a"]}, "KG0412"),
        ({"volumeSource": {"hostPath": {"path": "/x"}}}, "KG0413"),
        ({"image": "<your image>"}, "KG0410"),
    ],
)
def test_adapters_that_cannot_be_had_are_errors(source: dict[str, Any], code: str) -> None:
    assert codes(preset("phi-4", adapters=[adapter("a", **source)])) == [code]


def test_the_strength_of_an_adapter_is_reported_as_ignored() -> None:
    one = adapter("a", image="registry.example/a:1") | {"strength": "0.5"}
    ((code, path, _),) = warnings(preset("phi-4", adapters=[one]))
    assert (code, path) == ("KG0405", "inference.adapters[0].strength")
    full = adapter("a", image="registry.example/a:1") | {"strength": "1.0"}
    assert warnings(preset("phi-4", adapters=[full])) == []


def test_the_transformers_runtime_adds_adapters_to_the_model() -> None:
    half = adapter("a", image="registry.example/a:1") | {"strength": "0.5"}
    document = preset("phi-4", adapters=[half, adapter("b", image="registry.example/b:1")])
    document["metadata"].setdefault("annotations", {})["kaito.sh/runtime"] = "transformers"
    args = pod(document)["containers"][0]["args"]
    assert [argument for argument in args if "adapter" in argument] == ["--merge-adapters=/adapters/a=0.5,/adapters/b"]


@pytest.mark.promise("KAITO", "GPU nodes are provisioned based on model requirements")
def test_nodes_that_are_made_carry_the_labels_that_are_selected_by() -> None:
    """Karpenter makes no node for a pod that asks for a label which its pool does not have."""
    selector = {"matchLabels": {"pool": "gpu", "topology.kubernetes.io/zone": "a-1"}}
    document = preset("phi-4", resource={"labelSelector": selector})
    labels = objects(document, profile="aks")["NodePool"]["spec"]["template"]["metadata"]["labels"]
    own = {"kaigen.dev/nodes": "default.it", "nvidia.com/gpu.present": "true"}
    assert labels == {"pool": "gpu", **own}
    assert pod(document, profile="aks")["nodeSelector"]["pool"] == "gpu"
