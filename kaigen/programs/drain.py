"""Waits until an engine's metrics have counted no request for six seconds: `drain.py PORT METRICS SECONDS`.

At least ten seconds, until proxies send no more requests. Six, because a client may send its next request on a
connection that it has kept; the answer closes it. Only a refused connection means that the engine is gone: a busy one
may answer late, or not at all.

vLLM's own drain (`--shutdown-timeout`) begins with SIGTERM, finishes what runs, and refuses every other request on
connections that it still accepts (vLLM 0.33.0: `handle_shutdown` in vllm/entrypoints/launchers/launcher.py,
`_reject_add_in_shutdown` in vllm/v1/engine/core.py). So this ends before SIGTERM.
"""

import http.client
import os
import re
import sys
import time
from collections.abc import Collection

DRAINING = "/tmp/kaigen/draining"
SETTLE, QUIET, PAUSE, PATIENCE = 10.0, 6.0, 1.0, 5.0
"""Seconds: at least, without requests, between two questions, until an answer."""


def main(port: int, names: Collection[str], seconds: float) -> None:
    """Wait until the metrics of a port count no requests, but no longer than some seconds."""
    if os.path.isdir(os.path.dirname(DRAINING)):
        open(DRAINING, "w").close()
    start = time.monotonic()
    busy, settled, end = start - QUIET, start + SETTLE, start + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            running = count(port, names, min(PATIENCE, left))
        except ConnectionRefusedError:
            break
        except (OSError, http.client.HTTPException):
            running = 1
        now = time.monotonic()
        if running:
            busy = now
        elif now >= max(settled, busy + QUIET):
            break
        time.sleep(PAUSE)


def count(port: int, names: Collection[str], timeout: float) -> float:
    """Return the number of requests that metrics count; 1 when the engine does not answer with them."""
    server = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    server.request("GET", "/metrics")
    answer = server.getresponse()
    if answer.status != 200:
        return 1
    lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.split(r"[{ ]", line, maxsplit=1)[0] in names)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].split(","), float(sys.argv[3]))
