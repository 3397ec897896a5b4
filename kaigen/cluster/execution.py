"""WebSockets of the API server: to commands in containers, and to ports of pods."""

from __future__ import annotations

import json
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kubernetes.stream import ws_client
from websocket import (
    ABNF,
    WebSocket,
    WebSocketBadStatusException,
    WebSocketConnectionClosedException,
    WebSocketException,
    WebSocketTimeoutException,
    setdefaulttimeout,
)

from kaigen.cluster.client import CONNECT_S, Cluster
from kaigen.cluster.errors import ApiError, StreamBroken, unreachable
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import api_path

if TYPE_CHECKING:
    from kaigen.cluster.client import Query

PING_S = 10.0
"""Seconds without a message after which the server is asked whether it is there."""
SILENCE_S = 40.0
"""Seconds without any message, or in which nothing could be sent, after which a connection is dead."""

# The client takes the timeout of a connection from here only.
setdefaulttimeout(CONNECT_S)


def open_websocket(cluster: Cluster, path: str, query: Query, protocol: str = "") -> WebSocket:
    """Return a new WebSocket of the API server.

    Args:
        cluster: the cluster.
        path: path of the request.
        query: its parameters.
        protocol: what the messages mean; empty for those of commands.

    Raises:
        ApiError: the API server refused.
        SystemFailure: it cannot be reached.
    """

    def connect() -> WebSocket:
        url, headers = cluster.signed("GET", path, query)
        headers |= {"sec-websocket-protocol": protocol} if protocol else {}
        try:
            return ws_client.create_websocket(cluster.configuration, ws_client.get_websocket_url(url), headers)
        except WebSocketBadStatusException as error:
            raise ApiError.of_answer(error.status_code, error.resp_body) from None
        except (WebSocketException, OSError) as error:
            raise unreachable(cluster.configuration.host, error) from None

    socket = cluster.patiently(connect)
    socket.settimeout(SILENCE_S)
    return socket


def has_input(socket: WebSocket) -> bool:
    """Return whether TLS has data of a connection that its socket no longer has."""
    pending = getattr(socket.sock, "pending", None)
    return bool(pending and pending())


CHUNK = 128 * 1024
"""Bytes of a message. Larger ones are not faster: a message is copied at each of its four stops."""

_STDIN, _STDOUT, _STDERR, _STATUS, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255

Sink = Callable[[bytes], object]


