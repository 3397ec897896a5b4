"""`scale` and `idle`: set the replicas of one StatefulSet, at a time or when the Jupyter server in its pod is idle."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from kaigen_reaper.cluster import MERGE_PATCH, Api, Json, check_name, mapping, refused
from kaigen_reaper.errors import ApiUnavailable, Unavailable
from kaigen_reaper.text import duration, parse_time, say, timestamp

IDLE = "idle"
HOURS = "hours"
"""Why a notebook has no pod, in the ConfigMap that `kaigen status` reads."""

_TIMEOUT = 10.0
_MOST_POLL = 60.0
_MOST_BYTES = 1 << 20


class Target:
    """A StatefulSet in the namespace of the pod, and the ConfigMap that says why and since when it has no pod."""

    def __init__(self, api: Api, name: str, state: str) -> None:
        """Initialize.

        Args:
            api: the API server.
            name: of the StatefulSet.
            state: name of the ConfigMap.

        Raises:
            BadInput: a name is not valid.
        """
        self.name = f"StatefulSet {api.namespace}/{check_name(name, '--name')}"
        self._api = api
        # The subresource: the permission for it cannot change what the pods run.
        self._path = f"/apis/apps/v1/namespaces/{api.namespace}/statefulsets/{name}/scale"
        self._state = f"/api/v1/namespaces/{api.namespace}/configmaps/{check_name(state, '--state')}"

    def scale(self, replicas: int, why: str) -> str:
        """Set the replicas, and return why it failed; empty if it did not."""
        if problem := self._patch(self._path, "the scale", {"spec": {"replicas": replicas}}):
            return f"{self.name}: {problem}"
        return self.note("" if replicas else why)

    def note(self, why: str) -> str:
        """Record why it has no pod, empty for one that has; return why that failed."""
        # An API server does not record who set 0 replicas: a Scale leaves the number out.
        data = {"stopped": why, "at": f"{timestamp(self._api.now())[:19]}Z"} if why else {"stopped": None, "at": None}
        return self._patch(self._state, "the state", {"data": data})

    def _patch(self, path: str, what: str, body: Json) -> str:
        try:
            status, answer = self._api.call("PATCH", path, body, kind=MERGE_PATCH)
        except ApiUnavailable as error:
            return str(error)
        return "" if status == 200 else refused(f"patch {what}", status, answer)


def scale(target: Target, replicas: int, *, timeout: float, poll: float) -> str:
    """Set the replicas at a time of the hours, and try again while the API server refuses or cannot be reached.

    Args:
        target: the StatefulSet.
        replicas: their number.
        timeout: seconds until it gives up.
        poll: seconds between two attempts.

    Returns:
        What was done, for a message.

    Raises:
        Unavailable: the time is over.
    """
    begin, printed = time.monotonic(), ""
    while problem := target.scale(replicas, HOURS):
        waited = time.monotonic() - begin
        if waited >= timeout:
            raise Unavailable(f"waited {duration(waited)}: {problem}")
        if problem != printed:
            say(f"waiting: {problem}")
            printed = problem
        time.sleep(min(poll, timeout - waited))
    return f"{target.name} has {replicas} replicas"


class Jupyter:
    """A Jupyter server on this pod's loopback."""

    def __init__(self, port: int, token: Path) -> None:
        """Initialize.

        Args:
            port: its port.
            token: file with the token that opens it, read for every request.
        """
        self._port = port
        self._token = token

    def activity(self, now: float) -> float:
        """Return the Unix time at which a kernel or a terminal last did something; 0 without any.

        A kernel that computes is active now. The server's own `last_activity` does not count: a page that a browser
        shows asks for the lists of kernels and terminals, and each of its requests is an activity (JupyterLab 4.6.6).

        Args:
            now: the time of a kernel that computes.

        Raises:
            Unavailable: the server does not answer as Jupyter does.
        """
        latest = 0.0
        for kernel in self._list("kernels"):
            if kernel.get("execution_state") == "busy":
                return now
            latest = max(latest, _moment(kernel))
        return max([latest, *(_moment(terminal) for terminal in self._list("terminals"))])

    def _list(self, what: str) -> list[Mapping[str, object]]:
        # The parameter keeps this question from being an activity (jupyter_server/base/handlers.py).
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)
        with contextlib.closing(connection):
            try:
                token = self._token.read_text(encoding="utf-8").strip()
                path = f"/api/{what}?no_track_activity=1"
                connection.request("GET", path, headers={"Authorization": f"token {token}"})
                answer = connection.getresponse()
                data = answer.read(_MOST_BYTES + 1)
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise Unavailable(f"asking Jupyter for {what}: {error or type(error).__name__}") from None
        if answer.status == 404 and what == "terminals":
            return []  # The extension is off.
        try:
            found = json.loads(data) if answer.status == 200 and len(data) <= _MOST_BYTES else None
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise Unavailable(f"asking Jupyter for {what}: not a list, status {answer.status}")
        return [mapping(each) for each in found]


def _moment(item: Mapping[str, object]) -> float:
    try:
        return parse_time(str(item.get("last_activity")))
    except ValueError:
        raise Unavailable(f"Jupyter has no valid last_activity: {item.get('last_activity')!r}") from None


class Watch:
    """The longest time since the last activity that was seen.

    The latest activity is remembered: a kernel that ended is not in the list any more. Before any it is the start of
    this program, which is that of the pod.
    """

    def __init__(self, jupyter: Jupyter, after: float, clock: Callable[[], float] = time.time) -> None:
        """Initialize.

        Args:
            jupyter: the server.
            after: seconds without activity after which it is idle.
            clock: returns the Unix time.
        """
        self._jupyter = jupyter
        self._after = after
        self._clock = clock
        self._latest = clock()

    def idle(self) -> float | None:
        """Return for how long the server was idle, or None while it is not.

        Raises:
            Unavailable: the server does not answer, so a kernel may compute.
        """
        now = self._clock()
        self._latest = max(self._latest, min(now, self._jupyter.activity(now)))
        since = now - self._latest
        return since if since >= self._after else None


def watch_idle(target: Target, watch: Watch, after: float, stop: threading.Event) -> None:
    """Stop the pod of a StatefulSet when its Jupyter server is idle.

    Args:
        target: the StatefulSet.
        watch: the server.
        after: seconds without activity.
        stop: ends it.
    """
    problem = target.note("")
    if problem:
        say(f"warning: {problem}")
    while not stop.wait(max(1.0, min(_MOST_POLL, after / 10))):
        try:
            since = watch.idle()
            found = "" if since is None else target.scale(0, IDLE)
            if since is not None and not found:
                say(f"idle for {duration(since)}: {target.name} has 0 replicas")
        except Unavailable as error:
            found = str(error)
        if found and found != problem:
            say(f"warning: {found}")
        problem = found
