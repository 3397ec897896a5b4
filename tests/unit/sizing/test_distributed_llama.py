"""Sizes of models in distributed-llama's format."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.sizing.distributed_llama import check_blocks, estimated_bytes, file_bytes, shape_of_config
from kaigen.sizing.problem import PlanError


def config(kind: str = "llama", /, **fields: Any) -> dict[str, Any]:
    """Return a config.json of a small model, with other fields."""
    return {
        "model_type": kind,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 256,
        "max_position_embeddings": 512,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        **fields,
    }


def large(kind: str, dim: int, hidden: int, layers: int, heads: int, kv: int, vocabulary: int, **more: Any) -> Any:
    """Return the config.json of a published model."""
    return config(
        kind,
        hidden_size=dim,
        intermediate_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv,
        vocab_size=vocabulary,
        **more,
    )


PUBLISHED = {
    "Llama-3.1-8B": (large("llama", 4096, 14336, 32, 32, 8, 128256), 6.32),
    "Llama-3.2-1B": (large("llama", 2048, 8192, 16, 32, 8, 128256, head_dim=64), 1.75),
    "Qwen3-0.6B": (large("qwen3", 1024, 3072, 28, 16, 8, 151936, head_dim=128), 0.96),
    "Qwen3-1.7B": (large("qwen3", 2048, 6144, 28, 16, 8, 151936, head_dim=128), 2.21),
    "Qwen3-8B": (large("qwen3", 4096, 12288, 36, 32, 8, 151936, head_dim=128), 6.75),
    "Qwen3-30B-A3B": (
        large(
            "qwen3_moe",
            2048,
            6144,
            48,
            32,
            4,
            151936,
            head_dim=128,
            moe_intermediate_size=768,
            num_experts=128,
            num_experts_per_tok=8,
        ),
        18.29,
    ),
}
"""Configs of models, and the sizes in GB of the q40 files that the author of distributed-llama publishes."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_are_those_of_published_files(name: str) -> None:
    config_json, gigabytes = PUBLISHED[name]
    assert file_bytes(shape_of_config(config_json), "q40") / 1e9 == pytest.approx(gigabytes, abs=0.006)


def test_f32_has_four_bytes_for_each_weight() -> None:
    shape = shape_of_config(config())
    weights = 2 * 256 * 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64) + 64
    assert 0 < file_bytes(shape, "f32") - 4 * weights <= 200


def test_estimate_from_parameters_is_an_upper_bound() -> None:
    config_json, _ = PUBLISHED["Llama-3.1-8B"]
    shape = shape_of_config(config_json)
    exact = file_bytes(shape, "q40")
    assert exact <= estimated_bytes(8_030_000_000, 128256, 4096, "q40") <= 1.1 * exact


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "gemma2"}, "models of type `gemma2`"),
        ({"hidden_act": "relu"}, "no activation `relu`"),
        ({"rms_norm_eps": 1e-12}, "rms_norm_eps: 1e-12"),
        ({"attention_bias": True}, "attention_bias"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantized already"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, "RoPE scaling `yarn`"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 4}}, "RoPE scaling `linear`"),
        ({"hidden_size": None}, "no `hidden_size`"),
        ({"vocab_size": 10**12}, "`vocab_size` of the config is 1000000000000, and not a whole number"),
    ],
)
def test_models_that_it_cannot_run_are_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        shape_of_config(config() | change)


def test_q40_needs_whole_blocks_and_f32_does_not() -> None:
    shape = shape_of_config(config(intermediate_size=100))
    check_blocks(shape, "f32")
    with pytest.raises(PlanError, match="blocks of 32 weights"):
        check_blocks(shape, "q40")
