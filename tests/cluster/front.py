"""A server in front of another one, which records requests or spoils them."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Be silent about clients that went away."""


class FrontServer:
    """Answers requests of every method. Use it as a context manager.

    Attributes:
        host: where it listens, as `HOST:PORT`.
    """

    host: str

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request. An `OSError` ends the connection."""
        raise NotImplementedError

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The certificate that it shows; None to serve without TLS."""
        return None

    def __enter__(self) -> Self:
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass(self) -> None:
                front.answer(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _pass

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.host = f"127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
