"""Progress for Prometheus: `GET /metrics` while files are fetched."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from kaigen_downloader import __version__
from kaigen_downloader.progress import Counts, Display
from kaigen_downloader.text import say

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of Prometheus' text format."""

_DEADLINE = 5.0
"""Seconds that a client has for its request and for reading the answer."""
_MOST_CLIENTS = 8
"""Clients that are answered at a time. The oldest makes way for a new one."""


class _Family(NamedTuple):
    name: str
    kind: str
    help: str
    field: str


_FAMILIES = (
    _Family("received_bytes_total", "counter", "Bytes that were read, also those that were read again.", "added"),
    _Family("damaged_bytes_total", "counter", "Bytes that were read and had to be read again.", "lost"),
    _Family("done_bytes", "gauge", "Bytes that are done.", "done"),
    _Family("size_bytes", "gauge", "Bytes in all.", "total"),
    _Family("done_files", "gauge", "Files that are done.", "completed"),
    _Family("files", "gauge", "Files in all.", "files"),
)


def text(source: str, dest: str, counts: Iterable[Counts]) -> str:
    """Return the metrics in Prometheus' text format.

    Args:
        source: name of the source, without secrets.
        dest: the destination, without secrets.
        counts: those of each action that has begun.
    """
    labels = _labels(version=__version__, source=source, dest=dest)
    lines = [
        "# HELP kaigen_downloader_info What is fetched, and where to.",
        "# TYPE kaigen_downloader_info gauge",
        f"kaigen_downloader_info{labels} 1",
    ]
    found = list(counts)
    for family in _FAMILIES:
        name = f"kaigen_downloader_{family.name}"
        lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}"]
        lines += [f"{name}{_labels(action=each.action)} {getattr(each, family.field)}" for each in found]
    return "\n".join(lines) + "\n"


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@contextlib.contextmanager
def served(port: int, shown: Display) -> Iterator[None]:
    """Serve the metrics of a display during the block.

    A port that is in use is a warning: files matter more than their metrics.

    Args:
        port: the port, on all addresses.
        shown: how the progress is shown.
    """
    try:
        server = _Server(port, shown)
    except OSError as error:
        say(f"warning: no metrics on port {port}: {error.strerror or error}")
        yield
        return
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int, shown: Display) -> None:
        super().__init__(("", port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.shown = shown
        self._clients: list[socket.socket] = []
        self._change = threading.Lock()
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self.socket = socket.create_server(("", port), family=family, dualstack_ipv6=both)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Answer a client in a thread."""
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
        """Ignore clients that are gone."""


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "kaigen-downloader"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        shown = self.server.shown
        body = text(shown.source, shown.dest, shown.counts()).encode(errors="replace")
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log no requests."""
