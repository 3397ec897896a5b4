"""How the container of an engine starts and ends: it drains first, and all pods of a group start again together.

An engine on several nodes does not notice a lost peer: the leader's health stays 200 while requests hang, and workers
wait for a leader that has already started again. So a small process starts the engine of each pod, and the workers keep
a connection to the leader. LeaderWorkerSet then recreates the whole group; containers of StatefulSets restart in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.engines.launch import Launch, Member
from kaigen.compile.expressions import Tree
from kaigen.programs.files import program

GROUP_PORT = 29400
"""Port of the leader that the workers keep a connection to."""

SILENCE_SECONDS = 30
"""How long a pod may be silent, as after its node was lost. A process that ends is noticed at once."""

SETTLE_SECONDS = 10
"""How long a pod that drains itself keeps serving, until proxies stop sending requests to it."""

SHUTDOWN_SECONDS = 20
"""How long an engine that does not drain itself finishes requests after the hook has ended."""

CONNECTIONS_CLASS = "kaigen_connections.Connections"
"""The middleware that closes connections of a pod that drains."""

KEEP_ALIVE_SECONDS = 620
"""How long an engine keeps a connection without requests: longer than proxies do.

If the engine closed it first, a proxy could send a request at that moment, and would answer 502. Traefik keeps
connections for 90 seconds, AWS's load balancer for 60, Google's for 600.
"""


def wait_for_requests(port: int, metrics: Sequence[str], seconds: int) -> dict[str, Tree]:
    """Return the hook that waits until no request is running.

    Args:
        port: port of the metrics.
        metrics: metrics that count requests.
        seconds: longest time to wait.
    """
    return {"exec": {"command": ["python3", program("drain.py"), str(port), ",".join(metrics), str(seconds)]}}


def draining(command: Sequence[Tree]) -> list[Tree]:
    """Return a command that starts the engine so that its middleware is found.

    Args:
        command: the command of an engine that loads `CONNECTIONS_CLASS`.
    """
    return ["python3", program("launch.py"), program("kaigen_connections.py"), *command]


def in_group(container: Mapping[str, Tree], launch: Launch) -> dict[str, Tree]:
    """Return `command` and `args` of a container that runs the engine as a member of its group.

    Args:
        container: `command` and `args` of the engine.
        launch: has the pod's position in its group.
    """
    member, command = launch.member, container["command"]
    assert isinstance(command, Sequence)
    own = ["python3", program("group.py"), str(GROUP_PORT), member.rank, member.leader, str(SILENCE_SECONDS)]
    return {**container, "command": [*own, *command]}


def wait_for_leader(member: Member, seconds: int) -> dict[str, Tree]:
    """Return the hook of a worker that waits until its leader has finished its requests.

    Args:
        member: the worker.
        seconds: longest time to wait.
    """
    command: list[Tree] = ["python3", program("wait_for_leader.py"), member.leader, str(GROUP_PORT), str(seconds)]
    return {"exec": {"command": command}}
