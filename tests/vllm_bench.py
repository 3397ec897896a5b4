#!/usr/bin/env python3
"""`vllm bench serve` for tests without vLLM: it asks a server for real, and writes the same fields of a result.

`test_vllm_gates.py` runs the real one with the same options.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit


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


def main(key: str) -> None:
    """Ask, and write the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", nargs=2)
    for name in ("backend", "base-url", "endpoint", "model", "dataset-name", "dataset-path", "extra-body"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("num-prompts", "max-concurrency", "num-warmups", "ready-check-timeout-sec"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("result-dir", "result-filename"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--request-rate", type=float)
    for name in ("skip-tokenizer-init", "skip-chat-template", "save-result", "save-detailed", "disable-tqdm"):
        parser.add_argument(f"--{name}", action="store_true", required=True)
    given = parser.parse_args()
    prompts = [row["prompt"] for row in read_rows(given.dataset_path)][: given.num_prompts]
    extra, is_chat = json.loads(given.extra_body), given.backend == "openai-chat"
    begun = time.monotonic()

    def send(prompt: str) -> list[float] | None:
        what = {"messages": [{"role": "user", "content": prompt}]} if is_chat else {"prompt": prompt}
        return ask(given.base_url, given.endpoint, {"model": given.model, "stream": True, **what, **extra}, key)

    with ThreadPoolExecutor(given.max_concurrency) as pool:
        found = [*pool.map(send, prompts)]
    seconds = time.monotonic() - begun
    complete = [each for each in found if each]
    result = {
        "completed": len(complete),
        "failed": len(found) - len(complete),
        "output_throughput": sum(map(len, complete)) / seconds,
        "request_throughput": len(complete) / seconds,
        # Without a tokenizer, the real one has no summary of these either.
        "ttfts": [each[0] if each else 0.0 for each in found],
        "itls": [[after - before for before, after in pairwise(each or [])] for each in found],
        "output_lens": [len(each or []) for each in found],
    }
    Path(given.result_dir, given.result_filename).write_text(json.dumps(result))


if __name__ == "__main__":
    main(os.environ["OPENAI_API_KEY"])
