"""An Endpoint in pods on a real node, in front of two Topologies: who reaches which pod, with DNS and Secrets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.apps import compiled, spec
from tests.cluster.client import Object
from tests.cluster.node import Node
from tests.cluster.router_app import import_router
from tests.cluster.stand_in_vllm import stand_in, topology
from tests.cluster.test_node import run_client
from tests.cluster.test_node_rollout import is_rolled_out

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"
TEAM = "endpoint"
CLIENT = """
import json, time, urllib.error, urllib.request
def ask(model, key, path="/v1/chat/completions"):
    body = None if model is None else json.dumps({"model": model, "messages": []}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + key}
    request = urllib.request.Request("http://models" + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {}
def until(status, model, key):
    began = time.time()
    while {ask(model, key)[0] for _ in range(6)} != {status}:
        assert time.time() - began < 200, (status, model, key)
        time.sleep(1)
    return round(time.time() - began)
"""
ANSWERS = """
print(json.dumps({
    "pods": {model: ask(model, "key-of-b")[1]["pod"] for model in ("chat", "legal", "org/phi")},
    "phi": ask("org/phi", "key-of-b")[1]["key"],
    "a": [ask(model, "key-of-a")[0] for model in ("chat", "legal", "org/phi", "other")],
    "wrong": [ask("chat", key)[0] for key in ("wrong", "", "key-of")],
    "models": [each["id"] for each in ask(None, "key-of-a", "/v1/models")[1]["data"]],
}))
"""


def specs() -> list[Object]:
    """Return two Topologies and the Endpoint."""
    fields: dict[str, Any] = {
        "models": ["chat", "phi"],
        "clients": {
            "team-a": {"models": ["chat", "legal"]},
            "team-b": {"models": ["*"]},
            "slow": {"models": ["chat"], "requestsPerMinute": 6},
        },
    }
    return [
        topology("chat", adapters=[{"name": "legal", "volume": {"claimName": "adapters"}}]),
        topology("phi", servedNames=["org/phi"], auth={"secret": "phi-key"}),
        spec("Endpoint", "models", **fields),
    ]


def secret(name: str, **texts: str) -> Object:
    """Return a Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": texts}


@pytest.fixture(scope="module")
def models(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The Endpoint, which is ready."""
    node.import_image(stand_in())
    import_router(node)
    node.make_namespace(TEAM)
    node.client.create(secret("phi-key", **{"api-key": "engine\nnext\n"}), TEAM)
    keys = {"team-a": "key-of-a\n", "team-b": "key-of-b\n", "slow": "key-of-slow\n"}
    node.client.create(secret("models-keys", **keys), TEAM)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    named = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "adapters"}, "spec": claim}
    node.client.create(named, TEAM)
    for app in compiled(tmp_path_factory.mktemp(TEAM), specs(), TEAM, "generic").values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    for name in ("chat", "phi", "models"):
        node.client.wait(DEPLOYMENT, name, TEAM, is_rolled_out, "rolled out")
    yield
    node.client.delete("v1/Namespace", TEAM)


def run(node: Node, code: str) -> Any:
    """Run a program of a client; return what it prints."""
    return json.loads(run_client(node, TEAM, CLIENT + code))


@pytest.mark.ran("Deployment", "Service", "ConfigMap", by=("node", "envoy"))
def test_the_model_and_the_key_decide_which_pod_answers(node: Node, models: None) -> None:
    found = run(node, ANSWERS)
    pods = {model: pod.rsplit("-", 2)[0] for model, pod in found["pods"].items()}
    assert pods == {"chat": "chat", "legal": "chat", "org/phi": "phi"}
    assert found["phi"] == "Bearer engine"
    assert found["a"] == [200, 200, 403, 404]
    assert found["wrong"] == [401] * 3
    assert found["models"] == ["chat", "legal"]


def test_two_pods_share_the_limit_of_a_client(node: Node, models: None) -> None:
    counted = Counter(run(node, 'print(json.dumps([ask("chat", "key-of-slow")[0] for _ in range(30)]))'))
    print(f"6 a minute, 30 requests: {dict(counted)}")
    assert counted.keys() == {200, 429}
    assert 5 <= counted[200] <= 8
    assert run(node, 'print(json.dumps(ask("chat", "key-of-a")[0]))') == 200


def test_a_key_is_rotated_without_a_lost_request(node: Node, models: None) -> None:
    patch = ("v1/Secret", "models-keys", TEAM)
    before = node.client.get(DEPLOYMENT, "models", TEAM)["metadata"]["generation"]
    node.client.patch(*patch, {"stringData": {"team-b": "key-of-b\nnext-of-b\n"}})
    both = run(node, 'print(json.dumps([until(200, "org/phi", "next-of-b"), ask("chat", "key-of-b")[0]]))')
    node.client.patch(*patch, {"stringData": {"team-b": "next-of-b\n"}})
    gone = run(node, 'print(json.dumps([until(401, "chat", "key-of-b"), ask("chat", "next-of-b")[0]]))')
    print(f"a new key is valid after {both[0]} s, an old one invalid after {gone[0]} s")
    assert (both[1], gone[1]) == (200, 200)
    assert node.client.get(DEPLOYMENT, "models", TEAM)["metadata"]["generation"] == before
