"""Answers of an API server on loopback, for what a real one does rarely; tests/cluster asks a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kaigen.cluster.client import Cluster

Answer = tuple[int, Any]


@contextmanager
def api_server(folder: Path, answers: Mapping[str, Answer]) -> Iterator[tuple[Cluster, list[str]]]:
    """Yield a client of a server, and the requests it gets: path and query, and what is accepted.

    Args:
        folder: an empty one.
        answers: status and body by path and query; 404 for all others.
    """
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            status, body = answers.get(self.path, (404, {"kind": "Status", "reason": "NotFound"}))
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    path = folder / "config"
    path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{server.server_address[1]}")))
    try:
        yield Cluster(str(path)), requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(server: str, name: str = "here", **user: Any) -> dict[str, Any]:
    """Return a kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user}],
    }
