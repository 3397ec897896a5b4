"""The middleware that gives vLLM its own key in place of one of a file."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kaigen.programs import files, kaigen_keys

PROGRAM = Path(files.__file__).parent / "kaigen_keys.py"
Ask = Callable[..., list[bytes]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Sends a request with some Authorization headers, and returns those that vLLM gets."""
    monkeypatch.setenv(kaigen_keys.FILE, str(tmp_path / "keys"))
    monkeypatch.setenv(kaigen_keys.KEY, "own")
    seen: list[list[Any]] = []

    async def vllm(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append(scope.get("headers", []))

    middleware = kaigen_keys.Keys(vllm)

    def send(*sent: bytes, kind: str = "http") -> list[bytes]:
        headers = [(b"host", b"a"), *((b"authorization", each) for each in sent)]
        asyncio.run(middleware({"type": kind, "headers": headers}, None, None))
        assert seen[-1][0] == (b"host", b"a")
        return [value for name, value in seen[-1] if name == b"authorization"]

    asyncio.run(middleware({"type": "lifespan"}, None, None))
    return send


def test_keys_of_the_file_are_replaced_by_that_of_the_engine(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(" one \n\ntwo\n")
    for right in (b"Bearer one", b"bearer two", b"Bearer  one"):
        assert ask(right) == [b"Bearer own"]
        assert ask(right, kind="websocket") == [b"Bearer own"]
    assert ask(b"Bearer wrong", b"Bearer one") == [b"Bearer own"]
    for wrong in (b"Bearer three", b"Bearer ", b"Basic one", b"one", b"Bearer own", b"Bearer one two"):
        assert ask(wrong) == []
    assert ask() == []


def test_keys_change_with_the_file_and_none_is_valid_without_it(ask: Ask, tmp_path: Path) -> None:
    assert ask(b"Bearer old") == []
    for text, valid in (("old", {b"old"}), ("old\nnew", {b"old", b"new"}), ("new", {b"new"}), ("\n", set())):
        (tmp_path / "next").write_text(text)
        (tmp_path / "next").replace(tmp_path / "keys")
        assert {key for key in (b"old", b"new", b"") if ask(b"Bearer " + key)} == valid
    (tmp_path / "keys").unlink()
    assert ask(b"Bearer new") == []


def test_the_engine_starts_with_a_random_key() -> None:
    show = [sys.executable, "-c", "import os; print(os.environ['VLLM_API_KEY'])"]
    runs = [
        subprocess.run([sys.executable, str(PROGRAM), *show], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    first, second = (run.stdout.strip() for run in runs)
    assert len(first) >= 32
    assert first != second
