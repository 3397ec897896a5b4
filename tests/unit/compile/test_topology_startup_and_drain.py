"""How a pod of a Topology becomes ready, and how it stops."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from kaigen.programs.files import program_text
from tests.unit.compile.specs import objects, pod, topology
from tests.unit.compile.topologies import CONTAINER, CONTEXT, FOLDER, HUB


def test_time_to_start_follows_from_bytes_and_source() -> None:
    def attempts(**spec: Any) -> int:
        found: int = pod(topology(**spec), CONTEXT)["containers"][0]["startupProbe"]["failureThreshold"]
        return found

    assert attempts(model="many") > attempts(model="one")  # 100 GiB and 1 GiB
    big, small = ({"preset": name, "resources": {"instanceType": "p5en.48xlarge"}} for name in ("phi-4", "gpt-oss-20b"))
    assert attempts(**big) > attempts(**small)
    assert attempts(preset="phi-4", resources={"gpuType": "A100-80GB"}) > attempts(
        preset="phi-4", model="many", resources={"gpuType": "A100-80GB"}
    )
    assert attempts(model=FOLDER, probes={"startup": "2h"}) == 720


def test_rollout_deadline_is_longer_than_loading() -> None:
    for spec in ({"model": "many"}, {"model": HUB}, {"model": FOLDER, "probes": {"startup": "5h"}}):
        deployment = objects(topology(**spec), CONTEXT)["Deployment"]["spec"]
        probe = deployment["template"]["spec"]["containers"][0]["startupProbe"]
        assert deployment["progressDeadlineSeconds"] > probe["failureThreshold"] * probe["periodSeconds"]


def test_probes_of_a_container_open_its_port_by_default() -> None:
    container = pod(topology(**CONTAINER, port=3000))["containers"][0]
    assert container["readinessProbe"]["tcpSocket"] == {"port": "http"}
    assert container["ports"][0]["containerPort"] == 3000
    container = pod(topology(**CONTAINER, probes={"ready": "/r"}))["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == container["livenessProbe"]["httpGet"]["path"] == "/r"


@contextmanager
def metrics(counts: list[int | None], delay: float = 0.0) -> Iterator[tuple[int, list[str]]]:
    """Serve these counts of running requests one after the other, the last one for ever.

    Args:
        counts: the counts; None is an answer that fails.
        delay: seconds until an answer.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            count = counts[min(len(asked), len(counts)) - 1]
            time.sleep(delay)
            if count is None:
                self.send_error(503)
                return
            text = f'# HELP x\nvllm:num_requests_running{{m="a b"}} {count}.0\nvllm:num_requests_waiting{{m="c"}} 0.0\n'
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def drain(port: int, seconds: float, quiet: float = 0) -> float:
    hook = (
        "import sys; from kaigen.programs import drain as hook; hook.SETTLE, hook.PAUSE, hook.PATIENCE = 0, 0.01, 0.2\n"
    )
    hook += f"hook.DRAINING, hook.QUIET = '/nonexistent/draining', {quiet}\n"
    hook += f"hook.main({port}, ['vllm:num_requests_running', 'vllm:num_requests_waiting'], {seconds})"
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", hook], check=True, timeout=30)
    return time.monotonic() - start


def test_pod_stops_after_its_last_request() -> None:
    with metrics([2, 1, 1, 0]) as (port, asked):
        drain(port, 20)
    assert asked == ["/metrics"] * 4


def test_pod_waits_for_further_requests_of_connections_that_were_busy() -> None:
    with metrics([2, 0, 0, 1, 0]) as (port, asked):
        assert drain(port, 20, quiet=0.5) >= 0.5
    assert len(asked) > 5


def test_pod_stops_when_the_drain_time_is_over() -> None:
    with metrics([1]) as (port, asked):
        assert drain(port, 0.5) < 10
    assert len(asked) > 1


def test_pod_drains_while_the_metrics_are_slow_or_fail() -> None:
    with metrics([1], delay=0.4) as (port, asked):
        assert drain(port, 2) >= 2
    assert len(asked) > 1
    with metrics([None, None, 0]) as (port, asked):
        drain(port, 20)
    assert len(asked) == 3


def test_pod_without_a_running_engine_stops_at_once() -> None:
    assert drain(1, 20) < 10


def test_grace_period_is_longer_than_the_drain() -> None:
    for spec in ({"model": "many"}, {"engine": "transformers", "model": "many"}, CONTAINER):
        assert pod(topology(**spec, drain="7m"), CONTEXT)["terminationGracePeriodSeconds"] > 420


def response_headers(module: Path) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response that passes through the middleware."""
    loaded = importlib.util.spec_from_file_location("kaigen_connections", module)
    assert loaded is not None
    assert loaded.loader is not None
    connections: Any = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(connections)
    sent: list[dict[str, Any]] = []

    async def engine(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(connections.Connections(engine)({"type": "http"}, None, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return [*sent[0]["headers"]]


def test_a_pod_that_drains_closes_its_connections_until_it_starts_again(tmp_path: Path) -> None:
    """The files are those of a pod, in a folder of their own, as are the marks that they leave."""

    def start() -> None:
        own = "import kaigen_connections, os; assert os.environ['PYTHONPATH'].endswith(':/other')"
        command = [sys.executable, str(tmp_path / "launch.py"), str(module), sys.executable, "-c", own]
        subprocess.run(command, check=True, env={"PYTHONPATH": "/other"}, timeout=30)

    for name in ("launch.py", "kaigen_connections.py", "drain.py"):
        text = program_text(name).replace("/tmp/kaigen", str(tmp_path / "marks"))
        (tmp_path / name).write_text(text, encoding="utf-8")
    module = tmp_path / "kaigen_connections.py"
    start()
    assert response_headers(module) == [(b"a", b"b")]
    subprocess.run([sys.executable, str(tmp_path / "drain.py"), "1", "none", "5"], check=True, timeout=30)
    assert response_headers(module) == [(b"a", b"b"), (b"connection", b"close")]
    start()
    assert response_headers(module) == [(b"a", b"b")]
