"""A rendered download, executed in a corporate network: only a proxy reaches the Hub and the bucket, and both have
certificates of a private authority."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from kaigen.compile.network_access import FOLDER
from kaigen.config.load import load_config
from kaigen.pipeline.run import render
from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import KEYS, S3, moto
from tests import plain_yaml

PACKAGE = Path(__file__).parents[2] / "runtimes" / "downloader"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = """\
network:
  hubEndpoint: {hub}
  httpProxy: {proxy}
  httpsProxy: {proxy}
  caBundle: {{configMap: corporate-ca, key: bundle.pem}}
"""
SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: qwen}}
spec:
  source: {{huggingFace: {{repo: org/qwen, revision: {commit}}}}}
  store:
    bucket:
      uri: s3://{bucket}/llm/
      endpoint: {server}
      region: us-east-1
      credentials: {{secret: {{name: keys}}}}
  transfer: {{concurrency: 2, partSize: 5Mi}}
"""


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy for https whose network knows the hosts: it connects to a port of loopback."""

    daemon_threads = True
    asked: list[str]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Tunnel)
        self.asked = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Tunnel(socketserver.StreamRequestHandler):
    server: Proxy

    def handle(self) -> None:
        method, target, _ = self.rfile.readline().decode().split(" ", 2)
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(f"{method} {target}")
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 No\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", int(target.rpartition(":")[2]))) as other:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            ends = {self.connection: other, other: self.connection}
            with contextlib.suppress(OSError):
                while True:
                    for end in select.select(list(ends), [], [], 10)[0]:
                        data = end.recv(1 << 16)
                        if not data:
                            return
                        ends[end].sendall(data)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    server = Proxy()
    yield server
    server.shutdown()
    server.server_close()


def tls(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


def container(folder: Path, config: str, spec: str) -> dict[str, Any]:
    """Return the downloader's container as it is rendered, with the variables of its ConfigMap as its own."""
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "kaigen.yaml").write_text(config, encoding="utf-8")
    (folder / "specs" / "qwen.yaml").write_text(spec, encoding="utf-8")
    files = render((), load_config(folder))
    objects = [plain_yaml.load(bytes(data)) for path, data in files.items() if path.endswith(".yaml")]
    (job,) = [each for each in objects if each["kind"] == "Job"]
    (found,) = job["spec"]["template"]["spec"]["containers"]
    (source,) = found["envFrom"]
    (named,) = (each for each in objects if each.get("metadata", {}).get("name") == source["configMapRef"]["name"])
    return {**found, "env": [*({"name": name, "value": value} for name, value in named["data"].items()), *found["env"]]}


def run(body: dict[str, Any], ca: Path, *, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run a container's command with its variables, and with its bundle of authorities at another path."""
    env = {each["name"]: each["value"] for each in body["env"] if "value" in each}
    env = {name: value.replace("$(KUBERNETES_SERVICE_HOST)", "10.96.0.1") for name, value in env.items()}
    env = {name: value.replace(f"{FOLDER}/ca.crt", str(ca)) for name, value in env.items()}
    env = {name: value for name, value in env.items() if not without or without not in name.upper()}
    mine = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "HOME": "/nonexistent", "KAIGEN_ATTEMPTS": "1"}
    arguments = [each for each in body["args"] if not each.startswith("--facts=")]
    return subprocess.run(
        [sys.executable, "-m", "kaigen_downloader", *arguments],
        env=mine | KEYS | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_downloader_works_behind_a_proxy_with_a_private_authority(tmp_path: Path, proxy: Proxy) -> None:
    authority = trustme.CA()
    ca = tmp_path / "bundle.pem"
    authority.cert_pem.write_to_path(str(ca))
    hub = Hub(repo="org/qwen", revisions={COMMIT: COMMIT}, cdn=False, name="hub.corp.test")
    hub.tls = tls(authority, hub.name)
    hub.add("config.json", b'{"model_type": "tiny"}')
    hub.add("model.safetensors", os.urandom(1 << 20) * 6)
    with moto() as address, S3(address, tls=tls(authority, "s3.corp.test")) as bucket, hub:
        server = bucket.url.replace("127.0.0.1", "s3.corp.test")
        spec = SPEC.format(commit=COMMIT, bucket=bucket.bucket, server=server)
        body = container(tmp_path, CONFIG.format(hub=hub.url, proxy=proxy.url), spec)
        for missing in ("HTTPS_PROXY", "SSL_CERT_FILE"):
            assert run(body, ca, without=missing).returncode != 0
        done = run(body, ca)
        assert done.returncode == 0, done.stderr
        assert {key.rpartition("/")[2] for key in bucket.everything()} >= {"config.json", "model.safetensors"}
    hosts = {asked.split(" ")[1].partition(":")[0] for asked in proxy.asked}
    assert hosts == {"hub.corp.test", "s3.corp.test"}
