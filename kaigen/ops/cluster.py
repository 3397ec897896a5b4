"""Requests to the API server of one cluster, in the name of one user of a kubeconfig."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import urllib3
from kubernetes import config as kube_config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.api_paths import api_path

if TYPE_CHECKING:
    from datetime import datetime

Object = dict[str, Any]
"""A Kubernetes object, or a mapping inside one."""
Query = Sequence[tuple[str, str]]

TIMEOUT_S = 30
"""Seconds to wait for an answer of the API server."""
_PAGE = "500"
_CHUNK = 1 << 16
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(SystemFailure):
    """The API server refused a request.

    Attributes:
        code: HTTP status.
        reason: the server's word for it, such as `NotFound`.
    """

    def __init__(self, code: int, status: Mapping[str, Any]) -> None:
        self.code = code
        self.reason = str(status.get("reason", ""))
        hint = "check the rights of the user of the kubeconfig" if code in (401, 403) else ""
        super().__init__(str(status.get("message") or f"the API server answered {code}"), hint=hint)

    @classmethod
    def of_handshake(cls, code: int, body: bytes | str | None) -> ApiError:
        """Return the error for a WebSocket that the API server refused."""
        return cls(code, _parsed(body.encode() if isinstance(body, str) else body or b""))


class StreamBroken(SystemFailure):
    """A connection ended before the server ended its answer."""


class Cluster:
    """The API server of a context of a kubeconfig.

    Attributes:
        namespace: the namespace of the context.
        clock: the server's time of the last answer; None before the first one.
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
        configuration = Configuration()
        self.namespace = _load(configuration, kubeconfig, context)
        self.clock: datetime | None = None
        self._api = ApiClient(configuration)

    @property
    def configuration(self) -> Configuration:
        """The address and the credentials, as the client has them."""
        found: Configuration = self._api.configuration
        return found

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
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Return the answer to a request.

        Raises:
            ApiError: the server refused.
            SystemFailure: it cannot be reached.
        """
        with _Answer(self, method, path, query, body, content_type, TIMEOUT_S) as answer:
            return _parsed(answer.read())

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
        with _Answer(self, "GET", path, query, None, "application/json", (TIMEOUT_S, timeout)) as answer:
            rest = b""
            while True:
                try:
                    data = answer.response.read1(_CHUNK)
                except (urllib3.exceptions.TimeoutError, urllib3.exceptions.ProtocolError) as error:
                    raise StreamBroken(f"the connection to the cluster ended: {error}") from None
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                yield from lines
            if rest:
                yield rest

    def get(self, kind: str, name: str, namespace: str) -> Object:
        """Return an object.

        Raises:
            ApiError: with code 404 when there is none.
        """
        return self.request("GET", api_path(kind, namespace, name))

    def find(self, kind: str, name: str, namespace: str) -> Object | None:
        """Return an object; None when there is none."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def objects(self, kind: str, namespace: str = "", labels: str = "", fields: str = "") -> list[Object]:
        """Return the objects of a kind, read in pages.

        Args:
            kind: as in `batch/v1/Job`.
            namespace: empty for all namespaces.
            labels: a label selector.
            fields: a field selector.
        """
        found: list[Object] = []
        token = ""
        selectors = [("labelSelector", labels), ("fieldSelector", fields)]
        while True:
            query = [
                pair for pair in (("limit", _PAGE), *selectors, ("continue", token)) if pair[1]
            ]  # an empty parameter is not the same as none
            page = self.request("GET", api_path(kind, namespace), query)
            found += page.get("items") or []
            token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                return found

    def create(self, obj: Object, namespace: str) -> Object:
        """Create an object; the server refuses unknown fields."""
        kind = f"{obj['apiVersion']}/{obj['kind']}"
        return self.request("POST", api_path(kind, namespace), [("fieldValidation", "Strict")], obj)

    def patch(self, kind: str, name: str, namespace: str, change: Object) -> Object:
        """Apply a JSON merge patch to an object."""
        return self.request("PATCH", api_path(kind, namespace, name), (), change, _MERGE_PATCH)

    def apply(self, obj: Object, namespace: str) -> Object:
        """Create or change an object by a server-side apply that takes over fields of others."""
        kind, name = f"{obj['apiVersion']}/{obj['kind']}", obj["metadata"]["name"]
        query = [("fieldManager", "kaigen"), ("force", "true"), ("fieldValidation", "Strict")]
        return self.request("PATCH", api_path(kind, namespace, name), query, obj, _APPLY_PATCH)

    def delete(
        self, kind: str, name: str, namespace: str, *, uid: str = "", grace: int | None = None
    ) -> bool:
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
        options: Object = {
            "propagationPolicy": "Background",
            **({"preconditions": {"uid": uid}} if uid else {}),
            **({"gracePeriodSeconds": grace} if grace is not None else {}),
        }
        try:
            self.request("DELETE", api_path(kind, namespace, name), (), options)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def watch(
        self, kind: str, namespace: str, name: str, version: str, seconds: int
    ) -> Iterator[tuple[str, Object]]:
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


