"""`wait`: blocks until all workers of a ring are ready, without a connection to any of them.

A worker takes the first connection as that of its root, and ends when it closes. So the gate asks only DNS: a headless
Service has the addresses of the workers that are ready.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection, Sequence

from kaigen_ringproxy.text import say

Resolve = Callable[[str], "Collection[str]"]


def addresses(name: str) -> set[str]:
    """Return the addresses of a host name; none if it has none now."""
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return set()
    return {str(each[4][0]) for each in found}


def missing(workers: Sequence[str], ready: str, resolve: Resolve) -> list[str]:
    """Return the workers that are not ready.

    Args:
        workers: their host names.
        ready: host name with the addresses of all workers that are ready.
        resolve: returns the addresses of a host name.
    """
    known = set(resolve(ready))
    return [worker for worker in workers if not (own := set(resolve(worker))) or not own <= known]


async def wait(
    workers: Sequence[str],
    ready: str,
    *,
    settle: float,
    timeout: float,
    pause: float = 1.0,
    resolve: Resolve = addresses,
) -> bool:
    """Wait until all workers have been ready for a while; returns whether they were in time.

    While workers are replaced one after the other, all are ready between two of them.

    Args:
        workers: their host names.
        ready: host name with the addresses of all workers that are ready.
        settle: seconds that all must stay ready.
        timeout: longest time to wait, in seconds.
        pause: seconds between two looks.
        resolve: returns the addresses of a host name.
    """
    loop = asyncio.get_running_loop()
    end, since, shown = loop.time() + timeout, None, None
    while loop.time() < end:
        absent = await asyncio.to_thread(missing, workers, ready, resolve)
        if absent != shown:
            shown = absent
            names = f": waiting for {', '.join(absent)}" if absent else ""
            say(f"{len(workers) - len(absent)} of {len(workers)} workers are ready{names}")
        if absent:
            since = None
        elif since is None:
            since = loop.time()
        if since is not None and loop.time() - since >= settle:
            return True
        await asyncio.sleep(pause)
    return False
