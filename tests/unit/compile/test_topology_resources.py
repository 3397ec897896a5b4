"""Resources and nodes of a Topology's pods."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.problems import Problems
from tests.unit.compile.specs import compiled, context, job, objects, pod, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, FOLDER, HUB, args


def test_slices_and_device_claims_become_kubernetes_resources() -> None:
    slice_ = pod(topology(model="many", resources={"gpus": {"profile": "1g.10gb"}}), CONTEXT)
    assert slice_["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == 1
    made = objects(
        topology(model="many", resources={"gpus": {"deviceClassName": "gpu.nvidia.com", "count": 2}}), CONTEXT
    )
    claimed = made["Deployment"]["spec"]["template"]["spec"]
    assert (
        claimed["resourceClaims"][0]["resourceClaimTemplateName"] == made["ResourceClaimTemplate"]["metadata"]["name"]
    )
    assert claimed["containers"][0]["resources"]["claims"] == [{"name": "gpus"}]
    assert "--tensor-parallel-size=2" in claimed["containers"][0]["args"]


@pytest.mark.parametrize(
    ("profile", "resources", "labels"),
    [
        # pkg/workspace/inference/preset_inferences_test.go of kaito-project/kaito v0.12.0
        ("aks", {"gpuType": "A10"}, {"nvidia.com/gpu.product": "NVIDIA-A10-24Q"}),
        ("generic", {"gpuType": "A10"}, {"nvidia.com/gpu.product": "NVIDIA-A10"}),
        # ROCm's node labeller
        ("generic", {"gpuType": "MI300X"}, {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}),
        ("aks", {"gpuType": "MI300X"}, {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}),
    ],
)
def test_nodes_are_selected_by_the_label_of_their_gpu(
    profile: str, resources: dict[str, Any], labels: dict[str, str]
) -> None:
    assert pod(topology(model=HUB, resources=resources), context(profile=profile))["nodeSelector"] == labels


@pytest.mark.parametrize(
    ("gpu", "count", "labels", "types"),
    [
        # website/content/en/preview/reference/instance-types.md of aws/karpenter-provider-aws v1.14.1
        ("RTX-PRO-6000", 8, {"instance-gpu-name": "rtx-pro-server-6000"}, ["g7e.48xlarge"]),
        ("A100-80GB", 8, {"instance-gpu-name": "a100", "instance-gpu-memory": "81920"}, ["p4de.24xlarge"]),
        ("A100-40GB", 8, {"instance-gpu-name": "a100", "instance-gpu-memory": "40960"}, ["p4d.24xlarge"]),
    ],
)
def test_nodes_on_eks_have_the_labels_of_karpenter_or_the_type(
    gpu: str, count: int, labels: dict[str, str], types: list[str]
) -> None:
    made = pod(topology(model=HUB, resources={"gpuType": gpu, "gpus": count}), context(profile="eks"))
    required = made["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    by_label, by_type = (
        {each["key"]: each["values"] for each in term["matchExpressions"]} for term in required["nodeSelectorTerms"]
    )
    assert by_label == {f"karpenter.k8s.aws/{name}": [value] for name, value in labels.items()}
    assert by_type == {"node.kubernetes.io/instance-type": types}


@pytest.mark.parametrize(
    ("resources", "folder"),
    [
        # docker/Dockerfile, Dockerfile.rocm and Dockerfile.cpu of vLLM 0.33.0
        ({"gpuType": "L4"}, "/vllm-workspace/examples"),
        ({"instanceType": "Standard_ND96isr_MI300X_v5"}, "/app/vllm/examples"),
        ({"gpus": 0}, "/vllm-workspace/examples"),
    ],
)
def test_chat_templates_are_those_of_the_image_for_the_gpus(resources: dict[str, Any], folder: str) -> None:
    lines = args(topology(preset="phi-4-mini-instruct", resources=resources))
    assert f"--chat-template={folder}/tool_chat_template_phi4_mini.jinja" in lines
    own = args(topology(preset="phi-4-mini-instruct", resources=resources, image="mine:1"))
    assert not any(line.startswith("--chat-template=") for line in own)


def test_a_reranker_has_the_template_of_its_questions() -> None:
    block: dict[str, Any] = {"preset": "qwen3-reranker-0.6b", "resources": {"gpuType": "L4"}}
    template = "/vllm-workspace/examples/pooling/score/template/qwen3_reranker.jinja"
    assert {f"--chat-template={template}", "--runner=pooling"} <= set(args(topology(**block)))
    assert ("KG0415", "spec.preset") not in problem_paths(topology(**block), CONTEXT)
    own = {**block, "image": "mine:1"}
    assert ("KG0415", "spec.preset") in problem_paths(topology(**own), CONTEXT)
    with_template = {**own, "engineArgs": {"chat-template": "/templates/qwen3.jinja"}}
    assert ("KG0415", "spec.preset") not in problem_paths(topology(**with_template), CONTEXT)


@pytest.mark.parametrize(("dtype", "refused"), [("float16", True), ("half", True), ("bfloat16", False)])
def test_vllm_does_not_run_gemma_3_in_float16(dtype: str, refused: bool) -> None:
    # _FLOAT16_NOT_SUPPORTED_MODELS in vllm/config/model.py of 0.33.0
    block = topology(preset="gemma-3-4b-instruct", resources={"gpuType": "L4"}, engineArgs={"dtype": dtype})
    assert (("KG0361", "spec.engineArgs.dtype") in problem_paths(block, CONTEXT)) is refused


def test_a_slice_on_gke_is_a_gpu_of_nodes_with_that_partition() -> None:
    # As in Google's own example: https://cloud.google.com/kubernetes-engine/docs/how-to/gpus-multi
    gke = context(profile="gke")
    slice_ = pod(topology(model=HUB, resources={"gpuType": "H100", "gpus": {"profile": "1g.20gb"}}), gke)
    limits = slice_["containers"][0]["resources"]["limits"]
    assert {name: limits[name] for name in limits if "nvidia" in name} == {"nvidia.com/gpu": 1}
    assert slice_["nodeSelector"] == {
        "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
        "cloud.google.com/gke-gpu-partition-size": "1g.20gb",
    }


@pytest.mark.parametrize(
    ("resources", "resource", "count"),
    [
        ({}, "nvidia.com/gpu", 1),
        ({"gpus": 2}, "nvidia.com/gpu", 2),
        ({"instanceType": "g6.12xlarge"}, "nvidia.com/gpu", 4),
        ({"instanceType": "g6.12xlarge", "gpus": 2}, "nvidia.com/gpu", 2),
        ({"instanceType": "Standard_ND96isr_MI300X_v5"}, "amd.com/gpu", 8),
    ],
)
def test_instance_type_decides_the_number_of_gpus(resources: dict[str, Any], resource: str, count: int) -> None:
    found = pod(topology(model="many", resources=resources), CONTEXT)["containers"][0]
    assert found["resources"]["limits"][resource] == count
    assert (f"--tensor-parallel-size={count}" in found["args"]) == (count > 1)


def test_zero_gpus_run_the_build_for_cpus() -> None:
    found = pod(topology(model="many", resources={"gpus": 0}), CONTEXT)["containers"][0]
    assert not any("/" in name for name in found["resources"]["limits"])
    assert found["image"].startswith("docker.io/vllm/vllm-openai-cpu:v")
    assert {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "4"} in found["env"]
    assert found["resources"]["limits"]["memory"] == "16Gi"
    large = pod(topology(preset="phi-4", resources={"gpus": 0}), CONTEXT)["containers"][0]
    assert large["resources"]["limits"]["memory"] == "39Gi", "27.3 GiB of weights, and the KV cache"
    assert {"name": "VLLM_CPU_KVCACHE_SPACE", "value": "4"} in large["env"]


@pytest.mark.parametrize(
    ("spec", "memory", "cache"),
    [
        ({"resources": {"gpus": 0, "memory": "64Gi"}}, "64Gi", "29"),
        ({"resources": {"gpus": 0, "memory": "32Gi"}}, "32Gi", "1"),
        ({"resources": {"gpus": 0}, "env": {"VLLM_CPU_KVCACHE_SPACE": "24"}}, "59Gi", "24"),
        ({"preset": "llama-3.2-1b-instruct", "resources": {"gpus": 0}}, "16Gi", "9"),
    ],
)
def test_the_cache_of_a_cpu_is_its_memory_without_the_weights(spec: dict[str, Any], memory: str, cache: str) -> None:
    found = pod(topology(**{"preset": "phi-4", "model": FOLDER, **spec}), CONTEXT)["containers"][0]
    assert found["resources"]["limits"]["memory"] == memory
    assert {"name": "VLLM_CPU_KVCACHE_SPACE", "value": cache} in found["env"]


@pytest.mark.parametrize(("memory", "fits"), [("2Gi", False), ("27Gi", False), ("28Gi", True)])
def test_memory_without_gpus_below_the_weights_is_refused(memory: str, fits: bool) -> None:
    found = Problems()
    compiled(topology(preset="phi-4", model=FOLDER, resources={"gpus": 0, "memory": memory}), CONTEXT, found)
    message = f"phi-4 does not fit into {memory}: its weights have 27.3 GiB"
    hint = "leave it out for 39Gi, with room for the KV cache"
    expected = [] if fits else [(message, ("spec", "resources", "memory"), hint)]
    assert [(str(each.message), each.path, each.hint) for each in found.items if each.code == "KG1105"] == expected


@pytest.mark.parametrize(
    ("args", "gpus", "memory", "shared"),
    [
        ({"kv-offloading-size": 20}, 1, "32Gi", "21Gi"),
        ({"kv_offloading_size": 20}, 2, "52Gi", "24Gi"),
        (["--kv-offloading-size", "20"], 1, "32Gi", "21Gi"),
        ({"cpu-offload-gb": 8}, 2, "48Gi", "4Gi"),
    ],
)
def test_flags_that_reserve_memory_of_the_node_are_added(args: Any, gpus: int, memory: str, shared: str) -> None:
    found = pod(topology(model="many", resources={"gpus": gpus}, engineArgs=args), CONTEXT)
    assert found["containers"][0]["resources"]["limits"]["memory"] == memory
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shared}} in found["volumes"]


@pytest.mark.parametrize(
    ("resources", "path", "message", "hint"),
    [
        (
            {"sharedMemory": "16Gi"},
            "sharedMemory",
            "`kv-offloading-size` reserves 20 GiB, and `/dev/shm` has 16Gi",
            "leave it out, or use at least 21Gi",
        ),
        (
            {"memory": "16Gi"},
            "memory",
            "`kv-offloading-size` reserves 20 GiB, and the pod has 16Gi",
            "leave it out, or use at least 21Gi",
        ),
        ({"memory": "40Gi", "sharedMemory": "24Gi"}, "", "", ""),
    ],
)
def test_sizes_below_what_flags_reserve_are_refused(
    resources: dict[str, Any], path: str, message: str, hint: str
) -> None:
    found = Problems()
    compiled(topology(model="many", resources=resources, engineArgs={"kv-offloading-size": 20}), CONTEXT, found)
    expected = [("KG0370", message, ("spec", "resources", path), hint)] if path else []
    assert [
        (each.code, str(each.message), each.path, each.hint) for each in found.items if each.code == "KG0370"
    ] == expected


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        ({"resources": {"gpus": 1}}, "vllm-openai:v"),
        ({"resources": {"gpuType": "L4"}}, "vllm-openai:v"),
        ({"resources": {"instanceType": "Standard_ND96isr_MI300X_v5"}}, "vllm-openai-rocm:v"),
        ({"resources": {"gpus": 0}, "image": "mine:1"}, "mine:1"),
        ({"resources": {"gpus": 0}, "engine": "transformers"}, "chat:"),
        ({"engine": "transformers"}, "chat:"),
    ],
)
def test_image_of_the_engine_is_built_for_the_gpus(spec: dict[str, Any], image: str) -> None:
    found = pod(topology(**{"model": "many", **spec}), CONTEXT)["containers"][0]
    assert image in found["image"]
    assert not any(each["name"] == "VLLM_CPU_KVCACHE_SPACE" for each in found["env"]) or image == "mine:1"


@pytest.mark.parametrize(
    ("preset", "resources", "memory"),
    [
        ("phi-4", {"gpuType": "A100-80GB"}, "14Gi"),
        ("deepseek-r1-0528", {"instanceType": "p5en.48xlarge"}, "514Gi"),
        ("llama-3.3-70b-instruct", {"gpuType": "A100-80GB", "gpus": 2}, "106Gi"),
    ],
)
def test_memory_grows_with_the_weights(preset: str, resources: dict[str, Any], memory: str) -> None:
    """Weights pass through the page cache, which counts as the pod's memory."""
    block = topology(preset=preset, model=FOLDER, resources=resources, trustRemoteCode=True)
    found = pod(block, CONTEXT)["containers"][0]["resources"]
    assert found["limits"]["memory"] == found["requests"]["memory"] == memory


