"""The rendered configuration of a router with the real Envoy and the real endpoint picker, in front of stand-ins.

No cluster: a stand-in of the API server has the pool and two pods at addresses of the loopback interface.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.builders.autoscaling import ACTIVE_METRIC
from kaigen.compile.builders.envoy import READY, STATISTICS
from kaigen.compile.builders.envoy_pod import MEMORY, overload
from kaigen.compile.topology.router_config import OF_CLIENTS, QUEUE_METRIC, engines_cluster, envoy_config, picker_config
from kaigen.yaml.dump import dump
from tests.cluster.envoy import locate_envoy
from tests.cluster.tools.parts import locate_part

pytestmark = pytest.mark.engine

HOSTS, ENGINE_PORT, API_PORT, PORT = ("127.0.0.11", "127.0.0.12"), 18101, 18200, 18201
LIMIT = 1024
"""Memory of Envoy, in MiB."""

POOL = "inference.networking.k8s.io/v1"
METRICS = "\n".join(
    f'# TYPE vllm:{name} gauge\nvllm:{name}{{model_name="m"}} {value}'
    for name, value in (("num_requests_waiting", 0), ("num_requests_running", 0), ("kv_cache_usage_perc", 0.1))
)
AUDIO = "/v1/audio/transcriptions"
HEADER = "x-gateway-destination-endpoint"


@pytest.fixture(scope="module")
def envoy() -> Path:
    """The program of Envoy, from the pinned package."""
    return locate_envoy()


class Handler(BaseHTTPRequestHandler):
    """Answers in JSON."""

    protocol_version = "HTTP/1.1"

    def answer(self, body: Any, status: int = 200) -> None:
        """Send a body, as JSON unless it is text."""
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


class Engine(Handler):
    """Says which address it has; slowly, in pieces, for `stream`."""

    def do_GET(self) -> None:
        self.answer(METRICS + "\n" if self.path == "/metrics" else {"host": self.connection.getsockname()[0]})

    def do_POST(self) -> None:
        if "content-length" in self.headers:
            body = self.rfile.read(int(self.headers["content-length"]))
        else:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        host = self.connection.getsockname()[0]
        if self.path == AUDIO:
            self.answer({"bytes": len(body)})
            return
        if not json.loads(body).get("stream"):
            self.answer({"host": host, "bytes": len(body)})
            return
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(20):
            self.wfile.write(b"1\r\nx\r\n")
            self.wfile.flush()
            time.sleep(0.1)
        self.wfile.write(b"0\r\n\r\n")


class Api(Handler):
    """What the picker asks the API server for: a pool, and pods, which it has after a while."""

    delay = 0.0

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/apis":
            versions = [{"groupVersion": POOL, "version": "v1"}]
            named = {"name": POOL.partition("/")[0], "versions": versions, "preferredVersion": versions[0]}
            self.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": [named]})
        elif path == "/api":
            self.answer({"kind": "APIVersions", "versions": ["v1"]})
        elif path in {"/api/v1", f"/apis/{POOL}"}:
            core = path == "/api/v1"
            group, name, kind = ("v1", "pods", "Pod") if core else (POOL, "inferencepools", "InferencePool")
            served: Any = {
                "name": name,
                "singularName": "",
                "namespaced": True,
                "kind": kind,
                "verbs": ["list", "watch"],
            }
            self.answer({"kind": "APIResourceList", "groupVersion": group, "resources": [served]})
        elif path.endswith("/pods"):
            self.objects(query, "v1", "Pod", [_pod(host) for host in HOSTS], self.delay)
        elif path.endswith(("/inferencepools", "/inferencepools/m")):
            self.objects(query, POOL, "InferencePool", [_POOL_OBJECT], 0)
        else:
            self.answer({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}, 404)

    def objects(self, query: str, version: str, kind: str, items: list[Any], delay: float) -> None:
        """Answer a list or a watch."""
        listed = {"kind": f"{kind}List", "apiVersion": version, "metadata": {"resourceVersion": "5"}}
        if "watch=" not in query:
            self.answer({**listed, "items": [] if delay else items})
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        marked = {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}
        mark = {"type": "BOOKMARK", "object": {"apiVersion": version, "kind": kind, "metadata": marked}}
        added = [{"type": "ADDED", "object": each} for each in items]
        for event in [mark, None, *added] if delay else [*added, mark]:
            if event is None:
                time.sleep(delay)
                continue
            data = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        threading.Event().wait(60)


_POOL_OBJECT: Mapping[str, Any] = {
    "apiVersion": POOL,
    "kind": "InferencePool",
    "metadata": {"name": "m", "namespace": "ns", "uid": "p", "resourceVersion": "5", "generation": 1},
    "spec": {
        "selector": {"matchLabels": {"app": "m"}},
        "targetPorts": [{"number": ENGINE_PORT}],
        "endpointPickerRef": {"name": "m", "port": {"number": 9002}},
    },
}


def _pod(host: str) -> Mapping[str, Any]:
    name = f"m-{host[-2:]}"
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "5", "labels": {"app": "m"}}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "x"}]},
        "status": {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}], "conditions": ready},
    }


class Running:
    """A router with two engines.

    Attributes:
        picker: the process of the picker.
        envoy: that of Envoy.
    """

    def __init__(
        self,
        stack: ExitStack,
        envoy: Path,
        folder: Path,
        *,
        fail_open: bool,
        hold: int = 0,
        delay: float = 0,
        others: str = HOSTS[0],
    ) -> None:
        """Start all.

        Args:
            stack: ends them.
            envoy: the program.
            folder: for configuration and logs.
            fail_open: whether requests go to any engine without the picker.
            hold: seconds that the picker holds requests.
            delay: seconds until the picker sees the engines.
            others: the host of all engines, to which requests go that the picker does not see.
        """
        for host in HOSTS:
            serve(stack, (host, ENGINE_PORT), Engine)
        serve(stack, ("127.0.0.1", API_PORT), type("DelayedApi", (Api,), {"delay": delay}))
        (folder / "keys").write_text("one\n\ntwo\n")
        config = envoy_config(keys=str(folder / "keys"), fail_open=fail_open, hold=hold, port=PORT)
        (folder / "envoy.yaml").write_text(dump(config))
        (folder / "picker.yaml").write_text(dump(picker_config("prefix", adapters=True, hold=hold)))
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{API_PORT}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        users = [{"name": "u", "user": {"token": "t"}}]
        kube = {"kind": "Config", "clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}
        (folder / "kubeconfig").write_text(json.dumps({"apiVersion": "v1", **kube}))
        flags = ["--pool-name=m", "--pool-namespace=ns", f"--config-file={folder / 'picker.yaml'}", "--tracing=false"]
        flags += ["--secure-serving=false", "--metrics-endpoint-auth=false", "--enable-pprof=false"]
        env = {
            **os.environ,
            "KUBECONFIG": str(folder / "kubeconfig"),
            "NAMESPACE": "ns",
            "POD_NAME": "m-router-5-x",
        }
        self._picker = (stack, [str(locate_part("epp")), *flags], folder / "picker.log", env)
        self.picker = start(*self._picker)
        self.command = [str(envoy), "--config-path", str(folder / "envoy.yaml"), "--disable-hot-restart"]
        self.command += ["--config-yaml", f"{engines_cluster(others, ENGINE_PORT)}\n{limited(LIMIT)}"]
        self.envoy = start(
            stack, [*self.command, "--concurrency", "2", "--log-level", "error"], folder / "envoy.log", dict(os.environ)
        )
        until(lambda: ask({"prompt": "x"}, key="")[0] == 401)
        ready = b'inference_pool_ready_pods{name="m"} ' + (b"0" if delay else b"2")
        until(lambda: ready in read(9090, "/metrics"))

    def replace_picker(self) -> None:
        """Kill the picker, and start another one, as the kubelet does."""
        self.picker.kill()
        self.picker.wait()
        time.sleep(1)
        self.picker = start(*self._picker)


def limited(mebibytes: int) -> str:
    """Return the part of Envoy's configuration that depends on the limit of its memory."""
    return f"overload_manager: {json.dumps(overload()).replace(MEMORY, str(mebibytes << 20))}"


