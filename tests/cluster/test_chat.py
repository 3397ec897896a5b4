"""The chat image, built from its Dockerfile, behind what kaigen renders: user, file system, key, adapter, drain."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import Hub
from tests.cluster.apps import compiled, find, spec
from tests.cluster.client import Object
from tests.cluster.images import runtime_image
from tests.cluster.node import Node
from tests.cluster.test_node import run_client
from tests.cluster.test_node_rollout import ready_pods
from tests.cluster.test_vllm import KEY, QUESTIONS, Stream, code, wait_until_ready
from tests.cluster.tiny_llama import adapter_files, base_files
from tests.cluster.vllm_app import model, start_hub

pytestmark = pytest.mark.engine

INSIDE = """
import json, os
from pathlib import Path
def writes(folder):
    try:
        Path(folder, "file").write_text("")
    except OSError as error:
        return error.strerror
    return True
print(json.dumps({
    "user": os.getuid(),
    "capabilities": [line.split()[1] for line in open("/proc/1/status") if line.startswith("Cap")],
    "writes": {folder: writes(folder) for folder in ("/", "/opt/kaigen", "/model", "/tmp")},
}))
"""


def topology() -> Object:
    """The chat server on a CPU, with a key and an adapter at half its strength."""
    return spec(
        "Topology",
        "chat",
        engine="transformers",
        model="tiny",
        servedNames=["tiny"],
        adapters=[{"name": "north", "model": "north", "strength": 0.5}],
        auth={"secret": "key"},
        resources={"gpus": 0, "cpu": "100m", "memory": "3Gi"},
        drain="30s",
    )


@pytest.mark.ran("Deployment", "Service", by=("node", "downloader"))
def test_the_chat_image_answers_as_a_restricted_user_and_finishes_streams(
    node: Node, node_namespace: str, tmp_path: Path
) -> None:
    node.import_image(runtime_image("chat"))
    hubs = {"tiny": start_hub(node, base_files(context=4096)), "north": start_hub(node, adapter_files(2))}
    with ExitStack() as stack:
        for hub in hubs.values():
            stack.callback(hub.__exit__)
        serve(node, node_namespace, hubs, tmp_path)
    (pod,) = ready_pods(node, node_namespace, "chat")
    name = pod["metadata"]["name"]
    inside = node.run("kubectl", "exec", "--namespace", node_namespace, name, "--", "python", "-c", INSIDE)
    assert json.loads(inside.stdout) == {
        "user": 65532,
        "capabilities": ["0" * 16] * 5,
        "writes": {
            "/": "Read-only file system",
            "/opt/kaigen": "Read-only file system",
            "/model": "Read-only file system",
            "/tmp": True,
        },
    }
    found = json.loads(run_client(node, node_namespace, code(QUESTIONS, MODELS=["tiny"])))
    assert all(found.pop("answers").values())
    assert found == {
        "without a key": 401,
        "with another key": 401,
        "unknown model": 404,
        "outside /v1": 401,
        "models": ["tiny"],
    }
    stream = Stream(node, pod["status"]["podIP"], 200)
    node.client.delete("v1/Pod", name, node_namespace)
    stream.join(120)
    assert (len(stream.chunks) > 100, stream.finished) == (True, "length")


def serve(node: Node, namespace: str, hubs: dict[str, Hub], folder: Path) -> None:
    """Apply the app and its Models, and wait until it is ready."""
    metadata = {"name": "key"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"api-key": KEY}}
    node.client.create(secret, namespace)
    specs = [topology(), *(model(name, hub) for name, hub in hubs.items())]
    apps = compiled(folder, specs, namespace, "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    wait_until_ready(node, namespace, find(apps["chat"], "Deployment"))
