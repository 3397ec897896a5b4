"""Plans against what vLLM logged, and rows made of logs."""

from __future__ import annotations

import json

import pytest

from tools.measured import TABLE, Measurement, measurements, numbers_of, row_of, with_row

# Lines as vLLM 0.24.0 writes them, without the parts that nothing reads.
LOG = """\
(APIServer pid=1) INFO 12:00:01 [utils.py:299]        █     █     █▄   ▄█
(APIServer pid=1) INFO 12:00:01 [utils.py:233] non-default args: {'model_tag': '/model', 'max_model_len': -1, \
'gpu_memory_utilization': 0.9, 'tensor_parallel_size': 2, 'enable_prefix_caching': False, 'load_format': 'dummy'}
(EngineCore pid=9) INFO 12:00:03 [core.py:105] Initializing a V1 LLM engine (v0.24.0) with config: model='/model'
(Worker_TP0 pid=10) INFO 12:00:20 [gpu_model_runner.py:4735] Model loading took 30.59 GiB memory and 4.1 seconds
(Worker_TP1 pid=11) INFO 12:00:20 [gpu_model_runner.py:4735] Model loading took 30.60 GiB memory and 4.2 seconds
(Worker_TP0 pid=10) INFO 12:01:00 [gpu_worker.py:450] Estimated CUDA graph memory: 0.90 GiB total
(Worker_TP0 pid=10) INFO 12:01:00 [gpu_worker.py:508] Available KV cache memory: 36.84 GiB
(EngineCore pid=9) INFO 12:01:00 [kv_cache_utils.py:1955] Auto-fit max_model_len: reduced from 131072 to 28032 to fit in
(EngineCore pid=9) INFO 12:01:00 [kv_cache_utils.py:2146] GPU KV cache size: 301,824 tokens
(EngineCore pid=9) INFO 12:01:00 [kv_cache_utils.py:2147] Maximum concurrency for 28,032 tokens per request: 10.77x
(Worker_TP0 pid=10) INFO 12:01:01 [gpu_worker.py:661] Usage is 30.59 GiB for weight, 1.96 GiB for peak activation, \
2.1 GiB for non-torch memory, and 1.79 GiB for CUDAGraph memory.
(APIServer pid=1) DEBUG 12:01:01 [loggers.py:273] Engine 000: cache_config_info after num_gpu_blocks is: 18864
"""


@pytest.mark.parametrize(
    "row", measurements(), ids=lambda row: f"{row.model} {row.version} {row.gpus}x{row.gpu} {len(row.arguments)}"
)
def test_a_plan_is_near_what_was_measured_and_never_promises_more(row: Measurement) -> None:
    assert -0.05 <= row.error <= 0, f"{row.planned.memory.kv_space:.2f} GiB, and {row.log['cacheGiB']} are real"
    weights = row.planned.memory.weights
    assert weights == pytest.approx(row.log["weightsGiB"], rel=0.07), "stages differ by an embedding"
    if (blocks := row.log.get("cacheBlocks")) is not None:
        assert row.blocks is not None
        assert 0.85 * blocks < row.blocks <= blocks


@pytest.mark.parametrize("row", [row for row in measurements() if "cacheTokens" in row.log], ids=lambda row: row.model)
def test_a_token_of_the_cache_has_the_measured_size(row: Measurement) -> None:
    found = row.planned
    room = row.log["cacheGiB"] / found.memory.kv_space
    context = found.load.context
    if "sequences" in row.log:
        assert found.max_concurrency == pytest.approx(row.log["sequences"] / room, rel=0.1)
    else:
        tokens = found.memory.kv_space * context / found.memory.kv_cache * room
        assert tokens == pytest.approx(row.log["cacheTokens"], rel=0.001)


@pytest.mark.parametrize("row", [row for row in measurements() if "otherGiB" in row.log], ids=lambda row: row.model)
def test_a_plan_also_has_room_for_the_graphs_that_newer_versions_count(row: Measurement) -> None:
    found = row.planned.memory
    parts = sum(row.log[name] for name in ("weightsGiB", "activationsGiB", "otherGiB", "graphsGiB"))
    assert found.weights + found.overhead >= parts


def test_a_log_becomes_a_row() -> None:
    row = row_of(LOG, gpu="H100", gpus=2, model="qwen2.5-32b-instruct", source="a run", date="2026-11-26")
    assert row == {
        "engine": "vllm",
        "version": "0.24.0",
        "gpu": "H100",
        "gpus": 2,
        "model": "qwen2.5-32b-instruct",
        "arguments": {"gpu-memory-utilization": 0.9, "tensor-parallel-size": 2},
        "log": {
            "weightsGiB": 30.59,
            "cacheGiB": 36.84,
            "cacheTokens": 301824,
            "cacheBlocks": 18864,
            "sequences": 10.77,
            "activationsGiB": 1.96,
            "otherGiB": 2.1,
            "graphsGiB": 0.9,
            "context": 28032,
        },
        "source": "a run",
        "date": "2026-11-26",
    }
    table = TABLE.read_text(encoding="utf-8")
    rows = json.loads(with_row(table, row))["rows"]
    assert rows == [*json.loads(table)["rows"], row]


def test_a_log_without_the_lines_is_refused() -> None:
    assert numbers_of("Auto-fit max_model_len: full model context length 40960 fits in available") == {"context": 40960}
    with pytest.raises(ValueError, match="has no line"):
        row_of("", gpu="H100", gpus=1, model="phi-4", source="")
