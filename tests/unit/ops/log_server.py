"""Pods and their logs as an API server has them, on loopback: connections that break in the middle of a line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct, field

DATE = "Thu, 01 Jan 2026 10:00:00 GMT"
"""The server's clock."""
LABELS = {"batch.kubernetes.io/job-name": "job"}
JOB: dict[str, Any] = {"metadata": {"name": "job", "namespace": "ml", "uid": "1"}}


class Connection(Struct):
    """How the server answers one request for the log.

    Attributes:
        until: number of the lines that exist when it is asked.
        cut: bytes of the answer after which the connection breaks; None for a complete answer.
        status: status of the answer.
        message: its text, if it is an error.
        ended: whether the container has ended before the request.
    """

    until: int = 0
    cut: int | None = None
    status: int = 200
    message: str = ""
    ended: bool = False


class LogServer(Struct):
    """A running server.

    Attributes:
        lines: all lines of the log, with times.
        connections: how the next requests are answered; the last one is repeated.
        queries: parameters of the requests for the log.
        kubeconfig: a file for it.
        pods: the pods, if not the one that prints the log.
        job: the Job.
        events: events of the namespace.
        chunked: whether answers are sent in chunks, as an API server does; else with their length, as a proxy may.
    """

    lines: list[str]
    connections: list[Connection]
    queries: list[dict[str, list[str]]]
    kubeconfig: Path
    pods: list[dict[str, Any]] | None = None
    job: dict[str, Any] = field(default_factory=lambda: JOB)
    events: list[dict[str, Any]] = []
    chunked: bool = True

    def pod(self) -> dict[str, Any]:
        """Return the pod."""
        state: dict[str, Any] = {"terminated": {}} if self.connections[0].ended else {"running": {}}
        return {
            "metadata": {
                "name": "job-x",
                "namespace": "ml",
                "uid": "2",
                "labels": LABELS,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"restartPolicy": "Never", "containers": [{"name": "run"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "run", "state": state}]},
        }

    def body(self, name: str) -> dict[str, Any]:
        """Return an object, or a list of them."""
        pods = [self.pod()] if self.pods is None else self.pods
        match name:
            case "job":
                return self.job
            case "job-x":
                return pods[0]
            case "events":
                return {"items": self.events}
        return {"items": pods}

    def selected(self, query: dict[str, list[str]], until: int) -> bytes:
        """Return the lines that a request selects, as the kubelet does: since a time that has whole seconds."""
        found = self.lines[:until]
        if since := query.get("sinceTime"):
            begin = datetime.fromisoformat(since[0])
            found = [line for line in found if datetime.fromisoformat(line[:19] + "Z") >= begin]
        if tail := query.get("tailLines"):
            found = found[len(found) - int(tail[0]) :]
        stamped = query.get("timestamps") == ["true"]
        return "".join(f"{line if stamped else line.partition(' ')[2]}\n" for line in found).encode()


@contextmanager
def log_server(folder: Path, lines: list[str], *connections: Connection) -> Iterator[LogServer]:
    """A server during the block.

    Args:
        folder: an empty one.
        lines: the log.
        connections: how requests for it are answered.
    """
    found = LogServer(lines, list(connections), [], folder / "config")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path.endswith("/log"):
                self._log(parse_qs(parts.query))
                return
            self._send(200, json.dumps(found.body(parts.path.rpartition("/")[2])).encode())

        def _log(self, query: dict[str, list[str]]) -> None:
            found.queries.append(query)
            now = found.connections.pop(0) if len(found.connections) > 1 else found.connections[0]
            if now.status != 200:
                self._send(now.status, json.dumps({"message": now.message}).encode())
                return
            data = found.selected(query, now.until)
            self._send(200, data, cut=now.cut)

        def _send(self, status: int, data: bytes, cut: int | None = None) -> None:
            self.send_response(status)
            if found.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                part = data[:cut]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if part else b"")
                self.wfile.write(b"0\r\n\r\n" if cut is None else b"")
            else:
                self.send_header("Content-Length", str(len(data) + (cut is not None)))
                self.end_headers()
                self.wfile.write(data[:cut])
            self.close_connection = cut is not None

        def date_time_string(self, timestamp: float | None = None) -> str:
            return DATE

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    found.kubeconfig.write_text(json.dumps(config))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
