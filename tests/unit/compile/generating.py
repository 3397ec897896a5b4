"""A stand-in for vLLM's server on the loopback device, and the program of `workload: generate` against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kaigen.programs import generate

BAD = "refuse me"
"""A text that the server answers with HTTP 400."""


class StandIn(ThreadingHTTPServer):
    """Answers every request with its own text, in the form of vLLM's API.

    Attributes:
        asked: how often it got each text.
        awaited: is set when it has got `most` requests.
        most: number of requests.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, most: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: Counter[str] = Counter()
        self.awaited, self.most = threading.Event(), most

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: the client was killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn
    # A header and a body in two packets would wait for each other.
    wbufsize = -1

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer that the engine is ready."""
        self._answer(200, {})

    def do_POST(self) -> None:
        """Answer with the text of the request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][-1]["content"] if "messages" in body else body.get("prompt", body.get("input"))
        self.server.asked[text] += 1
        if self.server.asked.total() >= self.server.most:
            self.server.awaited.set()
        if BAD in text:
            self._answer(400, {"error": {"message": "no"}})
        elif self.path == generate.PATHS["embed"]:
            self._answer(200, {"data": [{"embedding": [0.5, len(text)]}], "usage": {}})
        elif self.path == generate.PATHS["classify"]:
            self._answer(200, {"data": [{"label": "long", "probs": [0.1, 0.9]}], "usage": {}})
        else:
            content = {"message": {"content": text}} if "messages" in body else {"text": text}
            self._answer(200, {"choices": [{**content, "finish_reason": "stop"}], "usage": {"total_tokens": 2}})

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


@contextmanager
def stand_in(most: int = 0) -> Iterator[StandIn]:
    """Run the server."""
    with StandIn(most) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def settings(**changed: Any) -> dict[str, Any]:
    """Return the content of the file of settings."""
    defaults = {"task": "chat", "format": "rows", "parameters": {}, "concurrency": 4, "checkpointLines": 5}
    return {**defaults, **changed}


def start(folder: Path, server: StandIn, shard: int, shards: int, **changed: Any) -> subprocess.Popen[str]:
    """Start the program on the files of `folder/in`."""
    params = folder / "params.json"
    params.write_text(json.dumps(settings(**changed)))
    (folder / "out").mkdir(exist_ok=True)
    env = {**os.environ, "JOB_COMPLETION_INDEX": str(shard), "SHARDS": str(shards)}
    return subprocess.Popen(
        [sys.executable, generate.__file__, params, folder / "in", folder / "out", "tiny", folder / "model", "--"],
        env={**env, "KAIGEN_ENGINE_PORT": str(server.server_port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    """Return the exit code of the program, and its message."""
    printed, _ = process.communicate(timeout=60)
    return process.returncode, json.loads(printed.splitlines()[-1])


def found(folder: Path, name: str) -> list[Any]:
    """Return the lines of a file of the output."""
    return [json.loads(line) for line in (folder / "out" / name).read_text("utf-8").splitlines()]
