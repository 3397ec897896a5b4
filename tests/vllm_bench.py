#!/usr/bin/env python3
"""`vllm bench serve` for tests without vLLM: it asks a server for real, and writes the same fields of a result.

`test_vllm_gates.py` runs the real one with the same options.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

NAMES = ("ttft", "tpot", "itl", "e2el")


def ask(url: str, path: str, body: dict[str, object], key: str) -> list[float] | None:
    """Return when tokens of an answer came, in seconds after the request; None if it failed."""
    begun = time.monotonic()
    try:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        if answer.status != 200:
            return None
        return [time.monotonic() - begun for line in answer if line.startswith(b"data: {") and b'"usage"' not in line]
    except (OSError, http.client.HTTPException):
        return None


def read_rows(path: str) -> list[dict[str, str]]:
    """Return the rows of a file as vLLM's tool reads them: `CustomDataset.load_data`, 0.32.0."""
    pandas = import_module("pandas")
    found = pandas.read_json(path_or_buf=path, lines=True)
    if "prompt" not in found.columns:
        raise ValueError("JSONL file must contain a 'prompt' column.")
    return [row.to_dict() for _, row in found.iterrows()]


def percentile(values: list[float], share: int) -> float:
    """Return a percentile in milliseconds."""
    return 1000 * sorted(values)[min(len(values) - 1, len(values) * share // 100)]


def main(key: str) -> None:
    """Ask, and write the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", nargs=2)
    for name in ("backend", "base-url", "endpoint", "model", "dataset-name", "dataset-path", "extra-body"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("num-prompts", "max-concurrency", "num-warmups", "ready-check-timeout-sec"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("percentile-metrics", "metric-percentiles", "result-dir", "result-filename"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--request-rate", type=float)
    for name in ("skip-tokenizer-init", "skip-chat-template", "save-result", "disable-tqdm"):
        parser.add_argument(f"--{name}", action="store_true", required=True)
    given = parser.parse_args()
    prompts = [row["prompt"] for row in read_rows(given.dataset_path)][: given.num_prompts]
    extra, is_chat = json.loads(given.extra_body), given.backend == "openai-chat"
    begun = time.monotonic()

    def send(prompt: str) -> list[float] | None:
        what = {"messages": [{"role": "user", "content": prompt}]} if is_chat else {"prompt": prompt}
        return ask(given.base_url, given.endpoint, {"model": given.model, "stream": True, **what, **extra}, key)

    with ThreadPoolExecutor(given.max_concurrency) as pool:
        found = [each for each in pool.map(send, prompts) if each]
    seconds = time.monotonic() - begun
    tokens = sum(map(len, found))
    result = {
        "completed": len(found),
        "failed": len(prompts) - len(found),
        "output_throughput": tokens / seconds,
        "request_throughput": len(found) / seconds,
    }
    steps = [after - before for each in found for before, after in pairwise(each)] or [0.0]
    times = {"ttft": [each[0] for each in found], "tpot": steps, "itl": steps, "e2el": [each[-1] for each in found]}
    for name in NAMES if found else ():
        result[f"mean_{name}_ms"] = 1000 * statistics.fmean(times[name])
        result |= {
            f"p{each}_{name}_ms": percentile(times[name], int(each)) for each in given.metric_percentiles.split(",")
        }
    Path(given.result_dir, given.result_filename).write_text(json.dumps(result))


if __name__ == "__main__":
    main(os.environ["OPENAI_API_KEY"])