def used(process: subprocess.Popen[bytes]) -> int:
    """Return the most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) >> 10


def serve(stack: ExitStack, address: tuple[str, int], handler: type[Handler]) -> ThreadingHTTPServer:
    """Serve until the stack ends."""
    server = ThreadingHTTPServer(address, handler)
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return server


def start(stack: ExitStack, command: list[str], log: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    """Run a program until the stack ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def until(done: Any) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 40
    while time.monotonic() < end:
        try:
            if done():
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError("it did not happen in 40 seconds")


def read(port: int, path: str) -> bytes:
    """Return the body of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()


def ask(body: Any, key: str = "one", headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """Return status and answer of a request."""
    sent = {"authorization": f"Bearer {key}", "content-type": "application/json", **(headers or {})}
    with closing(http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)) as connection:
        connection.request("POST", "/v1/completions", json.dumps({"model": "m", **body}), sent)
        answer = connection.getresponse()
        text = answer.read()
    return answer.status, json.loads(text) if text.startswith(b"{") else text


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What a test starts, which ends with it."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("fail_open", [True, False])
@pytest.mark.parametrize("keys", ["", "/etc/kaigen/auth/api-key"])
def test_envoy_accepts_the_configuration(envoy: Path, tmp_path: Path, fail_open: bool, keys: str) -> None:
    (tmp_path / "envoy.yaml").write_text(dump(envoy_config(keys=keys, fail_open=fail_open, hold=60)))
    command = [str(envoy), "--mode", "validate", "--config-path", str(tmp_path / "envoy.yaml")]
    command += ["--config-yaml", f"{engines_cluster('chat-engines', 8000)}\n{limited(LIMIT)}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_prefixes_stay_with_a_replica_and_keys_are_checked(envoy: Path, tmp_path: Path, stack: ExitStack) -> None:
    Running(stack, envoy, tmp_path, fail_open=True)
    prompts = [f"word{letter} " * 300 for letter in "ABCDEF"]
    first = [ask({"prompt": prompt + "1"})[1]["host"] for prompt in prompts]
    again = [ask({"prompt": prompt + "2"}, key="two")[1]["host"] for prompt in prompts]
    assert again == first
    assert [ask({"prompt": "x"}, key=key)[0] for key in ("", "wrong", "on", "two")] == [401, 401, 401, 200]
    # Envoy keeps the first two bodies; the third one goes past the picker.
    for size in (5_000_000, 16_700_000, 40_000_000):
        assert ask({"prompt": "x" * size})[1]["bytes"] > size
    assert ask({"prompt": "x"}, headers={HEADER: f"127.0.0.1:{API_PORT}"})[1]["host"] in HOSTS


@pytest.mark.parametrize("size", [1_000, 3_000_000, 40_000_000])
def test_forms_with_audio_pass_in_any_size(envoy: Path, tmp_path: Path, stack: ExitStack, size: int) -> None:
    Running(stack, envoy, tmp_path, fail_open=True)
    form = b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\n" + bytes(size) + b"\r\n--b--\r\n"
    for pieces in (False, True):
        sent = {"authorization": "Bearer one", "content-type": "multipart/form-data; boundary=b"}
        with closing(http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)) as connection:
            body: Any = iter([form]) if pieces else form
            connection.request("POST", AUDIO, body, sent, encode_chunked=pieces)
            answer = connection.getresponse()
            assert (answer.status, json.loads(answer.read())) == (200, {"bytes": len(form)})


def test_answers_go_on_when_the_picker_dies_and_open_sends_requests_to_any(
    envoy: Path, tmp_path: Path, stack: ExitStack
) -> None:
    running = Running(stack, envoy, tmp_path, fail_open=True)
    with ThreadPoolExecutor() as pool:
        streams = [pool.submit(ask, {"prompt": "x", "stream": True}) for _ in range(5)]
        time.sleep(0.7)
        asked = [pool.submit(lambda: [ask({"prompt": "x" * 100_000})[0] for _ in range(60)]) for _ in range(4)]
        running.picker.kill()
        assert [stream.result() for stream in streams] == [(200, b"x" * 20)] * 5
        assert [each.result() for each in asked] == [[200] * 60] * 4
    assert [ask({"prompt": "x"})[0] for _ in range(20)] == [200] * 20
    assert ask({"prompt": "x"}, key="wrong")[0] == 401
    # Only the first of the engines is in the cluster of all, so the header would lead to the second.
    assert ask({"prompt": "x"}, headers={HEADER: f"{HOSTS[1]}:{ENGINE_PORT}"})[1]["host"] == HOSTS[0]


def test_closed_refuses_requests_without_the_picker(envoy: Path, tmp_path: Path, stack: ExitStack) -> None:
    running = Running(stack, envoy, tmp_path, fail_open=False)
    assert ask({"prompt": "x"})[0] == 200
    running.picker.kill()
    time.sleep(1)
    assert [ask({"prompt": "x"})[0], ask({"prompt": "x"}, key="wrong")[0]] == [503, 401]


def test_requests_to_an_empty_pool_wait_for_the_first_replica(envoy: Path, tmp_path: Path, stack: ExitStack) -> None:
    Running(stack, envoy, tmp_path, fail_open=True, hold=60, delay=12)
    with ThreadPoolExecutor(10) as pool:
        held = [pool.submit(ask, {"prompt": "x"}) for _ in range(10)]
        time.sleep(2)
        lines = read(9090, "/metrics").decode().splitlines()
        assert sum(float(line.split()[-1]) for line in lines if line.startswith(f"{QUEUE_METRIC}{{")) == 10
        # Where no Prometheus is named, KEDA reads these of Envoy.
        asked = f"{ACTIVE_METRIC}{{{OF_CLIENTS}}} 10"
        assert asked in read(READY, STATISTICS).decode().splitlines()
        assert [each.result()[0] for each in held] == [200] * 10


def test_requests_that_a_picker_held_wait_for_the_next_one(envoy: Path, tmp_path: Path, stack: ExitStack) -> None:
    running = Running(stack, envoy, tmp_path, fail_open=True, hold=60, delay=9, others="nowhere.invalid")
    with ThreadPoolExecutor(10) as pool:
        held = [pool.submit(ask, {"prompt": "x"}) for _ in range(10)]
        time.sleep(2)
        running.replace_picker()
        time.sleep(3)
        assert not any(each.done() for each in held)
        assert [each.result()[0] for each in held] == [200] * 10


def test_large_bodies_are_sent_again_when_the_picker_dies(envoy: Path, tmp_path: Path, stack: ExitStack) -> None:
    running = Running(stack, envoy, tmp_path, fail_open=True)
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(lambda: [ask({"prompt": "x" * 10_000_000})[0] for _ in range(5)]) for _ in range(4)]
        time.sleep(0.7)
        running.picker.kill()
        assert [each.result() for each in asked] == [[200] * 5] * 4


def send(size: int, tried: threading.Barrier) -> str:
    """Send a body but for its last byte, and that when all clients have; return the status, or how it ended."""
    sent = {"authorization": "Bearer one", "content-type": "application/json", "content-length": str(size)}
    body = b'{"model": "m", "prompt": "%s"}' % (b"x" * (size - 28))
    with closing(http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)) as connection:
        try:
            connection.request("POST", "/v1/completions", body[:-1], sent)
        except OSError as error:
            tried.wait()
            return type(error).__name__
        tried.wait()
        try:
            connection.send(body[-1:])
            return str(connection.getresponse().status)
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__


@pytest.mark.parametrize(("number", "size", "answered"), [(200, 4 << 20, 0), (40, 16 << 20, 0), (40, 4 << 20, 40)])
def test_clients_cannot_use_up_the_memory_of_the_router(
    envoy: Path, tmp_path: Path, stack: ExitStack, number: int, size: int, answered: int
) -> None:
    running = Running(stack, envoy, tmp_path, fail_open=True)
    tried = threading.Barrier(number)
    with ThreadPoolExecutor(number) as pool:
        ends = list(pool.map(lambda _: send(size, tried), range(number)))
    memory = f"Envoy {used(running.envoy)} MiB, the picker {used(running.picker)} MiB"
    print(f"{number} bodies of {size >> 20} MiB: {Counter(ends)}; {memory}")
    assert ends.count("200") >= answered
    assert used(running.envoy) < LIMIT
    assert used(running.picker) < 2 * LIMIT
    until(lambda: ask({"prompt": "x"})[0] == 200)
    assert (running.envoy.poll(), running.picker.poll()) == (None, None)
