"""A Model that is converted for distributed-llama: its files on a Hub, its spec, and the bytes that it becomes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from runtimes.convert.tests.reference_writer import model_file
from runtimes.convert.tests.tiny_models import QWEN3, random_tensors, save_model
from runtimes.downloader.tests.hub import Hub
from tests.cluster.client import Object
from tests.cluster.tiny_llama import Files
from tests.cluster.vllm_app import model

CONFIG = QWEN3
_TENSORS = random_tensors(CONFIG)


def files() -> Files:
    """Return the files of a tiny Qwen3 in bf16, in two parts."""
    with tempfile.TemporaryDirectory() as folder:
        source = save_model(Path(folder), CONFIG, _TENSORS, dtype="bfloat16", files=2)
        return {each.name: each.read_bytes() for each in source.iterdir()}


def facts() -> Object:
    """Return the block `facts` of its spec."""
    return {"weights": "1Mi", "config": {**CONFIG}}


def converted(weights: str) -> bytes:
    """Return the bytes of its `model.m`, as a slow writer of the tests writes them."""
    return model_file(CONFIG, _TENSORS, weights)


def converted_model(name: str, hub: Hub, weights: str = "q40") -> Object:
    """Return the spec of the Model, which stores downloaded and converted files on one volume.

    Args:
        name: name of the app.
        hub: where the files are.
        weights: type of the converted weights.
    """
    found = model(name, hub)
    small = {"cpu": "100m", "memory": "256Mi"}
    found["spec"]["convert"] = {"distributedLlama": {"weights": weights, "converter": small}}
    return found
