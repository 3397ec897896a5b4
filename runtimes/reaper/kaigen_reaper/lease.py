"""The election of the one process that deletes, with a Lease as in Kubernetes' own controllers."""

from __future__ import annotations

import contextlib
import threading
import time

from kaigen_reaper.cluster import Api, Json, mapping, refused
from kaigen_reaper.errors import ApiUnavailable
from kaigen_reaper.text import say, timestamp

DURATION = 15
"""Seconds after which another process may take over a Lease that was not renewed."""

_RENEW = 5.0
_RETRY = 2.0
_MARGIN = 5.0


class Lease:
    """A Lease, and whether this process has it.

    Other processes' clocks do not matter: a Lease has ended when this process saw no change of it for its duration.
    """

    def __init__(self, api: Api, name: str, identity: str) -> None:
        """Initialize.

        Args:
            api: the Lease is in the namespace of the pod.
            name: of the Lease.
            identity: unique name of this process.
        """
        self.identity = identity
        self._api = api
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
        self._name = name
        self._until = 0.0
        self._seen: object = None
        self._seen_at = 0.0
        self._stop = threading.Event()

    @property
    def is_leader(self) -> bool:
        """Whether this process may delete now."""
        return time.monotonic() < self._until

    def run(self) -> None:
        """Get and renew the Lease until `release` is called."""
        problem = ""
        while not self._stop.is_set():
            was = self.is_leader
            try:
                reason = self.attempt()
            except ApiUnavailable as error:
                reason = str(error)
            if self.is_leader != was:
                say(f"{self.identity} is {'now the leader' if self.is_leader else 'no longer the leader'}")
            if reason and reason != problem:
                say(f"warning: Lease {self._name}: {reason}")
            problem = reason
            self._stop.wait(_RENEW if self.is_leader else _RETRY)
        self._api.close()

    def attempt(self) -> str:
        """Get or renew the Lease once, if it is free or this process has it.

        Returns:
            Why that failed, or empty.

        Raises:
            ApiUnavailable: the API server cannot be reached.
        """
        begin = time.monotonic()
        status, found = self._api.call("GET", f"{self._path}/{self._name}")
        if status == 404:
            body: Json = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._name},
                "spec": self._spec({}),
            }
            status, found = self._api.call("POST", self._path, body)
            return self._done(status, found, "create", begin)
        if status != 200:
            return refused("get", status, found)
        spec = mapping(found.get("spec"))
        if spec != self._seen:
            self._seen, self._seen_at = spec, begin
        holder = spec.get("holderIdentity")
        lasts = spec.get("leaseDurationSeconds")
        ends = self._seen_at + (lasts if isinstance(lasts, int) else DURATION)
        if holder and holder != self.identity and begin < ends:
            self._until = 0.0
            return ""
        # With its resource version, so that only one of several processes succeeds.
        body = {**found, "spec": self._spec(spec)}
        status, found = self._api.call("PUT", f"{self._path}/{self._name}", body)
        return self._done(status, found, "update", begin)

    def _done(self, status: int, answer: Json, verb: str, begin: float) -> str:
        if status in (200, 201):
            self._until = begin + DURATION - _MARGIN
            return ""
        self._until = 0.0
        # Another process was faster.
        return "" if status == 409 else refused(verb, status, answer)

    def _spec(self, old: Json) -> Json:
        now = timestamp(self._api.now())
        transitions = old.get("leaseTransitions")
        count = transitions if isinstance(transitions, int) else 0
        mine = old.get("holderIdentity") == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": DURATION,
            "acquireTime": old.get("acquireTime") if mine else now,
            "renewTime": now,
            "leaseTransitions": count if mine or not old else count + 1,
        }

    def release(self) -> None:
        """Give the Lease up, so that another process need not wait for its end."""
        self._stop.set()
        if not self.is_leader:
            return
        self._until = 0.0
        with contextlib.suppress(ApiUnavailable):
            status, found = self._api.call("GET", f"{self._path}/{self._name}")
            spec = mapping(found.get("spec"))
            if status == 200 and spec.get("holderIdentity") == self.identity:
                freed = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
                self._api.call("PUT", f"{self._path}/{self._name}", {**found, "spec": freed})
