"""API keys that change under load: in front of vLLM, whose middleware is a program of kaigen, and in this server."""

from __future__ import annotations

import http.client
import importlib.util
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from kaigen_chat.http import App, Guard, Receive, Scope, Send
from kaigen_chat.keys import Keys
from kaigen_chat.metrics import Metrics

PROGRAM = Path(__file__).parents[4] / "kaigen/programs/kaigen_keys.py"
CLIENTS, PATIENCE = 8, 10.0
OWN = "the key that vLLM was started with"


async def vllm(scope: Scope, receive: Receive, send: Send) -> None:
    """What is behind the middleware: vLLM answers 401 unless it gets the key that it was started with."""
    headers = scope["headers"]
    assert isinstance(headers, list)
    sent = [value for name, value in headers if name == b"authorization"]
    status = 200 if sent == [f"Bearer {OWN}".encode()] else 401
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def model(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def app(kind: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    if kind == "chat":
        metrics = Metrics("m", "1")
        return Guard(model, keys=Keys((), file), max_body=1000, metrics=metrics, routes=frozenset())
    monkeypatch.setenv("KAIGEN_API_KEYS", str(file))
    monkeypatch.setenv("VLLM_API_KEY", OWN)
    found = importlib.util.spec_from_file_location("kaigen_keys", PROGRAM)
    assert found is not None
    assert found.loader is not None
    program: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(program)
    middleware: App = program.Keys(vllm)
    return middleware


@contextmanager
def serving(served: App) -> Iterator[int]:
    server = uvicorn.Server(uvicorn.Config(served, log_level="error", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def publish(folder: Path, text: str) -> None:
    """Replace the file as kubelet does: a folder of its own, and a link that is moved onto the last one."""
    version = folder / f"..{time.monotonic_ns()}"
    version.mkdir()
    (version / "api-key").write_text(text)
    (folder / "..next").symlink_to(version.name)
    os.replace(folder / "..next", folder / "..data")


class Client(threading.Thread):
    """Sends requests with a key on one connection, and counts the answers in each phase."""

    def __init__(self, port: int, keys: dict[str, str]) -> None:
        super().__init__()
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.keys, self.phase, self.answers = keys, "old", Counter[tuple[str, int]]()
        self.seen = threading.Event()

    def run(self) -> None:
        while (phase := self.phase) != "end":
            self.connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {self.keys[phase]}"})
            response = self.connection.getresponse()
            response.read()
            self.answers[phase, response.status] += 1
            if phase == self.phase:
                self.seen.set()
        self.connection.close()


@pytest.mark.parametrize("kind", ["chat", "vllm"])
def test_no_request_is_lost_while_the_key_changes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "api-key").symlink_to("..data/api-key")
    publish(tmp_path, "old\n")
    with serving(app(kind, tmp_path / "api-key", monkeypatch)) as port:
        clients = [Client(port, {"old": "old", "both": "old", "moved": "new", "new": "new"}) for _ in range(CLIENTS)]
        stale = Client(port, {"old": "old", "both": "new", "moved": "new", "new": "old"})
        for client in (*clients, stale):
            client.start()

        def proceed(phase: str) -> None:
            for client in (*clients, stale):
                client.seen.clear()
                client.phase = phase
            for client in (*clients, stale):
                assert client.seen.wait(PATIENCE)

        for client in (*clients, stale):
            assert client.seen.wait(PATIENCE)
        publish(tmp_path, "old\nnew\n")
        proceed("both")
        proceed("moved")
        publish(tmp_path, "new\n")
        proceed("new")
        for client in (*clients, stale):
            client.phase = "end"
        for client in (*clients, stale):
            client.join()
    for client in clients:
        assert {status for _, status in client.answers} == {200}
    assert {status for phase, status in stale.answers if phase != "new"} == {200}
    assert {status for phase, status in stale.answers if phase == "new"} == {401}