class _Answer:
    """A request that was answered with success; closed at the end of the block."""

    def __init__(
        self,
        cluster: Cluster,
        method: str,
        path: str,
        query: Query,
        body: Object | None,
        content_type: str,
        timeout: float | tuple[float, float | None],
    ) -> None:
        url, headers = cluster.signed(method, path, query)
        headers |= {"Accept": "application/json", "Content-Type": content_type}
        try:
            rest = cluster._api.rest_client.request(
                method, url, headers=headers, body=_encoded(body, content_type), _request_timeout=timeout
            )
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise unreachable(cluster, error) from None
        self.response = rest.response
        if date := self.response.headers.get("Date"):
            cluster.clock = parsedate_to_datetime(date)
        if self.response.status >= 400:
            data = self.read()
            self.response.release_conn()
            raise ApiError(self.response.status, _parsed(data))

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()

    def read(self) -> bytes:
        data: bytes = self.response.read()
        return data


def unreachable(cluster: Cluster, error: BaseException) -> SystemFailure:
    """Return the error for an API server that does not answer."""
    reason = getattr(error, "reason", None) or error
    text = str(reason).partition(") ")[2] or str(reason).partition(": ")[2] or str(reason)
    hint = "check that the cluster runs, and select another with --context"
    return SystemFailure(f"cannot reach the cluster at {cluster.configuration.host}: {text}", hint=hint)


def _load(configuration: Configuration, kubeconfig: str, context: str) -> str:
    """Fill in a configuration and return the namespace of its context."""
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    in_cluster = not path and not context and not Path("~/.kube/config").expanduser().exists()
    try:
        if in_cluster and (_SERVICE_ACCOUNT / "token").exists():
            kube_config.load_incluster_config(client_configuration=configuration)
            return (_SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default"
        options = {"config_file": path or None, "context": context or None}
        kube_config.load_kube_config(**options, client_configuration=configuration)
        contexts, active = kube_config.list_kube_config_contexts(path or None)
    except (ConfigException, OSError) as error:
        hint = "set KUBECONFIG, or --kubeconfig and --context"
        raise SystemFailure(f"no usable kubeconfig: {error}", hint=hint) from None
    chosen = next((item for item in contexts if item["name"] == context), active) if context else active
    return str(((chosen or {}).get("context") or {}).get("namespace") or "default")


def _encoded(body: Object | None, content_type: str) -> Object | bytes | None:
    """Return a body as the client takes it: it encodes JSON itself, and YAML contains JSON."""
    return json.dumps(body).encode() if content_type == _APPLY_PATCH else body


def _parsed(data: bytes) -> Object:
    try:
        value = json.loads(data)
    except ValueError:
        return {"message": data.decode(errors="replace").strip()[:500]}
    return value if isinstance(value, dict) else {}
