"""A registry on loopback with artifacts and images, which requires a password and serves ranges."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
IMAGE_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_TITLE = "org.opencontainers.image.title"


def digest_of(content: bytes) -> str:
    """Return the digest of content."""
    return f"sha256:{sha256(content).hexdigest()}"


@dataclass
class Registry:
    """One repository, `acme/weights`.

    Attributes:
        login: user and password; empty for none.
        blobs: contents by digest.
        manifests: contents by tag and digest.
        asked: method, path and range of each request.
    """

    login: str = ""
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def __enter__(self) -> Registry:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.host = f"127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def artifact(self, tag: str, files: Mapping[str, bytes], annotations: Mapping[str, Any] | None = None) -> str:
        """Push an artifact with a layer for each file; return its digest."""
        layers = [self._blob("application/octet-stream", data, path) for path, data in files.items()]
        config = self._blob("application/vnd.oci.empty.v1+json", b"{}")
        return self._push(tag, {"config": config, "annotations": annotations or {}}, layers)

    def image(self, tag: str, files: Mapping[str, bytes], annotations: Mapping[str, Any] | None = None) -> str:
        """Push an index with one image, whose layer has the files below `models`; return the digest of the index."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, data in files.items():
                entry = tarfile.TarInfo(f"models/{path}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        layer = self._blob(_LAYER, buffer.getvalue())
        inner = self._push("", {"config": self._blob(IMAGE_CONFIG, b"{}")}, [layer])
        entry_ = {"digest": inner, "platform": {"os": "linux", "architecture": "amd64"}}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry_]}
        return self._store(tag, {**index, "annotations": annotations or {}})

    def _push(self, tag: str, document: Mapping[str, Any], layers: list[dict[str, Any]]) -> str:
        return self._store(tag, {"schemaVersion": 2, "mediaType": MANIFEST, **document, "layers": layers})

    def _store(self, tag: str, document: Mapping[str, Any]) -> str:
        content = json.dumps(document).encode()
        digest = digest_of(content)
        self.manifests[digest] = content
        if tag:
            self.manifests[tag] = content
        return digest

    def _blob(self, kind: str, content: bytes, title: str = "") -> dict[str, Any]:
        digest = digest_of(content)
        self.blobs[digest] = content
        named = {"annotations": {_TITLE: title}} if title else {}
        return {"mediaType": kind, "digest": digest, "size": len(content), **named}

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        asked = handler.headers.get("Range") or ""
        self.asked.append((handler.command, handler.path, asked))
        expected = "Basic " + base64.b64encode(self.login.encode()).decode()
        if self.login and handler.headers.get("Authorization") != expected:
            return _reply(handler, 401, b"", {"WWW-Authenticate": 'Basic realm="test"'})
        *_, table, name = handler.path.split("/")
        found = (self.manifests if table == "manifests" else self.blobs).get(name)
        if found is None or "/v2/acme/weights/" not in handler.path:
            return _reply(handler, 404, b"", {})
        if not asked:
            kind = json.loads(found).get("mediaType", "") if table == "manifests" else ""
            return _reply(handler, 200, found, {"Content-Type": kind or "application/octet-stream"})
        start, _, last = asked.removeprefix("bytes=").partition("-")
        content = found[int(start) : int(last or len(found)) + 1]
        span = f"bytes {start}-{int(start) + len(content) - 1}/{len(found)}"
        return _reply(handler, 206, content, {"Content-Range": span})


def _reply(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    handler.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
