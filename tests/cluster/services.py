"""What a real node has next to it when it is started by hand: a Hub, an S3 server and a registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import KEYS, S3, moto
from tests.cluster.client import Object
from tests.cluster.node import Node
from tests.cluster.registry import LocalRegistry

BUCKET = "models"


def tiny_hub(node: Node, name: str = "") -> Hub:
    """Start a Hub with one small model. It ends with its `__exit__`.

    Args:
        node: where pods reach it.
        name: host name in its URL; the node's address if empty.
    """
    if name:
        node.name_host(name)
    with node.network.entered():
        serving = Hub(host=node.network.host, name=name or node.network.host).__enter__()
    serving.add("config.json", b'{"model_type": "tiny"}')
    serving.add("model.safetensors", b"weights " * 200_000)
    return serving


@contextmanager
def s3_server(node: Node) -> Iterator[S3]:
    """Start an S3 server that pods reach."""
    with node.network.entered():
        serving = moto(node.network.host)
        address = serving.__enter__()
    try:
        yield S3(address)
    finally:
        serving.__exit__(None, None, None)


def bucket_keys(name: str, namespace: str) -> Object:
    """Return a Secret with keys that the server accepts."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": {key: KEYS[key] for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")},
    }


@contextmanager
def services(node: Node) -> Iterator[dict[str, str]]:
    """Start a Hub with one small model, an S3 server with one bucket, and a registry without a password.

    Yields:
        Environment variables with their addresses, which pods can use, too.
    """
    hub = tiny_hub(node)
    registry = LocalRegistry(node.folder / "registry", network=node.network, password=False)
    node.trust_registry(registry.host)
    try:
        with s3_server(node) as storage:
            with node.network.entered():
                storage.make_bucket(BUCKET)
            yield {
                "HUB": hub.url,
                "S3": f"http://{storage.backend}",
                "REGISTRY": registry.host,
                "BUCKET": BUCKET,
                **KEYS,
            }
    finally:
        registry.close()
        hub.__exit__()
