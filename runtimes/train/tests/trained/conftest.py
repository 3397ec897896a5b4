"""A small random model, and samples of each form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtimes.chat.tests.served import tiny


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a tokenizer and a chat template."""
    return tiny.make(tmp_path_factory.mktemp("models") / "tiny", hidden=32, seed=3)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve samples to train on, and one for the evaluation."""
    folder = tmp_path_factory.mktemp("data")
    lines = []
    for number in range(4):
        turns = [("user", f"say {number}"), ("assistant", f"it is {number}")]
        lines += [
            {"text": f"The quick brown fox {number}"},
            {"prompt": f"count {number}", "completion": f" {number + 1}"},
            {"messages": [{"role": role, "content": content} for role, content in turns]},
        ]
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (folder / "eval.jsonl").write_text('{"text": "The quick brown fox 9"}\n', "utf-8")
    return folder