def test_shared_memory_has_a_size() -> None:
    tpus = {"gpus": 0, "extra": {"google.com/tpu": "8"}}
    for resources, size in (({"gpus": 1}, "1Gi"), ({"gpus": 8}, "16Gi"), (tpus, "16Gi")):
        volumes = pod(topology(model="many", resources=resources), CONTEXT)["volumes"]
        assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}} in volumes
        made = pod(job(resources=resources), CONTEXT)["volumes"]
        assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}} in made


@pytest.mark.parametrize(("preset", "least"), [("falcon-7b", 13.4), ("phi-4", 27.3)])
def test_memory_of_kaigens_server_fits_all_weights(preset: str, least: float) -> None:
    made = pod(topology(preset=preset, engine="transformers", resources={"gpuType": "A100-80GB"}))
    limit = made["containers"][0]["resources"]["limits"]["memory"]
    assert limit.endswith("Gi")
    assert int(limit.removesuffix("Gi")) > least + 3


def test_ephemeral_storage_is_requested_where_weights_are_pulled() -> None:
    spec: dict[str, Any] = {"preset": "phi-4", "resources": {"gpuType": "A100-80GB"}}
    found = pod(topology(**spec), CONTEXT)["containers"][0]["resources"]["requests"]
    assert found["ephemeral-storage"] == "51Gi"
    owned = pod(topology(**spec, storage={"size": "60Gi"}), CONTEXT)["containers"][0]["resources"]["requests"]
    assert "ephemeral-storage" not in owned


