"""`scale` and `idle`."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fake_cluster import Call, Cluster, Server
from kaigen_reaper.cli import main
from kaigen_reaper.cluster import Api
from kaigen_reaper.errors import Unavailable
from kaigen_reaper.scale import Jupyter, Target, Watch, watch_idle

HOUR = 3600.0
NOW = 1_800_000_000.0
TOKEN = "of-the-notebook"


def stateful_set(cluster: Cluster, replicas: int = 1) -> None:
    cluster.time = NOW
    cluster.put("configmaps", {"metadata": {"name": "lab-state"}, "data": {"stopped": "earlier"}})
    cluster.put("statefulsets", {"metadata": {"name": "lab"}, "spec": {"replicas": replicas}})


def replicas(cluster: Cluster) -> int:
    found = cluster.get("statefulsets", "lab")
    assert found is not None
    return int(found["spec"]["replicas"])


def state(cluster: Cluster) -> dict[str, str]:
    found = cluster.get("configmaps", "lab-state")
    assert found is not None
    return dict(found["data"])


def patches(cluster: Cluster) -> list[Call]:
    return [call for call in cluster.calls if call.method == "PATCH" and call.path.endswith("/scale")]


class Notebook:
    """A Jupyter server, as far as `idle` asks it."""

    def __init__(self) -> None:
        self.kernels: list[dict[str, Any]] = []
        self.terminals: list[dict[str, Any]] | None = []
        self.status = 200
        self.paths: list[str] = []

    def kernel(self, at: float, state: str = "idle") -> dict[str, Any]:
        return {"id": "a", "last_activity": _text(at), "execution_state": state, "connections": 1}


def _text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


@pytest.fixture
def jupyter(notebook: Notebook, tmp_path: Path) -> Iterator[Jupyter]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            notebook.paths.append(self.path)
            found = notebook.kernels if "/kernels" in self.path else notebook.terminals
            status = notebook.status if found is not None else 404
            if self.headers["Authorization"] != f"token {TOKEN}":
                status = 403
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode() if status == 200 else b"{}")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    yield Jupyter(server.server_port, tmp_path / "token")
    server.shutdown()
    server.server_close()


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_scale_sets_the_replicas_through_the_subresource_and_records_why(
    server: Server, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    stateful_set(cluster)
    assert main(["scale", "--name=lab", "--state=lab-state", "--replicas=0"], server.env) == 0
    assert replicas(cluster) == 0
    (call,) = patches(cluster)
    assert call.path == "/apis/apps/v1/namespaces/models/statefulsets/lab/scale"
    assert call.body == {"spec": {"replicas": 0}}
    assert state(cluster) == {"stopped": "hours", "at": "2027-01-15T08:00:00Z"}
    assert capsys.readouterr().err == "StatefulSet models/lab has 0 replicas\n"


def test_scale_tries_again_until_it_may(server: Server, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    stateful_set(cluster, 0)
    cluster.statuses = [403]
    env = {**server.env, "KAIGEN_POLL": "0.01"}
    assert main(["scale", "--name=lab", "--state=lab-state", "--replicas=1"], env) == 0
    assert replicas(cluster) == 1
    assert state(cluster) == {}
    assert "waiting: StatefulSet models/lab: the API server answers 403 to patch the scale" in capsys.readouterr().err


def test_scale_gives_up_in_time(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    env = {**server.env, "KAIGEN_POLL": "0.01"}
    assert main(["scale", "--name=lab", "--state=lab-state", "--replicas=1", "--timeout=1"], env) == 20
    assert 'statefulsets "lab" not found' in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--name=../nodes/a", "--state=../secrets/a", "--replicas=2"])
def test_scale_refuses_invalid_arguments(server: Server, cluster: Cluster, argument: str) -> None:
    assert main(["scale", "--name=lab", "--state=lab-state", "--replicas=1", argument], server.env) == 13
    assert cluster.calls == []


def test_a_notebook_without_kernels_is_idle_after_the_start_of_its_pod(jupyter: Jupyter, clock: Clock) -> None:
    watch = Watch(jupyter, HOUR, clock)
    clock.now += HOUR - 1
    assert watch.idle() is None
    clock.now += 1
    assert watch.idle() == HOUR


def test_the_latest_kernel_or_terminal_counts(jupyter: Jupyter, notebook: Notebook, clock: Clock) -> None:
    watch = Watch(jupyter, HOUR, clock)
    notebook.kernels = [notebook.kernel(NOW + 60), notebook.kernel(NOW + 30)]
    notebook.terminals = [{"name": "1", "last_activity": _text(NOW + 90)}]
    clock.now = NOW + HOUR + 89
    assert watch.idle() is None
    clock.now += 1
    assert watch.idle() == HOUR


def test_a_kernel_that_computes_is_not_idle(jupyter: Jupyter, notebook: Notebook, clock: Clock) -> None:
    watch = Watch(jupyter, HOUR, clock)
    notebook.kernels = [notebook.kernel(NOW, "busy")]
    clock.now += 10 * HOUR
    assert watch.idle() is None


def test_the_activity_of_a_kernel_that_ended_is_remembered(jupyter: Jupyter, notebook: Notebook, clock: Clock) -> None:
    watch = Watch(jupyter, HOUR, clock)
    clock.now += 5 * HOUR
    notebook.kernels = [notebook.kernel(clock.now)]
    assert watch.idle() is None
    notebook.kernels = []
    clock.now += HOUR - 1
    assert watch.idle() is None


def test_a_notebook_that_does_not_answer_is_not_idle(jupyter: Jupyter, notebook: Notebook, clock: Clock) -> None:
    watch = Watch(jupyter, HOUR, clock)
    clock.now += 10 * HOUR
    notebook.status = 500
    with pytest.raises(Unavailable, match="status 500"):
        watch.idle()


def test_a_notebook_without_terminals_is_asked_for_kernels_alone(
    jupyter: Jupyter, notebook: Notebook, clock: Clock
) -> None:
    notebook.terminals = None
    clock.now += 1
    assert Watch(jupyter, HOUR, clock).idle() is None


def test_the_questions_are_no_activity(jupyter: Jupyter, notebook: Notebook, clock: Clock) -> None:
    Watch(jupyter, HOUR, clock).idle()
    assert notebook.paths == ["/api/kernels?no_track_activity=1", "/api/terminals?no_track_activity=1"]


@contextlib.contextmanager
def following(server: Server, watch: Watch, after: float) -> Iterator[None]:
    stop = threading.Event()

    def run() -> None:
        with contextlib.closing(Api(server.env)) as api:
            watch_idle(Target(api, "lab", "lab-state"), watch, after, stop)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    stop.set()
    thread.join(5)
    assert not thread.is_alive()


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_pod_of_an_idle_notebook_is_stopped(
    server: Server, cluster: Cluster, jupyter: Jupyter, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    stateful_set(cluster)
    watch = Watch(jupyter, 5, clock)
    clock.now += 5
    with following(server, watch, 5):
        eventually(lambda: replicas(cluster) == 0)
        eventually(lambda: "idle for 5s: StatefulSet models/lab has 0 replicas" in capsys.readouterr().err)
    assert state(cluster)["stopped"] == "idle"


def test_nothing_is_stopped_while_the_server_does_not_answer(
    server: Server,
    cluster: Cluster,
    jupyter: Jupyter,
    notebook: Notebook,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stateful_set(cluster)
    notebook.status = 403
    watch = Watch(jupyter, 5, clock)
    clock.now += 60
    with following(server, watch, 5):
        eventually(lambda: len(notebook.paths) >= 2)
    assert patches(cluster) == []
    assert state(cluster) == {}, "a pod that runs was not stopped"
    assert capsys.readouterr().err.count("warning: asking Jupyter for kernels: not a list, status 403") == 1
