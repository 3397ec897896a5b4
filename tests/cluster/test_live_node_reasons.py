"""What keeps a pod from starting is named within ten seconds, as a real kubelet and the real downloader report it."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import JOB, compiled, spec
from tests.cluster.client import Object
from tests.cluster.live import SMALL, call
from tests.cluster.node import Node
from tests.cluster.test_live_reasons import NAMED_S, named
from tests.cluster.test_node import install

pytestmark = pytest.mark.engine

NO_IMAGE = "127.0.0.1:1/absent:1"


def model(hub: Hub, **source: object) -> Object:
    """Return the spec of a Model, whose Job downloads it."""
    repository = {"repo": REPO, "revision": COMMIT, "endpoint": hub.url, **source}
    return spec("Model", "tiny", source={"huggingFace": repository}, store={"volume": {"size": "1Gi"}})


def shown(node: Node, namespace: str, folder: Path, wanted: Object, text: str) -> None:
    """Apply a spec, and expect a text in what `watch` and `status` print in time."""
    install(node, compiled(folder / "specs", [wanted], namespace), "manifests", folder)
    named(node, text, "kaigen", "job", "watch", "tiny", "-n", namespace)
    settings = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "k3s", "namespace": namespace}
    allowed = {"servers": ["127.0.0.1"]}
    (folder / "kaigen.yaml").write_text(yaml.safe_dump({**settings, "specs": ["specs"], "allow": allowed}))
    began, printed = time.monotonic(), ""
    while text not in " ".join(printed.split()) and time.monotonic() - began < NAMED_S:
        printed = call(node, "kaigen", "status", folder=folder, code=None)
    assert text in " ".join(printed.split()), printed


def test_a_missing_image_is_named(node: Node, node_namespace: str) -> None:
    words = ("create", "absent", "-n", node_namespace, "--image", NO_IMAGE, "--command", "true", *SMALL, "--wait")
    created = partial(node.client.wait, JOB, "absent", node_namespace, bool, "created")
    named(
        node,
        f'ErrImagePull: failed to pull and unpack image "{NO_IMAGE}"',
        *("kaigen", "job", *words),
        meanwhile=created,
    )
    named(
        node,
        f'ErrImagePull: failed to pull and unpack image "{NO_IMAGE}"',
        *("kaigen", "job", "watch", "absent"),
        "-n",
        node_namespace,
    )


def test_a_missing_secret_is_named(node: Node, hub: Hub, node_namespace: str, tmp_path: Path) -> None:
    wanted = model(hub, tokenSecret={"name": "hf-token"})
    shown(node, node_namespace, tmp_path, wanted, 'CreateContainerConfigError: secret "hf-token" not found')


def test_a_hub_that_refuses_is_named(node: Node, hub: Hub, node_namespace: str, tmp_path: Path) -> None:
    hub.token = "another"
    try:
        shown(node, node_namespace, tmp_path, model(hub), "status 401")
    finally:
        hub.token = None


def test_a_hub_that_is_not_reached_is_named_while_the_download_is_tried_again(
    node: Node, hub: Hub, node_namespace: str, tmp_path: Path
) -> None:
    nowhere = model(hub, endpoint="http://127.0.0.1:1")
    shown(node, node_namespace, tmp_path, nowhere, "asking 127.0.0.1: [Errno 111] Connection refused; attempt")
    # The weights of a classification are on the public Hub, which this network does not have.
    words = ("create", "photo", "-n", node_namespace, *SMALL, "--wait")
    named(node, "of 8 follows", "kaigen", "job", *words)
    named(node, "of 8 follows", "kaigen", "job", "watch", "photo", "-n", node_namespace)
