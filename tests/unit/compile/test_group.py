"""The processes that keep the pods of a group together, run as they are rendered."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.engines.lifecycle import GROUP_PORT
from kaigen.programs import group as group_program
from kaigen.programs import wait_for_leader
from kaigen.programs.files import program
from tests.unit.compile.specs import app, objects, topology
from tests.unit.compile.topologies import FOLDER, group

SLEEP = ["sleep", "600"]
Process = subprocess.Popen[str]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def member(port: int, rank: int, engine: list[str] | None = None, silence: float = 30) -> Iterator[Process]:
    """Run a pod's process; nothing is left of it."""
    names = [str(port), str(rank), "127.0.0.1", str(silence)]
    process = subprocess.Popen(
        [sys.executable, group_program.__file__, *names, *(engine or SLEEP)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def ended(process: Process) -> tuple[int, str]:
    """Wait for the end of a process; return its exit code and what it said."""
    code = process.wait(60)
    assert process.stderr is not None
    return code, process.stderr.read()


def wait_for_socket(port: int, state: str) -> None:
    """Wait for a socket of a local port in a state, in the numbers of /proc/net/tcp."""
    deadline = time.monotonic() + 60
    while True:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        if any(row[1].endswith(f":{port:04X}") and row[3] == state for row in rows):
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def join(port: int, stack: ExitStack, silence: float = 30) -> tuple[Process, Process]:
    """Start a leader and a worker that have found each other."""
    leader = stack.enter_context(member(port, 0, silence=silence))
    worker = stack.enter_context(member(port, 1, silence=silence))
    # State 01 in the kernel's table is an established connection.
    wait_for_socket(port, "01")
    time.sleep(0.5)
    return leader, worker


@pytest.mark.parametrize("lost", ["leader", "worker"])
def test_a_lost_pod_ends_the_others(lost: str) -> None:
    with ExitStack() as stack:
        leader, worker = join(free_port(), stack)
        (leader if lost == "leader" else worker).kill()
        code, said = ended(worker if lost == "leader" else leader)
        assert code == 1
        assert ("the leader is lost" if lost == "leader" else "worker 1 is lost") in said


@pytest.mark.parametrize("silent", ["leader", "worker"])
def test_a_pod_that_is_silent_counts_as_lost(silent: str) -> None:
    with ExitStack() as stack:
        leader, worker = join(free_port(), stack, silence=2)
        paused, other = (leader, worker) if silent == "leader" else (worker, leader)
        os.kill(paused.pid, signal.SIGSTOP)
        assert ended(other)[0] == 1


def test_pods_that_answer_stay() -> None:
    with ExitStack() as stack:
        leader, worker = join(free_port(), stack, silence=1)
        time.sleep(3)
        assert leader.poll() is None
        assert worker.poll() is None


@pytest.mark.parametrize(("engine", "code"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_exit_code_is_that_of_the_engine(engine: str, code: int) -> None:
    with member(free_port(), 0, [sys.executable, "-c", engine]) as process:
        assert ended(process) == (code, "")


def test_a_request_to_stop_reaches_the_engine() -> None:
    engine = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(600)"
    with member(free_port(), 0, [sys.executable, "-c", engine]) as process:
        time.sleep(2)
        process.terminate()
        assert ended(process)[0] == 0


def test_a_worker_waits_for_its_leader() -> None:
    port = free_port()
    with member(port, 1) as worker:
        time.sleep(1)
        assert worker.poll() is None
        with member(port, 0) as leader:
            time.sleep(3)
            assert leader.poll() is None
            leader.kill()
            assert ended(worker)[0] == 1


def hook(port: int, seconds: int) -> float:
    """Run a worker's hook; return how long it took."""
    started = time.monotonic()
    command = [sys.executable, wait_for_leader.__file__, "$(LWS_LEADER_ADDRESS)", str(port), str(seconds)]
    subprocess.run(command, check=True, env=os.environ | {"LWS_LEADER_ADDRESS": "127.0.0.1"})
    return time.monotonic() - started


def test_a_worker_stops_when_its_leader_has_stopped() -> None:
    port = free_port()
    with member(port, 0):
        wait_for_socket(port, "0A")
        assert hook(port, 2) >= 2
    assert hook(port, 60) < 30


@pytest.mark.parametrize("groups", ["leaderWorkerSet", "statefulSet"])
def test_each_pod_of_a_group_runs_its_engine_in_it(groups: str) -> None:
    block = topology(model=FOLDER, shape={"nodes": 2, "groups": groups}, drain="1m")
    found: list[Any]
    if groups == "leaderWorkerSet":
        found = list(group(block))
    else:
        sets = [item.body for item in app(block).render() if item.body["kind"] == "StatefulSet"]
        found = [each["spec"]["template"]["spec"] for each in sets]
    leader, worker = (each["containers"][0] for each in found)
    for each in (leader, worker):
        assert each["command"][:3] == ["python3", program("group.py"), str(GROUP_PORT)]
        assert each["command"][-2:] == ["vllm", "serve"]
    wait = worker["lifecycle"]["preStop"]["exec"]["command"]
    assert wait == ["python3", program("wait_for_leader.py"), worker["command"][4], str(GROUP_PORT), "80"]


def test_a_single_pod_is_in_no_group() -> None:
    made = objects(topology(model=FOLDER))["Deployment"]["spec"]["template"]["spec"]
    assert program("group.py") not in made["containers"][0]["command"]