def test_own_nodes_have_a_label_and_a_taint() -> None:
    block = topology(
        model=FOLDER, resources={"gpuType": "L4", "gpus": 4}, provisioning="karpenter", shape={"replicas": 2}
    )
    made = objects(block, context("eks"))
    pool = made["NodePool"]
    assert pool["metadata"]["name"] == "default-t"
    assert "namespace" not in pool["metadata"]
    template = pool["spec"]["template"]
    wanted = {item["key"]: item["values"] for item in template["spec"]["requirements"]}
    assert wanted["karpenter.k8s.aws/instance-gpu-name"] == ["l4"]
    assert wanted["karpenter.k8s.aws/instance-gpu-count"] == ["4"]
    assert template["spec"]["nodeClassRef"]["kind"] == "EC2NodeClass"
    assert pool["spec"]["limits"] == {"nvidia.com/gpu": "12"}
    spec = made["Deployment"]["spec"]
    assert spec["template"]["spec"]["nodeSelector"] == {"kaigen.dev/nodes": "default.t"}
    labels = {"kaigen.dev/nodes": "default.t", "nvidia.com/gpu.present": "true"}
    assert template["metadata"]["labels"] == labels, "NVIDIA's device plugin selects its nodes by the second"
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    assert template["spec"]["taints"] == [taint], "NVIDIA's charts tolerate only this one"
    accepted = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert spec["template"]["spec"]["tolerations"] == [accepted]
    assert spec["strategy"]["rollingUpdate"]["maxSurge"] == 1


