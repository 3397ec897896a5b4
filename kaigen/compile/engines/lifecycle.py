"""How the container of an engine starts, is probed, drains and ends.

An engine on several nodes does not notice a lost peer: the leader's health stays 200 while requests hang, and workers
wait for a leader that has already started again. So a small process starts the engine of each pod, and the workers keep
a connection to the leader. LeaderWorkerSet then recreates the whole group; containers of StatefulSets restart in place.

kaigen's own servers answer probes at a port of their own. Clients do not reach it: no Service leads to it, and the
NetworkPolicy does not open it. Probes reach it all the same, because policies never restrict traffic from the node of a
pod (https://kubernetes.io/docs/concepts/services-networking/network-policies/, "Network traffic filtering").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from kaigen.catalog.engines import Version
from kaigen.compile.engines.launch import Launch, Member
from kaigen.compile.expressions import Tree
from kaigen.kinds.topology import TopologySpec
from kaigen.programs.files import program

PROBE_PORT = 9992
"""The port, or the first one after it that nothing else in the pod uses."""

SINCE: Version = (0, 1, 0)
"""First version of `chat` and `ringproxy` with the flag. An older one would end on it."""

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

KEYS_CLASS = "kaigen_keys.Keys"
"""The middleware that accepts the API keys of a file."""

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


def finding(middleware: str, command: Sequence[Tree]) -> list[Tree]:
    """Return a command that starts the engine so that it finds a middleware.

    Args:
        middleware: a class in a program, as `CONNECTIONS_CLASS`.
        command: the command of the engine.
    """
    return ["python3", program("launch.py"), program(f"{middleware.partition('.')[0]}.py"), *command]


def with_own_key(command: Sequence[Tree]) -> list[Tree]:
    """Return a command that starts the engine with a key that only the middleware of the API keys knows.

    Args:
        command: the command of the engine; a command around this one finds the middleware.
    """
    return ["python3", program("kaigen_keys.py"), *command]


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


def probe_port(version: Version | None, spec: TopologySpec, *used: int) -> int | None:
    """Return the port for probes; None for a server without one, which answers probes at the port for requests.

    Args:
        version: version of the server's image; None when it is unknown, as of an image that only a digest names.
        spec: the spec.
        used: ports of the engine, other than the spec's.
    """
    if version is None or version < SINCE:
        return None
    taken = {spec.port, *used, *(port for sidecar in spec.sidecars.values() for port in sidecar.ports.values())}
    return next(port for port in count(PROBE_PORT) if port not in taken)


def http_probe(given: str | None, path: str, port: int | None) -> dict[str, Tree]:
    """Return how a probe asks: a path that the spec gives at the port of requests, since the other has no such path.

    Args:
        given: the path of the spec.
        path: the engine's own path; empty for a probe that opens the port.
        port: the port for probes; None for none.
    """
    if not given and not path:
        return {"tcpSocket": {"port": "http"}}
    return {"httpGet": {"path": given or path, "port": "http" if given or port is None else port}}


def probe_flags(port: int | None) -> list[str]:
    """Return the flag of the server that opens the port."""
    return [] if port is None else [f"--probe-port={port}"]
