"""Parent of a plane's processes; it ends all of them when the test run ends.

Runs as a script with the standard library only. It reads one JSON request per line from standard input and answers
each with one JSON line on standard output. When its input ends, when it receives a quit request or when the process
that started it dies for any reason, it kills all its descendants and exits. If it is killed itself, the kernel
kills its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

# linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


class Quit(Exception):
    """Raised by a signal: end every process and exit."""


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Return the ids of the child processes of ``pid`` in /proc, including zombies."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                # The command's name is in parentheses and may contain any character; the fields follow it.
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(entry))
    return found


class Supervisor:
    """Starts, signals and ends processes on request."""

    def __init__(self) -> None:
        """Start without any process."""
        self._pids: dict[str, int] = {}
        self._codes: dict[int, int] = {}

    def reap(self) -> None:
        """Collect the exit codes of all children that ended, including adopted ones."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._codes[pid] = os.waitstatus_to_exitcode(status)

    def start(self, name: str, argv: list[str], env: dict[str, str], cwd: str, log: str) -> dict[str, Any]:
        """Start a process whose output is appended to ``log``."""
        self.reap()
        pid = self._pids.get(name)
        if pid is not None and pid not in self._codes:
            return {"error": f"{name} is already running"}
        with open(log, "ab") as out:
            process = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )
        # Exit codes are collected by reap(); Popen must not wait for its child as well.
        process.returncode = 0
        self._pids[name] = process.pid
        self._codes.pop(process.pid, None)
        return {"pid": process.pid}

    def stop(self, name: str, number: int, grace: float) -> dict[str, Any]:
        """Send a signal and wait until the process has ended; after ``grace`` seconds kill it."""
        pid = self._pids.pop(name, None)
        if pid is None:
            return {"error": f"{name} is not running"}
        deadline = time.monotonic() + grace
        killed = False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, number)
        while pid not in self._codes:
            self.reap()
            if not killed and time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed = True
            time.sleep(0.01)
        return {"code": self._codes.pop(pid)}

    def send(self, name: str, number: int) -> dict[str, Any]:
        """Send a signal (SIGSTOP and SIGCONT make a process slow)."""
        self.reap()
        pid = self._pids.get(name)
        if pid is None or pid in self._codes:
            return {"error": f"{name} is not running"}
        os.kill(pid, number)
        return {}

    def exited(self) -> dict[str, Any]:
        """Return the name and exit code of every process that ended without a stop request."""
        self.reap()
        return {"exited": {name: self._codes[pid] for name, pid in self._pids.items() if pid in self._codes}}

    def end_all(self) -> None:
        """Kill all descendants at once; their data is discarded, so they need no graceful shutdown."""
        me = os.getpid()
        while True:
            self.reap()
            left = children(me)
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)


_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _ignore_endings() -> None:
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_IGN)


def _raise_quit(_number: int, _frame: FrameType | None) -> None:
    _ignore_endings()
    raise Quit


def _answer(supervisor: Supervisor, request: dict[str, Any]) -> dict[str, Any]:
    operation = request.pop("op")
    handlers: dict[str, Callable[..., dict[str, Any]]] = {
        "start": supervisor.start,
        "stop": supervisor.stop,
        "send": supervisor.send,
        "exited": supervisor.exited,
    }
    try:
        return handlers[operation](**request)
    except OSError as error:
        return {"error": str(error)}


def unmount(folder: str) -> None:
    """Unmount everything below a folder."""
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
        points = [line.split(" ")[1] for line in mounts]
    for point in reversed(points):
        if point.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)


def remove_network(name: str) -> None:
    """Remove a network namespace, and the control groups of the same name that its pods ran in."""
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    for root in glob.glob(f"/sys/fs/cgroup/{name}") + glob.glob(f"/sys/fs/cgroup/*/{name}"):
        for folder, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def main(parent: int, scratch: str, network: str) -> None:
    """Serve requests until the input ends, then remove the files, mounts and network of the processes.

    Args:
        parent: The process that started this one; this one exits when it dies.
        scratch: A folder to remove at the end.
        network: Name of the processes' network namespace; empty for none.
    """
    for number in _ENDINGS:
        signal.signal(number, _raise_quit)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    supervisor = Supervisor()
    try:
        try:
            if os.getppid() == parent:
                for line in sys.stdin:
                    request = json.loads(line)
                    if request["op"] == "quit":
                        break
                    print(json.dumps(_answer(supervisor, request)), flush=True)
        finally:
            # The input ends and the signal of the parent's death arrives at the same time: the signal may arrive here.
            _ignore_endings()
    except (Quit, BrokenPipeError):
        pass
    finally:
        supervisor.end_all()
        unmount(os.path.realpath(scratch))
        shutil.rmtree(scratch, ignore_errors=True)
        if network:
            remove_network(network)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
