"""Groups of pods that serve one replica: when one pod is lost, all of them start again.

An engine on several nodes does not notice a lost peer: the leader's health stays 200 while requests hang, and workers
wait for a leader that has already started again. So a small process starts the engine of each pod, and the workers keep
a connection to the leader. LeaderWorkerSet then recreates the whole group; containers of StatefulSets restart in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.engines.launch import Launch, Member
from kaigen.compile.expressions import Tree

GROUP_PORT = 29400
"""Port of the leader that the workers keep a connection to."""

GROUP = """\
import os, signal, socket, subprocess, sys, threading, time
port, rank, leader, silence = int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
engine = subprocess.Popen(sys.argv[5:])
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: engine.send_signal(number))
members = set()

def stop(reason):
    if not stopping.is_set():
        print("group: " + reason + "; this pod starts again", file=sys.stderr, flush=True)
        engine.kill()
        os._exit(1)

def answer(connection):
    member = ""
    try:
        connection.settimeout(silence)
        stream = connection.makefile("rb", buffering=0)
        member = stream.readline().decode().strip()
        if not member:
            return
        if member in members:
            stop("worker " + member + " started again")
        members.add(member)
        while stream.read(1):
            connection.sendall(b".")
    except OSError:
        pass
    finally:
        connection.close()
    if member:
        stop("worker " + member + " is lost")

def lead():
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()

def follow():
    while True:
        try:
            connection = socket.create_connection((leader, port), 5)
            break
        except OSError:
            time.sleep(1)
    try:
        connection.settimeout(silence)
        connection.sendall(rank.encode() + b"\\n")
        while True:
            connection.sendall(b".")
            if not connection.recv(1):
                break
            time.sleep(silence / 6)
    except OSError:
        pass
    stop("the leader is lost")

stopping = threading.Event()
if rank == "0":
    server = socket.create_server(("", port))
threading.Thread(target=lead if rank == "0" else follow, daemon=True).start()
code = engine.wait()
stopping.set()
sys.exit(code if code >= 0 else 128 - code)
"""
"""Runs the engine, which its arguments name, and ends when the engine or another pod of the group ends."""

SILENCE_SECONDS = 30
"""How long a pod may be silent, as after its node was lost. A process that ends is noticed at once."""

WAIT_FOR_LEADER = """\
import os, re, socket, sys, time
port, seconds = int(sys.argv[2]), float(sys.argv[3])
leader = re.sub(r"\\$\\((\\w+)\\)", lambda found: os.environ[found[1]], sys.argv[1])
end = time.monotonic() + seconds
while time.monotonic() < end:
    try:
        socket.create_connection((leader, port), 5).close()
    except OSError:
        break
    time.sleep(1)
"""
"""Waits until the leader is gone. Kubernetes does not expand variables in a hook, so the script does."""


def in_group(container: Mapping[str, Tree], launch: Launch) -> dict[str, Tree]:
    """Return `command` and `args` of a container that runs the engine as a member of its group.

    Args:
        container: `command` and `args` of the engine.
        launch: has the pod's position in its group.
    """
    member, command = launch.member, container["command"]
    assert isinstance(command, Sequence)
    own = ["python3", "-c", GROUP, str(GROUP_PORT), member.rank, member.leader, str(SILENCE_SECONDS)]
    return {**container, "command": [*own, *command]}


def wait_for_leader(member: Member, seconds: int) -> dict[str, Tree]:
    """Return the hook of a worker that waits until its leader has finished its requests.

    Args:
        member: the worker.
        seconds: longest time to wait.
    """
    command: list[Tree] = ["python3", "-c", WAIT_FOR_LEADER, member.leader, str(GROUP_PORT), str(seconds)]
    return {"exec": {"command": command}}
