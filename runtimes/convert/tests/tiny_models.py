"""Tiny random models in the files of the Hugging Face Hub."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import TensorSpec, serialize_file

Floats = npt.NDArray[np.float32]

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 288,
    "max_position_embeddings": 128,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "bos_token_id": 256,
    "eos_token_id": 257,
}
LLAMA3 = {
    **LLAMA,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "head_dim": 16,
    "eos_token_id": [257, 258],
}
QWEN3 = {**LLAMA, "model_type": "qwen3", "head_dim": 32, "rope_theta": 1000000, "rms_norm_eps": 1e-6}
QWEN3_MOE = {
    **QWEN3,
    "model_type": "qwen3_moe",
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
}


def shapes(config: Mapping[str, Any], *, tied: bool = False) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a model's tensors by name."""
    dim, hidden, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    width = config.get("head_dim") or dim // heads
    q, kv = heads * width, config["num_key_value_heads"] * width
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], dim)}
    for layer in (f"model.layers.{number}" for number in range(config["num_hidden_layers"])):
        attention = f"{layer}.self_attn"
        found |= {
            f"{attention}.q_proj.weight": (q, dim),
            f"{attention}.k_proj.weight": (kv, dim),
            f"{attention}.v_proj.weight": (kv, dim),
            f"{attention}.o_proj.weight": (dim, q),
            f"{layer}.input_layernorm.weight": (dim,),
            f"{layer}.post_attention_layernorm.weight": (dim,),
        }
        if config["model_type"].startswith("qwen3"):
            found |= {f"{attention}.q_norm.weight": (width,), f"{attention}.k_norm.weight": (width,)}
        mlps = [f"{layer}.mlp"]
        if "num_experts" in config:
            found[f"{layer}.mlp.gate.weight"] = (config["num_experts"], dim)
            mlps = [f"{layer}.mlp.experts.{expert}" for expert in range(config["num_experts"])]
            hidden = config["moe_intermediate_size"]
        for mlp in mlps:
            found |= {
                f"{mlp}.gate_proj.weight": (hidden, dim),
                f"{mlp}.up_proj.weight": (hidden, dim),
                f"{mlp}.down_proj.weight": (dim, hidden),
            }
    found["model.norm.weight"] = (dim,)
    return found if tied else found | {"lm_head.weight": (config["vocab_size"], dim)}


def random_tensors(config: Mapping[str, Any], *, tied: bool = False, seed: int = 0) -> dict[str, Floats]:
    """Return random tensors that bf16 and f16 have exactly, so that files of every type have the same numbers."""
    random = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes(config, tied=tied).items():
        values = random.integers(-127, 128, shape).astype(np.float32)
        found[name] = values * np.float32(2.0) ** random.integers(-9, -5, shape).astype(np.float32)
    return found


def hashed_tensors(config: Mapping[str, Any], *, tied: bool = False) -> dict[str, Floats]:
    """Return tensors whose bits are a hash of their position, so that every version of NumPy has the same numbers.

    Numbers have all 24 bits of float32, from 2^-10 to 1. Of each 17 blocks of 32, one is zeros, and one has a largest
    magnitude with both signs.
    """
    found = {}
    for number, (name, shape) in enumerate(shapes(config, tied=tied).items()):
        place = np.arange(int(np.prod(shape)), dtype=np.uint64)
        bits = _hashed(place + np.uint64(number << 32)).astype(np.uint32)
        sign = bits & np.uint32(1 << 31)
        fraction = bits & np.uint32((1 << 23) - 1)
        exponent = np.uint32(117) + ((bits >> np.uint32(23)) & np.uint32(7))
        block = place // np.uint64(32) % np.uint64(17)
        values = sign | (exponent << np.uint32(23)) | fraction
        values[block == 1] = (sign | np.uint32(125 << 23))[block == 1]
        values[block == 0] = 0
        found[name] = values.view(np.float32).reshape(shape)
    return found


