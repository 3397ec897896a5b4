"""Events that `kubectl describe` and `kubectl get events` show."""

from __future__ import annotations

import uuid

from kaigen_reaper.cluster import Api, Json, refused
from kaigen_reaper.errors import ApiUnavailable
from kaigen_reaper.metrics import Metrics
from kaigen_reaper.text import say, timestamp

_LONGEST_NOTE = 1024
_LONGEST_PREFIX = 200


class Events:
    """Writes Events about Jobs and volumes. One that cannot be written is only counted."""

    def __init__(self, api: Api, metrics: Metrics, instance: str) -> None:
        """Initialize.

        Args:
            api: where they are written.
            metrics: counts errors.
            instance: name of this pod.
        """
        self._api = api
        self._metrics = metrics
        self._instance = instance
        self._problem = ""

    def write(self, kind: str, key: str, uid: str, reason: str, note: str) -> None:
        """Write an Event in the namespace of an object.

        Args:
            kind: `Job` or `PersistentVolumeClaim`.
            key: namespace and name of the object.
            uid: its UID.
            reason: one word.
            note: what was done.
        """
        namespace, _, name = key.partition("/")
        body: Json = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{name[:_LONGEST_PREFIX].rstrip('.-')}.{uuid.uuid4().hex[:16]}"},
            "eventTime": timestamp(self._api.now()),
            "reportingController": "kaigen.dev/reaper",
            "reportingInstance": self._instance,
            "action": "Delete",
            "reason": reason,
            "type": "Normal",
            "regarding": {
                "apiVersion": "batch/v1" if kind == "Job" else "v1",
                "kind": kind,
                "namespace": namespace,
                "name": name,
                "uid": uid,
            },
            "note": note if len(note) <= _LONGEST_NOTE else note[: _LONGEST_NOTE - 1] + "…",
        }
        try:
            status, answer = self._api.call("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)
            problem = "" if status == 201 else refused("create an Event", status, answer)
        except ApiUnavailable as error:
            problem = str(error)
        if problem:
            self._metrics.add("errors_total", what="event")
            if problem != self._problem:
                say(f"warning: {problem}")
        self._problem = problem
