"""A slow writer of `model.m`, straight from the description of the format: one number at a time, without NumPy's types.

The description (distributed-llama v0.16.4):

- int32 values: magic number 0x0A00ABCD, size of the header with these two, then pairs of key and value;
- tensors: the embedding in f32; for each layer q, k, v, o, (the gate of the experts in f32, then for each expert) gate,
  down, up of the MLP, for Qwen3 the norms of q and k in f32, both norms of the layer in f32; the last norm in f32; the
  head, or the embedding again;
- rows of q and k of a Llama: of each head, rows 0, n/2, 1, n/2 + 1, ...;
- q40: of 32 numbers, the scale d in f16, then 16 bytes; byte i has number i in its low and number i + 16 in its high
  half. d is the number of the largest magnitude (the positive one of two) by -8, and each number x becomes
  floor(x / d + 8.5), from 0 to 15.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = list[list[float]]


def f32(value: float) -> float:
    """Return the nearest number of 32 bits."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def q40(values: Sequence[float]) -> bytes:
    """Return numbers in q40."""
    found = b""
    for start in range(0, len(values), 32):
        block = values[start : start + 32]
        most, least = max(block), min(block)
        scale = f32((least if -least > most else most) / -8)
        # The reciprocal of a smaller scale is too large for 32 bits.
        factor = f32(1 / scale) if abs(scale) > 2**-128 else 0.0
        levels = [int(min(15.0, max(0.0, f32(f32(value * factor) + 8.5)))) for value in block]
        found += struct.pack("<e16B", scale, *(levels[i] | levels[i + 16] << 4 for i in range(16)))
    return found


def header(config: Mapping[str, Any], weights: str) -> bytes:
    """Return the beginning of the file."""
    scaling = config.get("rope_scaling") or {}
    pairs = [
        (0, 0),
        (1, {"llama": 0xABCD00, "qwen3": 0xABCD01, "qwen3_moe": 0xABCD02}[config["model_type"]]),
        (11, 1),
        (2, config["hidden_size"]),
        (3, config["intermediate_size"]),
        (4, config["num_hidden_layers"]),
        (5, config["num_attention_heads"]),
        (6, config["num_key_value_heads"]),
        (13, {"f32": 0, "q40": 2}[weights]),
        (10, config["max_position_embeddings"]),
        (9, config["vocab_size"]),
        (7, config.get("num_experts", 0)),
        (8, config.get("num_experts_per_tok", 0)),
        (12, int(config["rope_theta"])),
    ]
    if scaling:
        pairs += [
            (14, int(scaling["factor"])),
            (15, int(scaling["low_freq_factor"])),
            (16, int(scaling["high_freq_factor"])),
            (17, scaling["original_max_position_embeddings"]),
            (18, 2),
        ]
    if "head_dim" in config:
        pairs.append((19, config["head_dim"]))
    pairs.append((20, {1e-5: 5, 1e-6: 6}[config["rms_norm_eps"]]))
    if "moe_intermediate_size" in config:
        pairs.append((21, config["moe_intermediate_size"]))
    values = [number for pair in pairs for number in pair]
    return struct.pack(f"<{len(values) + 2}i", 0x0A00ABCD, 4 * len(values) + 8, *values)


def model_file(config: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[np.float32]], weights: str) -> bytes:
    """Return a model's file."""
    is_llama = config["model_type"] == "llama"
    parts = [header(config, weights)]

    def add(name: str, kind: str, heads: int = 0) -> None:
        rows: Any = tensors[name].tolist()
        if heads:
            size = len(rows) // heads
            rows = [
                rows[head * size + half * size // 2 + place]
                for head in range(heads)
                for place in range(size // 2)
                for half in (0, 1)
            ]
        flat = [number for row in rows for number in row] if isinstance(rows[0], list) else rows
        parts.append(q40(flat) if kind == "q40" else struct.pack(f"<{len(flat)}f", *flat))

    add("model.embed_tokens.weight", "f32")
    for number in range(config["num_hidden_layers"]):
        layer = f"model.layers.{number}"
        add(f"{layer}.self_attn.q_proj.weight", weights, config["num_attention_heads"] if is_llama else 0)
        add(f"{layer}.self_attn.k_proj.weight", weights, config["num_key_value_heads"] if is_llama else 0)
        add(f"{layer}.self_attn.v_proj.weight", weights)
        add(f"{layer}.self_attn.o_proj.weight", weights)
        mlps = [f"{layer}.mlp"]
        if "num_experts" in config:
            add(f"{layer}.mlp.gate.weight", "f32")
            mlps = [f"{layer}.mlp.experts.{expert}" for expert in range(config["num_experts"])]
        for mlp in mlps:
            for part in ("gate", "down", "up"):
                add(f"{mlp}.{part}_proj.weight", weights)
        if not is_llama:
            add(f"{layer}.self_attn.q_norm.weight", "f32")
            add(f"{layer}.self_attn.k_norm.weight", "f32")
        add(f"{layer}.input_layernorm.weight", "f32")
        add(f"{layer}.post_attention_layernorm.weight", "f32")
    add("model.norm.weight", "f32")
    add("lm_head.weight" if "lm_head.weight" in tensors else "model.embed_tokens.weight", weights)
    return b"".join(parts)
