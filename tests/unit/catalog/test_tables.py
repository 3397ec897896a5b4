"""The catalogue's tables keep to their schemas, and say nothing that contradicts itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import get_gpu, gpu_names, similar_gpus
from kaigen.catalog.instances import CLOUDS, find_instance, instance_names, instances, list_price, nearest_instances
from kaigen.catalog.presets import Preset, find_preset, nearest_presets, presets
from kaigen.catalog.profiles import profile_names
from kaigen.dialects.kaito.catalog import kaito_memory, kaito_preset

CATALOG = Path(__file__).parents[3] / "kaigen" / "catalog"
TABLES = ("presets", "gpus", "instances")
GIB = 2**30


def table(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((CATALOG / f"{name}.json").read_text(encoding="utf-8"))
    return data


def schema(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((CATALOG / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    return data


@pytest.mark.parametrize("name", TABLES)
def test_a_table_keeps_to_its_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert [error.message for error in Draft202012Validator(schema(name)).iter_errors(table(name))] == []
    assert (CATALOG / table(name)["$schema"]).is_file()


@pytest.mark.parametrize("name", TABLES)
def test_a_schema_rejects_an_entry_with_an_unknown_field(name: str) -> None:
    data = table(name)
    data[name][0]["colour"] = "blue"
    assert not Draft202012Validator(schema(name)).is_valid(data)


@pytest.mark.parametrize("name", TABLES)
def test_names_are_unique(name: str) -> None:
    names = [
        known.lower()
        for entry in table(name)[name]
        for known in {*entry.get("aliases", ()), entry["name"], entry.get("repo", entry["name"])}
    ]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("preset", presets(BUILT_IN), ids=lambda preset: preset.name)
def test_numbers_of_a_preset_agree(preset: Preset) -> None:
    assert preset.heads % preset.kv_heads == 0
    assert (preset.attention == "mla") == (preset.mla is not None)
    assert preset.attention != "mha" or preset.kv_heads == preset.heads
    assert preset.attention != "mqa" or preset.kv_heads == 1
    assert (preset.kv_layers or 0) < preset.layers
    assert preset.sliding_window is None or preset.sliding_window.layers < preset.layers
    assert next(iter(preset.weights)) == (preset.quantization or preset.dtype)
    if preset.quantization is None and preset.parameters is not None:
        assert preset.weights_gib == pytest.approx(preset.parameters * 1e9 * 2 / GIB, rel=0.003)


@pytest.mark.parametrize("preset", presets(BUILT_IN), ids=lambda preset: preset.name)
def test_kaitos_own_cache_size_follows_from_the_numbers_unless_it_was_corrected(preset: Preset) -> None:
    kaito = kaito_preset(preset)
    if kaito.kv_bytes_per_token is None:
        return
    if preset.mla is not None:
        values = preset.mla.kv_lora_rank + preset.mla.rope_head_dim
    else:
        assert preset.head_dim is not None
        values = 2 * preset.kv_heads * preset.head_dim
    corrected = any(item.was == kaito.kv_bytes_per_token for item in preset.corrections)
    assert (kaito.kv_bytes_per_token == values * 2 * preset.layers) is not corrected


def test_what_kaito_got_wrong_is_right_here() -> None:
    def cache(name: str) -> int:
        preset = find_preset(name, BUILT_IN)
        assert preset is not None
        assert preset.head_dim is not None
        return 2 * preset.layers * preset.kv_heads * preset.head_dim * 2

    assert cache("falcon-40b") == cache("falcon-40b-instruct") == 122_880
    assert cache("gemma-3-27b-instruct") == 507_904
    assert cache("gemma-3-4b-instruct") == 139_264
    assert (cache("gpt-oss-20b"), cache("gpt-oss-120b")) == (49_152, 73_728)
    small, large = find_preset("gpt-oss-20b", BUILT_IN), find_preset("gpt-oss-120b", BUILT_IN)
    assert small is not None
    assert large is not None
    assert (small.weights_gib, kaito_preset(small).weights) == (12.9, 25.63)
    assert (large.weights_gib, kaito_preset(large).weights) == (60.77, 121.54)


def test_every_name_that_kaito_ever_had_is_found() -> None:
    seed = [f"falcon-{size}{form}" for size in ("7b", "40b") for form in ("", "-instruct")]
    seed += [f"llama-2-{size}{form}" for size in ("7b", "13b", "70b") for form in ("", "-chat")]
    for name in seed:
        found = find_preset(name, BUILT_IN)
        assert found is not None
        assert kaito_preset(found).seed["minGpuCount"] >= 1
    assert sum(kaito_preset(preset).in_catalog for preset in presets(BUILT_IN)) == 60
    assert sum("kaito" in preset.row for preset in presets(BUILT_IN)) == 71
    for old, new in (
        ("mistral-7b", "mistral-7b-v0.3"),
        ("gemma-3-27b-instruct", "gemma-3-27b-it"),
        ("ministral-3-8b-instruct", "ministral-3-8b-instruct-2512"),
        ("google/GEMMA-3-4b-it", "gemma-3-4b-it"),
        ("meta-llama/Llama-2-70b-chat", "llama-2-70b-chat"),
    ):
        found = find_preset(old, BUILT_IN)
        assert found is not None
        assert found.name == new
    assert find_preset("gpt-5", BUILT_IN) is None


def test_code_of_a_repository_runs_only_where_there_is_a_reason() -> None:
    trusted = [preset for preset in presets(BUILT_IN) if preset.engine.trust_remote_code]
    assert 0 < len(trusted) < 8
    assert all(preset.engine.trust_remote_code_reason for preset in trusted)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("lama-3.1-8b", "llama-3.1-8b-instruct"),
        ("falcon-7", "falcon-7b"),
        ("qwen/qwen-2.5-coder-7b", "qwen2.5-coder-7b-instruct"),
        ("phi4", "phi-4"),
        ("gpt-oss-20", "gpt-oss-20b"),
    ],
)
def test_a_misspelled_preset_gets_the_intended_name(written: str, meant: str) -> None:
    assert nearest_presets(written, BUILT_IN)[0] == meant


def test_every_instance_has_a_gpu_of_the_table_and_labels_in_each_profile() -> None:
    for instance in instances(BUILT_IN):
        assert instance.cloud in CLOUDS
        assert instance.usable is not None or instance.gpu.unsupported
        assert (instance.usable or 0) < instance.memory
        for profile in profile_names():
            labels = instance.node_labels(profile)
            assert labels["node.kubernetes.io/instance-type"] == instance.name


def test_gpu_labels_match_each_kind_of_cluster() -> None:
    azure = find_instance("standard_nc48ads_a100_v4", BUILT_IN)
    assert azure is not None
    assert azure.node_labels("aks") == {
        "node.kubernetes.io/instance-type": "Standard_NC48ads_A100_v4",
        "kubernetes.io/arch": "amd64",
        "nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe",
        "nvidia.com/gpu.count": "2",
    }
    whole, part = (find_instance(f"Standard_NV{size}ads_A10_v5", BUILT_IN) for size in (36, 12))
    assert whole is not None
    assert part is not None
    assert whole.node_labels("aks")["nvidia.com/gpu.product"] == "NVIDIA-A10-24Q"
    assert "nvidia.com/gpu.product" not in part.node_labels("aks"), "a part is another product"
    google = find_instance("a3-megagpu-8g", BUILT_IN)
    assert google is not None
    assert google.node_labels("gke")["cloud.google.com/gke-accelerator"] == "nvidia-h100-mega-80gb"
    amazon = find_instance("g6.12xlarge", BUILT_IN)
    assert amazon is not None
    assert amazon.node_labels("eks")["karpenter.k8s.aws/instance-gpu-name"] == "l4"


def test_gpus_that_kaito_lacks_are_there() -> None:
    for name in ("L40S", "B200", "GB200", "MI300X", "a100-80gb"):
        assert get_gpu(name, BUILT_IN) is not None
    for name in ("g6e.xlarge", "p6-b200.48xlarge", "Standard_ND96isr_MI300X_v5", "g2-standard-4", "a2-ultragpu-1g"):
        found = find_instance(name, BUILT_IN)
        assert found is not None
        assert kaito_memory(found) is None
    assert get_gpu("MI300X", BUILT_IN).resource == "amd.com/gpu"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "gpu", "count", "price"),
    [
        ("p6-b300.48xlarge", "B300", 8, 142.416),
        ("g7e.48xlarge", "RTX-PRO-6000", 8, 33.14432),
        ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", "RTX-PRO-6000", 1, 5.5),
        ("Standard_NC288lds_xl_RTXPRO6000BSE_v6", "RTX-PRO-6000", 2, 11.0),
        ("g7.48xlarge", "RTX-PRO-4500", 8, 28.51328),
        ("Standard_ND128isr_GB300_v6", "GB300", 4, None),
        ("a4x-maxgpu-4g-metal", "GB300", 4, None),
        ("a3-highgpu-8g", "H100", 8, None),
    ],
)
def test_instance_types_have_the_list_price_of_their_cloud(
    name: str, gpu: str, count: int, price: float | None
) -> None:
    item = find_instance(name, BUILT_IN)
    assert item is not None
    assert (item.gpu.name, item.count) == (gpu, count)
    listed = list_price(item)
    assert (listed and listed.usd) == price
    assert listed is None or (listed.region in {"us-east-1", "eastus"} and re.fullmatch(r"2026-\d\d-\d\d", listed.date))


def test_a_mig_slice_is_no_larger_than_its_gpu() -> None:
    for name in gpu_names(BUILT_IN):
        gpu = get_gpu(name, BUILT_IN)
        assert gpu is not None
        assert all(size <= (gpu.usable or 0) for size in gpu.mig.values())


def test_sizes_that_kaito_misnames_are_found_under_both_names() -> None:
    assert find_instance("g3s.8xlarge", BUILT_IN) == find_instance("g3.8xlarge", BUILT_IN)
    assert find_instance("Standard_ND96asr_A100_v4", BUILT_IN) == find_instance("Standard_ND96asr_v4", BUILT_IN)
    assert nearest_instances("Standard_NC24ads_A100_v5", BUILT_IN)[0] == "Standard_NC24ads_A100_v4"
    assert len(instance_names(BUILT_IN)) == len(instances(BUILT_IN)) > 150


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("A100", ["A100-40GB", "A100-80GB", "A100-80GB-PCIe"]),
        ("a100_80g", ["A100-80GB", "A100-40GB", "A100-80GB-PCIe"]),
        ("MI300", ["MI300X"]),
        ("H20", []),
        ("Tranium", ["Trainium"]),
    ],
)
def test_a_gpu_of_another_class_is_never_suggested(name: str, similar: list[str]) -> None:
    assert similar_gpus(name, BUILT_IN) == similar
