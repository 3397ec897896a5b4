"""A Llama of random weights, and LoRA adapters for it, as the files of a Hub repository."""

from __future__ import annotations

import json
import random
import struct
from array import array
from collections.abc import Mapping, Sequence

Files = Mapping[str, bytes]
"""Content of each file, by name."""

_HIDDEN = 128
_INNER = 256
_HEADS = 4
_LAYERS = 2
_LETTERS = "".join(chr(code) for code in range(32, 127)) + "\n"
_SPECIAL = ("<unk>", "<s>", "</s>")
_WORDS = len(_SPECIAL) + len(_LETTERS)
_TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message.content }}\n{% endfor %}"

Tensor = tuple[Sequence[int], "array[float]"]


def base_files(context: int = 2048) -> Files:
    """Return the files of a model that continues any text with letters.

    Args:
        context: longest context in tokens.
    """
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": _HIDDEN,
        "intermediate_size": _INNER,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _HEADS,
        "vocab_size": _WORDS,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
        "tie_word_embeddings": False,
    }
    return {
        "config.json": _json(config),
        "model.safetensors": _safetensors(_weights(random.Random(1))),
        "tokenizer.json": _json(_tokenizer()),
        "tokenizer_config.json": _json(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "unk_token": "<unk>",
                "bos_token": "<s>",
                "eos_token": "</s>",
                "chat_template": _TEMPLATE,
                "model_max_length": context,
            }
        ),
    }


def classifier_files(labels: Sequence[str], context: int = 512) -> Files:
    """Return the files of a model that gives each text one of these labels.

    Args:
        labels: the labels.
        context: longest context in tokens.
    """
    files = base_files(context)
    config = json.loads(files["config.json"])
    names = {str(number): label for number, label in enumerate(labels)}
    config |= {
        "architectures": ["LlamaForSequenceClassification"],
        "id2label": names,
        "label2id": {label: int(number) for number, label in names.items()},
        "num_labels": len(labels),
        "pad_token_id": 0,
    }
    chance = random.Random(1)
    tensors = {name: tensor for name, tensor in _weights(chance).items() if name != "lm_head.weight"}
    tensors["score.weight"] = _matrix(chance, len(labels), _HIDDEN)
    return {**files, "config.json": _json(config), "model.safetensors": _safetensors(tensors)}


def adapter_files(seed: int) -> Files:
    """Return the files of a LoRA adapter that changes every answer.

    Args:
        seed: of its weights.
    """
    chance, rank = random.Random(seed), 4
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny",
        "r": rank,
        "lora_alpha": 8 * rank,
        "target_modules": ["q_proj", "v_proj"],
        "bias": "none",
    }
    tensors = {}
    for layer in range(_LAYERS):
        for name in ("q_proj", "v_proj"):
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{name}"
            tensors[f"{prefix}.lora_A.weight"] = _matrix(chance, rank, _HIDDEN)
            tensors[f"{prefix}.lora_B.weight"] = _matrix(chance, _HIDDEN, rank)
    return {"adapter_config.json": _json(config), "adapter_model.safetensors": _safetensors(tensors)}


def _weights(chance: random.Random) -> Mapping[str, Tensor]:
    tensors = {
        "model.embed_tokens.weight": _matrix(chance, _WORDS, _HIDDEN),
        "model.norm.weight": _ones(_HIDDEN),
        "lm_head.weight": _matrix(chance, _WORDS, _HIDDEN),
    }
    # The special tokens never win, so that answers have the asked length.
    shape, head = tensors["lm_head.weight"]
    head[: len(_SPECIAL) * _HIDDEN] = array("f", bytes(4 * len(_SPECIAL) * _HIDDEN))
    tensors["lm_head.weight"] = shape, head
    for layer in range(_LAYERS):
        prefix = f"model.layers.{layer}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            tensors[f"{prefix}.self_attn.{name}.weight"] = _matrix(chance, _HIDDEN, _HIDDEN)
        for name in ("gate_proj", "up_proj"):
            tensors[f"{prefix}.mlp.{name}.weight"] = _matrix(chance, _INNER, _HIDDEN)
        tensors[f"{prefix}.mlp.down_proj.weight"] = _matrix(chance, _HIDDEN, _INNER)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{prefix}.{name}.weight"] = _ones(_HIDDEN)
    return tensors


def _matrix(chance: random.Random, rows: int, columns: int) -> Tensor:
    return (rows, columns), array("f", (chance.uniform(-0.4, 0.4) for _ in range(rows * columns)))


def _ones(size: int) -> Tensor:
    return (size,), array("f", [1.0] * size)


def _safetensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Return tensors in the format of safetensors: the length of a header, the header as JSON, the values."""
    header, values = {}, b""
    for name, (shape, data) in tensors.items():
        end = len(values) + 4 * len(data)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(values), end]}
        values += data.tobytes()
    text = _json(header)
    return struct.pack("<Q", len(text)) + text + values


def _tokenizer() -> Mapping[str, object]:
    """Return a tokenizer whose tokens are single characters."""
    added = [
        {
            "id": index,
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, word in enumerate(_SPECIAL)
    ]
    words = {word: index for index, word in enumerate((*_SPECIAL, *_LETTERS))}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False},
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
    }


def _json(content: object) -> bytes:
    return json.dumps(content).encode()
