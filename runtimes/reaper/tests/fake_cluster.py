"""An API server that keeps objects in memory: lists with pages and selectors, watches, preconditions, and faults."""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]

_PATH = re.compile(
    r"/(?:api/v1|apis/(?:apps/v1|batch/v1|coordination\.k8s\.io/v1|events\.k8s\.io/v1))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+)(?:/scale)?)?"
)


@dataclass
class Call:
    """A request.

    Attributes:
        method: of HTTP; `WATCH` for a watch.
        path: with the query.
        body: what was sent.
        status: of the answer.
    """

    method: str
    path: str
    body: Object
    status: int = 0


@dataclass
class Cluster:
    """The objects of a cluster.

    Attributes:
        time: the Unix time of its clock, or None for that of this machine.
        calls: every request.
        statuses: answers to the next requests, in place of the right ones.
        expired: how many of the next requests with a `continue` token get 410.
        objects: by plural, namespace and name.
        history: every change: plural, type and object.
        before: is called before each request.
    """

    time: float | None = None
    calls: list[Call] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    expired: int = 0
    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    history: list[tuple[str, str, Object]] = field(default_factory=list)
    before: Callable[[str, str], None] = lambda method, path: None
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _watchers: list[tuple[str, str, dict[str, str], queue.SimpleQueue[Object | None]]] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def now(self) -> float:
        """Return the time of its clock."""
        return time.time() if self.time is None else self.time

    def put(self, plural: str, obj: Object, **status: object) -> Object:
        """Create or replace an object, and notify the watches."""
        with self._lock:
            metadata = obj["metadata"]
            key = (plural, metadata.setdefault("namespace", "models"), metadata["name"])
            old = self.objects.get(key)
            version = next(self._versions)
            metadata.setdefault("uid", old["metadata"]["uid"] if old else f"uid-{version}")
            metadata["resourceVersion"] = str(version)
            if status:
                obj["status"] = status
            self.objects[key] = obj
            self._notify(plural, "MODIFIED" if old else "ADDED", old, obj)
            return obj

    def remove(self, plural: str, name: str, namespace: str = "models") -> None:
        """Delete an object at once."""
        with self._lock:
            found = self.objects.pop((plural, namespace, name))
            found["metadata"]["resourceVersion"] = str(next(self._versions))
            self._notify(plural, "DELETED", found, found)

    def get(self, plural: str, name: str, namespace: str = "models") -> Object | None:
        """Return an object, or None."""
        return self.objects.get((plural, namespace, name))

    def names(self, plural: str) -> set[str]:
        """Return the names of all objects of a kind."""
        return {name for found, _, name in self.objects if found == plural}

    def deleted(self) -> list[str]:
        """Return the names of what was deleted by requests, in order."""
        return [call.path.rpartition("/")[2] for call in self.calls if call.method == "DELETE" and call.status == 200]

    def end_watches(self, error: int | None = None) -> None:
        """End the watches, after an ERROR event if a code is given."""
        with self._lock:
            for *_, events in self._watchers:
                if error is not None:
                    events.put({"type": "ERROR", "object": {"kind": "Status", "code": error}})
                events.put(None)

    def _notify(self, plural: str, kind: str, old: Object | None, obj: Object) -> None:
        copy = json.loads(json.dumps(obj))
        self.history.append((plural, kind, copy))
        for watched, namespace, query, events in self._watchers:
            if watched != plural or namespace not in ("", obj["metadata"]["namespace"]):
                continue
            was, does = old is not None and _matches(old, query), _matches(obj, query)
            if was or does:
                found = kind if was == does else "ADDED" if does else "DELETED"
                events.put({"type": found, "object": copy})

    def answer(self, method: str, path: str, body: Object) -> tuple[int, Object]:
        """Return status and response of a request."""
        self.before(method, path)
        with self._lock:
            call = Call(method, path, body)
            self.calls.append(call)
            if self.statuses and (status := self.statuses.pop(0)):
                call.status = status
                return status, _status(status, "not now")
            call.status, found = self._answer(method, path, body)
            return call.status, json.loads(json.dumps(found))

    def _answer(self, method: str, path: str, body: Object) -> tuple[int, Object]:
        address = urlsplit(path)
        match = _PATH.fullmatch(address.path)
        if match is None:
            return 404, _status(404, "no such path")
        plural, namespace, name = match["plural"], match["namespace"] or "", match["name"] or ""
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        if method == "GET" and not name:
            return self._list(plural, namespace, query)
        if method == "POST":
            return self._create(plural, namespace, body)
        found = self.objects.get((plural, namespace, name))
        if found is None:
            return 404, _status(404, f'{plural} "{name}" not found')
        metadata = found["metadata"]
        if method == "GET":
            return 200, found
        wanted = body.get("preconditions" if method == "DELETE" else "metadata", {})
        for key in ("uid", "resourceVersion"):
            if wanted.get(key) not in (None, metadata[key]):
                return 409, _status(409, f"{key} is {metadata[key]}")
        if method == "DELETE":
            if metadata.get("finalizers"):
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                self.put(plural, found)
            else:
                self.remove(plural, name, namespace)
            return 200, found
        new = json.loads(json.dumps(found)) if method == "PATCH" else body
        if method == "PATCH":
            _merge(new, body)
        return 200, self.put(plural, new)

    def _list(self, plural: str, namespace: str, query: dict[str, str]) -> tuple[int, Object]:
        if "continue" in query and self.expired:
            self.expired -= 1
            return 410, _status(410, "the continue token is too old")
        after = tuple(json.loads(query["continue"])) if "continue" in query else ("", "")
        found = sorted(
            (key[1:], obj)
            for key, obj in self.objects.items()
            if key[0] == plural and namespace in ("", key[1]) and key[1:] > after and _matches(obj, query)
        )
        page = found[: int(query.get("limit", len(found)))]
        more = {"continue": json.dumps(page[-1][0])} if len(page) < len(found) else {}
        metadata = {"resourceVersion": str(next(self._versions)), **more}
        # As an API server does for the metadata of no objects.
        return 200, {"metadata": metadata, "items": [obj for _, obj in page] or None}

    def _create(self, plural: str, namespace: str, body: Object) -> tuple[int, Object]:
        metadata = body["metadata"]
        metadata.setdefault("name", f"{metadata.get('generateName', '')}{next(self._versions)}")
        if (plural, namespace, metadata["name"]) in self.objects:
            return 409, _status(409, "already exists")
        metadata["namespace"] = namespace
        return 201, self.put(plural, body)

    def watch(self, path: str) -> Iterator[Object]:
        """Yield the events of a watch until it ends."""
        address = urlsplit(path)
        match = _PATH.fullmatch(address.path)
        assert match is not None
        events: queue.SimpleQueue[Object | None] = queue.SimpleQueue()
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        version = int(query["resourceVersion"])
        entry = (match["plural"], match["namespace"] or "", query, events)
        with self._lock:
            self.calls.append(Call("WATCH", path, {}, 200))
            self._watchers.append(entry)
            # What changed between the list and the watch.
            for plural, kind, obj in self.history:
                is_newer = int(obj["metadata"]["resourceVersion"]) > version
                if plural == entry[0] and entry[1] in ("", obj["metadata"]["namespace"]) and is_newer:
                    events.put({"type": kind, "object": obj})
            events.put({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}})
        try:
            while (event := events.get()) is not None:
                yield event
        finally:
            with self._lock:
                self._watchers.remove(entry)


