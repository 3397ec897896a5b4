"""Gives the API to one request at a time, and knows whether it answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kaigen_ringproxy.checks import Refused
from kaigen_ringproxy.metrics import Metrics
from kaigen_ringproxy.text import say
from kaigen_ringproxy.upstream import Upstream

_CHECK_SECONDS = 30.0
"""How long the API may take to answer without a request before it: it reads connections in one thread."""


class Turns:
    """The queue in front of the API.

    Attributes:
        ready: whether the API answered at last.
    """

    def __init__(self, upstream: Upstream, metrics: Metrics, *, queue: int) -> None:
        """Initialize.

        Args:
            upstream: the API.
            metrics: counts the requests.
            queue: requests that may wait.
        """
        self.ready = False
        self._upstream = upstream
        self._metrics = metrics
        self._queue = queue
        self._turn = asyncio.Lock()
        self._running = False
        self._in_queue: set[asyncio.Task[None] | None] = set()

    def is_waiting(self, task: asyncio.Task[None]) -> bool:
        """Return whether a task waits for its turn, so that the API knows nothing of its request."""
        return task in self._in_queue

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the API, and keep it until the block ends.

        Raises:
            Refused: the ring does not answer, or too many requests wait.
        """
        if not self.ready:
            raise Refused("the ring has no workers yet, or loads the model", status=503)
        if len(self._in_queue) + self._running > self._queue:
            raise Refused(f"{len(self._in_queue)} requests wait already", status=503)
        task = asyncio.current_task()
        self._in_queue.add(task)
        self._metrics.set("requests_waiting", len(self._in_queue))
        try:
            await self._turn.acquire()
        finally:
            self._in_queue.discard(task)
            self._metrics.set("requests_waiting", len(self._in_queue))
        self._set_running(True)
        try:
            yield
        finally:
            self._set_running(False)
            self._turn.release()

    def _set_running(self, running: bool) -> None:
        self._running = running
        self._metrics.set("requests_running", running)

    async def watch(self, pause: float) -> None:
        """Ask the API whether it answers, whenever it has nothing to do, until the task is cancelled."""
        while True:
            if not self._turn.locked():
                async with self._turn:
                    self.note(await self._upstream.answers(_CHECK_SECONDS))
            await asyncio.sleep(pause)

    def note(self, ready: bool) -> None:
        """Note whether the API answered."""
        if ready != self.ready:
            say("the ring answers" if ready else "the ring does not answer")
        self.ready = ready
        self._metrics.set("ready", ready)
