"""Draining: a pod keeps running until its requests are done."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.expressions import Tree

SETTLE_SECONDS = 10
"""How long a pod that drains itself keeps serving, until proxies stop sending requests to it."""

SHUTDOWN_SECONDS = 20
"""How long an engine that does not drain itself finishes requests after the hook has ended."""

DRAIN = """\
import http.client, re, sys, time
port, names, seconds = int(sys.argv[1]), sys.argv[2].split(","), float(sys.argv[3])
end = time.monotonic() + seconds
time.sleep(min(10, seconds))
while (left := end - time.monotonic()) > 0:
    try:
        server = http.client.HTTPConnection("127.0.0.1", port, timeout=min(5, left))
        server.request("GET", "/metrics")
        answer = server.getresponse()
        lines = answer.read().decode().splitlines() if answer.status == 200 else None
    except ConnectionRefusedError:
        break
    except (OSError, http.client.HTTPException):
        lines = None
    if lines is not None:
        busy = [line for line in lines if re.split(r"[{ ]", line, maxsplit=1)[0] in names]
        if sum(float(line.rsplit(" ", 1)[1]) for line in busy) == 0:
            break
    time.sleep(1)
"""
"""Waits until the metrics count no request; first ten seconds, until proxies stop sending requests.

Only a refused connection means that the engine is gone: a busy one may answer late, or not at all.
"""


def wait_for_requests(port: int, metrics: Sequence[str], seconds: int) -> dict[str, Tree]:
    """Return the hook that waits until no request is running.

    Args:
        port: port of the metrics.
        metrics: metrics that count requests.
        seconds: longest time to wait.
    """
    return {"exec": {"command": ["python3", "-c", DRAIN, str(port), ",".join(metrics), str(seconds)]}}
