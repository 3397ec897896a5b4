"""The memory of a training run against what kaigen-train took on a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kaigen.sizing.constants import constant
from kaigen.sizing.facts import ModelFacts
from kaigen.sizing.training import Training, peak_gpu_memory

TABLE = Path(__file__).parents[2] / "gpu" / "measured.jsonl"
MEASURED = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
PASSES = [
    (row, batch, peak / 2**30)
    for row in MEASURED
    if row.get("test") == "memory"
    for batch, peak in zip(row["batches"], row["peakBytes"], strict=True)
]


def model(vocabulary: int) -> ModelFacts:
    """Return the model of `tests/gpu`, with the layers of Llama 3.2 1B and an output of its own."""
    parameters = 973_078_528 + 2 * vocabulary * 2048
    return ModelFacts(
        name="llama-1b",
        weights=parameters * 2 / 2**30,
        layers=16,
        heads=32,
        kv_heads=8,
        head_dim=64,
        hidden_size=2048,
        max_context=4096,
        vocabulary=vocabulary,
    )


@pytest.mark.parametrize(("row", "batch", "measured"), PASSES)
def test_the_peak_is_near_what_was_measured_and_never_below(row: dict[str, Any], batch: int, measured: float) -> None:
    training = Training(
        row["method"], batch, row["maxLength"], 1, merge=False, checkpointing=row["gradientCheckpointing"]
    )
    planned = peak_gpu_memory(model(row["vocabulary"]), training) - constant("contextGiB")
    assert measured <= planned <= 1.15 * measured, (row["method"], batch, planned)


def test_there_are_measurements() -> None:
    assert len(PASSES) == 15
