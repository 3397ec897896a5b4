"""Apps with the real vLLM on a real node: a tiny model on a Hub, and a Topology that needs little memory."""

from __future__ import annotations

from typing import Any

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import spec
from tests.cluster.client import Object
from tests.cluster.node import Node
from tests.cluster.tiny_llama import Files

_HOST = "hub.test"
CONTEXT = 8192
"""Longest context of the apps, in tokens."""


def start_hub(node: Node, files: Files) -> Hub:
    """Start a Hub with a model, which pods reach. It ends with its `__exit__`.

    Args:
        node: where pods run.
        files: files of the model.
    """
    node.name_host(_HOST)
    with node.network.entered():
        hub = Hub(host=node.network.host, name=_HOST).__enter__()
    for path, data in files.items():
        hub.add(path, data)
    return hub


def model(name: str, hub: Hub, access: str = "ReadWriteMany") -> Object:
    """Return the spec of a Model, on a volume that all pods mount.

    Args:
        name: name of the app.
        hub: where its files are.
        access: access mode of the volume.
    """
    return spec(
        "Model",
        name,
        source={"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": hub.url}},
        store={"volume": {"size": "1Gi", "accessModes": [access], "storageClassName": "local-path"}},
    )


def topology(name: str, model: str, **fields: Any) -> Object:
    """Return the spec of a Topology in which each vLLM takes 1.6 GB of memory.

    Args:
        name: name of the app.
        model: name of the Model.
        fields: more fields; they override the defaults.
    """
    defaults: dict[str, Any] = {
        "model": model,
        "resources": {"gpus": 0, "cpu": "100m", "memory": "3Gi"},
        "contextLength": CONTEXT,
        "concurrency": 4,
        "env": {"VLLM_CPU_KVCACHE_SPACE": "1"},
        # A block has 128 tokens. vLLM fills the whole cache with zeros when it starts.
        "engineArgs": {"enforce-eager": True, "num-gpu-blocks-override": 4 * CONTEXT // 128},
    }
    return spec("Topology", name, **{**defaults, **fields})
