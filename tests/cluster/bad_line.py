"""A line between a user and an API server that is cut, stalls and is slow, as the networks of users are."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.network import connect
from tests.cluster.plane import Plane

_PIECE = 1 << 14


class BadLine:
    """A port that forwards connections to the API server of a plane.

    Attributes:
        kubeconfig: leads to it.
        rate: bytes that pass in a second, in each direction of each connection.
        passed: bytes that passed from the user so far.
    """

    def __init__(self, plane: Plane, folder: Path) -> None:
        """Listen.

        Args:
            plane: where.
            folder: for the kubeconfig.
        """
        self._plane = plane
        self.rate = 1e12
        self.passed = 0
        self._open = threading.Event()
        self._open.set()
        self._is_cut = False
        self._sockets: set[socket.socket] = set()
        with plane.network.entered():
            self._listener = socket.create_server((plane.network.host, 0))
        config = json.loads(plane.kubeconfig.read_text())
        host, port = self._listener.getsockname()[:2]
        config["clusters"][0]["cluster"]["server"] = f"https://{host}:{port}"
        self.kubeconfig = folder / "bad-line.kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> BadLine:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_cut = True
        self._open.set()
        self._listener.close()
        self._cut_all()

    def cut(self, seconds: float) -> None:
        """End all connections, and refuse new ones for a while."""
        self._is_cut = True
        self._cut_all()
        time.sleep(seconds)
        self._is_cut = False

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        """Let nothing pass during the block, and keep the connections."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def await_bytes(self, count: int, seconds: float = 60) -> None:
        """Wait until more bytes have passed from the user."""
        goal, until = self.passed + count, time.monotonic() + seconds
        while self.passed < goal:
            assert time.monotonic() < until, f"only {self.passed} bytes passed"
            time.sleep(0.02)

    def _cut_all(self) -> None:
        for each in list(self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            if self._is_cut:
                return
            port = self._plane.client.port
            with connect(self._plane.network, (self._plane.network.host, port), 10) as server:
                self._sockets |= {client, server}
                with contextlib.suppress(OSError):
                    self._copy(client, server)
                self._sockets -= {client, server}

    def _copy(self, client: socket.socket, server: socket.socket) -> None:
        while True:
            for source in select.select([client, server], [], [])[0]:
                self._open.wait()
                data = source.recv(_PIECE)
                if not data:
                    return
                time.sleep(len(data) / self.rate)
                if source is client:
                    self.passed += len(data)
                (server if source is client else client).sendall(data)
