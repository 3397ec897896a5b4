"""Start and stop the processes of a plane through a supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster import supervisor
from tests.cluster.network import Loopback, Network
from tests.cluster.patience import PATIENCE

# Below the range that Linux takes the ports of outgoing connections from (32768 and up), so that between the
# choice of a port and its use only another listener could take it.
_PORTS = range(20000, 32000)


class PlaneError(Exception):
    """A process of the plane could not be started, or exited unexpectedly. The message names the log."""


@dataclass(frozen=True, slots=True)
class Command:
    """One process of the plane.

    Attributes:
        name: Name for `stop` and `start_again`, and of its log.
        argv: Program and arguments.
        env: Environment variables in addition to the common ones.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]


def free_ports(count: int) -> list[int]:
    """Return free TCP ports of 127.0.0.1.

    Args:
        count: How many.
    """
    probes: list[socket.socket] = []
    try:
        while len(probes) < count:
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", random.choice(_PORTS)))
            except OSError:
                probe.close()
                continue
            probes.append(probe)
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def listening(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether a process listens on a TCP port."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def wait_until(check: Callable[[], bool], what: str, timeout: float = PATIENCE, every: float = 0.05) -> None:
    """Call ``check`` until it is true.

    Args:
        check: Called repeatedly.
        what: The expected state, for the error.
        timeout: Seconds.
        every: Seconds between two calls.

    Raises:
        TimeoutError: It was not true in time.
    """
    deadline = time.monotonic() + timeout
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not after {timeout:g} s: {what}")
        time.sleep(every)


class Processes:
    """The processes of one plane.

    They end with ``close``, or when this process ends for any reason.
    """

    def __init__(
        self, folder: Path, scratch: Path, network: Network | None = None, *, keeps_network: bool = False
    ) -> None:
        """Start the supervisor.

        Args:
            folder: Working directory of the processes; their logs go to its ``logs``.
            scratch: Folder that the supervisor unmounts and removes at the end, even if this process is killed.
            network: Network of the processes; its namespace is removed at the end.
            keeps_network: Whether the namespace is that of others and stays.
        """
        self._network = network or Loopback()
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._commands: dict[str, Command] = {}
        self._lock = threading.Lock()
        removed = "" if keeps_network else self._network.name
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid()), str(scratch), removed],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self._supervisor.pid

    def _ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        with self._lock:
            try:
                self._supervisor.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
                self._supervisor.stdin.flush()
                line = self._supervisor.stdout.readline()
            except BrokenPipeError:
                line = ""
        if not line:
            raise PlaneError("the supervisor of the plane has exited")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PlaneError(answer["error"])
        return answer

    def log(self, name: str) -> Path:
        """Return the path of a process's log."""
        return self.logs / f"{name}.log"

    def start(self, command: Command) -> int:
        """Start a process with its output in its log.

        Returns:
            Its process id.
        """
        self._commands[command.name] = command
        kept = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
        env = {key: os.environ[key] for key in kept if key in os.environ} | dict(command.env)
        answer = self._ask(
            "start",
            name=command.name,
            argv=self._network.command(command.argv),
            env=env,
            cwd=str(self.folder),
            log=str(self.log(command.name)),
        )
        return int(answer["pid"])

    def stop(self, name: str, *, kill: bool = False, grace: float = 20.0) -> None:
        """End one process with SIGTERM, or with SIGKILL to simulate a crash."""
        self._ask("stop", name=name, number=signal.SIGKILL if kill else signal.SIGTERM, grace=grace)

    def programs(self) -> set[Path]:
        """Return the programs of all processes that were started, with links resolved."""
        return {Path(command.argv[0]).resolve() for command in self._commands.values()}

    def start_again(self, name: str) -> int:
        """Start a stopped process with its former command line."""
        return self.start(self._commands[name])

    def pause(self, name: str) -> None:
        """Suspend a process: its connections stay open, but it does not answer."""
        self._ask("send", name=name, number=signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """End a pause."""
        self._ask("send", name=name, number=signal.SIGCONT)

    def check(self) -> None:
        """Check that every started process is still running.

        Raises:
            PlaneError: One exited; the message contains the end of its log.
        """
        exited: dict[str, int] = self._ask("exited")["exited"]
        for name, code in exited.items():
            tail = "\n".join(self.log(name).read_text(errors="replace").splitlines()[-15:])
            raise PlaneError(f"{name} ended with exit code {code}; see {self.log(name)}\n{tail}")

    def wait_until(self, check: Callable[[], bool], what: str, timeout: float = PATIENCE) -> None:
        """Like the function of the same name, but fail at once when a process has exited.

        Raises:
            PlaneError: A process exited, or the timeout expired.
        """

        def ready() -> bool:
            self.check()
            return check()

        try:
            wait_until(ready, what, timeout)
        except TimeoutError as error:
            raise PlaneError(f"{error}; logs: {self.logs}") from error

    def close(self) -> None:
        """End every process. Calling it twice does no harm."""
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        with self._lock:
            if not self._supervisor.stdin.closed:
                # What could not be sent to a supervisor that is gone stays in the buffer and fails again.
                with contextlib.suppress(BrokenPipeError):
                    self._supervisor.stdin.close()
                self._supervisor.wait()
                self._supervisor.stdout.close()
