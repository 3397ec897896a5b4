"""`scale` and `idle`: set the replicas of one StatefulSet, at a time or when the Jupyter server in its pod is idle."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlencode

from kaigen_reaper.cluster import MERGE_PATCH, Api, check_name, mapping, refused
from kaigen_reaper.errors import ApiUnavailable, Unavailable
from kaigen_reaper.text import duration, parse_time, say

IDLE = "kaigen-idle"
"""Field manager of the replicas that `idle` sets. `kaigen status` reads it, and its time, in `managedFields`."""

HOURS = "kaigen-hours"
"""Field manager of the replicas that `scale` sets."""

_TIMEOUT = 10.0
_MOST_POLL = 60.0
_MOST_BYTES = 1 << 20


def scale(api: Api, name: str, replicas: int, manager: str, *, timeout: float, poll: float) -> str:
    """Set the replicas of a StatefulSet, and try again while the API server refuses or cannot be reached.

    Args:
        api: the API server.
        name: of the StatefulSet, in the namespace of the pod.
        replicas: their number.
        manager: who owns the field from now on.
        timeout: seconds until it gives up.
        poll: seconds between two attempts.

    Returns:
        What was done, for a message.

    Raises:
        BadInput: the name is not valid.
        Unavailable: the time is over.
    """
    check_name(name, "--name")
    begin, printed = time.monotonic(), ""
    while problem := _set(api, name, replicas, manager):
        waited = time.monotonic() - begin
        if waited >= timeout:
            raise Unavailable(f"waited {duration(waited)}: {problem}")
        if problem != printed:
            say(f"waiting: {problem}")
            printed = problem
        time.sleep(min(poll, timeout - waited))
    return f"StatefulSet {api.namespace}/{name} has {replicas} replicas"


def _set(api: Api, name: str, replicas: int, manager: str) -> str:
    """Set the replicas, and return why it failed; empty if it did not."""
    path = f"/apis/apps/v1/namespaces/{api.namespace}/statefulsets/{name}/scale"
    query = urlencode({"fieldManager": manager})
    try:
        # The subresource: the permission for it cannot change what the pods run.
        status, answer = api.call("PATCH", f"{path}?{query}", {"spec": {"replicas": replicas}}, kind=MERGE_PATCH)
    except ApiUnavailable as error:
        return str(error)
    return "" if status == 200 else f"StatefulSet {name}: {refused('patch the scale', status, answer)}"


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


def watch_idle(api: Api, name: str, watch: Watch, after: float, stop: threading.Event) -> None:
    """Stop the pod of a StatefulSet when its Jupyter server is idle.

    Args:
        api: the API server.
        name: of the StatefulSet.
        watch: the server.
        after: seconds without activity.
        stop: ends it.

    Raises:
        BadInput: the name is not valid.
    """
    check_name(name, "--name")
    problem = ""
    while not stop.wait(max(1.0, min(_MOST_POLL, after / 10))):
        try:
            since = watch.idle()
            found = "" if since is None else _set(api, name, 0, IDLE)
            if since is not None and not found:
                say(f"idle for {duration(since)}: StatefulSet {api.namespace}/{name} has 0 replicas")
        except Unavailable as error:
            found = str(error)
        if found and found != problem:
            say(f"warning: {found}")
        problem = found
