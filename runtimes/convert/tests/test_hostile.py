"""Broken and hostile files: one line of error each, with the reason."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kaigen_convert.cli import main
from tiny_models import LLAMA, Floats, random_tensors, save, save_model

SMALL = {**LLAMA, "num_hidden_layers": 1}
TENSORS = random_tensors(SMALL)
Q = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return save_model(tmp_path / "source", SMALL, TENSORS)


def run(source: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Convert a folder; return exit code and log."""
    dest = source.parent / "result"
    code = main(
        ["distributed-llama", f"--source={source}", f"--dest={dest}", "--identity=abc"],
        {"KAIGEN_TERMINATION_LOG": str(source / "none")},
    )
    assert (code == 0) == (dest / ".kaigen/model.json").exists()
    return code, capsys.readouterr().err


def weights(source: Path) -> Path:
    return source / "model.safetensors"


def header_of(source: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the header of the file, and leave its data."""
    data = weights(source).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    weights(source).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def without(name: str) -> dict[str, Floats]:
    return {key: value for key, value in TENSORS.items() if key != name}


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut off": (lambda at: weights(at).write_bytes(weights(at).read_bytes()[:-5]), "not a valid safetensors file"),
    "empty": (lambda at: weights(at).write_bytes(b""), "not a valid safetensors file"),
    "endless header": (
        lambda at: weights(at).write_bytes(struct.pack("<Q", 1 << 60) + b"{}"),
        "not a valid safetensors file",
    ),
    "no JSON": (lambda at: weights(at).write_bytes(struct.pack("<Q", 4) + b"abcd"), "not a valid safetensors file"),
    "deep JSON": (
        lambda at: weights(at).write_bytes(struct.pack("<Q", 100_000) + b"[" * 100_000),
        "not a valid safetensors file",
    ),
    "offsets that overlap": (
        lambda at: header_of(at, lambda header: header[Q].update(data_offsets=[0, 16384])),
        "not a valid safetensors file",
    ),
    "offsets past the end": (
        lambda at: header_of(at, lambda header: header[Q].update(data_offsets=[1 << 40, (1 << 40) + 16384])),
        "not a valid safetensors file",
    ),
    "missing tensor": (lambda at: save(weights(at), without(Q)), f"no tensor `{Q}`"),
    "wrong shape": (
        lambda at: save(weights(at), TENSORS | {Q: TENSORS[Q][:32]}),
        "has the shape (32, 64), expected (64, 64)",
    ),
    "wrong type": (lambda at: save(weights(at), TENSORS, "int8"), "has numbers of type I8"),
    "bias": (
        lambda at: save(weights(at), TENSORS | {Q.replace("weight", "bias"): TENSORS["model.norm.weight"]}),
        "no place for the tensor `model.layers.0.self_attn.q_proj.bias`",
    ),
    "not a number": (
        lambda at: save(weights(at), TENSORS | {Q: np.full((64, 64), np.nan, np.float32)}),
        f"tensor `{Q}` has numbers that are not finite",
    ),
    "no weights": (lambda at: weights(at).unlink(), "has no *.safetensors"),
    "index that leaves the folder": (
        lambda at: (at / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../b.safetensors"}}'),
        "or a strange one",
    ),
    "index of a missing file": (
        lambda at: (at / "model.safetensors.index.json").write_text('{"weight_map": {"a": "b.safetensors"}}'),
        "has no b.safetensors",
    ),
    "tensor in two files": (
        lambda at: save(at / "more.safetensors", {Q: TENSORS[Q]}),
        f"the tensor `{Q}` is in model.safetensors and more.safetensors",
    ),
    "no config": (lambda at: (at / "config.json").unlink(), "has no config.json"),
    "config that is a list": (lambda at: (at / "config.json").write_text("[]"), "is not a JSON object"),
    "deep config": (lambda at: (at / "config.json").write_text("[" * 100_000), "is not valid JSON"),
    "no tokenizer": (lambda at: (at / "tokenizer.json").unlink(), "neither tokenizer.json nor tokenizer.model"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_one_line_with_the_reason(source: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    breaks, reason = BROKEN[name]
    breaks(source)
    code, log = run(source, capsys)
    assert code in (10, 11)
    assert reason in log
    assert log.count("error: ") == 1
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "gemma2"}, "models of type 'gemma2'"),
        ({"model_type": ["llama"]}, "models of type ['llama']"),
        ({"hidden_act": "relu"}, "no activation 'relu'"),
        ({"rms_norm_eps": 1e-12}, "rms_norm_eps: 1e-12"),
        ({"attention_bias": True}, "`attention_bias`"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantized already"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "no RoPE scaling 'yarn'"),
        ({"rope_theta": 10000.5}, "stores `rope_theta` as an integer"),
        ({"hidden_size": 1 << 40}, "`hidden_size` of config.json must be"),
        ({"num_hidden_layers": -1}, "`num_hidden_layers` of config.json must be"),
        ({"intermediate_size": 100}, "q40 has blocks of 32 weights, and the MLP has a width of 100"),
        ({"num_key_value_heads": 3}, "4 heads and 3 for keys and values"),
        ({"eos_token_id": None}, "which token ends an answer"),
        ({"eos_token_id": 100_000}, "the special token 100000 is none of the 260 tokens"),
        ({"vocab_size": 100}, "the tokenizer has 260 tokens, and the model 100"),
    ],
)
def test_models_that_the_runtime_cannot_run_are_refused(
    source: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], reason: str
) -> None:
    (source / "config.json").write_text(json.dumps(SMALL | change))
    code, log = run(source, capsys)
    assert (code, reason in log) == (11, True), log


def test_random_changes_of_files_never_are_bugs(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(5)
    files = [weights(source), source / "config.json", source / "tokenizer.json", source / "tokenizer_config.json"]
    for _ in range(40):
        path = chance.choice(files)
        before = path.read_bytes()
        data = bytearray(before)
        for _ in range(chance.randrange(1, 4)):
            # Headers and JSON are at the beginning.
            data[chance.randrange(min(len(data), 4000))] = chance.randrange(256)
        path.write_bytes(data)
        code, log = run(source, capsys)
        assert code in (0, 10, 11), log
        path.write_bytes(before)
        (source.parent / "result/.kaigen/model.json").unlink(missing_ok=True)
