"""The downloader with a real S3 server that verifies signatures and checksums, with and without TLS."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import random
import re
import ssl
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import boto3
import pytest
import trustme

from tests.cluster.front import FrontServer
from tests.cluster.processes import Command, Processes, free_ports, listening
from tests.cluster.tools.parts import locate_part

pytestmark = pytest.mark.engine

KEYS = ("writer", "correct-horse-battery")
PACKAGE = Path(__file__).parents[2] / "runtimes" / "downloader"
PART = 5 << 20
FILES = {"model.safetensors": random.Random(3).randbytes((11 << 20) + 7), "config.json": b"{}"}


@dataclass
class Gateway(FrontServer):
    """versitygw behind a server that records requests and changes a bit of some, both with TLS or both without.

    Attributes:
        backend: host and port of versitygw.
        scheme: `http` or `https`.
        ca: file with the certificate authority.
        bodies: what the signature of each request with bytes says about them, by its path and part.
        damaged: pattern of the path of the next requests whose body is changed.
        left: how many they are.
    """

    backend: str
    scheme: str
    ca: Path
    served: ssl.SSLContext
    bodies: dict[str, str] = field(default_factory=dict)
    damaged: str = ""
    left: int = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://{self.host}"

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The certificate that it shows."""
        return self.served if self.scheme == "https" else None

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Pass a request on with the Host that is signed, and its response back."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        number = re.search("partNumber=[0-9]+", handler.path)
        name = handler.path.partition("?")[0].partition("/models/m/")[2] + (f" {number[0]}" if number else "")
        if handler.command == "PUT":
            self.bodies[name] = handler.headers["X-Amz-Content-SHA256"]
            if self.left and re.search(self.damaged, name):
                self.left -= 1
                body = bytes([body[0] ^ 1]) + body[1:]
        headers = {key: value for key, value in handler.headers.items() if key != "Expect"}
        with contextlib.closing(self._connection()) as connection:
            connection.request(handler.command, handler.path, body or None, headers)
            response = connection.getresponse()
            content = response.read()
        handler.send_response_only(response.status)
        for key, value in response.getheaders():
            if key.lower() not in ("connection", "transfer-encoding"):
                handler.send_header(key, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)

    def _connection(self) -> http.client.HTTPConnection:
        if self.scheme == "http":
            return http.client.HTTPConnection(self.backend, timeout=30)
        context = ssl.create_default_context(cafile=str(self.ca))
        return http.client.HTTPSConnection(self.backend, timeout=30, context=context)

    def client(self) -> Any:
        """Return a client of the S3 server."""
        return boto3.client(
            "s3",
            endpoint_url=f"{self.scheme}://{self.backend}",
            region_name="us-east-1",
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
            verify=str(self.ca),
        )


@pytest.fixture(params=["http", "https"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gateway]:
    """An S3 server with the empty bucket `models`."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    issued.private_key_pem.write_to_path(tmp_path / "server.key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    (tmp_path / "data").mkdir()
    (port,) = free_ports(1)
    argv = [str(locate_part("versitygw")), "--port", f"127.0.0.1:{port}", "--quiet"]
    if request.param == "https":
        argv += ["--cert", str(tmp_path / "server.pem"), "--key", str(tmp_path / "server.key")]
    keys = {"ROOT_ACCESS_KEY": KEYS[0], "ROOT_SECRET_KEY": KEYS[1]}
    processes = Processes(tmp_path, tmp_path / "scratch")
    processes.start(Command("versitygw", [*argv, "posix", str(tmp_path / "data")], keys))
    processes.wait_until(partial(listening, port, "127.0.0.1"), "the gateway listens")
    with Gateway(f"127.0.0.1:{port}", request.param, tmp_path / "ca.pem", context) as made:
        made.client().create_bucket(Bucket="models")
        yield made
    processes.close()


def put(gateway: Gateway, folder: Path, **env: str) -> tuple[int, str]:
    """Store the files in the bucket; return the exit code of the downloader and what it printed."""
    folder.mkdir(exist_ok=True)
    for path, data in FILES.items():
        (folder / path).write_bytes(data)
    plain = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "HOME": "/nonexistent"}
    plain |= {"AWS_ACCESS_KEY_ID": KEYS[0], "AWS_SECRET_ACCESS_KEY": KEYS[1], "AWS_REGION": "us-east-1"}
    plain |= {"AWS_CA_BUNDLE": str(gateway.ca), "KAIGEN_BACKOFF": "0.02"}
    arguments = ["put", str(folder), "--dest", "s3://models/m", "--identity", "id", "--part-size", str(PART)]
    done = subprocess.run(
        [sys.executable, "-m", "kaigen_downloader", *arguments, "--s3-endpoint", gateway.url],
        env=plain | env,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


def stored(gateway: Gateway) -> dict[str, bytes]:
    """Return the files in the bucket."""
    s3 = gateway.client()
    names = [item["Key"] for item in s3.list_objects_v2(Bucket="models").get("Contents") or []]
    return {
        name.removeprefix("m/"): s3.get_object(Bucket="models", Key=name)["Body"].read()
        for name in names
        if "/.kaigen/" not in name
    }


def test_a_crc32_replaces_the_signature_of_bytes_over_tls_only(gateway: Gateway, tmp_path: Path) -> None:
    code, printed = put(gateway, tmp_path / "made")
    assert code == 0, printed
    assert stored(gateway) == FILES
    big = "model.safetensors"
    files = {*(f"{big} partNumber={number}" for number in (1, 2, 3)), "config.json"}
    unsigned = {name for name, signed in gateway.bodies.items() if signed == "UNSIGNED-PAYLOAD"}
    assert gateway.bodies.keys() == {*files, ".kaigen/owned.json", ".kaigen/model.json"}
    assert unsigned == ({*files, ".kaigen/owned.json"} if gateway.scheme == "https" else set())
    if gateway.scheme == "https":
        head = gateway.client().head_object(Bucket="models", Key=f"m/{big}", ChecksumMode="ENABLED")
        data = FILES[big]
        parts = [zlib.crc32(data[start : start + PART]) for start in range(0, len(data), PART)]
        whole = zlib.crc32(b"".join(each.to_bytes(4, "big") for each in parts))
        assert head["ChecksumCRC32"] == base64.b64encode(whole.to_bytes(4, "big")).decode() + "-3"


@pytest.mark.parametrize("name", ["partNumber=2", "config.json"])
def test_the_server_refuses_bytes_that_were_damaged_on_their_way(gateway: Gateway, tmp_path: Path, name: str) -> None:
    gateway.damaged, gateway.left = name, 1000
    code, printed = put(gateway, tmp_path / "made", KAIGEN_ATTEMPTS="2")
    refusal = "BadDigest" if gateway.scheme == "https" else "XAmzContentSHA256Mismatch"
    assert code == 20, printed
    assert f"answers 400 {refusal}; gave up after 2 attempts" in printed
    assert stored(gateway).items() <= FILES.items()
    assert len(stored(gateway)) < len(FILES)
    gateway.left = 1
    code, printed = put(gateway, tmp_path / "made")
    assert code == 0, printed
    assert f"answers 400 {refusal}; attempt 2 of 8 follows" in printed
    assert stored(gateway) == FILES
