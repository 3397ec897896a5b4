"""The real vLLM behind what kaigen renders: probes, API key, served names, LoRA adapters, streams after SIGTERM."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.engines import engine_facts
from kaigen.catalog.json_tables import load_table
from kaigen.catalog.vllm_flags import first_name, rows_of
from kaigen.pipeline.result import Compiled
from runtimes.downloader.tests.hub import Hub
from tests.cluster.apps import POD, client_pod, compiled, find, spec
from tests.cluster.client import Object
from tests.cluster.images import default_image
from tests.cluster.network import connect
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import run_client, run_pod
from tests.cluster.test_node_rollout import ready_pods
from tests.cluster.tiny_llama import Files, adapter_files, base_files
from tests.cluster.vllm_app import model, start_hub
from tests.cluster.vllm_image import vllm_image
from tests.rendered_flags import command_lines
from tools import vllm_parser

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"
KEY = "not-a-secret"
NAMESPACE = "vllm"
CONCURRENCY = 4
CLIENT = """
import json, urllib.error, urllib.request
def ask(path, body=None, key=None):
    request = urllib.request.Request("http://chat" + path, body and json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    if key:
        request.add_header("Authorization", "Bearer " + key)
    try:
        return urllib.request.urlopen(request, timeout=120)
    except urllib.error.HTTPError as error:
        return error
def talk(model):
    messages = [{"role": "user", "content": "Hello"}]
    return {"model": model, "messages": messages, "max_tokens": 20, "temperature": 0}
"""
QUESTIONS = """
CHAT = "/v1/chat/completions"
answers = {}
for model in MODELS:
    answer = ask(CHAT, talk(model), KEY)
    answers[model] = answer.status == 200 and json.load(answer)["choices"][0]["message"]["content"]
print(json.dumps({
    "answers": answers,
    "without a key": ask(CHAT, talk(MODELS[0])).status,
    "with another key": ask(CHAT, talk(MODELS[0]), "other").status,
    "unknown model": ask(CHAT, talk("other"), KEY).status,
    "outside /v1": ask("/invocations", talk(MODELS[0])).status,
    "models": sorted(model["id"] for model in json.load(ask("/v1/models", key=KEY))["data"]),
}))
"""

LOAD = """
import collections, os, threading
seen, lock = collections.Counter(), threading.Lock()
def run():
    while not os.path.exists("/tmp/stop"):
        key = open("/tmp/key").read().strip() if os.path.exists("/tmp/key") else KEY
        try:
            answer = ask("/v1/chat/completions", talk("tiny"), key)
            answer.read()
            status = answer.status
        except OSError as error:
            status = f"lost: {error}"
        with lock:
            seen[f"{key}: {status}"] += 1
threads = [threading.Thread(target=run) for _ in range(THREADS)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(seen))
"""
"""Asks until `/tmp/stop` exists, with the key in `/tmp/key` if there is one, and prints its answers, counted."""


def code(body: str, **names: object) -> str:
    """Return a client's program that knows some values."""
    return "\n".join([CLIENT, f"KEY = {KEY!r}", *(f"{name} = {value!r}" for name, value in names.items()), body])


def topology() -> Object:
    """vLLM on a CPU, with a key and two adapters. Requests have 2 s until SIGTERM, and 20 s after it."""
    fields: dict[str, Any] = {
        "model": "tiny",
        "servedNames": ["tiny", "small"],
        "adapters": [{"name": name, "model": name} for name in ("north", "south")],
        "auth": {"secret": {"name": "key"}},
        "resources": {"gpus": 0, "cpu": "100m", "memory": "6Gi"},
        "env": {"VLLM_CPU_KVCACHE_SPACE": "1"},
        "engineArgs": {"enforce-eager": True},
        "concurrency": CONCURRENCY,
        "drain": "2s",
    }
    return spec("Topology", "chat", **fields)


@pytest.fixture(scope="module")
def hubs(node: Node) -> Iterator[Mapping[str, Hub]]:
    """A Hub for the model and for each adapter, which pods reach as `hub.test`."""
    contents: Mapping[str, Files] = {
        "tiny": base_files(context=32768),
        "north": adapter_files(2),
        "south": adapter_files(3),
    }
    serving = {name: start_hub(node, files) for name, files in contents.items()}
    yield serving
    for hub in serving.values():
        hub.__exit__()


@pytest.fixture(scope="module")
def chat(node: Node, hubs: Mapping[str, Hub], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiled]:
    """The app `chat`, in which vLLM serves the model."""
    node.import_image(vllm_image())
    node.make_namespace(NAMESPACE)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"api-key": KEY}}
    node.client.create(secret, NAMESPACE)
    specs = [topology(), *(model(name, hub) for name, hub in hubs.items())]
    apps = compiled(tmp_path_factory.mktemp("chat"), specs, NAMESPACE, "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    wait_until_ready(node, NAMESPACE, find(apps["chat"], "Deployment"))
    yield apps["chat"]
    node.client.delete("v1/Namespace", NAMESPACE)


def wait_until_ready(node: Node, namespace: str, deployment: Object) -> None:
    """Wait as long as the rendered probes allow, but no longer than ten minutes."""
    probe = deployment["spec"]["template"]["spec"]["containers"][0]["startupProbe"]
    node.client.wait(
        DEPLOYMENT,
        "chat",
        namespace,
        lambda found: found.get("status", {}).get("readyReplicas") == 1,
        "ready",
        timeout=min(600, probe["failureThreshold"] * probe["periodSeconds"]),
    )


@pytest.mark.ran("Deployment", "Service", by=("node", "downloader"))
def test_a_key_opens_every_name_and_adapter(node: Node, chat: Compiled) -> None:
    names = ["tiny", "small", "north", "south"]
    found = json.loads(run_client(node, NAMESPACE, code(QUESTIONS, MODELS=names)))
    answers = found.pop("answers")
    assert answers["tiny"] == answers["small"]
    assert len({answers[name] for name in names}) == 3
    assert all(answers.values())
    assert found == {
        "without a key": 401,
        "with another key": 401,
        "unknown model": 404,
        # vLLM guards only some paths: a route leads to no others.
        "outside /v1": 200,
        "models": sorted(names),
    }


def give_keys(node: Node, pod: str, *keys: str) -> None:
    """Write keys into the Secret, and wait until the pod has them: kubelet reads them when it syncs a changed pod."""
    text = "\n".join(keys)
    node.client.patch("v1/Secret", "key", NAMESPACE, {"stringData": {"api-key": text}})
    node.client.patch(POD, pod, NAMESPACE, {"metadata": {"annotations": {"test/keys": str(len(keys)) + keys[0]}}})
    read = ["exec", "--namespace", NAMESPACE, pod, "--", "cat", "/etc/kaigen/auth/api-key"]
    wait_until(lambda: node.run("kubectl", *read).stdout == text, "the pod has the keys", 180)


def statuses(node: Node) -> Mapping[str, int]:
    """Return what vLLM answers with each key."""
    ask_both = "print(json.dumps({key: ask('/v1/models', key=key).status for key in (KEY, 'second')}))"
    found: dict[str, int] = json.loads(run_client(node, NAMESPACE, code(ask_both)))
    return found


def test_a_key_is_rotated_under_load_without_a_lost_request(node: Node, chat: Compiled) -> None:
    (before,) = ready_pods(node, NAMESPACE, "chat")
    pod = before["metadata"]["name"]
    client = node.client.create(client_pod(code(LOAD, THREADS=CONCURRENCY)), NAMESPACE)["metadata"]["name"]
    run = ["exec", "--namespace", NAMESPACE, client, "--", "sh", "-c"]
    node.client.wait(POD, client, NAMESPACE, lambda found: found["status"]["phase"] == "Running", "running")
    try:
        give_keys(node, pod, KEY, "second")
        node.run("kubectl", *run, "echo second > /tmp/next && mv /tmp/next /tmp/key; sleep 2")
        give_keys(node, pod, "second")
        assert statuses(node) == {KEY: 401, "second": 200}
        node.run("kubectl", *run, "touch /tmp/stop")
        node.client.wait(POD, client, NAMESPACE, lambda found: found["status"]["phase"] == "Succeeded", "over")
        seen = json.loads(node.run("kubectl", "logs", "--namespace", NAMESPACE, client).stdout)
        print(seen)
        assert seen.keys() == {f"{KEY}: 200", "second: 200"}
        (after,) = ready_pods(node, NAMESPACE, "chat")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    finally:
        give_keys(node, pod, KEY)
    assert statuses(node) == {KEY: 200, "second": 401}


def test_the_startup_probe_holds_back_requests_until_vllm_answers(node: Node, chat: Compiled) -> None:
    (pod,) = ready_pods(node, NAMESPACE, "chat")
    events = node.client.objects("v1/Event", NAMESPACE)
    refused = [event for event in events if event["involvedObject"].get("uid") == pod["metadata"]["uid"]]
    assert any("Startup probe failed" in event["message"] for event in refused)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def parser_pod() -> Object:
    """A pod that prints the flags of vLLM, the command lines that its parser refuses, and its version."""
    script = (
        "python /parser/parser.py /tmp/flags /parser/lines /tmp/refused >/tmp/log 2>&1 || cat /tmp/log\n"
        "python -c 'from importlib.metadata import version as v; "
        'print("[" + open("/tmp/flags").read() + "," + open("/tmp/refused").read() + ",\\"" + v("vllm") + "\\"]")\''
    )
    pod = client_pod("")
    (container,) = pod["spec"]["containers"]
    container |= {
        "image": default_image("vllmCpu"),
        "command": ["sh", "-c", script],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "volumeMounts": [{"name": "parser", "mountPath": "/parser"}],
    }
    pod["spec"]["volumes"] = [{"name": "parser", "configMap": {"name": "parser"}}]
    return pod


def test_its_parser_has_the_flags_of_the_table_and_accepts_what_kaigen_renders(node: Node, chat: Compiled) -> None:
    lines = [json.dumps(line) for line in command_lines()]
    assert len(lines) > 140
    with open(vllm_parser.__file__, encoding="utf-8") as file:
        data = {"parser.py": file.read(), "lines": json.dumps(lines)}
    node.client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parser"}, "data": data}, NAMESPACE
    )
    rows, refused, version = json.loads(run_pod(node, NAMESPACE, parser_pod(), timeout=600).splitlines()[-1])
    assert refused == {}
    place = list(load_table("vllm_flags")["versions"]).index(re.sub(r"\+.*", "", version))
    known = {first_name(row["names"]): row for row in rows_of(place)}
    assert {first_name(row["names"]): row for row in rows} == known


