"""A local port whose connections reach a port of a pod, over WebSockets of the API server."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress

from websocket import ABNF, WebSocket, WebSocketConnectionClosedException, WebSocketException

from kaigen.cluster.client import Cluster
from kaigen.cluster.execution import has_input, open_websocket
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import api_path

_PROTOCOL = "v4.channel.k8s.io"
_CHUNK = 64 * 1024
_DATA, _ERROR = 0, 1
_LOOPBACK = "127.0.0.1"


class PortForward:
    """A port of the loopback interface that forwards each connection to a pod, until the end of the block.

    Attributes:
        port: the local port.
        failure: why the last connection could not be forwarded; empty if none failed.
    """

    def __init__(self, cluster: Cluster, namespace: str, pod: str, port: int, local: int = 0) -> None:
        """Listen.

        Args:
            cluster: the cluster.
            namespace: namespace of the pod.
            pod: name of the pod. A pod that replaces it gets the connections that are opened later.
            port: port of the pod.
            local: local port; 0 for a free one.

        Raises:
            SystemFailure: the local port is in use.
        """
        self._cluster = cluster
        self._path = api_path("v1/Pod", namespace, pod, "portforward")
        self._target = port
        self.failure = ""
        try:
            self._listener = socket.create_server((_LOOPBACK, local))
        except OSError as error:
            hint = "choose another one with --port"
            raise SystemFailure(f"cannot listen on port {local}: {error.strerror}", hint=hint) from None
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> PortForward:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def check(self) -> None:
        """Open one connection to the pod and close it.

        Raises:
            ApiError: the API server refused.
            SystemFailure: it cannot be reached.
        """
        self._connect().shutdown()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client:
            try:
                remote = self._connect()
            except SystemFailure as error:
                self.failure = str(error)
                return
            # A browser closes connections at any time.
            with suppress(OSError, WebSocketException):
                self.failure = _relay(client, remote) or self.failure
            remote.shutdown()

    def _connect(self) -> WebSocket:
        return open_websocket(self._cluster, self._path, [("ports", str(self._target))], _PROTOCOL)


def _relay(client: socket.socket, remote: WebSocket) -> str:
    """Copy bytes in both directions until one side ends; return the error of the kubelet, empty for none."""
    headers = {_DATA, _ERROR}  # The first message of each channel has the number of the port.
    while True:
        ready = [remote.sock] if has_input(remote) else select.select([client, remote.sock], [], [])[0]
        if client in ready:
            data = client.recv(_CHUNK)
            if not data:
                return ""
            remote.send(bytes([_DATA]) + data, opcode=ABNF.OPCODE_BINARY)
        if remote.sock not in ready:
            continue
        try:
            code, frame = remote.recv_data_frame(True)
        except WebSocketConnectionClosedException:
            return ""
        if code == ABNF.OPCODE_CLOSE:
            return ""
        if code not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
            continue
        channel, data = frame.data[0], bytes(frame.data[1:])
        if channel in headers:
            headers.remove(channel)
        elif channel == _ERROR:
            return data.decode(errors="replace").strip()
        else:
            client.sendall(data)
