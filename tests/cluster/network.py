"""Where a control plane's processes listen: on loopback, or in a network namespace of their own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tests.cluster.supervisor import remove_network

# linux/sched.h
_CLONE_NEWNET = 0x40000000
_RUN = Path("/run/netns")
_PREFIX = "kaigen-"
_libc = ctypes.CDLL(None, use_errno=True)


class NetworkMissing(Exception):
    """This machine cannot make network namespaces. The text says what is missing, in one line."""


class Network(Protocol):
    """A network that processes are started in and that the tests connect to.

    Attributes:
        host: address that the API server and its peers listen on.
        name: of the network namespace; empty for the machine's own network.
    """

    host: str
    name: str

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs a program in this network."""

    def entered(self) -> contextlib.AbstractContextManager[None]:
        """Create sockets in this network: those the calling thread makes inside the block."""

    def close(self) -> None:
        """Remove the network."""


class Loopback:
    """The machine's own loopback interface."""

    host = "127.0.0.1"
    name = ""

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line as it is."""
        return list(argv)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Change nothing."""
        yield

    def close(self) -> None:
        """Do nothing: the machine keeps its loopback interface."""


class NetworkNamespace:
    """A network namespace with loopback and one bridge, without a route to the machine or beyond.

    Its name holds the id of the process that made it, so that a later run can remove what a killed one left.

    Attributes:
        host: address of the bridge, which is the node's address.
        name: of the namespace.
    """

    host = "10.199.0.1"

    def __init__(self) -> None:
        """Create the namespace, after removing those whose owner is gone.

        Raises:
            NetworkMissing: not root, a program is missing, or the kernel refuses.
        """
        if os.geteuid() != 0:
            raise NetworkMissing("a node needs root, to make network namespaces and mounts")
        for program in ("ip", "nsenter", "sysctl"):
            if shutil.which(program) is None:
                raise NetworkMissing(f"a node needs `{program}` on the PATH")
        _remove_stale()
        self.name = f"{_PREFIX}{os.getpid()}-{os.urandom(3).hex()}"
        made = subprocess.run(["ip", "netns", "add", self.name], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise NetworkMissing(f"no network namespaces here: {made.stderr.strip()}")
        self._run("ip", "link", "set", "lo", "up")
        self._run("ip", "link", "add", "node", "type", "bridge")
        self._run("ip", "addr", "add", f"{self.host}/24", "dev", "node")
        self._run("ip", "link", "set", "node", "up")
        # Pods and Services are reached through a default route; it leads nowhere else.
        self._run("ip", "route", "add", "default", "dev", "node")
        self._run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")

    def _run(self, *argv: str) -> None:
        subprocess.run(self.command(argv), check=True, capture_output=True, text=True)

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs a program in the namespace, with the machine's mounts."""
        # `ip netns exec` would also give the program mounts of its own, hidden from the kubelet.
        return ["nsenter", f"--net={_RUN / self.name}", *argv]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Create the calling thread's sockets in the namespace; a socket stays where it was made."""
        with open("/proc/thread-self/ns/net", "rb") as before, open(_RUN / self.name, "rb") as target:
            _set_namespace(target.fileno())
            try:
                yield
            finally:
                _set_namespace(before.fileno())

    def close(self) -> None:
        """Remove the namespace with all its interfaces, and the control groups of its name."""
        remove_network(self.name)


def _set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def connect(network: Network, address: tuple[str, int], timeout: float) -> socket.socket:
    """Return a TCP connection to an address in a network."""
    with network.entered():
        return socket.create_connection(address, timeout)


def _remove_stale() -> None:
    """Remove namespaces whose owner was killed."""
    for path in _RUN.glob(f"{_PREFIX}*") if _RUN.is_dir() else ():
        owner = path.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            remove_network(path.name)