def test_vllm_has_the_metrics_that_scalers_follow(node: Node, chat: Compiled) -> None:
    # Prometheus has no API key.
    served = run_client(node, NAMESPACE, code('print(ask("/metrics").read().decode())'))
    facts = engine_facts("vllm")
    assert facts.metrics
    for name in facts.metrics.values():
        assert re.search(rf"^{re.escape(name)}{{[^}}]*}} [0-9.]+$", served, re.MULTILINE), name


class Stream(threading.Thread):
    """A streamed answer of a pod, read in the background.

    Attributes:
        chunks: when each chunk arrived.
        finished: the reason that the last chunk gives; empty without one.
    """

    def __init__(self, node: Node, address: str, tokens: int) -> None:
        super().__init__()
        self.chunks: list[float] = []
        self.finished = ""
        self._tokens = tokens
        self._connection = http.client.HTTPConnection(address, timeout=120)
        self._connection.sock = connect(node.network, (address, 8000), 10)
        self.start()

    def run(self) -> None:
        """Read until the end, or until the connection is lost."""
        message = {"role": "user", "content": "Hello"}
        body = {"model": "tiny", "messages": [message], "stream": True, "ignore_eos": True}
        body["max_tokens"] = self._tokens
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        try:
            self._connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            for line in self._connection.getresponse():
                if line.startswith(b"data: {") and (choices := json.loads(line[6:]).get("choices")):
                    self.chunks.append(time.monotonic())
                    self.finished = choices[0]["finish_reason"] or self.finished
        except (OSError, http.client.HTTPException):
            self.finished = ""
        finally:
            self._connection.close()


