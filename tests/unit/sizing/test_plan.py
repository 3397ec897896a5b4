"""The arithmetic by hand, what is chosen, and what is refused with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import kaigen.sizing
from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import get_gpu
from kaigen.catalog.instances import find_instance
from kaigen.catalog.presets import find_preset
from kaigen.diagnostics.codes import codes
from kaigen.sizing.constants import GIB, constant
from kaigen.sizing.engine import EngineMemory, engine_memory
from kaigen.sizing.facts import (
    Hardware,
    ModelFacts,
    Request,
    facts_of,
    hardware_of_gpu,
    hardware_of_instance,
    quantize,
)
from kaigen.sizing.memory import Layout, cache_blocks, cache_cost, weights_of_gpu
from kaigen.sizing.plan import Plan, plan
from kaigen.sizing.problem import PlanError
from kaigen.sizing.ranking import rank

FOLDER = Path(kaigen.sizing.__file__).parent


def facts(name: str) -> ModelFacts:
    preset = find_preset(name, BUILT_IN)
    assert preset is not None
    return facts_of(preset)


def on(name: str) -> Hardware:
    instance = find_instance(name, BUILT_IN)
    assert instance is not None
    return hardware_of_instance(instance)


def gpus(name: str, count: int = 1, mig: str = "") -> Hardware:
    gpu = get_gpu(name, BUILT_IN)
    assert gpu is not None
    return hardware_of_gpu(gpu, count, mig)


def engine(model: str, hardware: Hardware, **request: Any) -> EngineMemory:
    return engine_memory(facts(model), Request(**request), hardware)


def planned(model: str, hardware: Hardware, **request: Any) -> Plan:
    return plan(facts(model), Request(**request), hardware)


def refused(model: str, hardware: Hardware, **request: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        plan(facts(model), Request(**request), hardware)
    assert caught.value.problem.code in codes()
    return caught.value


def shape(found: Plan) -> tuple[int, int, int, int]:
    return (found.layout.nodes, found.layout.tp, found.layout.pp, found.layout.dp)


def test_constants_match_their_schema_and_each_has_a_reason() -> None:
    schema = json.loads((FOLDER / "constants.schema.json").read_text(encoding="utf-8"))
    data = json.loads((FOLDER / "constants.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    assert [error.message for error in Draft202012Validator(schema).iter_errors(data)] == []
    del data["kaigen"]["utilization"]["why"]
    assert not Draft202012Validator(schema).is_valid(data)


def test_every_constant_is_read_somewhere() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
    for name in json.loads((FOLDER / "constants.json").read_text(encoding="utf-8"))["kaigen"]:
        assert f'"{name.removesuffix("Largest").removesuffix("Large")}' in sources, name


def test_a_token_of_llama_takes_128_kib_and_half_of_that_in_8_bits() -> None:
    llama, l4 = facts("llama-3.1-8b-instruct"), engine("llama-3.1-8b-instruct", on("g6.xlarge"))
    assert cache_cost(llama, l4, 1, 1, 1024, 16).sequence == 1024 * 131_072
    assert cache_cost(llama, l4, 1, 1, 1024, 8).sequence == 1024 * 65_536
    assert cache_cost(llama, l4, 4, 1, 1024, 16).sequence == 1024 * 131_072 / 4
    assert cache_cost(llama, l4, 1, 2, 1024, 16).sequence == 1024 * 131_072 / 2
    assert cache_cost(llama, l4, 1, 1, 1, 16).sequence == 16 * 131_072, "blocks hold 16 tokens"


def test_heads_that_are_fewer_than_gpus_are_kept_by_several() -> None:
    llama, h100 = facts("llama-3.1-8b-instruct"), engine("llama-3.1-8b-instruct", on("p5.48xlarge"))
    assert llama.kv_heads == 8
    eight, sixteen = (cache_cost(llama, h100, tp, 1, 1024, 16).sequence for tp in (8, 16))
    assert eight == sixteen == 1024 * 131_072 / 8
    falcon = facts("falcon-7b")
    assert cache_cost(falcon, h100, 71, 1, 16, 16) == cache_cost(falcon, h100, 1, 1, 16, 16)


def test_the_cache_of_mla_is_whole_on_each_gpu() -> None:
    deepseek, h200 = facts("deepseek-v3-0324"), engine("deepseek-v3-0324", on("p5e.48xlarge"))
    one, eight = (cache_cost(deepseek, h200, tp, 1, 1024, 16).sequence for tp in (1, 8))
    assert one == eight == 1024 * 61 * (512 + 64) * 2
    assert cache_cost(deepseek, h200, 8, 1, 1024, 8).sequence == 1024 * 61 * (512 + 4 * 4 + 64 * 2)


def test_layers_with_a_window_keep_no_more_than_it() -> None:
    gemma, h100 = facts("gemma-3-27b-it"), engine("gemma-3-27b-it", on("p5.48xlarge"))
    each = 2 * 16 * 128 * 2
    cost = cache_cost(gemma, h100, 1, 1, 131_072, 16)
    assert cost.sequence == 10 * 131_072 * each + 52 * (1024 + 16) * each
    assert cost.fixed == 52 * 8192 * each
    short = cache_cost(gemma, h100, 1, 1, 512, 16)
    assert short.sequence == 62 * 512 * each


@pytest.mark.parametrize(
    ("version", "flags", "states"),
    [
        ((0, 25, 1), {}, 1),
        ((0, 26, 0), {}, 2),
        ((0, 31, 0), {}, 2),
        ((0, 32, 0), {}, 3),
        (None, {}, 3),
        (None, {"prefix_caching": False}, 1),
        (None, {"speculative_tokens": 2}, 5),
        ((0, 25, 1), {"prefix_caching": True}, 2),
    ],
)
def test_layers_without_attention_keep_states_in_blocks(
    version: tuple[int, ...] | None, flags: dict[str, Any], states: int
) -> None:
    qwen, h100 = facts("qwen3.6-27b"), engine("qwen3.6-27b", on("p5.48xlarge"), version=version, **flags)
    # vLLM 0.29 logs 784 tokens of a block, and 17 blocks of a sequence of 8192 tokens that keeps two states.
    block = 16 * 784 * 2 * 4 * 256 * 2
    assert h100.states == states
    assert cache_cost(qwen, h100, 1, 1, 8192, 16).sequence == (11 + 3 * states) * block
    assert cache_cost(qwen, h100, 2, 1, 8192, 16).sequence == (11 + 3 * states) * block / 2
    assert cache_cost(qwen, h100, 1, 2, 8192, 16).sequence == (11 + 3 * states) * block / 2


def test_layers_with_states_fill_groups_of_those_with_attention() -> None:
    nemotron, h100 = facts("nvidia-nemotron-3-nano-30b-a3b-bf16"), engine("phi-4", on("p5.48xlarge"))
    blocks = cache_blocks(nemotron, 1, 1, 16)
    assert blocks is not None
    assert (blocks.attention, blocks.states, blocks.tokens) == (1, 4, 2096), "23 layers with states are 4 groups of 6"
    assert cache_cost(nemotron, h100, 1, 1, 4096, 16).sequence == (2 + 4 * 3) * 6 * 2096 * 2 * 2 * 128 * 2


def test_sequences_are_as_many_as_states_where_the_engine_would_allow_more() -> None:
    found = planned("qwen3.8-27b", gpus("H100"))
    blocks = int(found.memory.kv_space * GIB / (16 * 784 * 2 * 4 * 256 * 2))
    assert ("max-num-seqs", str(blocks)) in found.flags
    assert blocks < 300
    assert "max-num-seqs" not in dict(planned("qwen3.5-2b", gpus("H100")).flags)
    assert "max-num-seqs" not in dict(planned("phi-4", gpus("H100")).flags)
    assert dict(planned("qwen3.8-27b", gpus("H100"), concurrency=3).flags)["max-num-seqs"] == "3"


@pytest.mark.parametrize(
    ("gpu", "version", "tokens", "sequences"),
    [
        ("L4", None, 2048, 256),
        ("A100-80GB", None, 2048, 256),
        ("H100", None, 8192, 1024),
        ("B200", (0, 27, 1), 8192, 1024),
        ("B200", (0, 28, 0), 16384, 1024),
        ("MI300X", None, 16384, 1024),
    ],
)
def test_a_step_depends_on_the_gpu_and_the_version(
    gpu: str, version: tuple[int, ...] | None, tokens: int, sequences: int
) -> None:
    found = engine("phi-4", gpus(gpu), version=version)
    assert (found.tokens, found.sequences) == (tokens, sequences)
    assert engine("phi-4", gpus(gpu), version=version, step_tokens=1024).tokens == 1024


def test_weights_are_dealt_by_layers_with_an_embedding_at_each_end() -> None:
    llama = facts("llama-3.1-8b-instruct")
    assert weights_of_gpu(llama, 1, 1) == pytest.approx(14.96)
    assert weights_of_gpu(llama, 4, 1) == pytest.approx(14.96 / 4)
    embedding = 128_256 * 4096 * 2 / GIB
    assert weights_of_gpu(llama, 1, 3) == pytest.approx((14.96 - embedding) * 11 / 32 + embedding)


@pytest.mark.parametrize(
    ("model", "gpu", "version", "padding"),
    [
        ("llama-3.1-8b-instruct", "H100", None, 1),
        ("deepseek-v3-0324", "H200", None, 1),
        ("qwen3-8b-awq", "L4", None, 1.02),
        ("gpt-oss-20b", "L4", None, 1.09),
        ("gpt-oss-20b", "H100", (0, 24, 0), 1.09),
        ("gpt-oss-20b", "H100", None, 1.02),
        ("gpt-oss-20b", "B200", None, 1.09),
    ],
)
def test_weights_are_padded_where_their_format_needs_it(
    model: str, gpu: str, version: tuple[int, ...] | None, padding: float
) -> None:
    assert engine(model, gpus(gpu), version=version).padding == padding


def test_quantized_weights_keep_their_embeddings() -> None:
    llama = facts("llama-3.1-8b-instruct")
    embeddings = 2 * 128_256 * 4096 * 2 / GIB
    assert quantize(llama, "fp8").weights == pytest.approx((14.96 - embeddings) * 8.1 / 16 + embeddings, abs=0.01)
    found = planned("llama-3.3-70b-instruct", on("p5.4xlarge"), quantization="mxfp4")
    assert found.flags[-1] == ("quantization", "mxfp4")
    assert "quantized already (mxfp4)" in str(refused("gpt-oss-20b", on("g6.xlarge"), quantization="fp8"))


@pytest.mark.parametrize(
    ("quantization", "version", "message", "hint"),
    [
        ("fp9", None, "unknown quantization of vLLM 0.33 `fp9`", "did you mean `fp8`?"),
        ("int4", None, "unknown quantization of vLLM 0.33 `int4`", "known: auto_awq, auto_gptq, awq"),
        ("bitsandbytes", None, "unknown quantization of vLLM 0.33 `bitsandbytes`", "known: auto_awq"),
        ("nvfp4_per_token", (0, 25, 1), "unknown quantization of vLLM 0.25 `nvfp4_per_token`", ""),
        (
            "awq",
            None,
            "`awq` cannot quantize the bfloat16 weights of phi-4",
            "fp8_per_channel, mxfp8, int8_per_channel",
        ),
        ("awq", (0, 25, 1), "`awq` cannot quantize the bfloat16 weights of phi-4", "weight_only, bitsandbytes, mxfp4"),
        ("gptq", None, "`gptq` cannot quantize the bfloat16 weights of phi-4", "use a repository with such weights"),
    ],
)
def test_a_quantization_that_the_version_refuses_is_refused(
    quantization: str, version: tuple[int, ...] | None, message: str, hint: str
) -> None:
    error = refused("phi-4", on("g6e.xlarge"), quantization=quantization, version=version)
    assert str(error) == message
    assert hint in error.hint


def test_names_of_the_version_are_accepted() -> None:
    assert planned("phi-4", on("g6e.xlarge"), quantization="bitsandbytes", version=(0, 25, 1)).facts.weights < 10
    assert planned("phi-4", on("g6e.xlarge"), quantization="torchao").facts.weights == facts("phi-4").weights
    awq = planned("qwen3-8b-awq", on("g6.xlarge"), quantization="awq_marlin")
    assert (awq.facts.weights, dict(awq.flags)["quantization"]) == (5.68, "awq_marlin")
    assert "use `fp8_per_tensor`" in planned("phi-4", on("g6e.xlarge"), quantization="fp8").notes[-1]
    assert planned("phi-4", on("g6e.xlarge"), quantization="fp8", version=(0, 25, 1)).notes == ()


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("nvfp4", 4.5), ("fp8_e5m2", 8), ("int8_per_token_head", 8.5), ("turboquant_k8v4", 16), ("float16", 16)],
)
def test_the_cache_has_the_size_of_its_dtype(dtype: str, bits: float) -> None:
    found = planned("llama-3.1-8b-instruct", on("g6.xlarge"), kv_cache_dtype=dtype, version=(0, 32, 0))
    assert found.load.kv_bits == bits
    assert dict(found.flags)["kv-cache-dtype"] == dtype
    error = refused("phi-4", on("g6e.xlarge"), kv_cache_dtype="ultraquant_4bit", version=(0, 25, 1))
    assert str(error) == "unknown dtype of the KV cache of vLLM 0.25 `ultraquant_4bit`"


@pytest.mark.parametrize(
    ("model", "node", "expected"),
    [
        ("llama-3.1-8b-instruct", "g6.xlarge", (1, 1, 1, 1)),
        ("llama-3.1-8b-instruct", "Standard_NC96ads_A100_v4", (1, 1, 1, 4)),
        ("phi-4", "g6.48xlarge", (1, 2, 1, 4)),
        ("phi-4", "g6.xlarge", (2, 1, 2, 1)),
        ("qwen2.5-coder-32b-instruct", "Standard_NC24ads_A100_v4", (1, 1, 1, 1)),
        ("gpt-oss-20b", "Standard_NV36ads_A10_v5", (1, 1, 1, 1)),
        ("gpt-oss-120b", "Standard_NC24ads_A100_v4", (1, 1, 1, 1)),
        ("llama-3.3-70b-instruct", "Standard_NC96ads_A100_v4", (1, 4, 1, 1)),
        ("llama-3.3-70b-instruct", "p5e.48xlarge", (1, 4, 1, 2)),
        ("llama-3.3-70b-instruct", "Standard_NC48ads_A100_v4", (1, 2, 1, 1)),
        ("llama-3.3-70b-instruct", "Standard_NC24ads_A100_v4", (2, 1, 2, 1)),
        ("deepseek-v3-0324", "Standard_ND96isr_H200_v5", (1, 8, 1, 1)),
        ("deepseek-v3-0324", "p5.48xlarge", (2, 8, 2, 1)),
        ("falcon-7b", "g6.12xlarge", (1, 1, 1, 4)),
        ("qwen2.5-coder-7b-instruct", "g5.48xlarge", (1, 2, 1, 4)),
    ],
)
def test_what_is_chosen(model: str, node: str, expected: tuple[int, int, int, int]) -> None:
    assert shape(planned(model, on(node))) == expected


def test_flags_follow_from_the_plan() -> None:
    found = planned("deepseek-v3-0324", on("p5.48xlarge"), context_length=32_768, kv_cache_dtype="fp8")
    assert found.flags == (
        ("max-model-len", "32768"),
        ("gpu-memory-utilization", "0.9"),
        ("tensor-parallel-size", "8"),
        ("pipeline-parallel-size", "2"),
        ("kv-cache-dtype", "fp8"),
    )
    assert (found.nodes, found.gpus_per_node) == (2, 8)
    assert planned("phi-4", on("p5.48xlarge"), replicas=3).total_nodes == 3


def test_an_override_is_taken() -> None:
    assert shape(planned("phi-4", on("g6.48xlarge"), tensor_parallel=5)) == (1, 5, 1, 1)
    assert shape(planned("phi-4", on("g6.48xlarge"), pipeline_parallel=4)) == (1, 1, 4, 2)
    assert shape(planned("llama-3.1-8b-instruct", on("p5.48xlarge"), data_parallel=2)) == (1, 4, 1, 2)
    assert shape(planned("llama-3.1-8b-instruct", on("g6.xlarge"), nodes=3)) == (3, 1, 3, 1)
    wide = planned("llama-3.3-70b-instruct", on("p5.48xlarge"), tensor_parallel=16, nodes=2)
    assert shape(wide) == (2, 16, 1, 1)
    assert any("InfiniBand" in note for note in wide.notes)


def test_an_override_that_does_not_fit_is_refused_with_the_sum_and_what_would() -> None:
    error = refused("llama-3.3-70b-instruct", on("p5.48xlarge"), tensor_parallel=1, pipeline_parallel=1)
    assert str(error) == "llama-3.3-70b-instruct does not fit with tensorParallel 1 and pipelineParallel 1"
    assert error.hint == (
        "each GPU needs 138.0 GiB of 71.2 (79.1 × 0.9): weights 131.4, KV cache 2.5 (8192 tokens × 1), "
        "overhead 4.1; without it: 1 node, tensorParallel 4, dataParallel 2"
    )
    assert error.field.value == "tensorParallel"


@pytest.mark.parametrize(
    ("model", "node", "request_", "message", "hint"),
    [
        (
            "phi-4",
            "g6.48xlarge",
            {"tensor_parallel": 4},
            "4 GPUs cannot share the 40 attention heads and 10 KV heads of phi-4",
            "possible: 1, 2, 5",
        ),
        ("phi-4", "g6.xlarge", {"pipeline_parallel": 41}, "phi-4 has only 40 layers for 41 stages", ""),
        ("phi-4", "g6.xlarge", {"context_length": 16_385}, "phi-4 does not support 16385 tokens", "use at most 16384"),
        ("phi-4", "g6.xlarge", {"context_length": 0}, "contextLength is 0", "use at least 1"),
        ("phi-4", "g6.xlarge", {"nodes": 0}, "nodes is 0", "use at least 1"),
        (
            "phi-4",
            "g6.xlarge",
            {"utilization": 1.5},
            "1.5 is not a share of a GPU",
            "use a number above 0 and at most 1",
        ),
        (
            "phi-4",
            "g6.xlarge",
            {"kv_cache_dtype": "fp4"},
            "unknown dtype of the KV cache of vLLM 0.33 `fp4`",
            "did you mean `fp8`?",
        ),
        ("phi-4", "g6.xlarge", {"dtype": "int8"}, "unknown dtype `int8`", "known: bfloat16, float16"),
        (
            "phi-4",
            "p5.48xlarge",
            {"nodes": 2, "data_parallel": 2},
            "2 copies of the model cannot span 2 nodes",
            "use `replicas` for further copies",
        ),
        (
            "phi-4",
            "p5.48xlarge",
            {"nodes": 3, "pipeline_parallel": 2},
            "2 pipeline stages cannot use 3 nodes",
            "use at most 2 nodes, and `replicas` for further copies",
        ),
        (
            "phi-4",
            "p5.48xlarge",
            {"tensor_parallel": 2, "data_parallel": 8},
            "tensorParallel 2 and dataParallel 8 cannot be used on nodes with 8 H100",
            "together they may use at most the GPUs of the nodes",
        ),
        (
            "phi-4",
            "g4dn.xlarge",
            {},
            "phi-4 cannot run on T4: the engine requires compute capability 8, it has 7.5",
            "use dtype float16, which requires 7.5",
        ),
        (
            "deepseek-v3.2",
            "p4de.24xlarge",
            {},
            "deepseek-v3.2 cannot run on A100-80GB: its kernels require compute capability 9, it has 8",
            "",
        ),
        (
            "phi-4",
            "inf2.xlarge",
            {},
            "engines cannot run on Inferentia2: needs models compiled for AWS Neuron, "
            "which the engines' images do not carry",
            "",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    model: str, node: str, request_: dict[str, Any], message: str, hint: str
) -> None:
    error = refused(model, on(node), **request_)
    assert (str(error), error.hint) == (message, hint)


def test_a_model_that_is_too_large_is_refused_with_the_sum() -> None:
    error = refused("deepseek-v3-0324", on("g6.xlarge"))
    assert str(error) == "deepseek-v3-0324 does not fit on g6.xlarge even on 16 nodes"
    assert error.hint.startswith("each GPU needs ")
    tight = refused("llama-3.1-8b-instruct", gpus("L4"), context_length=131_072, nodes=1)
    assert "131072 tokens × 1" in tight.hint


def test_a_slice_of_a_gpu_takes_a_small_model_and_no_parallelism() -> None:
    found = planned("phi-4-mini-instruct", gpus("H100", mig="2g.20gb"))
    assert (found.hardware.resource, shape(found)) == ("nvidia.com/mig-2g.20gb", (1, 1, 1, 1))
    assert found.memory.usable == 19.5
    assert "MIG slices cannot share a model" in str(refused("phi-4", gpus("H100", mig="3g.40gb"), tensor_parallel=2))
    assert str(refused("phi-4", gpus("H100", mig="1g.10gb"))) == "phi-4 does not fit on H100 1g.10gb"
    with pytest.raises(PlanError, match="unknown MIG profile of L4"):
        gpus("L4", mig="1g.10gb")
    with pytest.raises(PlanError, match="2 MIG slices cannot share a model"):
        gpus("H100", 2, mig="1g.10gb")


def test_a_model_made_for_half_precision_runs_on_older_gpus() -> None:
    assert shape(planned("phi-2", on("g4dn.xlarge"))) == (1, 1, 1, 1)
    assert shape(planned("phi-3-mini-4k-instruct", on("g4dn.xlarge"), dtype="float16")) == (1, 1, 1, 1)


def test_what_a_person_should_know_is_noted() -> None:
    assert any("upper bound" in note for note in planned("gemma-4-12b-it", on("p5.4xlarge")).notes)
    assert any("Ethernet" in note for note in planned("phi-4", on("g6.xlarge")).notes)
    assert not any("Ethernet" in note for note in planned("deepseek-v3-0324", on("p5.48xlarge")).notes)
    build, measured = planned("phi-4", on("Standard_ND96isr_MI300X_v5")).notes[:2]
    assert "ROCm" in build
    assert "measured on NVIDIA GPUs only" in measured
    assert any("arm64" in note for note in planned("phi-4", on("p6e-gb200.36xlarge")).notes)
    idle = planned("phi-4", on("g6.48xlarge"), tensor_parallel=5)
    assert "3 of the 8 GPUs of the node are free for other pods" in idle.notes


def test_sequences_are_shared_out_among_copies() -> None:
    one = planned("llama-3.1-8b-instruct", gpus("H100"), concurrency=8)
    four = planned("llama-3.1-8b-instruct", gpus("H100", 4), concurrency=32)
    assert four.layout.dp == 4
    assert four.memory.kv_cache == one.memory.kv_cache
    assert four.max_concurrency == 4 * one.max_concurrency


def test_the_cheapest_node_that_does_comes_first() -> None:
    choices = [on(name) for name in ("p5.48xlarge", "g6.xlarge", "g6.2xlarge", "g5.xlarge", "p3.2xlarge", "g6e.xlarge")]
    ranking = rank(facts("llama-3.1-8b-instruct"), Request(), choices)
    assert [found.hardware.name for found in ranking.plans] == ["g5.xlarge", "g6.xlarge", "g6e.xlarge", "p5.48xlarge"]
    assert [item.hardware.name for item in ranking.refused] == ["p3.2xlarge"]


def test_facts_of_a_model_of_ones_own_are_enough() -> None:
    own = ModelFacts("mine", 2.0, 16, 16, 4, 64, 1024, 4096)
    found = plan(own, Request(), gpus("A10G"))
    assert shape(found) == (1, 1, 1, 1)
    assert found.load.context == 4096
    assert "the vocabulary size is unknown; counted as 262144 tokens, the largest" in found.notes
    assert own.embedding == pytest.approx(min(262_144 * 1024 * 2 / GIB, 0.3 * 2.0))


def test_a_layout_counts_its_gpus() -> None:
    assert Layout(2, 4, 2, 1).gpus == 8
    assert constant("mostNodes") == 16


def test_each_sequence_of_whisper_keeps_its_audio() -> None:
    found, hardware = facts("whisper-large-v3"), on("g6.xlarge")
    token = 32 * 2 * 20 * 64 * 2
    cost = cache_cost(found, engine("whisper-large-v3", hardware), 1, 1, found.max_context, 16)
    # 1500 tokens are 94 blocks of 16. vLLM wants room for the input of one full step of 2048.
    assert (cost.sequence, cost.fixed) == ((448 + 1504) * token, (2048 - 1504) * token)
    assert not found.has_experts
    assert 40 <= planned("whisper-large-v3", hardware).max_concurrency <= 60