@pytest.mark.parametrize(
    ("profile", "resources", "key"),
    [
        ("eks", {"gpus": {"profile": "1g.10gb"}, "instanceType": "p4d.24xlarge"}, "nvidia.com/gpu"),
        ("aks", {"instanceType": "Standard_ND96isr_MI300X_v5"}, "amd.com/gpu"),
        ("aks", {"instanceType": "Standard_D8s_v5", "gpus": 0}, "kaigen.dev/nodes"),
    ],
)
def test_taint_of_own_nodes_has_the_vendor_of_the_gpu(profile: str, resources: dict[str, Any], key: str) -> None:
    block = topology(model=FOLDER, engine="container", image="e:1", resources=resources, provisioning="karpenter")
    made = objects(block, context(profile))
    template = made["NodePool"]["spec"]["template"]
    (taint,) = template["spec"]["taints"]
    assert taint["key"] == key
    assert ("nvidia.com/gpu.present" in template["metadata"]["labels"]) == (key == "nvidia.com/gpu")
    tolerated = {"key": key, "operator": "Exists", "effect": "NoSchedule"}
    assert made["Deployment"]["spec"]["template"]["spec"]["tolerations"].count(tolerated) == 1


def test_nodes_of_azure_are_instance_types_with_that_gpu() -> None:
    block = topology(model=FOLDER, resources={"gpuType": "H100-NVL", "gpus": 2}, provisioning="karpenter")
    pool = objects(block, context("aks"))["NodePool"]["spec"]["template"]["spec"]
    wanted = {item["key"]: item["values"] for item in pool["requirements"]}
    assert wanted["node.kubernetes.io/instance-type"] == ["Standard_NC80adis_H100_v5"]
    assert pool["nodeClassRef"]["kind"] == "AKSNodeClass"


