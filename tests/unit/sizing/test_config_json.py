"""A model's own config says the same as the catalogue, for models that both have."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import find_preset
from kaigen.sizing.config_json import facts_of_config
from kaigen.sizing.facts import ModelFacts, facts_of
from kaigen.sizing.problem import PlanError

CONFIGS: dict[str, dict[str, Any]] = {
    "llama-3.1-8b-instruct": {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "max_position_embeddings": 131072,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "torch_dtype": "bfloat16",
        "vocab_size": 128256,
    },
    "bge-m3": {
        "architectures": ["XLMRobertaModel"],
        "head_dim": 64,
        "hidden_size": 1024,
        "max_position_embeddings": 8192,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "torch_dtype": "float16",
        "vocab_size": 250002,
    },
    "qwen3-next-80b-a3b-instruct": {
        "architectures": ["Qwen3NextForCausalLM"],
        "full_attention_interval": 4,
        "head_dim": 256,
        "hidden_size": 2048,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "max_position_embeddings": 262144,
        "num_attention_heads": 16,
        "num_hidden_layers": 48,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
    },
    "phi-2": {
        "hidden_size": 2560,
        "max_position_embeddings": 2048,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": None,
        "torch_dtype": "float16",
        "vocab_size": 51200,
    },
    "qwen2.5-coder-7b-instruct": {
        "hidden_size": 3584,
        "max_position_embeddings": 32768,
        "num_attention_heads": 28,
        "num_hidden_layers": 28,
        "num_key_value_heads": 4,
        "sliding_window": 131072,
        "torch_dtype": "bfloat16",
        "use_sliding_window": False,
        "vocab_size": 152064,
    },
    "gpt-oss-20b": {
        "head_dim": 64,
        "hidden_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "max_position_embeddings": 131072,
        "num_attention_heads": 64,
        "num_hidden_layers": 24,
        "num_key_value_heads": 8,
        "quantization_config": {"quant_method": "mxfp4"},
        "sliding_window": 128,
        "vocab_size": 201088,
    },
    "deepseek-v3-0324": {
        "hidden_size": 7168,
        "kv_lora_rank": 512,
        "max_position_embeddings": 163840,
        "num_attention_heads": 128,
        "num_hidden_layers": 61,
        "num_key_value_heads": 128,
        "qk_rope_head_dim": 64,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "torch_dtype": "bfloat16",
        "vocab_size": 129280,
    },
    "gemma-3-27b-it": {
        "text_config": {
            "head_dim": 128,
            "hidden_size": 5376,
            "max_position_embeddings": 131072,
            "num_attention_heads": 32,
            "num_hidden_layers": 62,
            "num_key_value_heads": 16,
            "sliding_window": 1024,
            "sliding_window_pattern": 6,
            "vocab_size": 262208,
        },
        "torch_dtype": "bfloat16",
        "vision_config": {"hidden_size": 1152},
    },
    "qwen3.6-27b": {
        "text_config": {
            "dtype": "bfloat16",
            "full_attention_interval": 4,
            "head_dim": 256,
            "hidden_size": 5120,
            "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 16,
            "linear_key_head_dim": 128,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": 48,
            "linear_value_head_dim": 128,
            "max_position_embeddings": 262144,
            "num_attention_heads": 24,
            "num_hidden_layers": 64,
            "num_key_value_heads": 4,
            "vocab_size": 248320,
        },
        "vision_config": {},
    },
    "nvidia-nemotron-nano-9b-v2": {
        "head_dim": 128,
        "hidden_size": 4480,
        "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
        "mamba_head_dim": 80,
        "mamba_num_heads": 128,
        "max_position_embeddings": 131072,
        "n_groups": 8,
        "num_attention_heads": 40,
        "num_hidden_layers": 56,
        "num_key_value_heads": 8,
        "ssm_state_size": 128,
        "torch_dtype": "bfloat16",
        "vocab_size": 131072,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_says_what_the_catalogue_says(name: str) -> None:
    preset = find_preset(name, BUILT_IN)
    assert preset is not None
    known = facts_of(preset)
    found = facts_of_config(CONFIGS[name], name=name, weights=preset.weights_gib)
    # The width of a head is not used with MLA, and the catalogue leaves it out.
    differing = {
        name: (getattr(found, name), getattr(known, name))
        for name in ModelFacts.__struct_fields__
        if getattr(found, name) != getattr(known, name) and not (name == "head_dim" and known.latent_dim)
    }
    assert differing == {}


def test_older_names_of_numbers_are_known() -> None:
    falcon = {"n_layer": 32, "n_head": 71, "hidden_size": 4544, "multi_query": True, "n_ctx": 2048}
    found = facts_of_config(falcon, name="falcon", weights=13.44)
    assert (found.layers, found.heads, found.kv_heads, found.head_dim) == (32, 71, 1, 64)
    large = falcon | {"n_head": 128, "hidden_size": 8192, "num_kv_heads": 8, "new_decoder_architecture": True}
    assert facts_of_config(large, name="falcon", weights=78).kv_heads == 8


def test_layers_without_attention_are_counted_by_their_interval_too() -> None:
    text = {**CONFIGS["qwen3.6-27b"]["text_config"]}
    del text["layer_types"]
    assert facts_of_config(text, name="x", weights=50).kv_layers == 16


def test_layers_without_attention_are_counted_where_each_is_a_word() -> None:
    config = CONFIGS["nvidia-nemotron-nano-9b-v2"]
    words = {"M": "mamba", "*": "attention", "-": "mlp"}
    listed = {**config, "layers_block_type": [words[letter] for letter in config["hybrid_override_pattern"]]}
    del listed["hybrid_override_pattern"], listed["num_hidden_layers"]
    assert facts_of_config(listed, name="x", weights=1) == facts_of_config(config, name="x", weights=1)


def test_the_linear_attention_of_kimi_is_a_state_and_no_cache() -> None:
    text = CONFIGS["deepseek-v3-0324"] | {
        "linear_attn_config": {"full_attn_layers": [4, 8], "kda_layers": [1, 2, 3], "num_heads": 96, "head_dim": 128},
        "num_hidden_layers": 5,
    }
    facts = facts_of_config({"text_config": text}, name="x", weights=1)
    # 96 × 128 × 128 numbers of 32 bits, and three steps of 3 × 96 × 128 of 16, in each of three layers.
    assert (facts.kv_layers, facts.state_layers, facts.state_mib) == (2, 3, 19)


def test_the_indexer_of_sparse_attention_is_counted_with_its_scales() -> None:
    config = CONFIGS["deepseek-v3-0324"] | {"index_head_dim": 128, "index_n_heads": 64}
    assert facts_of_config(config, name="x", weights=1).indexer_bytes == 132


def test_a_rotary_part_alone_is_no_latent_vector() -> None:
    config = CONFIGS["llama-3.1-8b-instruct"] | {"qk_rope_head_dim": 64, "index_head_dim": 128}
    facts = facts_of_config(config, name="x", weights=1)
    assert (facts.latent_dim, facts.rope_dim, facts.indexer_bytes, facts.head_dim) == (0, 0, 0, 128)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": None}, "the config has no layers"),
        ({"num_attention_heads": "32"}, '`num_attention_heads` of the config is "32", and not a whole number'),
        ({"hidden_size": 0}, "`hidden_size` of the config is 0, and not a whole number from 1 to 1000000000"),
        ({"max_position_embeddings": True}, "`max_position_embeddings` of the config is true, and not"),
        ({"num_key_value_heads": 5}, "32 attention heads and 5 KV heads"),
    ],
)
def test_a_config_without_a_number_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        facts_of_config(CONFIGS["llama-3.1-8b-instruct"] | change, name="x", weights=1)
    assert caught.value.problem.code == "KG1103"


WHISPER: dict[str, Any] = {
    "model_type": "whisper",
    "is_encoder_decoder": True,
    "architectures": ["WhisperForConditionalGeneration"],
    "d_model": 1280,
    "encoder_layers": 32,
    "decoder_layers": 32,
    "decoder_attention_heads": 20,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "vocab_size": 51866,
    "torch_dtype": "float16",
}


def test_the_config_of_whisper_gives_the_facts_of_its_preset() -> None:
    preset = find_preset("whisper-large-v3", BUILT_IN)
    assert preset is not None
    expected = facts_of(preset)
    assert facts_of_config(WHISPER, name=expected.name, weights=expected.weights) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "t5"}, "an encoder-decoder model, and the plan knows only Whisper"),
        ({"max_source_positions": None}, "`max_source_positions` of the config is null, and not a whole number"),
        ({"decoder_attention_heads": 7}, "7 heads and a width of 1280"),
    ],
)
def test_no_plan_is_made_of_other_encoder_decoder_models(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        facts_of_config(WHISPER | change, name="x", weights=1)
    assert caught.value.problem.code == "KG1103"
