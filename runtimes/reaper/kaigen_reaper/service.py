"""`run`: follows Jobs and volumes, and deletes what expires until the process ends, or once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kaigen_reaper.cluster import Api
from kaigen_reaper.errors import ApiUnavailable, Unavailable
from kaigen_reaper.follow import Follower
from kaigen_reaper.index import JOBS, VOLUMES, Index
from kaigen_reaper.metrics import Metrics
from kaigen_reaper.reap import NotLeader, Reaper
from kaigen_reaper.text import plural, say

_LONGEST_WAIT = 5.0
_PAUSE = 5.0


@dataclass(slots=True)
class Scope:
    """A namespace, or all of them.

    Attributes:
        namespace: empty for all.
        followers: of its Jobs and volumes.
        next_sweep: monotonic time at which all finished pods are looked at again.
    """

    namespace: str
    followers: tuple[Follower, Follower]
    next_sweep: float = 0.0

    @property
    def is_synced(self) -> bool:
        """Whether its Jobs and volumes were listed."""
        return all(follower.synced.is_set() for follower in self.followers)


def scopes(api: Api, index: Index, namespaces: Sequence[str], *, page: int, metrics: Metrics) -> list[Scope]:
    """Return the scopes of namespaces; an empty name is that of all."""

    def follower(kind: str, namespace: str) -> Follower:
        return Follower(api, index, kind, namespace, page=page, metrics=metrics)

    return [Scope(name, (follower(JOBS, name), follower(VOLUMES, name))) for name in namespaces]


def run_once(found: Sequence[Scope], reaper: Reaper, index: Index, metrics: Metrics) -> None:
    """Look at everything once.

    Raises:
        Unavailable: something could not be listed or deleted. The rest was done.
    """
    problems = []
    for scope in found:
        try:
            for follower in scope.followers:
                follower.list()
            reaper.sweep(scope.namespace)
            reaper.reap_due_volumes()
        except ApiUnavailable as error:
            problems.append(str(error))
    done = [int(metrics.value("deleted_total", kind=kind)) for kind in ("pod", "volume")]
    known = f"{plural(index.count(JOBS), 'Job')} and {plural(index.count(VOLUMES), 'volume')} that expire"
    say(f"looked at {known}; deleted {plural(done[0], 'pod')} and {plural(done[1], 'volume')}")
    if failed := metrics.value("errors_total", what="delete"):
        problems.append(f"{plural(int(failed), 'deletion')} failed")
    if problems:
        raise Unavailable("; ".join(problems))


class Service:
    """Follows and deletes until it is stopped."""

    def __init__(
        self,
        found: Sequence[Scope],
        reaper: Reaper,
        index: Index,
        metrics: Metrics,
        *,
        now: Callable[[], float],
        is_leader: Callable[[], bool],
        resync: float,
    ) -> None:
        """Initialize.

        Args:
            found: what it follows.
            reaper: deletes.
            index: what is known.
            metrics: its health.
            now: the time of the API server.
            is_leader: whether this process may delete.
            resync: seconds between two looks at all finished pods.
        """
        self._scopes = found
        self._reaper = reaper
        self._index = index
        self._metrics = metrics
        self._now = now
        self._is_leader = is_leader
        self._resync = resync

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set."""
        for scope in self._scopes:
            for follower in scope.followers:
                threading.Thread(target=follower.run, args=(stop,), daemon=True).start()
        while not stop.is_set():
            self._metrics.beat()
            self._metrics.ready = self._metrics.ready or any(scope.is_synced for scope in self._scopes)
            try:
                if self._is_leader():
                    self._work()
                self._index.wait(self._pause())
            except NotLeader:
                continue
            except ApiUnavailable as error:
                self._metrics.add("errors_total", what="reap")
                say(f"warning: {error}")
                stop.wait(_PAUSE)

    def refresh(self) -> None:
        """Set the gauges."""
        self._metrics.set("leader", self._is_leader())
        for kind in (JOBS, VOLUMES):
            self._metrics.set("objects", self._index.count(kind), kind=kind)

    def _work(self) -> None:
        for scope in self._scopes:
            if scope.is_synced and time.monotonic() >= scope.next_sweep:
                # Also after a failure: the next attempt is not later than the usual one.
                scope.next_sweep = time.monotonic() + _PAUSE * 6
                self._reaper.sweep(scope.namespace)
                scope.next_sweep = time.monotonic() + self._resync
        if any(scope.is_synced for scope in self._scopes):
            self._reaper.reap_due_volumes()
            self._reaper.reap_due_jobs()

    def _pause(self) -> float:
        """Return the seconds until there is something to do; changes end a pause earlier."""
        if not self._is_leader() or not any(scope.is_synced for scope in self._scopes):
            return 1.0
        due = self._index.next_due()
        return min(_LONGEST_WAIT, max(0.05, due - self._now()) if due is not None else _LONGEST_WAIT)