def _status(code: int, message: str) -> Object:
    return {"kind": "Status", "code": code, "message": message}


def _matches(obj: Object, query: dict[str, str]) -> bool:
    labels = obj["metadata"].get("labels", {})
    for term in re.split(r",(?![^(]*\))", query.get("labelSelector", "")):
        if several := re.fullmatch(r"(\S+) in \((.*)\)", term):
            good = labels.get(several[1]) in several[2].split(",")
        else:
            key, equals, value = term.partition("=")
            good = not key or (labels.get(key) == value if equals else key in labels)
        if not good:
            return False
    phase = obj.get("status", {}).get("phase")
    return all(
        phase != term.removeprefix("status.phase!=") for term in query.get("fieldSelector", "").split(",") if term
    )


def _merge(target: Object, patch: Object) -> None:
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


@dataclass
class Server:
    """A cluster behind TLS.

    Attributes:
        cluster: its objects.
        mount: the folder of the service account.
        env: variables of its pods.
        token: the valid one.
    """

    cluster: Cluster
    mount: Path
    env: dict[str, str]
    token: str = "token-1"

    def rotate(self, token: str, *, write: bool = True) -> None:
        """Make another token valid, and write it into the mount."""
        self.token = token
        if write:
            (self.mount / "token").write_text(token)


@contextlib.contextmanager
def serving(cluster: Cluster, mount: Path, context: ssl.SSLContext) -> Iterator[Server]:
    """Serve a cluster to clients that have the service account's folder `mount`."""
    bound = type("Bound", (_Handler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    (mount / "namespace").write_text("models")
    found = Server(
        cluster,
        mount,
        {
            "KAIGEN_SA_DIR": str(mount),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(server.server_port),
        },
    )
    found.rotate("token-1")
    bound.server_facts = found  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield found
    cluster.end_watches()
    server.shutdown()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    cluster: Cluster
    server_facts: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self.cluster.now(), usegmt=True)

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {self.server_facts.token}":
            return self._reply(401, _status(401, "Unauthorized"))
        if "watch=" in self.path:
            return self._watch()
        self._reply(*self.cluster.answer(self.command, self.path, json.loads(body or b"{}")))

    def _reply(self, code: int, document: Object) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in self.cluster.watch(self.path):
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve
