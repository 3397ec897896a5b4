"""Draining: a pod keeps running until its requests are done."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.expressions import Tree
from kaigen.programs.files import program

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
