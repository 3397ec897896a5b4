"""An API server over TLS that keeps objects in memory."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

OBJECTS = "/api/v1/namespaces/models/configmaps"
PODS = "/api/v1/namespaces/models/pods"


@dataclass
class Api:
    """An API server with ConfigMaps, pods and other objects.

    Attributes:
        objects: ConfigMaps by name, other objects by path.
        pods: the pods of the namespace.
        page: how many pods one response has.
    """

    mount: Path
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)  # answers given before those that are meant
    pods: list[dict[str, Any]] = field(default_factory=list)
    page: int = 100
    token: str = "service-account-token-1"
    env: dict[str, str] = field(default_factory=dict)
    rotate: str = ""  # the token that is valid after the next request


@contextlib.contextmanager
def serving(mount: Path, context: ssl.SSLContext) -> Iterator[Api]:
    """An API server whose clients have the service account's folder `mount`."""
    api = Api(mount)
    (mount / "namespace").write_text("models")
    (mount / "token").write_text(api.token + "\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"api": api}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    api.env = {
        "KAIGEN_SA_DIR": str(mount),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(server.server_port),
    }
    yield api
    server.shutdown()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    api: Api
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _reply(self, code: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _serve(self) -> None:
        api = self.api
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        api.calls.append((self.command, self.path))
        if api.statuses:
            return self._reply(api.statuses.pop(0), {"kind": "Status", "message": "not now"})
        if self.headers.get("Authorization") != f"Bearer {api.token}":
            return self._reply(401, {"kind": "Status", "message": "Unauthorized"})
        if api.rotate:
            (api.mount / "token").write_text(api.rotate)
            api.token, api.rotate = api.rotate, ""
        address = urlsplit(self.path)
        if self.command == "GET" and address.path == PODS:
            return self._reply(200, self._pods(parse_qs(address.query)))
        name = self.path.removeprefix(OBJECTS).lstrip("/")
        kind = self.headers.get("Content-Type")
        if self.command == "POST" and not name and kind == "application/json":
            found = json.loads(body)
            if found["metadata"]["name"] in api.objects:
                return self._reply(409, {"kind": "Status", "message": "exists"})
            api.objects[found["metadata"]["name"]] = found
            return self._reply(201, found)
        if name not in api.objects:
            details = {"name": name.rpartition("/")[2]}
            return self._reply(404, {"kind": "Status", "message": "not found", "details": details})
        if self.command == "PATCH" and kind == "application/merge-patch+json":
            _merge(api.objects[name], json.loads(body))
        elif self.command != "GET":
            return self._reply(415, {"kind": "Status", "message": "unsupported"})
        return self._reply(200, api.objects[name])

    def _pods(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """Return one page of the pods that have not ended."""
        assert query["fieldSelector"] == ["status.phase!=Succeeded,status.phase!=Failed"]
        found = [pod for pod in self.api.pods if pod["status"]["phase"] not in {"Succeeded", "Failed"}]
        start = int(query.get("continue", ["0"])[0])
        end = start + min(self.api.page, int(query["limit"][0]))
        more = {"continue": str(end)} if end < len(found) else {}
        return {"kind": "PodList", "metadata": more, "items": found[start:end]}

    do_GET = do_POST = do_PATCH = _serve


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """RFC 7386, for objects whose nested objects exist."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
