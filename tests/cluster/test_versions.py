"""Two versions of a Topology behind an Endpoint with the real Envoy: the weights, and a pool that is not ready."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.compile.builders.envoy_pod import MEMORY
from kaigen.pipeline.run import Run
from tests.cluster.test_router import Handler, envoy, serve, start, until

pytestmark = pytest.mark.engine

__all__ = ["envoy"]

PORT, OLD, NEW = 18401, 18402, 18403
SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: chat}}
spec:
  preset: phi-4
  resources: {{gpus: 1, gpuType: A100-80GB}}
  canary: {{pool: new, weight: {weight}, engineArgs: {{seed: 1}}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Endpoint
metadata: {{name: models}}
spec:
  models: [chat]
  clients: {{team: {{models: [chat]}}}}
"""


class Engine(Handler):
    """Says which port it has."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.answer({"port": self.connection.getsockname()[1]})


def run_envoy(stack: ExitStack, envoy: Path, folder: Path, weight: int) -> None:
    """Run the Envoy of the Endpoint, as it is rendered, with the ports of this test."""
    folder.mkdir()
    (folder / "specs.yaml").write_text(SPECS.format(weight=weight))
    run = Run.load([str(folder / "specs.yaml")], use_cache=False)
    bodies = [each.body for app in run.apps() for each in app.app.render() if app.app.name == "models"]
    (data,) = (body["data"] for body in bodies if body["kind"] == "ConfigMap")
    (deployment,) = (body for body in bodies if body["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    for name, texts in (("endpoint", data), ("clients", {"team": "key"})):
        (folder / name).mkdir()
        for key, text in texts.items():
            (folder / name / key).write_text(text.replace("/etc/kaigen", str(folder)))
    path = folder / "endpoint" / "envoy.yaml"
    config = yaml.safe_load(path.read_text())
    for listener, port in zip(config["static_resources"]["listeners"], (PORT, PORT + 50), strict=True):
        listener["address"]["socket_address"] = _address(port)
    config["admin"]["address"]["socket_address"] = _address(PORT + 51)
    path.write_text(json.dumps(config))
    made = yaml.safe_load(arguments[arguments.index("--config-yaml") + 1].replace(MEMORY, str(1 << 30)))
    ports = {"endpoint": PORT, "topology-chat": OLD, "canary-chat": NEW}
    for cluster in made["static_resources"]["clusters"]:
        endpoint = {"endpoint": {"address": {"socket_address": _address(ports[cluster["name"]])}}}
        cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": [endpoint]}]
    command = [str(envoy), "--config-path", str(path), "--config-yaml", json.dumps(made), "--disable-hot-restart"]
    start(stack, [*command, "--concurrency", "2", "--log-level", "error"], folder / "envoy.log", dict(os.environ))
    until(lambda: ask() == 200 or ask() in (OLD, NEW))


def _address(port: int) -> dict[str, Any]:
    return {"address": "127.0.0.1", "port_value": port}


def ask() -> int:
    """Return the port of the pod that answers, or the status of another answer."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=30)
    try:
        headers = {"authorization": "Bearer key", "content-type": "application/json"}
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "chat"}), headers)
        answer = connection.getresponse()
        body = answer.read()
        return int(json.loads(body)["port"]) if answer.status == 200 else answer.status
    finally:
        connection.close()


def many(count: int) -> Counter[int]:
    """Return how often each pod answered."""
    with ThreadPoolExecutor(8) as pool:
        return Counter(pool.map(lambda _: ask(), range(count)))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends what a test started."""
    with ExitStack() as stack:
        serve(stack, ("127.0.0.1", OLD), Engine)
        yield stack


def test_weights_over_200_requests_are_within_three_sigma(stack: ExitStack, envoy: Path, tmp_path: Path) -> None:
    serve(stack, ("127.0.0.1", NEW), Engine)
    run_envoy(stack, envoy, tmp_path / "endpoint", 10)
    until(lambda: NEW in many(50))
    found = many(200)
    assert found.keys() <= {OLD, NEW}
    # 20 on average; three times the root of 200 * 0.1 * 0.9.
    assert abs(found[NEW] - 20) <= 12.7, found


@pytest.mark.parametrize("weight", [10, 100])
def test_no_request_fails_while_the_canary_is_not_ready(
    stack: ExitStack, envoy: Path, tmp_path: Path, weight: int
) -> None:
    run_envoy(stack, envoy, tmp_path / "endpoint", weight)
    assert many(200) == {OLD: 200}
    with ExitStack() as ready:
        serve(ready, ("127.0.0.1", NEW), Engine)
        until(lambda: NEW in many(50))
        if weight == 100:
            until(lambda: many(50) == {NEW: 50})
    # It is gone again: new connections are refused at once, before a check finds it; those that are open go on.
    assert many(200).keys() <= {OLD, NEW}
    until(lambda: many(50) == {OLD: 50})
    assert many(200) == {OLD: 200}
