"""A ring on loopback: kaigen's commands and probes, the proxy, and the peer in place of distributed-llama."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.engines import distributed_llama
from kaigen.programs.files import program_text
from tests.ring import peer

ROOT = Path(__file__).parents[3]
PROXY = {"PYTHONPATH": str(ROOT / "runtimes" / "ringproxy")}


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.02)


def in_state(port: int, *states: str) -> bool:
    """Return whether the probe of kaigen finds a socket of a port in one of these states."""
    expression = distributed_llama._sockets(port, *states)
    found = subprocess.run(["grep", "-Eq", expression, "/proc/net/tcp"], check=False)
    return found.returncode == 0


class Ring:
    """The processes of a ring."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.workers = [free_port() for _ in range(3)]
        self.api, self.port = free_port(), free_port()
        for name in ("dllama", "dllama-api"):
            (folder / name).symlink_to(ROOT / "tests" / "ring" / "peer.py")
        (folder / "model.m").write_bytes(peer.MAGIC.to_bytes(4, "little"))
        (folder / "tokenizer.t").touch()

    def start(self, name: str, command: Sequence[str], **env: str) -> None:
        """Start a process in a group of its own."""
        if name in self.processes:
            self.stop(name)
        variables = {**os.environ, "PEER_RETRY_SECONDS": "0.1", "PEER_TOKEN_SECONDS": "0.001", **env}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=variables, stdout=log, stderr=log, start_new_session=True
            )

    def worker(self, index: int) -> None:
        """Start a worker as its container does."""
        script = program_text("ring_worker.sh").replace("sleep 1", "sleep 0.1")
        own = [sys.executable, str(self.folder / "dllama"), "worker", "--port", str(self.workers[index])]
        self.start(f"worker-{index}", ["sh", "-c", script, "worker", *own, "--nthreads", "1"])

    def root(self, **env: str) -> None:
        """Start the root as its container does."""
        own = [sys.executable, str(self.folder / "dllama-api"), "--workers"]
        own += [f"127.0.0.1:{port}" for port in self.workers]
        own += ["--model", str(self.folder / "model.m"), "--tokenizer", str(self.folder / "tokenizer.t")]
        own += ["--port", str(self.api), "--max-seq-len", "64", "--net-turbo", "0"]
        self.start("root", ["sh", "-c", program_text("ring_root.sh"), "root", *own], **env)

    def proxy(self) -> None:
        """Start the proxy."""
        own = ["serve", f"--port={self.port}", f"--upstream-port={self.api}", "--model-name=tiny", "--context=64"]
        self.start("proxy", [sys.executable, "-m", "kaigen_ringproxy", *own], **PROXY)

    def stop(self, name: str, number: int = signal.SIGKILL) -> int:
        """End a process with its children; returns its exit code."""
        process = self.processes.pop(name)
        if process.poll() is not None:
            return process.returncode
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        return process.wait(20)

    def ask(self, body: Any, path: str = "/v1/chat/completions") -> int:
        """Return the status of a request to the proxy; 0 for no connection."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                self.answer = answer.read().decode()
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return int(error.code)
        except OSError:
            return 0

    def ready(self) -> bool:
        """Return whether the proxy is ready."""
        return self.ask(None, "/ready") == 200


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Ring]:
    """A ring whose processes end with the test."""
    made = Ring(tmp_path)
    yield made
    for name in list(made.processes):
        made.stop(name)


CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}


def test_a_ring_comes_up_in_any_order_and_survives_a_killed_worker(ring: Ring) -> None:
    ring.proxy()
    ring.root()
    ring.worker(0)
    until(lambda: b"the worker ended with code 1" in (ring.folder / "worker-0.log").read_bytes())
    ring.worker(2)
    ring.worker(1)
    until(ring.ready)
    assert ring.ask(CHAT) == 200
    assert "Hello-2/3" in ring.answer
    # The listening socket is closed in a session, which the probe counts as ready.
    assert not in_state(ring.workers[0], "0A")
    assert in_state(ring.workers[0], "0A", "01")
    ring.stop("worker-1")
    assert ring.ask(CHAT) in (502, 503)
    until(lambda: not ring.ready())
    ring.worker(1)
    until(ring.ready)
    assert ring.ask(CHAT) == 200


def test_bad_requests_do_not_end_the_program_behind_the_proxy(ring: Ring) -> None:
    for index in range(3):
        ring.worker(index)
    until(lambda: all(in_state(port, "0A") for port in ring.workers))
    ring.root()
    ring.proxy()
    until(ring.ready)
    for body in (b"{", b"{}", b"\0", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}):
        assert ring.ask(body) == 400
    parts = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "max_tokens": 1}
    assert ring.ask(parts) == 200
    assert ring.processes["root"].poll() is None
    assert ring.stop("proxy", signal.SIGTERM) == 0
    assert ring.stop("root", signal.SIGTERM) == 143
    assert ring.stop("worker-0", signal.SIGTERM) == 0
    # What the proxy is for.
    ring.root()
    ring.worker(0)
    until(lambda: in_state(ring.api, "0A"))
    socket.create_connection(("127.0.0.1", ring.api)).close()
    assert ring.processes["root"].wait(20) == 134
