"""Requests to the API server of the cluster that the pod runs in.

Python's standard library, because the official client needs more memory for a list of 5,000 pods than the reaper may
have for 50,000.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode

from kaigen_reaper import __version__
from kaigen_reaper.errors import ApiUnavailable, BadInput

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Value of `accept` for a list with only the metadata of its objects."""

_ATTEMPTS = 4
_BACKOFF = 0.5
_LONGEST_PAUSE = 30.0

Json = dict[str, object]
Observer = Callable[[str, int], None]
"""Is called for each answer, with the method and the status; status 0 when there was none."""


def refused(verb: str, status: int, answer: Json) -> str:
    """Return why the API server does not do what it was asked, for a message."""
    reason = answer.get("message") or answer.get("reason")
    return f"the API server answers {status} to {verb}" + (f": {reason}" if reason else "")


def mapping(value: object) -> Json:
    """Return a value that should be a mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


class Api:
    """The API server of the pod's cluster, as the pod's service account. Threads may share it.

    Attributes:
        namespace: namespace of the pod.
    """

    def __init__(self, env: Mapping[str, str], observe: Observer | None = None, timeout: float = 30.0) -> None:
        """Initialize.

        Args:
            env: `KUBERNETES_SERVICE_HOST` and `_PORT`, `KAIGEN_SA_DIR`.
            observe: is called for each answer.
            timeout: seconds for each request.

        Raises:
            ApiUnavailable: the process does not run in a cluster, or has no token.
        """
        self._mount = env.get("KAIGEN_SA_DIR") or SERVICE_ACCOUNT
        self._host = env.get("KUBERNETES_SERVICE_HOST", "")
        port = env.get("KUBERNETES_SERVICE_PORT") or "443"
        if not self._host or not port.isdigit():
            raise ApiUnavailable("not in a cluster: KUBERNETES_SERVICE_HOST is not set")
        self._port = int(port)
        self._observe = observe or (lambda method, status: None)
        self._timeout = timeout
        self._local = threading.local()
        self._offset: float | None = None
        self.namespace = env.get("NAMESPACE") or self._file("namespace")

    @property
    def address(self) -> str:
        """Host and port of the API server."""
        return f"{self._host}:{self._port}"

    def now(self) -> float:
        """Return the Unix time of the API server's clock, by the `Date` of its latest answer.

        Raises:
            ApiUnavailable: it has not answered yet.
        """
        if self._offset is None:
            raise ApiUnavailable("the API server has not answered yet, so its time is not known")
        return time.monotonic() + self._offset

    def call(
        self, method: str, path: str, body: Json | None = None, kind: str = JSON, accept: str = JSON
    ) -> tuple[int, Json]:
        """Return status and JSON response, with a few retries when the server does not respond or is busy.

        Raises:
            ApiUnavailable: there was no response.
        """
        for attempt in range(_ATTEMPTS):
            pause = _BACKOFF * 2**attempt
            last = attempt == _ATTEMPTS - 1
            try:
                status, answer, wait = self._once(method, path, body, kind, accept)
            except (OSError, http.client.HTTPException) as error:
                self._observe(method, 0)
                if last:
                    raise ApiUnavailable(f"asking {self.address}: {error or type(error).__name__}") from None
            else:
                self._observe(method, status)
                # The kubelet may have renewed the token since it was read.
                if last or (status not in (401, 429) and status < 500):
                    return status, answer
                pause = max(pause, min(wait, _LONGEST_PAUSE))
            time.sleep(pause)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connection of this thread, if it has one."""
        if connection := self._kept():
            connection.close()
            self._local.connection = None

    def _kept(self) -> http.client.HTTPSConnection | None:
        """Return the open connection of this thread."""
        return getattr(self._local, "connection", None)

    def stream(self, path: str, timeout: float) -> Iterator[Json]:
        """Yield the events of a watch until it ends.

        Args:
            path: with the query.
            timeout: seconds without an event after which the connection counts as lost.

        Raises:
            ApiUnavailable: the connection failed, or the API server refused..
        """
        try:
            with contextlib.closing(self._connect(timeout)) as connection:
                connection.request("GET", path, headers=self._headers(JSON))
                response = connection.getresponse()
                self._note_time(response)
                self._observe("WATCH", response.status)
                if response.status != 200:
                    raise ApiUnavailable(refused("watch", response.status, _parsed(response.read())), response.status)
                while line := response.readline():
                    yield _parsed(line)
        except (OSError, http.client.HTTPException) as error:
            self._observe("WATCH", 0)
            raise ApiUnavailable(f"watching at {self.address}: {error or type(error).__name__}") from None

    def _once(self, method: str, path: str, body: Json | None, kind: str, accept: str) -> tuple[int, Json, float]:
        """Return status, response and the seconds that the server asks to wait."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers(accept)
        if data is not None:
            headers["Content-Type"] = kind
        reused = self._kept()
        connection = reused or self._connect(self._timeout)
        self._local.connection = None
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = _parsed(response.read())
        except ConnectionError:
            connection.close()
            if reused is None:
                raise
            # The server closed a connection that was idle.
            return self._once(method, path, body, kind, accept)
        except BaseException:
            connection.close()
            raise
        self._local.connection = connection
        self._note_time(response)
        wait = response.getheader("Retry-After") or ""
        return response.status, answer, float(wait) if wait.isdecimal() else 0.0

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        # Authorities may be rotated while the program runs, so each connection reads them.
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._trust())
        connection.connect()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    def _trust(self) -> ssl.SSLContext:
        """Return a context that trusts only the cluster's certificate authority.

        Since Python 3.13, the default context requires extensions in certificates that authorities of older clusters do
        not have, such as the key usage. kubectl and Go accept them.
        """
        context = ssl.create_default_context(cafile=os.path.join(self._mount, "ca.crt"))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context

    def _headers(self, accept: str) -> dict[str, str]:
        # The kubelet renews the token in the file, so it is read for every request.
        return {
            "Authorization": f"Bearer {self._file('token')}",
            "Accept": accept,
            "User-Agent": f"kaigen-reaper/{__version__}",
        }

    def _file(self, name: str) -> str:
        try:
            with open(os.path.join(self._mount, name), encoding="ascii") as file:
                return file.read().strip()
        except (OSError, ValueError) as error:
            raise ApiUnavailable(f"no service account token is mounted ({error})") from None

    def _note_time(self, response: http.client.HTTPResponse) -> None:
        if date := response.getheader("Date"):
            with contextlib.suppress(ValueError):
                self._offset = parsedate_to_datetime(date).timestamp() - time.monotonic()


def pages(api: Api, path: str, query: Mapping[str, str], size: int, accept: str = JSON) -> Iterator[Json]:
    """Yield the pages of a list. A page is dropped before the next one is read, if the caller does not keep it.

    Raises:
        Expired: the list is too old to go on; start again.
        ApiUnavailable: the API server cannot be reached or refuses.
    """
    parameters = {**query, "limit": str(size)}
    while True:
        status, page = api.call("GET", f"{path}?{urlencode(parameters)}", accept=accept)
        if status == 410:
            raise Expired(refused(f"list {path}", status, page), status)
        if status != 200 or "items" not in page:
            # A list that was cut off must not look like a short one. The items of an empty list of metadata are null.
            raise ApiUnavailable(refused(f"list {path}", status, page), status)
        following = mapping(page.get("metadata")).get("continue")
        yield page
        if not following:
            return
        parameters["continue"] = str(following)


class Expired(ApiUnavailable):
    """A list or watch refers to a version that the API server does not have any more."""


def items(page: Json) -> Iterator[Json]:
    """Yield the objects of a page, and remove each from the page."""
    found = page.get("items")
    objects = found if isinstance(found, list) else []
    objects.reverse()
    while objects:
        yield mapping(objects.pop())


def _parsed(text: bytes) -> Json:
    try:
        return mapping(json.loads(text))
    except ValueError:
        return {}


def check_name(name: str, what: str) -> str:
    """Return a name that is safe in a path.

    Raises:
        BadInput: it is not a valid name of a Kubernetes object.
    """
    if not name or len(name) > 253 or not all(c.isalnum() or c in "-." for c in name) or not name.isascii():
        raise BadInput(f"{what}: not a valid name: {name!r}")
    return name
