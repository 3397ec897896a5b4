"""Web servers on loopback whose answers a test chooses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Web:
    """A web server whose answers the test chooses."""

    answer: Callable[[str, str, str], Reply] = lambda method, path, auth: (404, {}, b"")
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    host: str = ""


@contextmanager
def webs() -> Iterator[Callable[[], Web]]:
    """Returns a function that starts a server; they end with the context."""
    running: list[ThreadingHTTPServer] = []

    def make() -> Web:
        web = Web()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                authorization = self.headers.get("Authorization") or ""
                web.asked.append((self.command, self.path, authorization))
                status, headers, body = web.answer(self.command, self.path, authorization)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = do_PUT = _serve

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        running.append(server)
        web.host = f"127.0.0.1:{server.server_address[1]}"
        return web

    yield make
    for server in running:
        server.shutdown()
        server.server_close()