class CommandStream:
    """A command that runs in a container, with its streams.

    A command may be silent for hours. The server answers pings meanwhile, so a dead connection is noticed.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        pod: str,
        command: Sequence[str],
        *,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> None:
        """Start a command.

        Raises:
            ApiError: the API server refused.
            SystemFailure: it cannot be reached.
        """
        query = [("command", word) for word in command]
        query += [("container", container)] if container else []
        # A terminal has one stream of output.
        flags = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
        query += [(name, str(value).lower()) for name, value in flags.items()]
        self._socket = open_websocket(cluster, api_path("v1/Pod", namespace, pod, "exec"), query)
        self._status: dict[str, Any] | None = None
        self._heard = time.monotonic()

    def __enter__(self) -> CommandStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown()

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return int(self._socket.fileno())

    def send(self, data: bytes) -> bool:
        """Send input to the command, and return whether it still reads.

        Raises:
            StreamBroken: the connection takes no more.
        """
        try:
            self._socket.send(bytes([_STDIN]) + data, opcode=ABNF.OPCODE_BINARY)
        except (WebSocketTimeoutException, TimeoutError):
            raise _silent() from None
        except (WebSocketConnectionClosedException, OSError):
            return False
        return True

    def close_input(self) -> None:
        """End the input of the command."""
        # The client sends the protocols as a header of its own, and does not read which one was chosen.
        chosen = (self._socket.getheaders() or {}).get("sec-websocket-protocol")
        if chosen != ws_client.V5_CHANNEL_PROTOCOL:
            hint = "upgrade the cluster to Kubernetes 1.30 or newer"
            raise SystemFailure("the cluster cannot end the input of a command", hint=hint)
        self._socket.send(bytes([_CLOSE, _STDIN]), opcode=ABNF.OPCODE_BINARY)

    def resize(self, columns: int, lines: int) -> None:
        """Report the size of the terminal."""
        size = json.dumps({"Width": columns, "Height": lines}).encode()
        self._socket.send(bytes([_RESIZE]) + size, opcode=ABNF.OPCODE_BINARY)

    def has_output(self) -> bool:
        """Return whether the command has sent something that was not read yet."""
        sock = self._socket.sock
        return has_input(self._socket) or bool(select.select([sock], [], [], 0)[0])

    def read(self) -> tuple[int, bytes] | None:
        """Return the next output of the command with its channel; None when the command has ended.

        Raises:
            StreamBroken: the connection is dead.
        """
        try:
            self._await_message()
            code, frame = self._socket.recv_data_frame(True)
        except (WebSocketTimeoutException, TimeoutError):
            raise _silent() from None
        except (WebSocketConnectionClosedException, OSError):
            return None
        self._heard = time.monotonic()
        if code == ABNF.OPCODE_CLOSE:
            return None
        data = frame.data if code in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) else b""
        if not data:
            return _STDOUT, b""
        if data[0] == _STATUS:
            self._status = json.loads(data[1:])
        return data[0], bytes(data[1:])

    def _await_message(self) -> None:
        """Wait until a message begins; ping the server meanwhile."""
        self._heard = time.monotonic()
        while not has_input(self._socket) and not select.select([self._socket.sock], [], [], PING_S)[0]:
            self.ping()

    def ping(self) -> None:
        """Ask the server whether it is there; its answer is a message without data.

        Raises:
            StreamBroken: the last answer is too long ago.
        """
        if time.monotonic() - self._heard > SILENCE_S:
            raise _silent()
        try:
            self._socket.ping()
        except (WebSocketException, OSError):
            raise _silent() from None

    def outputs(self) -> Iterator[tuple[int, bytes]]:
        """Yield what the command prints, with the channel, until it ends."""
        while (item := self.read()) is not None:
            yield item

    @property
    def exit_code(self) -> int:
        """The exit code of a command that has ended.

        Raises:
            StreamBroken: the connection ended before the command did.
            SystemFailure: the command could not be started.
        """
        if self._status is None:
            raise StreamBroken("the connection to the container ended before its command")
        if self._status.get("status") == "Success":
            return 0
        causes = (self._status.get("details") or {}).get("causes") or []
        for cause in causes:
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        raise SystemFailure(str(self._status.get("message") or "the command could not be started"))


def _silent() -> StreamBroken:
    return StreamBroken(f"the connection to the container was silent for {SILENCE_S:g} s")


class Finished:
    """A command that has ended.

    Attributes:
        exit_code: its exit code.
        errors: the end of what it wrote to standard error.
    """

    def __init__(self, exit_code: int, errors: str) -> None:
        self.exit_code = exit_code
        self.errors = errors


def run_command(
    cluster: Cluster,
    namespace: str,
    pod: str,
    command: Sequence[str],
    *,
    container: str = "",
    stdin: Iterable[bytes] | None = None,
    stdout: Sink | None = None,
    stderr: Sink | None = None,
) -> Finished:
    """Run a command in a container to its end.

    Args:
        cluster: the cluster.
        namespace: namespace of the pod.
        pod: name of the pod.
        command: the command; no shell reads it.
        container: name of the container; the first one when empty.
        stdin: its input; no input when None.
        stdout: receives its output.
        stderr: receives its errors, which are returned as well.

    Raises:
        StreamBroken: the connection ended before the command did.
        SystemFailure: the command could not be started.
    """
    errors = bytearray()

    def take(item: tuple[int, bytes]) -> None:
        channel, data = item
        if channel == _STDOUT and stdout is not None:
            stdout(data)
        elif channel == _STDERR:
            errors.extend(data)
            del errors[:-4000]
            if stderr is not None:
                stderr(data)

    with CommandStream(cluster, namespace, pod, command, container=container, stdin=stdin is not None) as run:
        if stdin is not None:
            _feed(run, stdin, take)
        for item in run.outputs():
            take(item)
        return Finished(run.exit_code, errors.decode(errors="replace").strip())


def _feed(run: CommandStream, stdin: Iterable[bytes], take: Callable[[tuple[int, bytes]], None]) -> None:
    """Send the input. A command that ends before its input is read is not an error here: its exit code is."""
    for chunk in stdin:
        for start in range(0, len(chunk), CHUNK):
            if not run.send(chunk[start : start + CHUNK]):
                return
        while run.has_output():
            item = run.read()
            if item is None:
                return
            take(item)
    run.close_input()
