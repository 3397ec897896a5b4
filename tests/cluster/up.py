"""Start and stop a plane by hand."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.cluster.argocd import ArgoCD
from tests.cluster.flux import Flux
from tests.cluster.node import Node
from tests.cluster.plane import Plane
from tests.cluster.processes import PlaneError, wait_until
from tests.cluster.services import services

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class State:
    """The plane that is up.

    Attributes:
        pid: The process that holds it.
        kubeconfig: With all rights.
        logs: Folder.
        network: Name of its network namespace; empty for loopback.
        variables: Environment variables with the addresses of a node's services.
    """

    pid: int
    kubeconfig: str
    logs: str
    network: str = ""
    variables: dict[str, str] = field(default_factory=dict)


def _folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(base) / "kaigen" / "cluster"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    with (_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read() -> State | None:
    """Return the running plane; None if there is none, or its process was killed."""
    path = _folder() / "state.json"
    try:
        state = State(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    if _holds(state.pid):
        return state
    path.unlink()
    return None


def _holds(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    # The process id may belong to another process by now.
    return b"tests.cluster\0hold" in command


def up(options: list[str]) -> State:
    """Start a plane that outlives this process, or return the running one.

    Args:
        options: ``--argocd``, ``--flux``, ``--node``.

    Raises:
        PlaneError: It did not come up.
    """
    with _alone():
        state = _read()
        if state is not None:
            return state
        log = _folder() / "up.log"
        with log.open("w") as out:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "tests.cluster", "hold", *options],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        wait_until(lambda: _read() is not None or keeper.poll() is not None, "the plane is up", 600)
        state = _read()
        if state is None:
            raise PlaneError(log.read_text().strip().removeprefix("cluster: "))
        return state


def hold(*, argocd: bool, flux: bool, node: bool) -> None:
    """Start a plane, write the state file, and keep the plane until SIGTERM."""
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: terminated.set())
    path = _folder() / "state.json"
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(Node(images=["downloader"]) if node else Plane())
        if argocd:
            ArgoCD(plane).start_application_sets()
        if flux:
            running = Flux(plane)
            stack.callback(running.close)
            running.start_helm()
        variables = stack.enter_context(services(plane)) if isinstance(plane, Node) else {}
        state = State(os.getpid(), str(plane.kubeconfig), str(plane.processes.logs), plane.network.name, variables)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(state)))
        draft.rename(path)
        stack.callback(path.unlink, missing_ok=True)
        terminated.wait()


def down() -> bool:
    """End the running plane.

    Returns:
        Whether there was one.
    """
    with _alone():
        state = _read()
        if state is None:
            return False
        os.kill(state.pid, signal.SIGTERM)
        wait_until(lambda: not _holds(state.pid), "the plane ends")
        return True
