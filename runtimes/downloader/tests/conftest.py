"""Puts the package and the helpers beside the tests on the path, and gives each test a Hub of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from hub import Hub  # noqa: E402
from runs import Runner, content  # noqa: E402


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A model of five files: small ones in git, one of a single part, one of sixteen, one empty."""
    with Hub() as server:
        server.add("config.json", b'{"model_type": "llama"}\n')
        server.add("tokenizer/vocab with space.txt", b"a\nb\n")
        server.add("empty", b"")
        server.add("model-00001.safetensors", content(50_000, 1))
        server.add("model-00002.safetensors", content(16 * 65536 - 5, 2))
        yield server


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "model"
