"""Flux on a plane: its kustomize-controller, and a server in place of the source-controller."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.cluster.client import Object
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports, listening

KUSTOMIZATION = "kustomize.toolkit.fluxcd.io/v1/Kustomization"
SOURCE = "source.toolkit.fluxcd.io/v1/GitRepository"
_HOST = "127.0.0.1"


class Flux:
    """A running kustomize-controller.

    Attributes:
        user: Its user in the audit log.
    """

    user = "kustomize-controller"

    def __init__(self, plane: Plane, namespace: str = "flux-system", concurrent: int = 4) -> None:
        """Start the controller. It ends with the plane; the source's server ends with ``close``.

        Args:
            plane: Where.
            namespace: Namespace of Kustomizations and sources.
            concurrent: Number of Kustomizations to reconcile in parallel.
        """
        self._plane = plane
        self.namespace = namespace
        self._archives: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer((_HOST, 0), _handler(self._archives))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        plane.make_namespace(namespace)
        metrics, health = free_ports(2)
        scratch = plane.folder / "data" / self.user
        scratch.mkdir()
        plane.start(
            self.user,
            str(plane.program(self.user)),
            f"--metrics-addr={_HOST}:{metrics}",
            f"--health-addr={_HOST}:{health}",
            "--events-addr=",
            "--interval-jitter-percentage=0",
            "--requeue-dependency=1s",
            f"--concurrent={concurrent}",
            env={
                "KUBECONFIG": str(plane.kubeconfig_for(self.user)),
                "RUNTIME_NAMESPACE": namespace,
                "TMPDIR": str(scratch),
            },
        )
        plane.processes.wait_until(partial(listening, health), "Flux listens")

    def close(self) -> None:
        """End the source's server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def publish(self, name: str, files: Mapping[str, str]) -> str:
        """Make these files the content of a GitRepository, as if a commit had been fetched.

        Args:
            name: Name of the GitRepository; created if missing.
            files: Content by path.

        Returns:
            The revision.
        """
        archive = _tar(files)
        digest = hashlib.sha256(archive).hexdigest()
        revision = f"main@sha1:{digest[:40]}"
        path = f"gitrepository/{self.namespace}/{name}/{digest[:40]}.tar.gz"
        self._archives[f"/{path}"] = archive
        client = self._plane.client
        source = {
            "apiVersion": SOURCE.rpartition("/")[0],
            "kind": "GitRepository",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"interval": "1h", "url": f"https://git.invalid/{name}", "ref": {"branch": "main"}},
        }
        made = client.apply(source).object
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        generation = made["metadata"]["generation"]
        status = {
            "observedGeneration": generation,
            "artifact": {
                "path": path,
                "url": f"http://{_HOST}:{self._server.server_port}/{path}",
                "revision": revision,
                "digest": f"sha256:{digest}",
                "lastUpdateTime": now,
                "size": len(archive),
            },
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Succeeded",
                    "message": f"stored artifact for revision '{revision}'",
                    "lastTransitionTime": now,
                    "observedGeneration": generation,
                }
            ],
        }
        client.patch(SOURCE, name, self.namespace, {"status": status}, "status")
        return revision

    def kustomization(
        self, name: str, source: str, path: str, namespace: str, *, prune: bool = True
    ) -> Object:
        """A Kustomization that waits for its objects to be ready.

        Args:
            name: Its name.
            source: Name of the GitRepository.
            path: Folder in it.
            namespace: Where its objects go.
            prune: Whether what leaves the source is deleted.
        """
        return {
            "apiVersion": KUSTOMIZATION.rpartition("/")[0],
            "kind": "Kustomization",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "interval": "3s",
                "retryInterval": "3s",
                "timeout": "1m",
                "path": path,
                "prune": prune,
                "wait": True,
                "targetNamespace": namespace,
                "sourceRef": {"kind": "GitRepository", "name": source},
            },
        }

    def wait_ready(self, name: str, revision: str, timeout: float = 180.0) -> Object:
        """Wait until a Kustomization has a revision in the cluster, and ready.

        Args:
            name: Its name.
            revision: The revision.
            timeout: Seconds.

        Returns:
            The Kustomization.

        Raises:
            TimeoutError: It was not ready in time.
        """
        check = partial(_at, revision=revision)
        return self._plane.client.wait(KUSTOMIZATION, name, self.namespace, check, f"at {revision}", timeout)


def _at(kustomization: Object, revision: str) -> bool:
    status = kustomization.get("status", {})
    ready = [entry for entry in status.get("conditions") or [] if entry["type"] == "Ready"]
    return status.get("lastAppliedRevision") == revision and any(entry["status"] == "True" for entry in ready)


def _tar(files: Mapping[str, str]) -> bytes:
    """The files as tar.gz: the same files give the same bytes."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, content in sorted(files.items()):
            data = content.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _handler(archives: Mapping[str, bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            archive = archives.get(self.path)
            self.send_response(200 if archive is not None else 404)
            self.send_header("Content-Length", str(len(archive or b"")))
            self.end_headers()
            self.wfile.write(archive or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the test's output is no access log."""

    return Handler
