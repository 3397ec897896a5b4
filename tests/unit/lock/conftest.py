"""A repository of specs, a Hub with branches that move, and a registry, all on loopback."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.images import default_images
from kaigen.cli.main import run
from runtimes.downloader.tests.hub import Hub
from tests.unit.oci.conftest import make_web
from tests.unit.oci.web import Web
from tests.unit.pin.conftest import DIGEST, images

__all__ = ["DIGEST", "images", "make_web"]

CONFIG: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "torch_dtype": "bfloat16",
    "vocab_size": 32000,
}


def safetensors(shapes: Mapping[str, tuple[str, list[int]]], padding: int = 0) -> bytes:
    """Return a file with tensors of zeros."""
    header: dict[str, Any] = {}
    end = 0
    for name, (dtype, shape) in shapes.items():
        start = end
        count = 1
        for each in shape:
            count *= each
        end += count * {"BF16": 2, "F32": 4}[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode() + b" " * padding
    return struct.pack("<Q", len(text)) + text + bytes(end)


WEIGHTS = safetensors({"a.weight": ("BF16", [512, 512]), "a.norm": ("F32", [512])})


def model_files(config: Mapping[str, Any] = CONFIG, weights: bytes = WEIGHTS) -> dict[str, bytes]:
    """Return the files of a small model."""
    return {"config.json": json.dumps(config).encode(), "README.md": b"# A model\n", "model.safetensors": weights}


@dataclass
class Repository:
    """Specs in a folder."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    registry: str

    def write(self, text: str, name: str = "specs/a.yaml") -> None:
        """Write a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def configure(self, text: str = "") -> None:
        """Write kaigen.yaml, with kaigen's own images in the registry of the test."""
        named = ", ".join(f"{name}: {self.registry}/acme/tune:1" for name in default_images())
        image = f"images: {{{named}}}\nallow: {{servers: [127.0.0.1]}}\n"
        self.write(f"apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n{image}{text}", "kaigen.yaml")

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run `kaigen`; return its exit code and what it printed."""
        self.capsys.readouterr()
        code = run(arguments)
        printed = self.capsys.readouterr()
        return code, printed.out + printed.err

    @property
    def lock(self) -> dict[str, Any]:
        """The content of the lock."""
        found: dict[str, Any] = json.loads((self.root / "kaigen.lock").read_bytes())
        return found


@pytest.fixture
def repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], images: Web
) -> Repository:
    """An empty repository, in the working folder; no credentials of the user are read, and no pause is made."""
    root = tmp_path / "repository"
    root.mkdir()
    monkeypatch.chdir(root)
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("kaigen.oci.http.sleep", lambda seconds: None)
    found = Repository(root, capsys, images.host)
    found.configure()
    return found


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A Hub with `owner/name`."""
    with Hub(card={"license": "apache-2.0"}) as running:
        running.commit(model_files())
        yield running


def model(hub: Hub, name: str = "tuned", more: str = "", size: str = "5Gi", repo: str = "owner/name") -> str:
    """Return a Model of the Hub's repository."""
    return (
        f"apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {{name: {name}}}\nspec:\n"
        f"  source:\n    huggingFace:\n      repo: {repo}\n      endpoint: {hub.url}\n{more}"
        f"  store: {{volume: {{size: {size}}}}}\n"
    )
