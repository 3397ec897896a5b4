"""Prometheus metrics and health over HTTP."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HELP = {
    "deleted_total": "Objects deleted, by kind.",
    "kept_total": "Decisions not to delete an object, by kind and reason.",
    "errors_total": "Errors, by what failed.",
    "requests_total": "Requests to the API server, by method and status (0 for no answer).",
    "objects": "Jobs and volumes that expire, by kind.",
    "leader": "Whether this process deletes: 1 for the leader, 0 for a standby.",
    "last_pass_timestamp_seconds": "Unix time of the end of the last complete look at all finished pods.",
    "delay_seconds_total": "Seconds from the expiry of deleted objects to their deletion, summed.",
}
_STALE = 300.0
_DEADLINE = 5.0
"""Seconds that a client has for its request and for reading the answer."""
_MOST_CLIENTS = 32
"""Clients that are answered at a time, each in a thread. The oldest makes way for a new one, such as a probe."""


class Metrics:
    """Counters and gauges. Threads may share them.

    Attributes:
        ready: whether everything in one of the namespaces was listed.
    """

    def __init__(self) -> None:
        self.ready = False
        self._values: dict[tuple[str, str], float] = {}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._lock = threading.Lock()
        self._beat = time.monotonic()

    def add(self, name: str, amount: float = 1, **labels: object) -> None:
        """Increase a counter."""
        key = (name, _labels(labels))
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def set(self, name: str, value: float, **labels: object) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[name, _labels(labels)] = value

    def value(self, name: str, **labels: object) -> float:
        """Return the value of a counter or gauge."""
        with self._lock:
            return self._values.get((name, _labels(labels)), 0)

    def beat(self) -> None:
        """Note that the program makes progress."""
        self._beat = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether the program made progress in the last minutes."""
        return time.monotonic() - self._beat < _STALE

    def text(self) -> str:
        """Return all values in Prometheus' text format."""
        with self._lock:
            values = sorted(self._values.items())
        lines: list[str] = []
        last = ""
        for (name, labels), value in values:
            if name != last:
                kind = "counter" if name.endswith("_total") else "gauge"
                lines += [f"# HELP kaigen_reaper_{name} {_HELP[name]}", f"# TYPE kaigen_reaper_{name} {kind}"]
                last = name
            lines.append(f"kaigen_reaper_{name}{labels} {value:.15g}")
        return "\n".join(lines) + "\n"


def _labels(labels: dict[str, object]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{{{inner}}}" if inner else ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._clients: list[socket.socket] = []
        self._change = threading.Lock()
        super().__init__(address, handler)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Answer a client in a thread; disconnect the oldest one when there are too many."""
        with self._change:
            self._clients.append(request)
            late = self._clients.pop(0) if len(self._clients) > _MOST_CLIENTS else None
        if late is not None:
            _cut(late)
        super().process_request(request, client_address)

    def finish_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Answer a client within the time for it."""
        # A client that sends a byte now and then would never reach a time limit of its reads.
        cut = threading.Timer(_DEADLINE, _cut, (request,))
        cut.daemon = True
        cut.start()
        try:
            super().finish_request(request, client_address)
        finally:
            cut.cancel()
            with self._change, contextlib.suppress(ValueError):  # A newer client may have replaced it.
                self._clients.remove(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that go away."""


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def serve(metrics: Metrics, port: int, refresh: Callable[[], None], address: str = "") -> int:
    """Serve `/metrics`, `/healthz` and `/readyz` in threads of their own.

    Args:
        metrics: the values.
        port: 0 for any free port.
        refresh: sets gauges, before each scrape.
        address: to listen on; empty for all.

    Returns:
        The port.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                refresh()
                return self._reply(200, metrics.text())
            good = {"/healthz": metrics.alive, "/readyz": metrics.ready}.get(self.path)
            if good is None:
                return self._reply(404, "not found\n")
            self._reply(200, "ok\n") if good else self._reply(503, "not yet\n")

        def _reply(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    if not address:
        dual = socket.has_dualstack_ipv6()
        address = "::" if dual else "0.0.0.0"
    _Server.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = _Server((address, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name="metrics").start()
    return int(server.server_port)
