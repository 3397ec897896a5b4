"""An API server that does not answer for a while, and the objects of a command that fails."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kaigen.cluster import client
from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError, Unreachable
from kaigen.diagnostics.errors import CheckFailed
from kaigen.ops.creation import Creation
from tests.unit.cluster.api_server import kubeconfig

_POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
_CLAIM: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "b"}}


class Server:
    """An API server for objects of one namespace, in which connections can be lost.

    Attributes:
        stored: paths of the objects.
        forbidden: methods that are refused.
        lost: how many answers are lost, after the request was carried out.
        said: what the client printed.
    """

    def __init__(self) -> None:
        self.stored: set[str] = set()
        self.forbidden: set[str] = set()
        self.lost = 0
        self.said: list[str] = []

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        path = path.partition("?")[0]
        if method in self.forbidden:
            return 403, {"reason": "Forbidden", "message": f"may not {method}"}
        if method == "POST":
            path = f"{path}/{json.loads(body)['metadata']['name']}"
            if path in self.stored:
                return 409, {"reason": "AlreadyExists"}
            self.stored.add(path)
            return 201, json.loads(body)
        if path not in self.stored:
            return 404, {"reason": "NotFound"}
        if method == "DELETE":
            self.stored.remove(path)
        return 200, {"metadata": {"name": path.rpartition("/")[2]}}


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Cluster, Server]]:
    """Yield a client that has got one answer, and its server."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, found = state.answer(self.command, self.path, body)
            if state.lost:
                state.lost -= 1
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            data = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    path = folder / "config"
    path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{server.server_address[1]}")))
    cluster = Cluster(str(path))
    cluster.say = state.said.append
    cluster.find("v1/Pod", "none", "ml")
    try:
        yield cluster, state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAUSES_S", (0.01,))


def test_request_whose_answer_is_lost_is_sent_again(tmp_path: Path) -> None:
    with serving(tmp_path) as (cluster, server):
        server.lost = 3
        assert cluster.find("v1/Pod", "a", "ml") is None
        (line,) = server.said
        assert line.startswith("cannot reach the cluster at http://127.0.0.1:")
        assert line.endswith("; trying again")


def test_object_that_a_lost_answer_was_about_is_neither_an_error_nor_made_twice(tmp_path: Path) -> None:
    with serving(tmp_path) as (cluster, server):
        server.lost = 1
        assert cluster.create(_POD, "ml")["metadata"]["name"] == "a"
        assert server.stored == {"/api/v1/namespaces/ml/pods/a"}
        with pytest.raises(ApiError):
            cluster.create(_POD, "ml")
        server.lost = 1
        assert cluster.delete("v1/Pod", "a", "ml")
        assert not cluster.delete("v1/Pod", "a", "ml")


def test_cluster_that_stays_away_is_an_error_after_the_patience(tmp_path: Path) -> None:
    with serving(tmp_path) as (cluster, server):
        server.lost, cluster.patience = 10_000, 0.1
        with pytest.raises(Unreachable, match="cannot reach the cluster"):
            cluster.find("v1/Pod", "a", "ml")


def work(creation: Creation, say: Callable[[str], object], *steps: Callable[[], object]) -> None:
    """Do something with a claim that was created."""
    with creation.undone_on_error(say):
        creation.create(_CLAIM)
        for step in steps:
            step()


def fail(error: BaseException) -> None:
    raise error


def test_failed_command_deletes_what_it_created_and_raises_its_own_error(tmp_path: Path) -> None:
    with serving(tmp_path) as (cluster, server):
        creation, said = Creation(cluster, "ml"), list[str]()
        steps = (partial(creation.create, _POD), partial(fail, CheckFailed("no GPU")))
        with pytest.raises(CheckFailed, match="no GPU"):
            work(creation, said.append, *steps)
        assert server.stored == set()
        assert said == ["a deleted again", "b deleted again"]


def test_object_that_the_server_refused_is_not_deleted(tmp_path: Path) -> None:
    with serving(tmp_path) as (cluster, server):
        creation = Creation(cluster, "ml")
        forbid = partial(server.forbidden.update, {"POST", "DELETE"})
        with pytest.raises(ApiError, match="may not POST"):
            work(creation, server.said.append, forbid, partial(creation.create, _POD))
        assert server.stored == {"/api/v1/namespaces/ml/persistentvolumeclaims/b"}
        assert server.said == [
            "deleting what was created: persistentvolumeclaim/b",
            "not deleted: may not DELETE",
            "delete what is left with: kubectl delete -n ml persistentvolumeclaim/b",
        ]


def test_what_a_dead_cluster_keeps_is_named_with_the_command_that_deletes_it(tmp_path: Path) -> None:
    with serving(tmp_path) as (cluster, server):
        creation = Creation(cluster, "ml")
        steps = (partial(creation.create, _POD), partial(setattr, server, "lost", 10_000))
        with pytest.raises(KeyboardInterrupt):
            work(creation, server.said.append, *steps, partial(fail, KeyboardInterrupt()))
        assert server.said[-1] == "delete what is left with: kubectl delete -n ml pod/a persistentvolumeclaim/b"
