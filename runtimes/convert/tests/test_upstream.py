"""The bytes of both files, compared with those of distributed-llama's own converter.

Sums are SHA-256 of what the scripts of distributed-llama wrote for the folders below, with PyTorch 2.15, NumPy 2.4,
transformers 5.23 and sentencepiece 0.2.3:

- model.m: `converter/convert-hf.py` and `converter/writer.py` of b4rtaz/distributed-llama at
  04ebca5a9e1e5f08b27f666a7d41fc708b3d18b2. Later versions write the same values of the header in another order, with
  `head_dim` after those of RoPE, as kaigen-convert does. The runtime reads them in any order, so the sums are of the
  file with these values sorted by key. That version has no experts.
- tokenizer.t: `converter/convert-tokenizer-hf.py` of stanley-fork/distributed-llama at
  4dc3f939ec504174e6d9747633f83f2518b5cc89, which is upstream's script with its pull request 282, and
  `converter/tokenizer-writer.py` of taisirhassan/distributed-llama at c838c34a7598e218ee715d41aa9e122ccb94d9ca, which
  adds a field to upstream's that these tokenizers do not have.

To make them again: write a folder with `model_folder` or a function of `TOKENIZERS`, run the scripts, hash the result.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kaigen_convert.convert import Order, convert
from kaigen_convert.shape import read_shape
from kaigen_convert.tokenizer import read_tokenizer
from tiny_models import (
    LLAMA,
    LLAMA3,
    PIECES,
    QWEN3,
    TEMPLATE,
    hashed_tensors,
    merging_tokenizer,
    pieces_file,
    save_model,
)

MODELS: dict[str, tuple[dict[str, Any], bool, str, int]] = {
    "llama in f32": (LLAMA, False, "float32", 1),
    "llama in bf16": (LLAMA, False, "bfloat16", 1),
    "llama, tied, in f16": (LLAMA, True, "float16", 1),
    "llama 3.1 in three files of bf16": (LLAMA3, False, "bfloat16", 3),
    "qwen3 in f32": (QWEN3, False, "float32", 1),
    "qwen3, tied, in two files of bf16": (QWEN3, True, "bfloat16", 2),
}
MODEL_SUMS = {
    ("llama in f32", "f32"): "a48bb5944ace2238b1868864f0f0c2e5f5284ea443d4e0a810656b4899dfb545",
    ("llama in f32", "q40"): "58bf937e95aaeed7d1713c0a1d5c51b6f414a5460e0b9a15b1f066debdd372da",
    ("llama in bf16", "f32"): "45b3188853b5f80cea85075f581698c9b742ab5736b4c768539ff3dbe79cd47a",
    ("llama in bf16", "q40"): "5ec0a68f00c445c848bb064915a11ecd68228ba422a6ecb88370bb37cb30f26e",
    ("llama, tied, in f16", "f32"): "37c726c72fde10c19bd025eb0b612b3df8a6d3d65847e40bff5df37a7edb739e",
    ("llama, tied, in f16", "q40"): "f13a1008b1d38dde0c8419eee2ee805b56c84ba81c8a35b583d1784c8724411c",
    ("llama 3.1 in three files of bf16", "f32"): "698db1fdc77d97045323253a45ed7d8b13e5cf9958c8d11655e0fe7eeb4d9bc8",
    ("llama 3.1 in three files of bf16", "q40"): "746dce3ed2bdff8f29c74e86849021090ecacf81738b8054254230ba248e2353",
    ("qwen3 in f32", "f32"): "86b80ef2eaf2f653306c6a00a8dff0ebf4d12623718f33bcd249f91f55b0a6d2",
    ("qwen3 in f32", "q40"): "9d4880493bac5cff37ce6193dba98674cf15f39003b15a14eb05bdf2727b9da6",
    ("qwen3, tied, in two files of bf16", "f32"): "6fcc7c36fa41124e2bd669a4a4231ca4fe2e132a90852ac1c727c8b6826891dd",
    ("qwen3, tied, in two files of bf16", "q40"): "e2f8f90a46829aa2fff22f895cb1e0d308446451f815b84a74bacce758b3f3e0",
}
TOKENIZER_SUMS = {
    "byte-level": "d7be951482aa6043763d096a6814197ff7635679b8205c6b02040ea995eb19b2",
    "sentencepiece": "639b0bf45d0ba3bac12a86e78e607061defa17a50d4915bcbd0b24fc5d156180",
}


def model_folder(folder: Path, case: str) -> Path:
    """Write the model of a case."""
    config, tied, dtype, files = MODELS[case]
    tensors = hashed_tensors(config, tied=tied)
    return save_model(folder, config, tensors, dtype=dtype, files=files)


def byte_level_folder(folder: Path) -> int:
    """Write a byte-level tokenizer, and return its number of tokens."""
    document = merging_tokenizer()
    count = len(document["model"]["vocab"]) + len(document["added_tokens"])
    config = LLAMA | {"vocab_size": count, "bos_token_id": count - 4, "eos_token_id": [count - 3, count - 2]}
    settings = {"tokenizer_class": "Qwen2Tokenizer", "chat_template": TEMPLATE, "add_bos_token": False}
    for name, content in (("tokenizer.json", document), ("tokenizer_config.json", settings), ("config.json", config)):
        (folder / name).write_text(json.dumps(content))
    return count


def sentencepiece_folder(folder: Path) -> int:
    """Write a tokenizer of sentencepiece, and return its number of tokens."""
    config = LLAMA | {"vocab_size": len(PIECES), "bos_token_id": 1, "eos_token_id": 2}
    settings = {"tokenizer_class": "LlamaTokenizer", "chat_template": "[INST] {{ messages }}"}
    (folder / "tokenizer.model").write_bytes(pieces_file(PIECES))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps(config))
    return len(PIECES)


TOKENIZERS: dict[str, Callable[[Path], int]] = {"byte-level": byte_level_folder, "sentencepiece": sentencepiece_folder}


def sorted_header(content: bytes) -> bytes:
    """Return a model's file with the values of its header sorted by key."""
    magic, size = struct.unpack_from("<ii", content)
    values = sorted(struct.iter_unpack("<ii", content[8:size]))
    return struct.pack("<ii", magic, size) + b"".join(struct.pack("<ii", *pair) for pair in values) + content[size:]


@pytest.mark.parametrize("weights", ["f32", "q40"])
@pytest.mark.parametrize("case", MODELS)
def test_model_has_the_bytes_of_upstreams_converter(tmp_path: Path, case: str, weights: str) -> None:
    source = model_folder(tmp_path / "source", case)
    convert(Order(source, None, tmp_path / "result", "id", weights))
    found = (tmp_path / "result" / "model.m").read_bytes()
    assert len(found) == read_shape(json.loads((source / "config.json").read_text()), weights).file_size
    assert hashlib.sha256(sorted_header(found)).hexdigest() == MODEL_SUMS[case, weights]


@pytest.mark.parametrize("case", TOKENIZERS)
def test_tokenizer_has_the_bytes_of_upstreams_converter(tmp_path: Path, case: str) -> None:
    count = TOKENIZERS[case](tmp_path)
    found = read_tokenizer(tmp_path, json.loads((tmp_path / "config.json").read_text()), count).content()
    assert hashlib.sha256(found).hexdigest() == TOKENIZER_SUMS[case]
