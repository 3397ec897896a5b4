"""Draining: a pod keeps running until its requests are done."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.expressions import Tree

SETTLE_SECONDS = 10
"""How long a pod that drains itself keeps serving, until proxies stop sending requests to it."""

DRAIN = """\
import re, sys, time, urllib.request
port, names, seconds = sys.argv[1], sys.argv[2].split(","), float(sys.argv[3])
end = time.monotonic() + seconds
time.sleep(min(10, seconds))
while time.monotonic() < end:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        break
    busy = 0.0
    for line in text.splitlines():
        name = re.split(r"[{ ]", line, maxsplit=1)[0]
        if name in names:
            busy += float(line.rsplit(" ", 1)[1])
    if busy == 0:
        break
    time.sleep(1)
"""
"""Waits until the metrics count no request; first ten seconds, until proxies stop sending requests."""


def wait_for_requests(port: int, metrics: Sequence[str], seconds: int) -> dict[str, Tree]:
    """Return the hook that waits until no request is running.

    Args:
        port: port of the metrics.
        metrics: metrics that count requests.
        seconds: longest time to wait.
    """
    return {"exec": {"command": ["python3", "-c", DRAIN, str(port), ",".join(metrics), str(seconds)]}}
