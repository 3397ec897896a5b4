"""Groups of pods that serve one replica: when one pod is lost, all of them start again.

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
