"""The downloader with a real S3 server that checks signatures and checksums, and with a real registry, under faults."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.cluster.bucket_server import KEYS, PACKAGE, PART, account, bucket_server, call, client, run
from tests.cluster.front import FrontServer
from tests.cluster.registry import LocalRegistry

pytestmark = pytest.mark.engine

BIG = "model.safetensors"
FILES = {BIG: random.Random(1).randbytes((24 << 20) + 7), "config.json": b"{}", "sub dir/x+y": b"hello"}


@dataclass
class Proxy(FrontServer):
    """A server in front of another one, with faults in the bodies of large responses."""

    backend: str
    fault: str = ""
    left: int = 0
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def order(self, fault: str, times: int = 1) -> None:
        """Spoil the next large responses."""
        self.fault, self.left = fault, times

    def _next(self, body: bytes) -> str:
        with self.lock:
            if len(body) < 1 << 18 or not self.left:
                return ""
            self.left -= 1
            return self.fault

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Pass a request on, and its response back."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        connection = http.client.HTTPConnection(self.backend, timeout=30)
        with contextlib.closing(connection):
            connection.request(handler.command, handler.path, body or None, dict(handler.headers.items()))
            response = connection.getresponse()
            content = response.read()
        if handler.command == "GET" and response.status in (200, 206) and len(content) > 1:
            first = re.match(r"bytes (\d+)-", response.getheader("Content-Range") or "")
            start = int(first[1]) if first else 0
            self.asked.append((urllib.parse.unquote(handler.path), start, start + len(content)))
        fault = self._next(content) if handler.command == "GET" else ""
        if fault == "503":
            handler.send_response(503)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if fault == "corrupt":
            content = content[:-1] + bytes([content[-1] ^ 1])
        if fault == "length":
            content = content[: len(content) // 2]
        handler.send_response_only(response.status)
        for name, value in response.getheaders():
            if fault == "length" and name.lower() == "content-length":
                handler.send_header(name, str(len(content)))
            elif fault == "total" and name.lower() == "content-range":
                handler.send_header(name, f"{value}0")
            elif name.lower() not in ("connection", "transfer-encoding"):
                handler.send_header(name, value)
        if fault == "short":
            handler.send_header("Connection", "close")
        handler.end_headers()
        if handler.command == "HEAD":
            return
        if fault in ("cut", "short"):
            content = content[: len(content) // 2]
        for start in range(0, len(content), 1 << 18):
            if fault in ("slow", "slower"):
                time.sleep(0.02 if fault == "slow" else 0.1)
            handler.wfile.write(content[start : start + (1 << 18)])
        if fault in ("cut", "short"):
            handler.close_connection = True


def holds(folder: Path, files: dict[str, bytes]) -> bool:
    """Return whether a folder is marked complete and has the files."""
    return (folder / ".kaigen" / "model.json").exists() and all(
        (folder / path).read_bytes() == data for path, data in files.items()
    )


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server with the bucket `models` and files below `a/`."""
    with bucket_server(tmp_path_factory.mktemp("gateway")) as host:
        s3 = client(host)
        parts = boto3.s3.transfer.TransferConfig(multipart_chunksize=8 << 20)
        for path, data in FILES.items():
            s3.upload_fileobj(io.BytesIO(data), "models", f"a/{path}", Config=parts)
        yield host


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry with a password, an artifact `model:1` and an image `car:1`, whose second layer deletes a file."""
    made = LocalRegistry(tmp_path_factory.mktemp("registry") / "data")
    push(made, "model", [(data, path, "application/octet-stream") for path, data in FILES.items()])
    layers = [
        layer({"models/old": b"x", "etc/passwd": b"y", f"models/{BIG}": FILES[BIG]}),
        layer({"models/.wh.old": b"", "models/config.json": b"{}", "models/sub dir/x+y": b"hello"}),
    ]
    kind = "application/vnd.oci.image.layer.v1.tar+gzip"
    push(made, "car", [(data, "", kind) for data in layers], image=True)
    yield made
    made.close()


def layer(files: dict[str, bytes]) -> bytes:
    """Return a compressed archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def push(registry: LocalRegistry, name: str, blobs: list[tuple[bytes, str, str]], *, image: bool = False) -> None:
    """Push layers and a manifest, as `oras push` does."""
    kind = "application/vnd.oci.image.config.v1+json" if image else "application/vnd.oci.empty.v1+json"
    entries = []
    for data, path, media in [(b"{}", "", kind), *blobs]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        location = send(registry, "POST", f"/v2/{name}/blobs/uploads/", b"")["Location"]
        mark = "&" if "?" in location else "?"
        send(registry, "PUT", f"{location}{mark}digest={digest}", data)
        entry: dict[str, Any] = {"mediaType": media, "digest": digest, "size": len(data)}
        entries.append(entry | ({"annotations": {"org.opencontainers.image.title": path}} if path else {}))
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": entries[0],
        "layers": entries[1:],
    }
    body = json.dumps(manifest).encode()
    send(registry, "PUT", f"/v2/{name}/manifests/1", body, manifest["mediaType"])


