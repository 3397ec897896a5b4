"""Runs the program: in this process where that is enough, in one of its own where it is to be killed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hub import REPO, Hub
from kaigen_downloader.cli import main

PACKAGE = Path(__file__).parent.parent
ID = "1d" * 16
FAST = {"KAIGEN_BACKOFF": "0.01", "KAIGEN_POLL": "0.02"}


@dataclass(frozen=True)
class Done:
    """What a run gave."""

    code: int
    err: str
    out: str = ""


@lru_cache(maxsize=64)
def content(size: int, seed: int = 0) -> bytes:
    """Bytes that look random and are always the same."""
    return random.Random(seed).randbytes(size)


def arguments(hub: Hub, dest: Path, *more: str, identity: str = ID) -> list[str]:
    """The command line of a fetch."""
    fixed = ["fetch", "huggingface", "--repo", REPO, "--dest", str(dest), "--identity", identity]
    return [*fixed, "--endpoint", hub.url, "--part-size", "64Ki", "--timeout", "5", *more]


class Runner:
    """Calls the program in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *argv: str, **env: str) -> Done:
        """Any command."""
        self._capsys.readouterr()
        code = main(argv, FAST | env)
        out, err = self._capsys.readouterr()
        return Done(code, err, out)

    def fetch(self, hub: Hub, dest: Path, *more: str, identity: str = ID, **env: str) -> Done:
        """A fetch from the Hub of the test."""
        return self(*arguments(hub, dest, *more, identity=identity), **env)


def start(argv: list[str], **env: str) -> subprocess.Popen[str]:
    """Starts the program in a process of its own, without a home directory."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "HOME": "/nonexistent"}
    return subprocess.Popen(
        [sys.executable, "-m", "kaigen_downloader", *argv],
        env=environ | FAST | env,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> Done:
    """Waits for it."""
    out, err = process.communicate(timeout=30)
    return Done(process.returncode, err, out)


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Waits for something that another thread or process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def marker(dest: Path) -> dict[str, Any] | None:
    """The marker as written."""
    path = dest / ".kaigen" / "model.json"
    return json.loads(path.read_text()) if path.exists() else None


def holds(dest: Path, hub: Hub) -> bool:
    """Whether the folder has every file of the Hub with its bytes."""
    return all(
        (dest / path).is_file() and (dest / path).read_bytes() == stored.data for path, stored in hub.files.items()
    )


def files(dest: Path) -> set[str]:
    """The files of the folder, our own state left out."""
    found = (path.relative_to(dest) for path in dest.rglob("*") if path.is_file())
    return {str(path) for path in found if path.parts[0] != ".kaigen"}


def sha256(data: bytes) -> str:
    """In hex."""
    return hashlib.sha256(data).hexdigest()
