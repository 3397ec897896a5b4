"""A small Kubernetes client over the standard library: plain dicts, and the server's warnings too."""

from __future__ import annotations

import http.client
import json
import re
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.cluster.network import Loopback, Network
from tests.cluster.patience import PATIENCE

# One Kubernetes object, as JSON has it.
Object = dict[str, Any]


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, method: str, path: str, code: int, status: Object) -> None:
        """Keep what was asked and answered.

        Args:
            method: HTTP method.
            path: Path and query.
            code: HTTP status.
            status: The answer's ``Status`` object, or whatever came in its place.
        """
        self.code = code
        self.reason = str(status.get("reason", ""))
        self.message = str(status.get("message", ""))
        super().__init__(f"{method} {path}: {code} {self.reason}: {self.message}")


@dataclass(frozen=True, slots=True)
class Applied:
    """Result of an apply.

    Attributes:
        object: The object as stored by the server.
        warnings: The texts of the answer's warning headers.
        created: Whether it is new.
    """

    object: Object
    warnings: tuple[str, ...]
    created: bool


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a client: a certificate with its key, or a token. Anonymous if both are empty.

    Attributes:
        cert: PEM file.
        key: PEM file.
        token: Bearer token.
    """

    cert: Path | None = None
    key: Path | None = None
    token: str = ""


@dataclass(frozen=True, slots=True)
class _Resource:
    plural: str
    namespaced: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    code: int
    body: Object
    warnings: tuple[str, ...]


class _Connections(threading.local):
    """The open connection of each thread."""

    kept: http.client.HTTPSConnection | None = None


@dataclass(slots=True)
class Client:
    """Requests to one API server in one name. Threads may share it.

    Kinds are written ``v1/Pod`` or ``apps/v1/Deployment``.

    Attributes:
        host: Address of the API server.
        port: Its port.
        ca: PEM file of the authority that signed its certificate.
        credentials: In whose name.
        agent: User agent; the audit log has it.
        network: Where the connections are made.
    """

    host: str
    port: int
    ca: Path
    credentials: Credentials = field(default_factory=Credentials)
    agent: str = "kaigen-tests"
    network: Network = field(default_factory=Loopback)
    _tls: ssl.SSLContext = field(init=False, repr=False)
    _connections: _Connections = field(init=False, repr=False, default_factory=_Connections)
    _opened: list[http.client.HTTPSConnection] = field(init=False, repr=False, default_factory=list)
    _resources: dict[str, _Resource] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._tls = ssl.create_default_context(cafile=str(self.ca))
        if self.credentials.cert is not None:
            self._tls.load_cert_chain(self.credentials.cert, self.credentials.key)

    @property
    def url(self) -> str:
        """The server's address as kubeconfigs have it."""
        return f"https://{self.host}:{self.port}"

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": self.agent, "Content-Type": content_type}
        if self.credentials.token:
            headers["Authorization"] = f"Bearer {self.credentials.token}"
        return headers

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(self.host, self.port, context=self._tls, timeout=timeout)
        with self.network.entered():
            connection.connect()
        # A closed connection must not open again outside the network.
        connection.auto_open = 0
        return connection

    def close(self) -> None:
        """Close the connections of all threads; those still used open again."""
        for connection in self._opened:
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: Object | list[Object] | None = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> _Answer:
        """One request.

        Args:
            method: HTTP method.
            path: Path on the server.
            body: Sent as JSON.
            params: Query.
            content_type: Type of the body.

        Raises:
            ApiError: The server refused.
            OSError: It could not be reached, also ``http.client.HTTPException``.
        """
        if params:
            path = f"{path}?{urlencode(params)}"
        data = None if body is None else _json(body).encode()
        kept = self._connections.kept
        if kept is not None and _has_ended(kept):
            kept.close()
            kept = None
        connection = kept
        if connection is None:
            connection = self._connections.kept = self._connect(60)
            self._opened.append(connection)
        try:
            connection.request(method, path, data, self._headers(content_type))
            response = connection.getresponse()
            payload = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self._connections.kept = None
            # A kept connection may have been closed by the server meanwhile; a fresh one failing is news.
            if kept is not None and method == "GET":
                return self.request(method, path, content_type=content_type)
            raise
        answer = _parsed(payload)
        if response.status >= 400:
            raise ApiError(method, path, response.status, answer)
        warnings = tuple(_warning_text(value) for value in response.headers.get_all("Warning") or ())
        return _Answer(response.status, answer, warnings)

    def _resource(self, kind: str) -> _Resource:
        if kind not in self._resources:
            group_version, _, _ = kind.rpartition("/")
            listing = self.request("GET", _group_path(group_version)).body
            for entry in listing["resources"]:
                if "/" not in entry["name"]:
                    found = _Resource(entry["name"], entry["namespaced"])
                    self._resources[f"{group_version}/{entry['kind']}"] = found
        if kind not in self._resources:
            raise LookupError(f"the API server has no {kind}")
        return self._resources[kind]

    def path(self, kind: str, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The path of an object, or of all objects of a kind where no name is given.

        Raises:
            LookupError: The server does not know the kind.
            ApiError: The server does not know its group and version.
        """
        resource = self._resource(kind)
        parts = [_group_path(kind.rpartition("/")[0])]
        if resource.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [resource.plural, quote(name), subresource]
        return "/".join(part for part in parts if part)

    def path_of(self, obj: Object, namespace: str = "") -> str:
        """The path of an object; ``namespace`` holds where it names none itself."""
        metadata = obj["metadata"]
        return self.path(kind_of(obj), metadata["name"], metadata.get("namespace", namespace))

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """One object.

        Raises:
            ApiError: Code 404 where there is none.
        """
        return self.request("GET", self.path(kind, name, namespace)).body

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, or None where there is none."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def objects(self, kind: str, namespace: str = "", labels: str = "") -> list[Object]:
        """All objects of a kind.

        Args:
            kind: The kind.
            namespace: Of this namespace; of all where empty.
            labels: A label selector.
        """
        params = {"labelSelector": labels} if labels else None
        items: list[Object] = self.request("GET", self.path(kind, namespace=namespace), params=params).body["items"]
        return items

    def create(self, obj: Object, namespace: str = "", *, dry_run: bool = False) -> Object:
        """Create an object; unknown and duplicate fields are refused."""
        where = obj["metadata"].get("namespace", namespace)
        params = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        return self.request("POST", self.path(kind_of(obj), namespace=where), obj, params).body

    def apply(
        self,
        obj: Object,
        namespace: str = "",
        *,
        manager: str = "kaigen-tests",
        force: bool = False,
        dry_run: bool = False,
    ) -> Applied:
        """Server-side apply in strict mode: unknown and duplicate fields are refused, not dropped.

        Args:
            obj: The object.
            namespace: Where it goes when it names none.
            manager: Field manager.
            force: Take over fields that others manage.
            dry_run: Check only.

        Raises:
            ApiError: The server refused the object.
        """
        params = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            params["dryRun"] = "All"
        answer = self.request("PATCH", self.path_of(obj, namespace), obj, params, "application/apply-patch+yaml")
        return Applied(answer.body, answer.warnings, answer.code == 201)

    def patch(self, kind: str, name: str, namespace: str, change: Object, subresource: str = "") -> Object:
        """A JSON merge patch: a None removes."""
        path = self.path(kind, name, namespace, subresource)
        return self.request("PATCH", path, change, content_type="application/merge-patch+json").body

    def delete(self, kind: str, name: str, namespace: str = "", *, propagation: str = "Background") -> None:
        """Delete an object. None being there is fine.

        Args:
            kind: The kind.
            name: The name.
            namespace: The namespace.
            propagation: What becomes of its dependents: ``Background``, ``Foreground``, ``Orphan``.
        """
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        try:
            self.request("DELETE", self.path(kind, name, namespace), options)
        except ApiError as error:
            if error.code != 404:
                raise

    def wait(
        self,
        kind: str,
        name: str,
        namespace: str,
        check: Callable[[Object], bool],
        what: str,
        timeout: float = PATIENCE,
    ) -> Object:
        """Wait until an object is there and ``check`` holds for it.

        Args:
            kind: The kind.
            name: The name.
            namespace: The namespace.
            check: The expected condition.
            what: The condition in words, for the error.
            timeout: Seconds.

        Raises:
            TimeoutError: The condition was not met in time; the message shows the object's status.
        """
        deadline = time.monotonic() + timeout
        while True:
            obj = self.find(kind, name, namespace)
            if obj is not None and check(obj):
                return obj
            if time.monotonic() > deadline:
                status = "not found" if obj is None else json.dumps(obj.get("status", {}))
                raise TimeoutError(f"{kind} {namespace}/{name} not {what} after {timeout:g} s: {status}")
            time.sleep(0.1)

    def wait_gone(self, kind: str, name: str, namespace: str = "", timeout: float = PATIENCE) -> None:
        """Wait until an object is no longer there.

        Raises:
            TimeoutError: It stayed.
        """
        deadline = time.monotonic() + timeout
        while self.find(kind, name, namespace) is not None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{kind} {namespace}/{name} is still there after {timeout:g} s")
            time.sleep(0.1)

    def watch(self, kind: str, namespace: str, seconds: int, since: str = "") -> Iterator[tuple[str, Object]]:
        """Every change of the objects of a kind: type of the event and object.

        Args:
            kind: The kind.
            namespace: Where.
            seconds: After which the iteration ends.
            since: A resource version: only what changed after it. Where empty, the objects that are there
                come first, as ``ADDED``.

        Raises:
            ApiError: The server refused.
        """
        params = {"watch": "true", "timeoutSeconds": str(seconds)} | ({"resourceVersion": since} if since else {})
        path = f"{self.path(kind, namespace=namespace)}?{urlencode(params)}"
        connection = self._connect(seconds + 10)
        try:
            connection.request("GET", path, headers=self._headers("application/json"))
            response = connection.getresponse()
            if response.status != 200:
                raise ApiError("GET", path, response.status, _parsed(response.read()))
            for line in response:
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()


def kind_of(obj: Object) -> str:
    """An object's kind as ``Client`` writes it."""
    return f"{obj['apiVersion']}/{obj['kind']}"


def is_true(obj: Object, condition: str) -> bool:
    """Return whether a condition of this type in an object's status is true."""
    conditions = obj.get("status", {}).get("conditions") or []
    return any(entry["type"] == condition and entry["status"] == "True" for entry in conditions)


def _json(body: Object | list[Object]) -> str:
    """JSON that is YAML too: no character as two escapes, and none raw that YAML does not take as it is."""
    text = json.dumps(body, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _group_path(group_version: str) -> str:
    return f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"


def _has_ended(connection: http.client.HTTPSConnection) -> bool:
    """Return whether the server closed an idle connection: it sends nothing unrequested, so readable means closed."""
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def _parsed(payload: bytes) -> Object:
    try:
        value = json.loads(payload)
    except ValueError:
        return {"message": payload.decode(errors="replace")}
    return value if isinstance(value, dict) else {"value": value}


def _warning_text(header: str) -> str:
    # 299 - "text" (RFC 7234, 5.5); quotes and backslashes of the text are escaped.
    text = header.split(" ", 2)[-1].strip()
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if text.startswith('"') else text