def send(registry: LocalRegistry, method: str, url: str, body: bytes, kind: Any = None) -> Any:
    """Send a request with the registry's password, and return the headers of the response."""
    auth = json.loads(registry.secret("x", "x")["stringData"][".dockerconfigjson"])["auths"]  # type: ignore[index]
    headers = {
        "Authorization": f"Basic {auth[registry.host]['auth']}",
        "Content-Type": kind or "application/octet-stream",
    }
    target = url if url.startswith("http") else f"http://{registry.host}{url}"
    with urllib.request.urlopen(urllib.request.Request(target, body, headers, method=method)) as answer:
        return answer.headers


def login(registry: LocalRegistry, host: str) -> str:
    """Return the content of a dockerconfigjson Secret for the registry behind a proxy."""
    secret: Any = registry.secret("x", "x")["stringData"]
    return str(secret[".dockerconfigjson"]).replace(registry.host, host)


Fetch = Callable[[Path, Proxy], tuple[list[str], dict[str, str]]]


@pytest.fixture(params=["s3", "artifact", "image"])
def source(request: pytest.FixtureRequest) -> Iterator[tuple[Proxy, Fetch]]:
    """A server behind a proxy, and the command line that fetches from it."""
    common = ["--identity", "id", "--part-size", str(PART), "--timeout", "5"]
    if request.param == "s3":
        backend = request.getfixturevalue("gateway")
        keys = {"SOURCE_AWS_ACCESS_KEY_ID": KEYS[0], "SOURCE_AWS_SECRET_ACCESS_KEY": KEYS[1]}

        def fetch(dest: Path, proxy: Proxy) -> tuple[list[str], dict[str, str]]:
            where = ["--uri", "s3://models/a", "--endpoint", f"http://{proxy.host}", "--region", "us-east-1"]
            return ["fetch", "s3", *where, "--dest", str(dest), *common], keys
    else:
        made = request.getfixturevalue("registry")
        backend, name = made.host, "model" if request.param == "artifact" else "car"

        def fetch(dest: Path, proxy: Proxy) -> tuple[list[str], dict[str, str]]:
            where = ["--ref", f"{proxy.host}/{name}:1", "--plain-http", "--path", "models"]
            return ["fetch", "oci", *where, "--dest", str(dest), *common], {"REGISTRY_AUTH": login(made, proxy.host)}

    with Proxy(backend) as proxy:
        yield proxy, fetch


@pytest.mark.parametrize("fault", ["", "503", "cut", "short", "slow", "corrupt", "length"])
def test_faults_of_the_server_leave_only_right_bytes(source: tuple[Proxy, Fetch], tmp_path: Path, fault: str) -> None:
    proxy, fetch = source
    arguments, env = fetch(tmp_path / "m", proxy)
    proxy.order(fault, 2)
    code, printed = run(arguments, **env)
    assert code == 0, printed
    assert holds(tmp_path / "m", FILES)
    assert not (tmp_path / "m" / "old").exists()
    if fault == "corrupt":
        assert "wrong checksum, fetching it again" in printed
    code, printed = run(arguments, **env)
    assert (code, "already complete" in printed) == (0, True)


def test_bytes_that_stay_wrong_are_never_accepted(source: tuple[Proxy, Fetch], tmp_path: Path) -> None:
    proxy, fetch = source
    arguments, env = fetch(tmp_path / "m", proxy)
    proxy.order("corrupt", 1000)
    code, printed = run(arguments, **env)
    assert code == 11, printed
    assert not (tmp_path / "m" / ".kaigen" / "model.json").exists()
    assert not (tmp_path / "m" / BIG).exists()


