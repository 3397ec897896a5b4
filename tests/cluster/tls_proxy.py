"""A proxy of a company on loopback: it decrypts TLS with certificates of an authority of its own."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

from tests.cluster.pki import Authority

_PIECE = 1 << 16


class _Server(ThreadingTCPServer):
    daemon_threads = True
    authority: Authority
    hosts: list[str]
    lock: threading.Lock


class _Handler(StreamRequestHandler):
    """Answers CONNECT, and passes on what both sides send."""

    server: _Server

    def handle(self) -> None:
        method, target, _ = self.rfile.readline().decode().split(" ", 2)
        while self.rfile.readline().strip():
            pass
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            return
        host, _, port = target.rpartition(":")
        with self.server.lock:
            self.server.hosts.append(host)
            pair = self.server.authority.issue(f"host-{host}", host, hosts=[host])
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        inside.load_cert_chain(pair.cert, pair.key)
        outside = ssl.create_default_context()
        with (
            suppress(OSError),
            socket.create_connection((host, int(port)), timeout=60) as plain,
            inside.wrap_socket(self.connection, server_side=True) as client,
            outside.wrap_socket(plain, server_hostname=host) as server,
        ):
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()


def _copy(source: ssl.SSLSocket, target: ssl.SSLSocket) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def tls_proxy(folder: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Run a proxy; return its URL, the certificate of its authority, and the hosts that were asked through it.

    Args:
        folder: for its certificates.
    """
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.authority, server.hosts, server.lock = Authority(folder, "company"), [], threading.Lock()
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", server.authority.pair.cert, server.hosts
        server.shutdown()
