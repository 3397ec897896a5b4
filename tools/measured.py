"""What engines logged about the memory of GPUs, and how far plans are from it: kaigen/sizing/measured.json.

    python -m tools.measured LOG --gpu H100 --model qwen2.5-32b-instruct --source TEXT [--gpus 2]

adds the row of a log of vLLM to the table. `make docs` writes the errors of all rows into docs/sizing.md.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.engines import parse_version
from kaigen.catalog.gpus import get_gpu
from kaigen.catalog.presets import find_preset
from kaigen.sizing.facts import Request, facts_of, hardware_of_gpu
from kaigen.sizing.memory import cache_blocks
from kaigen.sizing.plan import Plan, plan

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "kaigen" / "sizing" / "measured.json"
PAGE = "docs/sizing.md"
_BEGIN, _END = "<!-- measured.json: begin -->\n", "<!-- measured.json: end -->\n"

_REQUEST: Mapping[str, str] = {
    "gpu-memory-utilization": "utilization",
    "max-model-len": "context_length",
    "kv-cache-dtype": "kv_cache_dtype",
    "max-num-batched-tokens": "step_tokens",
    "quantization": "quantization",
    "tensor-parallel-size": "tensor_parallel",
    "pipeline-parallel-size": "pipeline_parallel",
}
"""Fields of a request by the flags of an engine that a plan takes into account."""

_LINES: Mapping[str, tuple[str, type[float] | type[int]]] = {
    "weightsGiB": (r"Model loading took ([0-9.]+) GiB", float),
    "cacheGiB": (r"Available KV cache memory: (-?[0-9.]+) GiB", float),
    "cacheTokens": (r"GPU KV cache size: ([0-9,]+) tokens", int),
    "cacheBlocks": (r"num_gpu_blocks(?: is|=)[: \"']*([0-9]+)", int),
    "sequences": (r"Maximum concurrency for [0-9,]+ tokens per request: ([0-9.]+)x", float),
    "activationsGiB": (r"([0-9.]+) GiB for peak activation", float),
    "otherGiB": (r"([0-9.]+) GiB for non-torch memory", float),
    "graphsGiB": (r"Estimated CUDA graph memory: ([0-9.]+) GiB", float),
    "context": (r"Auto-fit max_model_len: (?:reduced from [0-9]+ to |full model context length )([0-9]+)", int),
}
"""The lines of a log, with one number each."""


class Measurement(Struct, frozen=True, rename="camel"):
    """One start of an engine.

    Attributes:
        engine: name of the engine.
        version: of the engine.
        gpu: name of the GPU in the catalogue.
        gpus: number of them.
        model: name of the preset.
        arguments: flags of the engine that a plan takes into account, without dashes.
        log: what it logged, by the names in `_LINES`.
        source: where the log is.
        date: of the log or of the report.
    """

    engine: str
    version: str
    gpu: str
    gpus: int
    model: str
    arguments: Mapping[str, Any]
    log: Mapping[str, float]
    source: str
    date: str

    @property
    def planned(self) -> Plan:
        """The plan for the same start."""
        preset, gpu = find_preset(self.model, BUILT_IN), get_gpu(self.gpu, BUILT_IN)
        assert preset is not None, self.model
        assert gpu is not None, self.gpu
        given = {field: self.arguments[flag] for flag, field in _REQUEST.items() if flag in self.arguments}
        request = Request(version=parse_version(self.version), **given)
        return plan(facts_of(preset), request, hardware_of_gpu(gpu, self.gpus))

    @property
    def error(self) -> float:
        """Share of the budget by which the planned room for the cache is larger than the real one."""
        found = self.planned.memory
        return (found.kv_space - self.log["cacheGiB"]) / found.budget

    @property
    def blocks(self) -> int | None:
        """Blocks of the planned cache; None for a model without states."""
        found = self.planned
        blocks = cache_blocks(found.facts, found.layout.tp, found.layout.pp, found.load.kv_bits)
        return None if blocks is None else int(found.memory.kv_space * 2**30 / blocks.bytes)


@cache
def measurements() -> Sequence[Measurement]:
    """Return all rows of the table."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["rows"]
    return msgspec.convert(rows, list[Measurement])


def numbers_of(text: str) -> dict[str, float]:
    """Return the numbers in a log of vLLM; of several processes, those of the first."""
    found: dict[str, float] = {}
    for name, (pattern, kind) in _LINES.items():
        if match := re.search(pattern, text):
            found[name] = kind(match[1].replace(",", ""))
    return found


def row_of(text: str, *, gpu: str, gpus: int, model: str, source: str, date: str = "") -> dict[str, Any]:
    """Return the row of a log of vLLM.

    Args:
        text: the log, with the line of the arguments.
        gpu: name of the GPU in the catalogue.
        gpus: number of them.
        model: name of the preset.
        source: where the log is.
        date: of the log; empty for today.

    Raises:
        ValueError: the log does not have the version, or what the cache has.
    """
    version = re.search(r"LLM engine \(v([0-9]+\.[0-9]+\.[0-9]+)", text)
    numbers = numbers_of(text)
    if version is None or "cacheGiB" not in numbers:
        raise ValueError("the log has no line `Initializing a V1 LLM engine` or `Available KV cache memory`")
    given = re.search(r"non-default args: (\{.*\})", text)
    flags = {name.replace("_", "-"): value for name, value in ast.literal_eval(given[1]).items()} if given else {}
    arguments = {name: flags[name] for name in _REQUEST if name in flags}
    if arguments.get("max-model-len") in (-1, "auto"):
        del arguments["max-model-len"]
    return {
        "engine": "vllm",
        "version": version[1],
        "gpu": gpu,
        "gpus": gpus,
        "model": model,
        "arguments": arguments,
        "log": numbers,
        "source": source,
        "date": date or datetime.now(UTC).date().isoformat(),
    }


def with_row(text: str, row: Mapping[str, Any]) -> str:
    """Return the table with one more row, which is a line of its own."""
    end = "\n  ]\n}\n"
    return f"{text.removesuffix(end)},\n    {json.dumps(row, ensure_ascii=False)}{end}"


def page() -> str:
    """Return docs/sizing.md with the current errors."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    head, rest = text.split(_BEGIN)
    return head + _BEGIN + "\n" + _table() + "\n" + _END + rest.split(_END)[1]


def _table() -> str:
    lines = [
        "| vLLM | model | GPUs | arguments | weights: vLLM, kaigen | room for the cache: vLLM, kaigen | error |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in measurements():
        found = row.planned.memory
        arguments = " ".join(f"`{name}={value}`" for name, value in row.arguments.items())
        weights = f"{row.log['weightsGiB']:.2f}, {found.weights:.2f}"
        cache = f"{row.log['cacheGiB']:.2f}, {found.kv_space:.2f}"
        cells = (row.version, row.model, f"{row.gpus} × {row.gpu}", arguments, weights, cache, f"{row.error:+.1%}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Add the row of a log to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    for name in ("gpu", "model", "source"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--date", default="")
    given = parser.parse_args()
    row = row_of(
        given.log.read_text(encoding="utf-8"),
        gpu=given.gpu,
        gpus=given.gpus,
        model=given.model,
        source=given.source,
        date=given.date,
    )
    TABLE.write_text(with_row(TABLE.read_text(encoding="utf-8"), row), encoding="utf-8", newline="\n")
    print(f"added to {TABLE.relative_to(ROOT)}; run `make docs`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
