"""What keeps a pod from starting is named within ten seconds, as a real kubelet and the real downloader report it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import compiled, spec
from tests.cluster.client import Object
from tests.cluster.live import SMALL
from tests.cluster.node import Node
from tests.cluster.test_live_reasons import named
from tests.cluster.test_node import install

pytestmark = pytest.mark.engine

NO_IMAGE = "127.0.0.1:1/absent:1"


def model(hub: Hub, **source: object) -> Object:
    """Return the spec of a Model, whose Job downloads it."""
    repository = {"repo": REPO, "revision": COMMIT, "endpoint": hub.url, **source}
    return spec("Model", "tiny", source={"huggingFace": repository}, store={"volume": {"size": "1Gi"}})


def watched(node: Node, namespace: str, folder: Path, wanted: Object, text: str) -> None:
    """Apply a spec, and expect a text in what `watch` prints in time."""
    install(node, compiled(folder, [wanted], namespace), "manifests", folder)
    named(node, text, "kaigen", "job", "watch", "tiny", "-n", namespace)


def test_a_missing_image_is_named(node: Node, node_namespace: str) -> None:
    words = ("create", "absent", "-n", node_namespace, "--image", NO_IMAGE, "--command", "true", *SMALL, "--wait")
    named(node, f'ErrImagePull: failed to pull and unpack image "{NO_IMAGE}"', "kaigen", "job", *words)
    named(
        node,
        f'ErrImagePull: failed to pull and unpack image "{NO_IMAGE}"',
        *("kaigen", "job", "watch", "absent"),
        "-n",
        node_namespace,
    )


def test_a_missing_secret_is_named(node: Node, hub: Hub, node_namespace: str, tmp_path: Path) -> None:
    wanted = model(hub, tokenSecret={"name": "hf-token"})
    watched(node, node_namespace, tmp_path, wanted, 'CreateContainerConfigError: secret "hf-token" not found')


def test_a_hub_that_refuses_is_named(node: Node, hub: Hub, node_namespace: str, tmp_path: Path) -> None:
    hub.token = "another"
    try:
        watched(node, node_namespace, tmp_path, model(hub), "status 401")
    finally:
        hub.token = None