def test_a_file_of_another_size_than_listed_is_refused(source: tuple[Proxy, Fetch], tmp_path: Path) -> None:
    proxy, fetch = source
    arguments, env = fetch(tmp_path / "m", proxy)
    proxy.order("total", 1000)
    code, printed = run(arguments, **env)
    assert (code, "are listed" in printed) == (11, True), printed
    assert not (tmp_path / "m" / ".kaigen" / "model.json").exists()


@dataclass(frozen=True)
class Kept:
    """A file of which an ended run has left bytes: its path, its checksum, and the parts that it has."""

    path: str
    oid: str
    parts: list[tuple[int, int]]

    def again(self, asked: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """Return the requests for bytes that are there already."""
        mine = [each for each in asked if self.oid in each[0] or each[0].partition("?")[0].endswith(f"/{self.path}")]
        return [
            (path, start, end)
            for path, start, end in mine
            if any(start < last and first < end for first, last in self.parts)
        ]


def kept(folder: Path) -> list[Kept]:
    """Return what a run that has ended left behind: files, and the parts of files in its journals."""
    found = []
    for journal in (folder / ".kaigen" / "partial").glob("*.journal"):
        lines = journal.read_text().split("\n")[:-1]
        if lines:
            header = json.loads(lines[0])
            starts = [int(line.split()[0]) * header["part"] for line in lines[1:]]
            parts = [(start, min(start + header["part"], header["size"])) for start in starts]
            found.append(Kept(header["path"], header["oid"], parts))
    for path in FILES:
        if (folder / path).exists():
            found.append(Kept(path, hashlib.sha256(FILES[path]).hexdigest(), [(0, len(FILES[path]))]))
    return found


def killed(process: subprocess.Popen[str], seconds: float, folder: Path) -> bool:
    """Kill a run some seconds after it completed a part; return whether it still ran."""
    before, end = sum(len(each.parts) for each in kept(folder)), time.monotonic() + 60
    while process.poll() is None and sum(len(each.parts) for each in kept(folder)) <= before:
        assert time.monotonic() < end, "no part became complete"
        time.sleep(0.02)
    time.sleep(seconds)
    process.kill()
    process.communicate()
    return process.returncode < 0


def test_runs_killed_at_twenty_points_fetch_no_part_twice(source: tuple[Proxy, Fetch], tmp_path: Path) -> None:
    proxy, fetch = source
    arguments, env = fetch(tmp_path / "m", proxy)
    arguments += ["--part-size", str(1 << 18)]
    proxy.order("slower", 10_000)
    chance, kills = random.Random(7), 0
    for _ in range(20):
        before = kept(tmp_path / "m")
        proxy.asked.clear()
        kills += killed(call(arguments, **env), chance.uniform(0, 0.1), tmp_path / "m")
        assert [each.again(proxy.asked) for each in before] == [[]] * len(before)
    assert kills
    before = kept(tmp_path / "m")
    proxy.asked.clear()
    code, printed = run(arguments, **env)
    assert code == 0, printed
    assert holds(tmp_path / "m", FILES)
    assert [each.again(proxy.asked) for each in before] == [[]] * len(before)


_FULL = """
mount -t tmpfs -o size=80m tmpfs {disk}
(until [ -n "$(ls {disk}/m/.kaigen/partial 2>/dev/null)" ]; do sleep 0.02; done
    head -c 200M /dev/zero > {disk}/other) &
{run}
echo "first: $?" >&2
wait
rm {disk}/other
ls {disk}/m/.kaigen/model.json >&2
{run}
echo "second: $?" >&2
cp -r {disk}/m {copy}
"""


def test_a_disk_that_another_program_fills_ends_the_run(source: tuple[Proxy, Fetch], tmp_path: Path) -> None:
    proxy, fetch = source
    (tmp_path / "disk").mkdir()
    arguments, env = fetch(tmp_path / "disk" / "m", proxy)
    proxy.order("slow", 10_000)
    script = _FULL.format(
        disk=shlex.quote(str(tmp_path / "disk")),
        run=shlex.join([sys.executable, "-m", "kaigen_downloader", *arguments]),
        copy=shlex.quote(str(tmp_path / "copy")),
    )
    # A mount namespace of its own: nothing is left mounted, whatever happens.
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "HOME": "/nonexistent", **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    first, _, second = done.stderr.partition("first: 12\n")
    assert "the volume is full" in first, done.stderr
    assert "cannot access" in second, done.stderr
    assert "second: 0\n" in second, done.stderr
    assert holds(tmp_path / "copy", FILES)


@pytest.fixture(params=["s3", "oci"])
def revocable(request: pytest.FixtureRequest) -> tuple[str, list[str], dict[str, str], Callable[[bool], None]]:
    """A server, arguments and environment of a fetch, and what accepts its credentials, or no longer does."""
    if request.param == "s3":
        gateway = request.getfixturevalue("gateway")
        keys = {"SOURCE_AWS_ACCESS_KEY_ID": "moody", "SOURCE_AWS_SECRET_ACCESS_KEY": KEYS[1]}
        where = ["s3", "--uri", "s3://models/a", "--region", "us-east-1", "--endpoint", "http://SERVER"]
        account(gateway, "moody", exists=True)
        return gateway, where, keys, lambda accepted: account(gateway, "moody", exists=accepted)
    made = request.getfixturevalue("registry")
    login_of = {"REGISTRY_AUTH": login(made, "SERVER")}
    return made.host, ["oci", "--ref", "SERVER/model:1", "--plain-http"], login_of, made.accept


def test_credentials_revoked_in_the_middle_end_the_run_and_new_ones_go_on(
    revocable: tuple[str, list[str], dict[str, str], Callable[[bool], None]], tmp_path: Path
) -> None:
    backend, where, env, accept = revocable
    with Proxy(backend) as proxy:
        arguments = [each.replace("SERVER", proxy.host) for each in where]
        env = {name: value.replace("SERVER", proxy.host) for name, value in env.items()}
        arguments = ["fetch", *arguments, "--dest", str(tmp_path / "m"), "--identity", "id", "--timeout", "30"]
        arguments += ["--part-size", str(1 << 18)]
        proxy.order("slower", 10_000)
        process, end = call(arguments, **env), time.monotonic() + 60
        while not any(each.parts for each in kept(tmp_path / "m")):
            assert time.monotonic() < end, "no part became complete"
            time.sleep(0.02)
        accept(False)
        _, printed = process.communicate(timeout=60)
        accept(True)
        assert process.returncode == 10, printed
        assert not (tmp_path / "m" / ".kaigen" / "model.json").exists()
        before = kept(tmp_path / "m")
        assert any(each.parts for each in before)
        proxy.order("")
        proxy.asked.clear()
        code, printed = run(arguments, **env)
        assert code == 0, printed
        assert holds(tmp_path / "m", FILES)
        assert [each.again(proxy.asked) for each in before] == [[]] * len(before)


def test_files_of_another_revision_are_refused(gateway: str, tmp_path: Path) -> None:
    keys = {"SOURCE_AWS_ACCESS_KEY_ID": KEYS[0], "SOURCE_AWS_SECRET_ACCESS_KEY": KEYS[1]}
    where = ["--uri", "s3://models/a", "--endpoint", f"http://{gateway}", "--region", "us-east-1"]
    arguments = ["fetch", "s3", *where, "--dest", str(tmp_path / "m"), "--identity", "id", "--include", "*.json"]
    code, printed = run(arguments, **keys)
    assert code == 0, printed
    revision = printed.partition("revision of s3://models/a: ")[2].split()[0]
    arguments[arguments.index("--dest") + 1] = str(tmp_path / "n")
    assert run([*arguments, f"--locked={revision}"], **keys)[0] == 0
    arguments[arguments.index("--dest") + 1] = str(tmp_path / "o")
    code, printed = run([*arguments, f"--locked={revision[:-1]}{'1' if revision[-1] == '0' else '0'}"], **keys)
    assert (code, "not those of the revision" in printed) == (10, True)


def test_wrong_credentials_end_the_run_at_once(source: tuple[Proxy, Fetch], tmp_path: Path) -> None:
    proxy, fetch = source
    arguments, env = fetch(tmp_path / "m", proxy)
    wrong = {name: value.replace(KEYS[1], "wrong-secret") for name, value in env.items()}
    if "REGISTRY_AUTH" in env:
        wrong = {}
    code, printed = run(arguments, **wrong)
    assert code == 10, printed
