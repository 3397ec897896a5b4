"""Requests to the API server of one cluster, in the name of one user of a kubeconfig."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from email.utils import parsedate_to_datetime
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from msgspec import DecodeError
from msgspec.json import decode

from kaigen.cluster.errors import ApiError, StreamBroken, Unreachable, unreachable
from kaigen.cluster.kubeconfig import log_in
from kaigen.cluster.resources import Resources
from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import Manifest, api_path

if TYPE_CHECKING:
    from datetime import datetime

Query = Sequence[tuple[str, str]]
_Result = TypeVar("_Result")

CONNECT_S = 10.0
"""Seconds to wait for a connection."""
TIMEOUT_S = 30.0
"""Seconds to wait for an answer of the API server."""
PATIENCE_S = 60.0
"""Seconds for which a cluster that has answered before is asked again when it does not answer."""
_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
_ATTEMPTS = urllib3.Retry(3, connect=0, read=0, other=0)
"""A server that says when to come back is asked three times more."""
_PAGE = "500"
_CHUNK = 1 << 16
_JSON = "application/json"
_TABLE = f"{_JSON};as=Table;g=meta.k8s.io;v=v1,{_JSON}"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"


class Cluster:
    """The API server of a context of a kubeconfig.

    Attributes:
        configuration: the address and the credentials, as the package has them.
        namespace: the namespace of the context.
        clock: the server's time of the last answer; None before the first one.
        patience: seconds for which it is asked again when it does not answer.
        timeouts: seconds to wait for a connection, and for an answer.
        say: receives that it does not answer and is asked again.
    """

    def __init__(self, kubeconfig: str = "", context: str = "") -> None:
        """Read the configuration; nothing is sent yet.

        Args:
            kubeconfig: path of a kubeconfig; empty for kubectl's own choice, or the account of the pod.
            context: its name; empty for the current one.

        Raises:
            SystemFailure: there is no such configuration.
        """
        # A connection that fails is retried; the last failure is reported, the others would be noise.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        login = log_in(kubeconfig, context)
        self.configuration: Configuration = login.configuration
        self.configuration.retries = _ATTEMPTS
        self.namespace = login.namespace
        self.clock: datetime | None = None
        self.patience = PATIENCE_S
        self.timeouts = (CONNECT_S, TIMEOUT_S)
        self.say: Callable[[str], object] = lambda text: None
        self._api = ApiClient(self.configuration)
        self._resources = Resources(self.read)

    def signed(self, method: str, path: str, query: Query = ()) -> tuple[str, dict[str, str]]:
        """Return the URL and the headers of a request with the user's credentials."""
        serialized = self._api.param_serialize(
            method, path, query_params=list(query), header_params={}, auth_settings=["BearerToken"]
        )
        return serialized[1], serialized[2]

    def request(
        self,
        method: str,
        path: str,
        query: Query = (),
        body: Manifest | None = None,
        *,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Manifest:
        """Return the answer to a request.

        A server that does not answer is asked again for a while, if it has answered before.

        Raises:
            ApiError: the server refused.
            SystemFailure: it cannot be reached, or answers with something else than JSON.
        """
        sent = {"Accept": accept, "Content-Type": content_type}

        def ask() -> Any:
            with self._answer(method, path, query, body, sent, self.timeouts) as response:
                try:
                    return decode(response.read())
                except DecodeError:
                    return None
                except (urllib3.exceptions.HTTPError, OSError) as error:
                    raise unreachable(self.configuration.host, error) from None

        found = self.patiently(ask)
        if not isinstance(found, dict):
            raise SystemFailure(f"the answer of {self.configuration.host} is not of an API server of Kubernetes")
        return found

    def patiently(self, ask: Callable[[], _Result]) -> _Result:
        """Return what a function returns; call it again as long as the cluster does not answer.

        A cluster that has never answered is asked once more only: its address may be wrong.

        Raises:
            ApiError: the server refused.
            Unreachable: it did not answer in time.
        """
        until = time.monotonic() + self.patience
        for number, pause in enumerate(chain(_PAUSES_S, repeat(_PAUSES_S[-1]))):
            try:
                return ask()
            except ApiError as error:
                error.repeated = number > 0
                raise
            except Unreachable as error:
                is_known = self.clock is not None
                if time.monotonic() + pause > until or (number and not is_known):
                    raise
                if is_known and not number:
                    self.say(f"{error}; trying again")
            time.sleep(pause)
        raise AssertionError

    def stream(self, path: str, query: Query = (), timeout: float | None = None) -> Iterator[bytes]:
        """Yield the lines of an answer that goes on until the server ends it.

        Args:
            path: path of the request.
            query: its parameters.
            timeout: seconds without a line after which the connection counts as broken; None for no limit.

        Raises:
            ApiError: the server refused.
            StreamBroken: the connection ended. What was received of an incomplete line is dropped.
            SystemFailure: the server cannot be reached.
        """
        sent = {"Accept": _JSON, "Content-Type": _JSON}
        with ExitStack() as opened:
            response = self.patiently(
                lambda: opened.enter_context(self._answer("GET", path, query, None, sent, (self.timeouts[0], timeout)))
            )
            rest = b""
            while True:
                try:
                    data = response.read1(_CHUNK)
                except (urllib3.exceptions.HTTPError, OSError) as error:
                    raise StreamBroken(f"the connection to the cluster ended: {error}") from None
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                yield from lines
            if rest:
                yield rest

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        query: Query,
        body: Manifest | None,
        sent: dict[str, str],
        timeout: tuple[float, float | None],
    ) -> Iterator[Any]:
        """Yield the response to a request that the server accepted; it is closed at the end of the block."""
        url, headers = self.signed(method, path, query)
        # The client encodes JSON itself, and YAML contains JSON.
        encoded = json.dumps(body).encode() if sent["Content-Type"] == _APPLY_PATCH else body
        try:
            response = self._api.rest_client.request(
                method, url, headers=headers | sent, body=encoded, _request_timeout=timeout
            ).response
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise unreachable(self.configuration.host, error) from None
        try:
            if date := response.headers.get("Date"):
                self.clock = parsedate_to_datetime(date)
            if response.status >= 400:
                raise ApiError.of_answer(response.status, response.read())
            yield response
        finally:
            response.close()

    def read(self, path: str, query: Query = (), *, accept: str = _JSON) -> Manifest | None:
        """Return the answer for a path; None when the server has nothing there."""
        try:
            return self.request("GET", path, query, accept=accept)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def get(self, kind: str, name: str, namespace: str) -> Manifest:
        """Return an object.

        Raises:
            ApiError: with code 404 when there is none.
        """
        return self.request("GET", api_path(kind, namespace, name))

    def find(self, kind: str, name: str, namespace: str) -> Manifest | None:
        """Return an object; None when there is none."""
        return self.read(api_path(kind, namespace, name))

    def objects(self, kind: str, namespace: str = "", labels: str = "", fields: str = "") -> list[Manifest]:
        """Return the objects of a kind that every cluster has, read in pages.

        Args:
            kind: as in `batch/v1/Job`.
            namespace: empty for all namespaces.
            labels: a label selector.
            fields: a field selector.
        """
        selectors = [("labelSelector", labels), ("fieldSelector", fields)]
        return _items(self._pages(api_path(kind, namespace), selectors))

    def objects_of_type(self, type_: str, namespace: str = "", labels: str = "") -> list[Manifest]:
        """Return the objects of a type in the version that the server prefers; none when it does not have the type.

        Args:
            type_: kind and group, as in `Job.batch`.
            namespace: empty for all namespaces, and for objects of the cluster.
            labels: a label selector.

        Raises:
            Forbidden: the user may not list them.
        """
        path = self._resources.path(type_, namespace)
        return _items(self._pages(path, [("labelSelector", labels)])) if path else []

    def object_of_type(self, type_: str, namespace: str, name: str) -> Manifest | None:
        """Return an object of a type, as `objects_of_type` returns all; None when there is none.

        Raises:
            Forbidden: the user may not read it.
        """
        path = self._resources.path(type_, namespace, name)
        return self.read(path) if path else None

    def names_of_type(self, type_: str, namespace: str = "") -> list[str]:
        """Return the names of the objects of a type. Their content is not sent: it may be that of Secrets.

        Raises:
            Forbidden: the user may not list them.
        """
        path = self._resources.path(type_, namespace)
        pages = self._pages(path, [("includeObject", "None")], accept=_TABLE) if path else []
        return [name for page in pages for name in _names(page)]

    def has(self, type_: str, namespace: str, name: str) -> bool:
        """Return whether there is an object. Its content is not sent: it may be that of a Secret.

        Raises:
            Forbidden: the user may not read it.
        """
        path = self._resources.path(type_, namespace, name)
        query = [("includeObject", "None")]
        return path is not None and self.read(path, query, accept=_TABLE) is not None

    def _pages(self, path: str, selection: Query, *, accept: str = _JSON) -> list[Manifest]:
        """Return the answers to the requests for a list."""
        # An empty parameter is not the same as none.
        query = [pair for pair in selection if pair[1]]
        pages: list[Manifest] = []
        token = ""
        while True:
            position = [("limit", _PAGE), *([("continue", token)] if token else [])]
            try:
                page = self.request("GET", path, [*query, *position], accept=accept)
            except ApiError as error:
                if error.code == 410 and token:
                    # Too much has changed since the first page: as kubectl does, read everything at once.
                    return [self.request("GET", path, query, accept=accept)]
                raise
            pages.append(page)
            token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                return pages

    def create(self, obj: Manifest, namespace: str = "", *, dry_run: bool = False) -> Manifest:
        """Create an object; the server refuses unknown fields.

        Args:
            obj: the object.
            namespace: its namespace.
            dry_run: let the server check it and store nothing.
        """
        kind = f"{obj['apiVersion']}/{obj['kind']}"
        query = [("fieldValidation", "Strict"), *([("dryRun", "All")] if dry_run else [])]
        try:
            return self.request("POST", api_path(kind, namespace), query, obj)
        except ApiError as error:
            if not (error.repeated and error.reason == "AlreadyExists"):
                raise
            # The answer to the first request was lost.
            return self.get(kind, obj["metadata"]["name"], namespace)

    def patch(self, kind: str, name: str, namespace: str, change: Manifest) -> Manifest:
        """Apply a JSON merge patch to an object."""
        return self.request("PATCH", api_path(kind, namespace, name), (), change, content_type=_MERGE_PATCH)

    def apply(self, obj: Manifest, namespace: str) -> Manifest:
        """Create or change an object by a server-side apply that takes over fields of others."""
        kind, name = f"{obj['apiVersion']}/{obj['kind']}", obj["metadata"]["name"]
        query = [("fieldManager", "kaigen"), ("force", "true"), ("fieldValidation", "Strict")]
        return self.request("PATCH", api_path(kind, namespace, name), query, obj, content_type=_APPLY_PATCH)

    def delete(self, kind: str, name: str, namespace: str, *, uid: str = "", grace: int | None = None) -> bool:
        """Delete an object, and in the background what it owns.

        Args:
            kind: as in `batch/v1/Job`.
            name: name of the object.
            namespace: its namespace.
            uid: delete only the object with this UID.
            grace: seconds that its processes get to end.

        Returns:
            Whether there was one.
        """
        options: Manifest = {
            "propagationPolicy": "Background",
            **({"preconditions": {"uid": uid}} if uid else {}),
            **({"gracePeriodSeconds": grace} if grace is not None else {}),
        }
        try:
            self.request("DELETE", api_path(kind, namespace, name), (), options)
        except ApiError as error:
            if error.code == 404:
                return error.repeated
            raise
        return True

    def watch(self, kind: str, namespace: str, name: str, version: str, seconds: int) -> Iterator[tuple[str, Manifest]]:
        """Yield the changes of one object until the connection ends: the type of the event, and the object.

        Args:
            kind: as in `batch/v1/Job`.
            namespace: its namespace.
            name: its name.
            version: resource version after which changes are sent.
            seconds: how long the server sends them.
        """
        query = [
            ("watch", "true"),
            ("fieldSelector", f"metadata.name={name}"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(seconds)),
        ]
        with suppress(StreamBroken):
            for line in self.stream(api_path(kind, namespace), query, seconds + TIMEOUT_S):
                event = json.loads(line)
                yield str(event["type"]), event["object"]


def _items(pages: Sequence[Manifest]) -> list[Manifest]:
    """Return the objects of lists, with the kind that a list leaves out of its items."""
    found: list[Manifest] = []
    for page in pages:
        kind = str(page.get("kind", ""))
        common = {"apiVersion": page.get("apiVersion"), "kind": kind.removesuffix("List")}
        known = common if kind.endswith("List") else {}
        found += [known | item for item in page.get("items") or []]
    return found


def _names(page: Manifest) -> list[str]:
    """Return the names of the objects of a table, or of a list of a server without tables."""
    if "rows" not in page:
        return [str(item["metadata"]["name"]) for item in page.get("items") or []]
    columns = [column.get("name") for column in page.get("columnDefinitions") or []]
    return [str(row["cells"][columns.index("Name")]) for row in page.get("rows") or []]