def _hashed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the output of SplitMix64 for each state."""
    values = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def stored(values: Floats, dtype: str) -> npt.NDArray[Any]:
    """Return numbers in a type of safetensors; bf16 is the upper half of f32."""
    if dtype == "bfloat16":
        return (values.view("<u4") >> np.uint32(16)).astype("<u2")
    return np.ascontiguousarray(values, {"float16": "<f2", "float32": "<f4", "int8": "i1"}[dtype])


def save(path: Path, tensors: Mapping[str, Floats], dtype: str = "float32") -> None:
    """Write a safetensors file."""
    arrays = {name: stored(values, dtype) for name, values in tensors.items()}
    specs = {
        name: TensorSpec(dtype=dtype, shape=each.shape, data_ptr=each.ctypes.data, data_len=each.nbytes)
        for name, each in arrays.items()
    }
    serialize_file(specs, str(path), None)


def save_model(
    folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Floats], *, dtype: str = "float32", files: int = 1
) -> Path:
    """Write a model with a tokenizer, in one file or several with an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(config)))
    save_tokenizer(folder)
    if files == 1:
        save(folder / "model.safetensors", tensors, dtype)
        return folder
    names: list[str] = list(tensors)
    index: dict[str, str] = {}
    for number in range(files):
        name = f"model-{number + 1:05}-of-{files:05}.safetensors"
        # As transformers splits a model: in the order of its tensors, anywhere in a layer.
        own = names[number * len(names) // files : (number + 1) * len(names) // files]
        save(folder / name, {each: tensors[each] for each in own}, dtype)
        index.update(dict.fromkeys(own, name))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return folder


def byte_level(tokens: int = 256) -> dict[str, int]:
    """Return the vocabulary of a byte-level tokenizer without merges: GPT-2's characters for all bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    texts = [chr(byte) for byte in printable] + [chr(256 + place) for place in range(len(rest))]
    return {text: number for number, text in enumerate(texts[:tokens])}


SPECIAL = ("<|begin|>", "<|end|>", "<|eot|>", "<|im_start|>")


def tokenizer_document() -> dict[str, Any]:
    """Return a tokenizer.json of 256 bytes, two merges and four special tokens."""
    vocabulary = byte_level()
    return {
        "version": "1.0",
        "added_tokens": [{"id": 256 + place, "content": text, "special": True} for place, text in enumerate(SPECIAL)],
        "pre_tokenizer": {"type": "ByteLevel"},
        "decoder": {"type": "ByteLevel"},
        "post_processor": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"


def save_tokenizer(folder: Path, **settings: Any) -> None:
    """Write a byte-level tokenizer and its settings."""
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_document()))
    values = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE, "add_bos_token": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(values | settings))


MERGED = (("\u0120", "t"), ("h", "e"), ("\u0120t", "he"), ("\u00c3", "\u00a9"))
"""Merges of a byte-level tokenizer: to ` t`, `he`, ` the` and `é`."""


def merging_tokenizer() -> dict[str, Any]:
    """Return a tokenizer.json with merges, and with every field that the library `tokenizers` needs."""
    texts = [*byte_level(), *("".join(pair) for pair in MERGED)]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": len(texts) + place, "content": text, **flags} for place, text in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": level,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {text: number for number, text in enumerate(texts)},
            "merges": [" ".join(pair) for pair in MERGED],
        },
    }


PIECES = [
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("</s>", 0.0, 3),
    *((f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)),
    ("\u2581t", 0.0, 1),
    ("er", -1.0, 1),
    ("\u2581", -2.0, 1),
]
"""Tokens of sentencepiece: text, score and type."""


def pieces_file(pieces: Sequence[tuple[str, float, int]]) -> bytes:
    """Return a `tokenizer.model` of sentencepiece: BPE with bytes as fallback."""
    found = b""
    for text, score, kind in pieces:
        data = text.encode()
        message = b"\x0a" + bytes([len(data)]) + data + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
        found += b"\x0a" + bytes([len(message)]) + message
    # The settings of the training: BPE (field 3), and bytes as fallback (field 35).
    return found + b"\x12\x05\x18\x02\x98\x02\x01"