def test_a_pod_template_gets_nodes_of_the_instance_type_that_it_selects() -> None:
    selector = {"node.kubernetes.io/instance-type": "g6.12xlarge", "team": "a"}
    template = {
        "spec": {
            "nodeSelector": selector,
            "tolerations": [{"key": "own", "operator": "Exists"}],
            "containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}],
        }
    }
    made = objects(topology(template=template, provisioning="karpenter", shape={"replicas": 2}), context("eks"))
    pool = made["NodePool"]["spec"]
    wanted = {item["key"]: item["values"] for item in pool["template"]["spec"]["requirements"]}
    assert wanted["node.kubernetes.io/instance-type"] == ["g6.12xlarge"]
    assert pool["limits"] == {"nvidia.com/gpu": "12"}
    labels = {"kaigen.dev/nodes": "default.t", "nvidia.com/gpu.present": "true", "team": "a"}
    assert pool["template"]["metadata"]["labels"] == labels
    spec = made["Deployment"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {**selector, "kaigen.dev/nodes": "default.t"}
    accepted = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert spec["tolerations"] == [{"key": "own", "operator": "Exists"}, accepted]


def test_toleration_appears_once() -> None:
    accepted = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    made = pod(topology(model="many", resources={"gpus": 1}, placement={"tolerations": [accepted]}), CONTEXT)
    assert made["tolerations"] == [accepted]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node_terms(found: dict[str, Any]) -> list[dict[str, list[str]]]:
    """Return the allowed values by label, of each term of a pod's node affinity."""
    terms = found["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return [{each["key"]: each["values"] for each in term["matchExpressions"]} for term in terms]


def test_gpus_on_eks_are_on_nodes_of_karpenter_or_of_managed_node_groups() -> None:
    """Only Karpenter sets its labels; nodes of managed node groups have their instance type as a label."""
    resources = {"gpuType": "L4", "gpus": 4}
    for found in (
        pod(topology(model=FOLDER, resources=resources), context("eks")),
        pod(job(command=["a"], resources=resources), context("eks")),
    ):
        assert not any("karpenter" in key for key in found.get("nodeSelector", {}))
        assert node_terms(found) == [
            {"karpenter.k8s.aws/instance-gpu-name": ["l4"]},
            {"node.kubernetes.io/instance-type": ["g6.12xlarge", "g6.24xlarge", "g6.48xlarge"]},
        ]
    alone = pod(topology(model=FOLDER, resources={"gpuType": "L4"}, provisioning="karpenter"), context("eks"))
    assert "affinity" not in alone


def test_spot_nodes_on_eks_are_of_karpenter_or_of_managed_node_groups() -> None:
    found = pod(topology(model=FOLDER, resources={"gpuType": "L40S"}, placement={"spot": True}), context("eks"))
    kinds = [{"karpenter.sh/capacity-type": ["spot"]}, {"eks.amazonaws.com/capacityType": ["SPOT"]}]
    assert [{key: term[key] for key in term if "apacity" in key} for term in node_terms(found)] == kinds * 2


def test_given_node_affinity_is_kept_next_to_the_gpus() -> None:
    given = {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]},
                ]
            }
        },
        "podAffinity": {},
    }
    block = topology(model=FOLDER, resources={"gpuType": "L4"}, placement={"affinity": given})
    affinity = pod(block, context("eks"))["affinity"]
    terms = affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [("matchFields" in term, [each["key"] for each in term["matchExpressions"]]) for term in terms] == [
        (True, ["karpenter.k8s.aws/instance-gpu-name"]),
        (True, ["node.kubernetes.io/instance-type"]),
        (False, ["pool", "karpenter.k8s.aws/instance-gpu-name"]),
        (False, ["pool", "node.kubernetes.io/instance-type"]),
    ]
    assert "podAffinity" in affinity
    assert pod(block, CONTEXT)["affinity"] == given


