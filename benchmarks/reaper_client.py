"""`python -m benchmarks.reaper_client`: list pods with the client of the reaper, and with the official one.

Each client is a process of its own. The server is a small one on loopback, over TLS, whose answers are made before the
clock starts. A pod is as large as one of a Job: one container with 30 variables, a status, and managed fields.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks.reaper import Object, World, api_server

_PAGE = 250
_BEGIN = """
import json, os, re, time
before = time.process_time()
"""
_OFFICIAL = """
from kubernetes import client
configuration = client.Configuration()
configuration.host = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
configuration.ssl_ca_cert = os.environ["KAIGEN_SA_DIR"] + "/ca.crt"
configuration.api_key = {"BearerToken": "token"}
api = client.CoreV1Api(client.ApiClient(configuration))
imported = time.process_time()
"""
_OWN = """
from kaigen_reaper.cluster import METADATA, Api, items, pages
from kaigen_reaper.records import read_pod
api = Api(os.environ)
imported = time.process_time()
"""
_PAGED = """
count, token = 0, None
while True:
    page = api.list_namespaced_pod("models", limit=250, **({"_continue": token} if token else {}))
    count += sum(1 for pod in page.items if pod.metadata.name)
    token = page.metadata._continue
    if not token:
        break
"""
_RAW = """
count, token = 0, None
while True:
    more = {"_continue": token} if token else {}
    answer = api.list_namespaced_pod("models", limit=250, _preload_content=False, **more)
    page = json.loads(answer.data)
    count += sum(1 for pod in page["items"] if pod["metadata"]["name"])
    token = page["metadata"].get("continue")
    if not token:
        break
"""
_END = """
ended = time.process_time()
peak = int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(json.dumps([imported - before, ended - imported, peak, count]))
"""
CASES: Mapping[str, str] = {
    "official, one list": f"{_OFFICIAL}\ncount = len(api.list_namespaced_pod('models').items)\n",
    "official, pages": f"{_OFFICIAL}{_PAGED}",
    "official without models, pages": f"{_OFFICIAL}{_RAW}",
    "kaigen-reaper's, whole pods": f"{_OWN}\n"
    "found = pages(api, '/api/v1/namespaces/models/pods', {}, 250)\n"
    "count = sum(1 for page in found for each in items(page) if read_pod(each).name)\n",
    "kaigen-reaper's, only metadata": f"{_OWN}\n"
    "found = pages(api, '/api/v1/namespaces/models/pods', {}, 250, METADATA)\n"
    "count = sum(1 for page in found for each in items(page) if read_pod(each, finished=True).name)\n",
}


def answers(pods: int) -> dict[tuple[str, bool], bytes]:
    """Return the answers by the token of the page (`all` without pages), and whether they have only metadata."""
    world = World(pods, pods, 0, 0.0)
    found: list[Object] = [world.obj("pods", name) for name in world.names("pods")]
    env = [{"name": f"VARIABLE_{number}", "value": "x" * 20} for number in range(30)]
    container = {"name": "run", "image": "registry.example.com/run:1", "env": env, "resources": {}}
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "2026-01-01T00:00:00Z"}}
    status = {
        "phase": "Succeeded",
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {
                "name": "run",
                "image": container["image"],
                "imageID": "x" * 64,
                "ready": False,
                "restartCount": 0,
                "state": state,
            }
        ],
    }
    spec = {"containers": [container], "nodeName": "node", "restartPolicy": "Never"}
    whole = [{**pod, "spec": spec, "status": status} for pod in found]

    def page(items: list[Object], token: str) -> bytes:
        metadata = {"resourceVersion": "1", **({"continue": token} if token else {})}
        return json.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": items}).encode()

    made = {("all", False): page(whole, "")}
    for start in range(0, pods, _PAGE):
        following = str(start + _PAGE) if start + _PAGE < pods else ""
        for objects, only in ((whole, False), (found, True)):
            made[str(start), only] = page(objects[start : start + _PAGE], following)
    return made


def handler(made: Mapping[tuple[str, bool], bytes]) -> type[BaseHTTPRequestHandler]:
    """Return the server's handler of requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            start = query.get("continue", ["0"])[0] if "limit" in query else "all"
            body = made[start, "PartialObjectMetadata" in self.headers.get("Accept", "")]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    return Handler


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.reaper_client", description=__doc__)
    parser.add_argument("--pods", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with api_server(handler(answers(options.pods))) as env:
        print("| client | import, processor time | list, processor time | peak memory |\n|---|---|---|---|")
        for name, code in CASES.items():
            runs = []
            for _ in range(options.runs):
                printed = subprocess.run(
                    [sys.executable, "-c", _BEGIN + code + _END], env=env, check=True, capture_output=True, text=True
                ).stdout
                *measured, count = json.loads(printed)
                if count != options.pods:
                    raise SystemExit(f"{name}: {count} pods, not {options.pods}")
                runs.append(measured)
            start, took, peak = (sorted(each)[len(runs) // 2] for each in zip(*runs, strict=True))
            print(f"| {name} | {start:.2f} s | {took:.2f} s | {peak:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
