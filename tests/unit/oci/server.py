"""A registry in memory on loopback, as far as kaigen pushes to it and reads from it."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(slots=True)
class Stored:
    """What a registry has.

    Attributes:
        host: its address.
        manifests: content by repository and tag or digest.
        blobs: content by digest, of all repositories.
    """

    host: str = ""
    manifests: dict[tuple[str, str], bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def copy(self, old: str, new: str) -> None:
        """Copy all manifests of a repository to another one, as a mirror or an attacker does."""
        for (repository, name), content in list(self.manifests.items()):
            if repository == old:
                self.manifests[new, name] = content

    def referrers(self, repository: str, digest: str) -> list[dict[str, str]]:
        """Return what is attached to a digest in a repository."""
        found = []
        for (place, name), content in self.manifests.items():
            manifest = json.loads(content)
            if place == repository and name == _digest(content) and digest in str(manifest.get("subject")):
                found.append({"digest": name, "artifactType": manifest["artifactType"]})
        return found


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def oci_registry() -> Iterator[Stored]:
    """A registry that listens until the end of the block."""
    stored = Stored()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name.replace("_", "-"), text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            found = re.fullmatch(r"/v2/(.+)/(manifests|blobs|referrers)/(.*)", url.path)
            assert found, self.path
            repository, kind, name = found.groups()
            if name == "uploads/":
                self._answer(202, Location=f"/v2/{repository}/blobs/uploads/1")
            elif self.command == "PUT" and kind == "blobs":
                stored.blobs[parse_qs(url.query)["digest"][0]] = body
                self._answer(201)
            elif self.command == "PUT":
                stored.manifests[repository, name] = stored.manifests[repository, _digest(body)] = body
                self._answer(201, OCI_Subject=str(json.loads(body).get("subject", {}).get("digest", "")))
            elif kind == "referrers":
                self._answer(200, json.dumps({"manifests": stored.referrers(repository, name)}).encode())
            else:
                content = stored.blobs.get(name) if kind == "blobs" else stored.manifests.get((repository, name))
                self._answer(404) if content is None else self._answer(200, content)

        do_GET = do_HEAD = do_POST = do_PUT = _handle

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stored.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stored
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
