"""One model for all tests, and one server for those that change nothing about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
import torch
from served import tiny
from served.server import Server

# Threads of several processes, on as many cores, wait for each other more than they compute.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model."""
    return tiny.make(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def server(model: Path) -> Iterator[Server]:
    """A server with its defaults."""
    with Server(model, "--threads", "1") as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[openai.OpenAI]:
    """OpenAI's client of it."""
    with server.client() as made:
        yield made
