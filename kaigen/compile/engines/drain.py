"""Draining: a pod keeps running until its requests are done."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.expressions import Tree

SETTLE_SECONDS = 10
"""How long a pod that drains itself keeps serving, until proxies stop sending requests to it."""

SHUTDOWN_SECONDS = 20
"""How long an engine that does not drain itself finishes requests after the hook has ended."""

CONNECTIONS_MODULE = """\
import os

class Connections:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def respond(message):
            if message["type"] == "http.response.start" and os.path.exists("/tmp/kaigen/draining"):
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)
        await self.app(scope, receive, respond if scope["type"] == "http" else send)
"""
"""A middleware that closes the connection after each response of a pod that drains.

Clients keep connections, which Kubernetes leaves at the pod that stops, and an engine refuses requests after SIGTERM.
"""

CONNECTIONS_CLASS = "kaigen_connections.Connections"

START = """\
import os, sys
os.makedirs("/tmp/kaigen", exist_ok=True)
if os.path.exists("/tmp/kaigen/draining"):
    os.remove("/tmp/kaigen/draining")
with open("/tmp/kaigen/kaigen_connections.py", "w") as module:
    module.write(sys.argv[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, ["/tmp/kaigen", os.environ.get("PYTHONPATH")]))
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Writes the module to where Python finds it, and becomes the engine. A container that starts again drains no more."""

DRAIN = """\
import http.client, os, re, sys, time
port, names, seconds = int(sys.argv[1]), sys.argv[2].split(","), float(sys.argv[3])
if os.path.isdir("/tmp/kaigen"):
    open("/tmp/kaigen/draining", "w").close()
start = time.monotonic()
busy, settled, end = start - 6, start + 10, start + seconds
while (left := end - time.monotonic()) > 0:
    running = 1
    try:
        server = http.client.HTTPConnection("127.0.0.1", port, timeout=min(5, left))
        server.request("GET", "/metrics")
        answer = server.getresponse()
        if answer.status == 200:
            lines = answer.read().decode().splitlines()
            counts = [line for line in lines if re.split(r"[{ ]", line, maxsplit=1)[0] in names]
            running = sum(float(line.rsplit(" ", 1)[1]) for line in counts)
    except ConnectionRefusedError:
        break
    except (OSError, http.client.HTTPException):
        pass
    now = time.monotonic()
    if running:
        busy = now
    elif now >= max(settled, busy + 6):
        break
    time.sleep(1)
"""
"""Waits until the metrics have counted no request for six seconds; at least ten, until proxies send no more requests.

Six seconds, because a client may send its next request on a connection that it has kept; the answer closes it. Only a
refused connection means that the engine is gone: a busy one may answer late, or not at all.
"""

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
    return {"exec": {"command": ["python3", "-c", DRAIN, str(port), ",".join(metrics), str(seconds)]}}


def draining(command: Sequence[Tree]) -> list[Tree]:
    """Return a command that starts the engine so that its middleware is found.

    Args:
        command: the command of an engine that loads `CONNECTIONS_CLASS`.
    """
    return ["python3", "-c", START, CONNECTIONS_MODULE, *command]