def tokens_per_second(node: Node, address: str) -> float:
    """Return how fast each of as many streams as vLLM runs at a time is."""
    tokens = 200
    started = time.monotonic()
    streams = [Stream(node, address, tokens) for _ in range(CONCURRENCY)]
    for each in streams:
        each.join()
    return tokens / (time.monotonic() - started)


@contextmanager
def followed_log(node: Node, pod: str) -> Iterator[Path]:
    """Write what a pod prints from now on to a file, until the pod is gone."""
    file = node.folder / f"{pod}.log"
    command = ["logs", "--follow", "--since=1s", "--namespace", NAMESPACE, pod]
    argv = node.network.command([str(node.program("kubectl")), *command])
    env = os.environ | {"KUBECONFIG": str(node.kubeconfig)}
    with file.open("w") as out, subprocess.Popen(argv, stdout=out, env=env) as process:
        try:
            yield file
            process.wait(timeout=30)
        finally:
            process.kill()


def test_streams_finish_after_sigterm_or_do_not_claim_to(node: Node, chat: Compiled) -> None:
    (pod,) = ready_pods(node, NAMESPACE, "chat")
    name, address = pod["metadata"]["name"], pod["status"]["podIP"]
    rate = tokens_per_second(node, address)
    # SIGTERM comes after 2 s, and vLLM stops after 22 s.
    short = [Stream(node, address, tokens=int(10 * rate)) for _ in range(CONCURRENCY - 1)]
    long = Stream(node, address, tokens=30000)
    wait_until(lambda: all(each.chunks for each in (*short, long)), "all stream")
    with followed_log(node, name) as log:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        node.client.request("POST", node.client.path(POD, name, NAMESPACE, "eviction"), eviction)
        for each in (*short, long):
            each.join()
        node.client.wait_gone(POD, name, NAMESPACE)
    assert f"draining in-flight requests count={CONCURRENCY}" in log.read_text()
    assert [each.finished for each in short] == ["length"] * len(short)
    assert long.finished not in {"length", "stop"}
