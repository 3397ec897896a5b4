"""`python -m benchmarks.convert`: measure kaigen-convert, and its q40 against a writer that packs block by block."""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_RUNTIME = Path(__file__).parent.parent / "runtimes" / "convert"
_PIECE = 1 << 19
_LAYERS, _DIM, _HIDDEN, _WORDS = 4, 2048, 6144, 32_000


def _by_block(values: npt.NDArray[np.float32]) -> bytes:
    """Return numbers in q40; levels are computed at once, and each block is packed by itself, as upstream does."""
    blocks = values.reshape(-1, 32)
    most, least = blocks.max(axis=1), blocks.min(axis=1)
    scales = np.where(-least > most, least, most) / np.float32(-8)
    levels = np.clip(blocks * (1 / scales)[:, None] + 8.5, 0, 15).astype(int)
    packed = (levels[:, :16] & 15) | ((levels[:, 16:] & 15) << 4)
    halves = scales.astype(np.float16)
    return b"".join(struct.pack("e16B", halves[number], *packed[number]) for number in range(len(blocks)))


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _model(folder: Path) -> int:
    """Write a Qwen3 of random bf16 weights; return the bytes of its weights."""
    generator = np.random.default_rng(1)
    config: dict[str, Any] = {
        "model_type": "qwen3",
        "hidden_size": _DIM,
        "intermediate_size": _HIDDEN,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": _WORDS,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    vocabulary = {f"t{number}": number for number in range(_WORDS)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": vocabulary}}))
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (_WORDS, _DIM), "model.norm.weight": (_DIM,)}
    for layer in (f"model.layers.{number}" for number in range(_LAYERS)):
        for name, rows, columns in (("q", 2048, _DIM), ("k", 1024, _DIM), ("v", 1024, _DIM), ("o", _DIM, 2048)):
            shapes[f"{layer}.self_attn.{name}_proj.weight"] = (rows, columns)
        for name, rows, columns in (("gate", _HIDDEN, _DIM), ("up", _HIDDEN, _DIM), ("down", _DIM, _HIDDEN)):
            shapes[f"{layer}.mlp.{name}_proj.weight"] = (rows, columns)
        shapes |= {f"{layer}.self_attn.{name}_norm.weight": (128,) for name in "qk"}
        shapes |= {f"{layer}.{name}_layernorm.weight": (_DIM,) for name in ("input", "post_attention")}
    header, place = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape in shapes.values():
            values = generator.standard_normal(shape, np.float32)
            file.write((values.view("<u4") >> np.uint32(16)).astype("<u2").tobytes())
    return place


_PROGRAM = """
import os, re, sys, time
from kaigen_convert.cli import main
assert main(sys.argv[1:], {}) == 0
peak = re.search("VmHWM:(.*)", open("/proc/self/status").read())[1]
print(time.process_time(), peak.strip())
"""


def _convert(source: Path, dest: Path, weights: str) -> tuple[float, str]:
    """Convert in a process of its own; return its seconds of CPU and its peak of memory."""
    folders = [f"--source={source}", f"--dest={dest}", "--identity=x", f"--weights={weights}"]
    command = [sys.executable, "-c", _PROGRAM, "distributed-llama", *folders]
    env = {**os.environ, "PYTHONPATH": str(_RUNTIME)}
    result = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    cpu, _, peak = result.stdout.splitlines()[-1].partition(" ")
    return float(cpu), peak


def main(argv: Sequence[str]) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", type=int, default=1 << 24, help="for the two writers (%(default)s)")
    count = parser.parse_args(argv).numbers // 32 * 32
    sys.path.insert(0, str(_RUNTIME))
    from kaigen_convert.numbers import q40  # type: ignore[import-not-found]

    values = np.random.default_rng(0).standard_normal(count, np.float32)
    pieces = [values[start : start + _PIECE] for start in range(0, count, _PIECE)]
    assert q40(pieces[0]) == _by_block(pieces[0])
    fast = _seconds(lambda: [*map(q40, pieces)])
    slow = _seconds(lambda: [*map(_by_block, pieces)])
    print(f"q40 of {count / 1e6:.1f} million numbers: {fast:.2f} s; block by block {slow:.2f} s")
    print(f"that is {slow / fast:.1f} times as fast")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.mkdir()
        size = _model(source)
        for weights in ("q40", "f32"):
            begin = time.perf_counter()
            cpu, peak = _convert(source, Path(folder) / weights, weights)
            used = f"{cpu:.1f} s of CPU, {peak} of memory"
            print(f"{size / 2**30:.2f} GiB of bf16 to {weights}: {time.perf_counter() - begin:.1f} s, {used}")


if __name__ == "__main__":
    main(sys.argv[1:])