@pytest.mark.parametrize(
    ("preset", "spec", "flags"),
    [
        ("qwen3.8-27b", {}, ["--max-num-seqs=289"]),
        ("qwen3.8-27b", {"concurrency": 2}, ["--max-num-seqs=2"]),
        ("qwen3.5-2b", {}, []),
        ("phi-4", {}, []),
    ],
)
def test_a_model_with_states_serves_as_many_sequences_as_fit(preset: str, spec: Any, flags: list[str]) -> None:
    found = pod(topology(preset=preset, model=FOLDER, resources={"gpuType": "H100"}, **spec), CONTEXT)
    args = found["containers"][0]["args"]
    assert [each for each in args if each.startswith("--max-num-seqs")] == flags


@pytest.mark.parametrize(
    ("quantization", "codes"),
    [("fp8", ["KG0361"]), ("fp8_per_tensor", []), ("awq", ["KG1106"]), ("int4", ["KG0361"])],
)
def test_names_of_quantizations_are_those_of_the_engine(quantization: str, codes: list[str]) -> None:
    found = Problems()
    block = topology(preset="qwen3-32b", model=FOLDER, quantization=quantization, resources={"gpuType": "H100"})
    compiled(block, CONTEXT, found)
    assert sorted(each.code for each in found.items if each.path == ("spec", "quantization")) == codes


def scratch(**fields: Any) -> dict[str, Any]:
    """Return the limits of the volumes on the node's disk, by name."""
    volumes = pod(topology(**fields), CONTEXT)["volumes"]
    on_disk = [each for each in volumes if "medium" not in each.get("emptyDir", {"medium": ""})]
    return {each["name"]: each["emptyDir"].get("sizeLimit") for each in on_disk}


def test_scratch_space_has_a_limit_where_nothing_of_unknown_size_is_written() -> None:
    assert scratch(model=FOLDER) == {"cache": "20Gi", "scratch": "20Gi"}
    assert scratch(model=FOLDER, resources={"ephemeralStorage": "50Gi"}) == {"cache": "50Gi", "scratch": "50Gi"}
    assert scratch(model=FOLDER, storage={"size": "50Gi"}) == {"scratch": "20Gi"}
    unknown = {"huggingFace": {"repo": "owner/unknown"}}
    assert scratch(model=unknown, resources={"gpus": 1}) == {"cache": None, "scratch": "20Gi"}
    assert scratch(model=FOLDER, env={"HF_HUB_OFFLINE": "0"}) == {"cache": None, "scratch": "20Gi"}
