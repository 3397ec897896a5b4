"""`python -m benchmarks.reaper`: measure the reaper with many pods and volumes.

The API server is a small one on loopback, over TLS, that makes objects as it lists them: a real one needs hours to get
50,000 pods. Pods, Jobs and volumes have the size of real ones. `tests/cluster` runs the reaper with a real API server.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import trustme

Object = dict[str, Any]

PACKAGE = Path(__file__).parents[1] / "runtimes" / "reaper"
_ENDED = "2026-01-01T00:00:00Z"
_FIELDS: Object = {"f:status": {f"f:field-{number}": {".": {}, "f:value": {}} for number in range(30)}}
_MANAGED = [{"manager": "kubelet", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": _FIELDS}]
_ENV = [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(30)]


@dataclass
class World:
    """What the API server has.

    Attributes:
        pods: number of finished pods.
        jobs: number of Jobs that control them.
        volumes: number of volumes.
        expired: share of Jobs and volumes whose time is over.
        requests: number of requests by method and resource.
        sent: bytes of all answers.
        deleted: names of deleted objects.
    """

    pods: int
    jobs: int
    volumes: int
    expired: float
    requests: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    deleted: set[str] = field(default_factory=set)
    _names: dict[str, list[str]] = field(default_factory=dict)

    def names(self, resource: str) -> list[str]:
        """Return the names of all objects of a kind, in order."""
        count = {"pods": self.pods, "jobs": self.jobs, "persistentvolumeclaims": self.volumes}[resource]
        if resource not in self._names:
            self._names[resource] = [f"{resource[:3]}-{number:06}" for number in range(count)]
        return self._names[resource]

    def page(self, resource: str, after: str, size: int) -> list[str]:
        """Return the names of the next objects that are left."""
        names = self.names(resource)
        found = (name for name in islice(names, bisect_right(names, after), None) if name not in self.deleted)
        return list(islice(found, size))

    def pods_of(self, uids: list[str]) -> list[str]:
        """Return the names of the pods of Jobs that are left."""
        jobs = [int(bytes.fromhex(uid[-12:])) for uid in uids]
        names = (f"pod-{number:06}" for job in jobs for number in range(job, self.pods, self.jobs))
        return [name for name in names if name not in self.deleted]

    def obj(self, resource: str, name: str) -> Object:
        """Return an object."""
        number = int(name.rpartition("-")[2])
        make = {"pods": self._pod, "jobs": self._job, "persistentvolumeclaims": self._volume}[resource]
        return make(name, number)

    def _metadata(self, name: str, **more: object) -> Object:
        uid = f"00000000-0000-4000-8000-{name.encode().hex()[-12:]}"
        metadata = {"name": name, "namespace": "models", "uid": uid, "resourceVersion": "123456789"}
        return {**metadata, "creationTimestamp": _ENDED, "managedFields": _MANAGED, **more}

    def _pod(self, name: str, number: int) -> Object:
        job = f"job-{number % self.jobs:06}"
        uid = self._metadata(job)["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}
        labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": job}
        return {"metadata": self._metadata(name, labels=labels, ownerReferences=[owner])}

    def _job(self, name: str, number: int) -> Object:
        ttl = "0" if number < self.jobs * self.expired else "999999999"
        labels, annotations = {"kaigen.dev/expires": "true"}, {"kaigen.dev/pod-ttl": ttl}
        condition = {"type": "Complete", "status": "True", "lastTransitionTime": _ENDED}
        template = {"spec": {"containers": [{"name": "main", "image": "image", "env": _ENV}]}}
        return {
            "metadata": self._metadata(name, labels=labels, annotations=annotations),
            "spec": {"template": template},
            "status": {"conditions": [condition]},
        }

    def _volume(self, name: str, number: int) -> Object:
        ttl = "0" if number < self.volumes * self.expired else "999999999"
        annotations = {"kaigen.dev/job": f"job-{number % self.jobs:06}", "kaigen.dev/ttl": ttl}
        labels = {"kaigen.dev/expires": "true"}
        return {"metadata": self._metadata(name, labels=labels, annotations=annotations)}


class _Handler(BaseHTTPRequestHandler):
    world: World
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(usegmt=True)

    def _serve(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        resource, _, name = address.path.rpartition("/models/")[2].partition("/")
        verb = "watch" if "watch" in query else "list" if self.command == "GET" and not name else self.command.lower()
        key = f"{verb} {resource}"
        self.world.requests[key] = self.world.requests.get(key, 0) + 1
        if verb == "watch":
            return self._watch()
        self._reply(*self._answer(resource, name, query))

    def _answer(self, resource: str, name: str, query: dict[str, str]) -> tuple[int, Object]:
        if self.command == "POST":
            return 201, {}
        if self.command == "DELETE":
            self.world.deleted.add(name)
            return 200, {}
        if name:
            return 200, self.world.obj(resource, name)
        if resource == "pods" and "labelSelector" not in query:
            return 200, {"metadata": {"resourceVersion": "1"}, "items": []}
        size = int(query["limit"])
        if uids := re.search(r"in \((.*)\)", query.get("labelSelector", "")):
            names = [each for each in self.world.pods_of(uids[1].split(",")) if each > query.get("continue", "")]
            names = sorted(names)[: size + 1]
        else:
            names = self.world.page(resource, query.get("continue", ""), size + 1)
        more = {"continue": names[size - 1]} if len(names) > size else {}
        items = [self.world.obj(resource, each) for each in names[:size]]
        return 200, {"metadata": {"resourceVersion": "1", **more}, "items": items}

    def _reply(self, code: int, document: Object) -> None:
        body = json.dumps(document).encode()
        self.world.sent += len(body)
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        time.sleep(3600)

    do_GET = do_POST = do_DELETE = _serve


@dataclass(frozen=True, slots=True)
class Result:
    """A measurement.

    Attributes:
        seconds: from the start of the process to its end or to the last deletion.
        processor: seconds of processor time of the process.
        mebibytes: peak memory of the process.
        requests: by method and resource.
        megabytes: size of all answers.
        deleted: number of deleted objects.
    """

    seconds: float
    processor: float
    mebibytes: float
    requests: dict[str, int]
    megabytes: float
    deleted: int


@contextmanager
def api_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[dict[str, str]]:
    """Serve over TLS during the block, and yield the environment of a pod that reaches the server."""
    with tempfile.TemporaryDirectory() as folder:
        mount = Path(folder)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(mount / "ca.crt")
        (mount / "token").write_text("token")
        (mount / "namespace").write_text("models")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {
                **os.environ,
                "PYTHONPATH": str(PACKAGE),
                "KAIGEN_SA_DIR": folder,
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(server.server_port),
            }
        finally:
            server.shutdown()
            server.server_close()


def measure(world: World, *, once: bool) -> Result:
    """Run the reaper until everything that expired is deleted.

    Args:
        world: what the API server has.
        once: with `--once`; else as a process that watches.
    """
    with api_server(type("Bound", (_Handler,), {"world": world})) as env:
        mode = ["--once"] if once else ["--port=0"]
        before = os.times()
        begin = time.monotonic()
        command = [sys.executable, "-m", "kaigen_reaper", "run", "--rate=10000", *mode]
        log = Path(env["KAIGEN_SA_DIR"]) / "log"
        with log.open("w") as file:
            process = subprocess.Popen(command, env=env, stderr=file)
        wanted = sum(1 for number in range(world.pods) if number % world.jobs < world.jobs * world.expired) + sum(
            1 for number in range(world.volumes) if number < world.volumes * world.expired
        )
        peak = 0
        while process.poll() is None and (once or len(world.deleted) < wanted):
            peak = max(peak, peak_kib(process.pid))
            time.sleep(0.05)
        seconds = time.monotonic() - begin
        peak = max(peak, peak_kib(process.pid))
        process.terminate()
        process.wait()
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        if len(world.deleted) != wanted:
            raise SystemExit(f"{len(world.deleted)} deleted, not {wanted}: {log.read_text()[-500:]}")
        return Result(seconds, used, peak / 1024, dict(world.requests), world.sent / 1e6, len(world.deleted))


def peak_kib(pid: int) -> int:
    """Return the peak memory of a process in KiB; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found[1]) if found else 0


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.reaper", description=__doc__)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--volumes", type=int, default=10_000)
    options = parser.parse_args()
    print("| mode | Jobs | expired | seconds | of a processor | peak memory | deleted | requests | received |")
    print("|---|---|---|---|---|---|---|---|---|")
    for once, jobs, expired in ((True, 5000, 0.0), (False, 5000, 0.1), (False, options.pods, 0.1)):
        world = World(options.pods, jobs, options.volumes, expired)
        found = measure(world, once=once)
        requests = ", ".join(f"{count:,} {name}" for name, count in sorted(found.requests.items()))
        print(
            f"| {'--once' if once else 'watch'} | {jobs:,} | {expired:.0%} | {found.seconds:.0f} | "
            f"{found.processor:.0f} | "
            f"{found.mebibytes:.0f} MiB | {found.deleted:,} | {requests} | {found.megabytes:,.0f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
