"""Put the runtimes on the path, make a model of a real shape, and collect what was measured."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "runtimes" / name) for name in ("train", "chat", "classify")]
sys.path += [str(ROOT / "runtimes" / name / "tests") for name in ("train", "classify")]

Record = Callable[..., None]
"""Adds a row to what was measured."""


@pytest.fixture(scope="session", autouse=True)
def gpu() -> str:
    """The name of the GPU; tests fail where there is none."""
    import torch

    assert torch.cuda.is_available(), "PyTorch finds no GPU; run these tests on a machine with one"
    return str(torch.cuda.get_device_name())


@pytest.fixture(scope="session")
def record(gpu: str) -> Record:
    """Adds a row to the file that KAIGEN_GPU_REPORT names, with the GPU and the versions."""
    import torch
    import transformers

    file = os.environ.get("KAIGEN_GPU_REPORT")
    machine = {"gpu": gpu, "torch": torch.__version__, "transformers": transformers.__version__}

    def add(**row: Any) -> None:
        line = json.dumps({**machine, **row})
        sys.stderr.write(line + "\n")
        if file:
            with Path(file).open("a", encoding="utf-8") as target:
                target.write(line + "\n")

    return add


@pytest.fixture(scope="session")
def model(gpu: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with 1.5 billion random parameters in bfloat16, and the layers of Llama 3.2 1B."""
    return make_model(tmp_path_factory.mktemp("models") / "llama-1b")


def make_model(folder: Path, vocabulary: int = 128256) -> Path:
    """Write a model with the layers of Llama 3.2 1B.

    Args:
        folder: where to.
        vocabulary: tokens that it knows.
    """
    import torch

    from runtimes.chat.tests.served import tiny

    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("cuda"):
            return tiny.make(
                folder,
                hidden=2048,
                layers=16,
                context=4096,
                seed=3,
                intermediate_size=8192,
                num_attention_heads=32,
                num_key_value_heads=8,
                vocab_size=vocabulary,
                initializer_range=0.02,
                dtype="bfloat16",
            )
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Samples of about 1,000 tokens that a model can learn, and one for the evaluation."""
    folder = tmp_path_factory.mktemp("data")
    words = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all. "
    lines = [json.dumps({"text": f"{number}. {words * 40}"}) for number in range(96)]
    (folder / "train.jsonl").write_text("\n".join(lines), "utf-8")
    (folder / "eval.jsonl").write_text(json.dumps({"text": words * 40}), "utf-8")
    return folder
