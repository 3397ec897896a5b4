"""The rendered objects of an Endpoint with the real Envoy, in front of stand-ins of engines on the loopback."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.compile.builders.envoy_pod import MEMORY
from kaigen.compile.endpoint.access import Access, Client
from kaigen.compile.endpoint.envoy import ASKED
from kaigen.pipeline.routing_tests import answers_of
from kaigen.pipeline.run import Run
from tests.cluster.test_router import Handler, envoy, serve, start, until

pytestmark = pytest.mark.engine

__all__ = ["envoy"]

PORT, PORTS = 18301, {"chat": 18302, "phi": 18303}
ROOT = Path(__file__).parents[2]
GPU = "preset: phi-4\n  resources: {gpus: 1, gpuType: A100-80GB}"
SPECS = f"""\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: chat}}
spec:
  {GPU}
  adapters: [{{name: legal, volume: {{claimName: adapters}}}}]
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: phi}}
spec:
  {GPU}
  servedNames: [org/phi]
  auth: {{secret: {{name: phi-key}}}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Endpoint
metadata: {{name: models}}
spec:
  models: [chat, phi]
  maxBody: 8Mi
  drain: 2s
  monitoring: {{}}
  clients:
    team-a: {{models: [chat, legal]}}
    team-b: {{models: ["*"]}}
    slow: {{models: [chat], requestsPerMinute: 6}}
"""
KEYS = {"team-a": "key-of-a\nnew-of-a\n", "team-b": "key-of-b\n", "slow": "key-of-slow"}


class Engine(Handler):
    """Says which port it has and what it got; slowly, in pieces, for `stream`."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        asked = json.loads(body)
        if not asked.get("stream"):
            port = self.connection.getsockname()[1]
            key = self.headers.get("authorization", "")
            self.answer({"port": port, "model": asked["model"], "bytes": len(body), "key": key, "path": self.path})
            return
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(12):
            self.wfile.write(b"1\r\nx\r\n")
            self.wfile.flush()
            time.sleep(0.5)
        self.wfile.write(b"0\r\n\r\n")


def rendered(folder: Path) -> tuple[Mapping[str, str], str]:
    """Return the files of the Endpoint's ConfigMap and the clusters of its arguments, as they are rendered."""
    (folder / "specs.yaml").write_text(SPECS)
    run = Run.load([str(folder / "specs.yaml")], use_cache=False)
    bodies = [each.body for app in run.apps() for each in app.app.render() if app.app.name == "models"]
    (data,) = (body["data"] for body in bodies if body["kind"] == "ConfigMap")
    (deployment,) = (body for body in bodies if body["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return data, arguments[arguments.index("--config-yaml") + 1].replace(MEMORY, str(1 << 30))


class Running:
    """One of the two pods of an Endpoint, with two engines.

    Attributes:
        folder: has the folders that the pod mounts.
    """

    def __init__(self, stack: ExitStack, envoy: Path, folder: Path) -> None:
        self.folder = folder
        for port in PORTS.values():
            serve(stack, ("127.0.0.1", port), Engine)
        data, clusters = rendered(folder)
        for name, texts in (("endpoint", data), ("clients", KEYS), ("engines", {"phi": "engine\nnext\n"})):
            (folder / name).mkdir()
            for key, text in texts.items():
                (folder / name / key).write_text(text.replace("/etc/kaigen", str(folder)))
        config = yaml.safe_load((folder / "endpoint" / "envoy.yaml").read_text())
        config["static_resources"]["listeners"][0]["address"]["socket_address"] = _address(PORT)
        (folder / "endpoint" / "envoy.yaml").write_text(json.dumps(config))
        made = yaml.safe_load(clusters)
        for cluster in made["static_resources"]["clusters"]:
            name = cluster["name"].removeprefix("topology-")
            ports = [PORTS[name]] if name in PORTS else [PORT, PORT + 100]
            endpoints = [{"endpoint": {"address": {"socket_address": _address(port)}}} for port in ports]
            cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": endpoints}]
        command = [str(envoy), "--config-path", str(folder / "endpoint" / "envoy.yaml"), "--disable-hot-restart"]
        command += ["--config-yaml", json.dumps(made), "--concurrency", "2", "--log-level", "error"]
        start(stack, command, folder / "envoy.log", dict(os.environ))
        until(lambda: ask({}, key="")[0] == 401)

    def log(self, found: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """Return the first entry of the access log that fits; Envoy writes it within ten seconds."""
        entries: list[Mapping[str, Any]] = []

        def read() -> bool:
            lines = [line for line in (self.folder / "envoy.log").read_text().splitlines() if line.startswith("{")]
            entries[:] = [entry for entry in map(json.loads, lines) if found(entry)]
            return bool(entries)

        until(read)
        return entries[0]


def _address(port: int) -> Mapping[str, Any]:
    return {"address": "127.0.0.1", "port_value": port}


def send(method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    """Return an answer that is read."""
    with closing(http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)) as connection:
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        answer.text = answer.read()  # type: ignore[attr-defined]
    return answer


def ask(body: Any, key: str = "key-of-b", path: str = ASKED[0], **headers: str) -> tuple[int, Any]:
    """Return status and answer of a request."""
    given = {"authorization": f"Bearer {key}", "content-type": "application/json", **headers}
    answer = send("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode(), given)
    text: bytes = answer.text  # type: ignore[attr-defined]
    return answer.status, json.loads(text) if text.startswith(b"{") else text


def code(body: Any, key: str = "key-of-b", **more: str) -> tuple[int, str | None]:
    """Return the status of a refused request, and the code of its error."""
    status, answer = ask(body, key, **more)
    assert answer["error"].keys() == {"code", "message", "param", "type"}
    return status, answer["error"]["code"]


@pytest.fixture(scope="module")
def running(envoy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An Endpoint that the tests of this file share."""
    with ExitStack() as stack:
        yield Running(stack, envoy, tmp_path_factory.mktemp("endpoint"))


@pytest.mark.parametrize(("model", "topology"), [("chat", "chat"), ("legal", "chat"), ("org/phi", "phi")])
def test_the_model_of_a_body_decides_which_topology_answers(running: Running, model: str, topology: str) -> None:
    status, answer = ask({"model": model})
    assert (status, answer["port"], answer["model"]) == (200, PORTS[topology], model)


def test_the_key_decides_who_asks_and_what(running: Running) -> None:
    assert [ask({"model": "legal"}, key)[0] for key in ("key-of-a", "new-of-a", "key-of-b")] == [200] * 3
    assert [code({"model": "chat"}, key) for key in ("", "key-of", "wrong")] == [(401, "invalid_api_key")] * 3
    assert code({"model": "org/phi"}, "key-of-a") == (403, "model_not_allowed")
    assert code({"model": "gpt-4"}, "key-of-a") == (404, "model_not_found")
    assert ask({"model": "chat"}, key="", **{"x-api-key": "key-of-a"})[0] == 200


def test_a_long_header_without_a_key_does_not_keep_envoy_busy(running: Running) -> None:
    began = time.monotonic()
    assert code({"model": "chat"}, f"x{' ' * 50_000}x") == (401, "invalid_api_key")
    assert time.monotonic() - began < 5


def test_a_topology_gets_its_own_key_and_never_that_of_the_client(running: Running) -> None:
    assert ask({"model": "org/phi"})[1]["key"] == "Bearer engine"
    assert ask({"model": "chat"})[1]["key"] == ""


def test_of_two_names_the_last_decides_as_in_the_engines(running: Running) -> None:
    assert code(b'{"model": "chat", "model": "org/phi"}', "key-of-a") == (403, "model_not_allowed")
    assert code(b'{"model": "chat", "mod\\u0065l": "org/phi"}', "key-of-a") == (403, "model_not_allowed")
    assert ask(b'{"model": "org/phi", "model": "chat"}', "key-of-a")[1]["port"] == PORTS["chat"]


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b"{}", b'{"model": 5}', '{"model": "chat"}'.encode("utf-16")])
def test_a_body_without_a_model_is_refused(running: Running, body: bytes) -> None:
    assert code(body) == (400, "invalid_body")


def test_only_json_is_read(running: Running) -> None:
    assert ask({"model": "chat"}, **{"content-type": "application/json; charset=utf-8"})[0] == 200
    assert code({"model": "chat"}, **{"content-type": "text/plain"}) == (400, "invalid_body")


def test_paths_that_do_not_name_a_model_are_closed(running: Running) -> None:
    for path in ("/v1/load_lora_adapter", "/v1/chat/../load_lora_adapter", "/v1/chat%2f..%2fx", "/metrics", "/sleep"):
        assert code({"model": "chat"}, path=path) == (404, "model_not_found")
    assert [ask({"model": "chat"}, path=path)[1]["path"] for path in ASKED] == list(ASKED)


def test_models_are_those_of_the_client(running: Running) -> None:
    def models(key: str, path: str = "") -> tuple[int, Any]:
        answer = send("GET", f"/v1/models{path}", None, {"authorization": f"Bearer {key}"})
        return answer.status, json.loads(answer.text)  # type: ignore[attr-defined]

    assert [each["id"] for each in models("key-of-a")[1]["data"]] == ["chat", "legal"]
    assert [each["id"] for each in models("key-of-b")[1]["data"]] == ["chat", "legal", "org/phi"]
    assert [models("key-of-b", path)[1]["id"] for path in ("/legal", "/org/phi", "/org%2Fphi")] == [
        *("legal", "org/phi", "org/phi")
    ]
    assert [models("key-of-a", "/org/phi")[0], models("x")[0]] == [404, 401]


def test_large_bodies_pass_up_to_the_limit(running: Running) -> None:
    assert ask({"model": "chat", "image": "x" * 7_500_000})[1]["bytes"] > 7_500_000
    status, answer = ask({"model": "chat", "image": "x" * 8_400_000})
    assert (status, answer["error"]["code"]) == (413, "body_too_large")


def test_answers_stream_longer_than_a_connection_lasts(running: Running) -> None:
    """`drain: 2s` ends connections after a second; the answer takes six."""
    assert ask({"model": "chat", "stream": True}) == (200, b"x" * 12)


def test_the_log_names_client_and_model_and_no_key_or_prompt(running: Running) -> None:
    ask({"model": "legal", "prompt": "top secret"}, "new-of-a", path=f"{ASKED[0]}?key=hidden")
    entry = running.log(lambda each: each["model"] == "legal" and each["client"] == "team-a")
    assert (entry["topology"], entry["status"], entry["path"]) == ("chat", 200, ASKED[0])
    text = (running.folder / "envoy.log").read_text()
    assert not any(word in text for word in ("top secret", "Bearer", "hidden", "-of-a"))


def test_a_new_key_is_valid_within_two_seconds_and_an_old_one_is_not(running: Running) -> None:
    keys = running.folder / "clients" / "team-b"
    keys.write_text("key-of-b\nnext-of-b\n")
    until(lambda: ask({"model": "chat"}, "next-of-b")[0] == 200)
    assert ask({"model": "chat"}, "key-of-b")[0] == 200
    keys.write_text("next-of-b\n")
    until(lambda: ask({"model": "chat"}, "key-of-b")[0] == 401)
    keys.write_text("key-of-b\n")
    # Each thread of Envoy has read it.
    until(lambda: {ask({"model": "chat"}, "key-of-b")[0] for _ in range(20)} == {200})


def test_a_client_without_requests_left_gets_429_and_others_do_not(running: Running) -> None:
    """This pod allows half of its six requests a minute, as there are two."""
    assert [ask({"model": "chat"}, "key-of-slow")[0] for _ in range(5)] == [200] * 3 + [429] * 2
    answer = send("POST", ASKED[0], b'{"model": "chat"}', {"authorization": "Bearer key-of-slow"})
    assert (answer.status, answer.headers["retry-after"]) == (429, "10")
    assert json.loads(answer.text)["error"]["code"] == "rate_limit_exceeded"  # type: ignore[attr-defined]
    with ThreadPoolExecutor(8) as pool:
        assert {each[0] for each in pool.map(lambda _: ask({"model": "chat"}), range(40))} == {200}


def test_requests_of_tests_get_what_the_table_says(envoy: Path) -> None:
    clients = {"a": Client(1, ("chat", "legal")), "b": Client(None, ("org/phi",))}
    access = Access(clients, {"chat": "chat", "legal": "chat", "org/phi": "phi"}, frozenset({"phi"}))
    asked = [(client, model) for client in ("a", "b", None) for model in ("chat", "legal", "org/phi", "x")]
    answers = answers_of(access, asked, envoy)
    assert answers == [access.answer(*each) for each in asked]
    assert answers == ["chat", "chat", 403, 404, 403, 403, "phi", 404, *[401] * 4]


def test_validate_sends_the_tests_of_the_example(envoy: Path) -> None:
    example = ROOT / "examples" / "endpoint" / "two-models.yaml"
    path = f"{envoy.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "kaigen", "validate", str(example)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        0,
        "tests of Endpoints: 6 requests sent to Envoy, 0 failed",
    )


def test_envoy_accepts_every_golden_configuration(envoy: Path, tmp_path: Path) -> None:
    golden = (ROOT / "tests" / "golden" / "rendered").rglob("*.manifests.txt")
    texts = (path.read_text() for path in golden)
    found = [re.split("^=== ", text, flags=re.MULTILINE) for text in texts if "envoy.yaml: |" in text]
    bodies = [yaml.safe_load(part.partition("\n")[2]) for parts in found for part in parts if "envoy" in part]
    maps = {each["metadata"]["name"]: each["data"] for each in bodies if "envoy.yaml" in each.get("data", {})}
    pods = [each["spec"]["template"]["spec"] for each in bodies if each["kind"] == "Deployment"]
    seen = set()
    for pod in pods:
        (name,) = {each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each} & maps.keys()
        for key, text in maps[name].items():
            (tmp_path / key).write_text(text.replace("/etc/kaigen/endpoint", str(tmp_path)))
        arguments = next(each["args"] for each in pod["containers"] if each["name"] == "envoy")
        clusters = arguments[arguments.index("--config-yaml") + 1].replace(MEMORY, str(1 << 30))
        command = [str(envoy), "--mode", "validate", "--config-path", str(tmp_path / "envoy.yaml")]
        done = subprocess.run([*command, "--config-yaml", clusters], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        seen.add(name)
    assert seen == maps.keys()
    assert len(seen) > 4
