"""The bytes of `model.m`, compared with a slow writer of the tests, and its size, compared with the formula."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_writer
from hypothesis import given, settings
from hypothesis import strategies as st
from kaigen_convert import model
from kaigen_convert.convert import Order, convert
from kaigen_convert.documents import Document
from kaigen_convert.numbers import q40
from kaigen_convert.shape import read_shape
from kaigen_convert.tensors import Tensors
from tiny_models import LLAMA, LLAMA3, QWEN3, QWEN3_MOE, random_tensors, save, save_model

CASES = {
    "llama, tied, in f32": (LLAMA, True, "float32", 1),
    "llama 3.1 in three files of bf16": (LLAMA3, False, "bfloat16", 3),
    "qwen3 in f16": (QWEN3, False, "float16", 1),
    "qwen3 with experts, in two files of bf16": (QWEN3_MOE, False, "bfloat16", 2),
}


def run(source: Path, weights: str = "q40", dest: str = "result") -> Path:
    """Convert a folder."""
    folder = source.parent / dest
    convert(Order(source, None, folder, "id", weights))
    return folder


@pytest.mark.parametrize("weights", ["q40", "f32"])
@pytest.mark.parametrize("case", CASES)
def test_bytes_are_those_of_the_reference_writer(tmp_path: Path, case: str, weights: str) -> None:
    config, tied, dtype, files = CASES[case]
    tensors = random_tensors(config, tied=tied)
    source = save_model(tmp_path / "source", config, tensors, dtype=dtype, files=files)
    found = (run(source, weights) / "model.m").read_bytes()
    assert found == reference_writer.model_file(config, tensors, weights)
    assert len(found) == read_shape(_json(config), weights).file_size


def test_small_pieces_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = random_tensors(LLAMA3)
    source = save_model(tmp_path / "source", LLAMA3, tensors)
    whole = (run(source) / "model.m").read_bytes()
    monkeypatch.setattr(model, "_PIECE", 300)
    assert (run(source, dest="again") / "model.m").read_bytes() == whole


def test_layouts_before_and_since_transformers_5_give_the_same_bytes(tmp_path: Path) -> None:
    tensors = random_tensors(LLAMA3)
    old = run(save_model(tmp_path / "old", LLAMA3, tensors), dest="a")
    config = {key: value for key, value in LLAMA3.items() if key not in ("rope_theta", "rope_scaling")}
    config["rope_parameters"] = {**LLAMA3["rope_scaling"], "rope_theta": LLAMA3["rope_theta"]}  # type: ignore[dict-item]
    config["dtype"] = "bfloat16"
    source = save_model(tmp_path / "new", config, tensors)
    (source / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "TokenizersBackend", "backend": "tokenizers", "add_bos_token": False})
    )
    template = json.loads((tmp_path / "old/tokenizer_config.json").read_text())["chat_template"]
    (source / "chat_template.jinja").write_text(template)
    new = run(source, dest="b")
    for name in ("model.m", "tokenizer.t"):
        assert (new / name).read_bytes() == (old / name).read_bytes()


def test_consolidated_copies_of_the_weights_are_left_out(tmp_path: Path) -> None:
    tensors = random_tensors(LLAMA)
    source = save_model(tmp_path / "source", LLAMA, tensors)
    save(source / "consolidated.safetensors", {"tok_embeddings.weight": tensors["lm_head.weight"]})
    assert (run(source) / "model.m").read_bytes() == reference_writer.model_file(LLAMA, tensors, "q40")


_heads = st.sampled_from([(1, 1), (2, 1), (2, 2), (4, 2), (6, 3), (8, 1)])


@settings(max_examples=20, deadline=None)
@given(
    data=st.data(),
    heads=_heads,
    kind=st.sampled_from(["llama", "qwen3", "qwen3_moe"]),
    weights=st.sampled_from(["q40", "f32"]),
    tied=st.booleans(),
)
def test_every_shape_has_the_size_of_the_formula(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    heads: tuple[int, int],
    kind: str,
    weights: str,
    tied: bool,
) -> None:
    unit = 32 if weights == "q40" else 2
    width = data.draw(st.sampled_from([32, 64]) if unit == 32 else st.sampled_from([2, 6, 32]))
    config = {
        **(QWEN3_MOE if kind == "qwen3_moe" else LLAMA),
        "model_type": kind,
        "hidden_size": unit * data.draw(st.integers(1, 3)),
        "intermediate_size": unit * data.draw(st.integers(1, 3)),
        "num_hidden_layers": data.draw(st.integers(1, 2)),
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "head_dim": width,
        "vocab_size": data.draw(st.integers(1, 40)),
        "moe_intermediate_size": unit * data.draw(st.integers(1, 2)),
    }
    if kind != "qwen3_moe":
        del config["moe_intermediate_size"]
    tensors = random_tensors(config, tied=tied)
    folder = tmp_path_factory.mktemp("model")
    save(folder / "model.safetensors", tensors)
    shape = read_shape(_json(config), weights)
    opened = Tensors(folder)
    try:
        found = b"".join(model.content(shape, model.plan(shape, opened)))
    finally:
        opened.close()
    assert len(found) == shape.file_size
    assert found == reference_writer.model_file(config, tensors, weights)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e4, 1e4, width=32).map(lambda value: value + 0.0), min_size=32, max_size=32))
def test_q40_is_the_reference_and_errs_by_one_step_at_most(values: list[float]) -> None:
    found = q40(np.array(values, np.float32))
    assert found == reference_writer.q40(values)
    scale = float(np.frombuffer(found[:2], "<f2")[0])
    bits = np.frombuffer(found[2:], np.uint8)
    levels = np.concatenate([bits & 15, bits >> 4]).astype(np.float32) - 8
    # The step of the other sign is cut off at 7, and the scale is rounded to 11 bits.
    room = abs(scale) * (1 + 8 * 2**-11) + 8 * 2**-24
    assert np.abs(levels * scale - np.array(values, np.float32)).max() <= room


def test_q40_of_zeros_and_of_tiny_numbers_is_zero() -> None:
    for value in (0.0, 1e-40, -1e-44, 1e-9):
        found = q40(np.full(32, value, np.float32))
        scale = float(np.frombuffer(found[:2], "<f2")[0])
        assert scale == 0
        assert set(found[2:]) == ({0} if value == 1e-9 else {0x88})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_numbers_that_the_scale_cannot_have_are_refused(value: float) -> None:
    values = np.zeros(64, np.float32)
    values[40] = value
    with pytest.raises(ValueError, match="not finite or too large"):
        q40(values)


def _json(config: dict[str, Any]) -> Document:
    found: Document = json.loads(json.dumps(config))
    return found
