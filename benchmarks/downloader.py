"""`python -m benchmarks.downloader`: compare kaigen-downloader with curl, `hf download` and `aws s3 cp`.

All of them fetch the same model from a Hub on loopback, one after another in each round. A bucket is filled over
HTTP and over TLS.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import boto3
import trustme

from benchmarks.command import CommandFailed, discard
from benchmarks.environments import python_environment
from benchmarks.hub_server import REPO
from tests.cluster.tools.parts import locate_part

_ROOT = Path(__file__).parent.parent
_KEYS = ("bench", "correct-horse-battery")
_BUCKET = "models"
_TLS = " (TLS)"
_TWO_STEPS, _TO_S3 = "hf, then aws s3 cp", "kaigen to S3"


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: seconds, seconds of the processor, and the peak of the memory of all its processes together."""

    wall: float
    cpu: float
    peak: int


@dataclass(frozen=True, slots=True)
class Hub:
    """The server."""

    port: int
    files: Sequence[str]
    sha256: str

    def url(self, capped: bool) -> str:
        """Return the endpoint."""
        return f"http://127.0.0.1:{self.port}{'/capped' if capped else ''}"


@dataclass(frozen=True, slots=True)
class Store:
    """A server of S3.

    Attributes:
        url: of the server.
        ca: file with the certificate authority.
        client: boto3's.
    """

    url: str
    ca: Path
    client: Any

    @property
    def is_tls(self) -> bool:
        """Return whether it is used over TLS."""
        return self.url.startswith("https:")

    def clear(self) -> None:
        """Empty the bucket."""
        for entry in self.client.list_objects_v2(Bucket=_BUCKET).get("Contents", ()):
            self.client.delete_object(Bucket=_BUCKET, Key=entry["Key"])


class Bench:
    """The servers and the folder of the results."""

    def __init__(self, hub: Hub, stores: Sequence[Store], folder: Path, aws: str, connections: int) -> None:
        self.hub, self.folder = hub, folder
        self._aws, self._connections = aws, connections
        self._stores = {store.is_tls: store for store in stores}
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(_ROOT / "runtimes" / "downloader"),
            "AWS_ACCESS_KEY_ID": _KEYS[0],
            "AWS_SECRET_ACCESS_KEY": _KEYS[1],
            "AWS_REGION": "us-east-1",
            "AWS_CA_BUNDLE": str(stores[0].ca),
            "AWS_EC2_METADATA_DISABLED": "true",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }

    def curl(self, dest: Path, capped: bool) -> list[list[str]]:
        """Return the commands of curl: one connection for each file."""
        dest.mkdir()
        urls = [f"{self.hub.url(capped)}/{REPO}/resolve/main/{name}" for name in self.hub.files]
        return [["curl", "-fsSL", "--parallel", "--output-dir", str(dest), *(a for u in urls for a in ("-O", u))]]

    def hf(self, dest: Path, capped: bool) -> list[list[str]]:
        """Return the command of `hf download`."""
        hf = str(Path(sys.executable).with_name("hf"))
        return [["env", f"HF_ENDPOINT={self.hub.url(capped)}", hf, "download", REPO, "--local-dir", str(dest)]]

    def kaigen(self, dest: Path | Store, capped: bool) -> list[list[str]]:
        """Return the command of kaigen-downloader."""
        command = [sys.executable, "-m", "kaigen_downloader", "fetch", "huggingface", "--repo", REPO]
        command += ["--endpoint", self.hub.url(capped), "--identity", "bench"]
        command += ["--connections", str(self._connections)]
        if isinstance(dest, Store):
            return [[*command, "--dest", f"s3://{_BUCKET}/model", "--s3-endpoint", dest.url]]
        return [[*command, "--dest", str(dest)]]

    def two_steps(self, dest: Path, store: Store, capped: bool) -> list[list[str]]:
        """Return the commands of a download and an upload."""
        copy = [self._aws, "s3", "cp", "--recursive", "--quiet", "--endpoint-url", store.url]
        copy += ["--exclude", ".cache/*", str(dest), f"s3://{_BUCKET}/model/"]
        return [*self.hf(dest, capped), copy]

    def run(self, name: str, capped: bool, *, check: bool) -> Sample:
        """Run one of them, and remove what it stored."""
        dest = self.folder / "dest"
        discard(dest)
        store = self._stores[name.endswith(_TLS)]
        makers: dict[str, Callable[[], list[list[str]]]] = {
            "curl": partial(self.curl, dest, capped),
            "hf": partial(self.hf, dest, capped),
            "kaigen": partial(self.kaigen, dest, capped),
            _TWO_STEPS: partial(self.two_steps, dest, store, capped),
            _TO_S3: partial(self.kaigen, store, capped),
        }
        maker = name.removesuffix(_TLS)
        os.sync()  # Nobody waits for what an earlier run has left to write.
        parts = [_measured(command, self._env) for command in makers[maker]()]
        if check:
            self._check(store if maker in (_TWO_STEPS, _TO_S3) else dest)
        discard(dest)
        store.clear()
        return Sample(
            sum(part.wall for part in parts), sum(part.cpu for part in parts), max(part.peak for part in parts)
        )

    def _check(self, dest: Path | Store) -> None:
        for name in self.hub.files:
            if isinstance(dest, Store):
                source = dest.client.get_object(Bucket=_BUCKET, Key=f"model/{name}")["Body"]
                digest = hashlib.sha256()
                for piece in source.iter_chunks(1 << 20):
                    digest.update(piece)
                found = digest.hexdigest()
            else:
                with (dest / name).open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != self.hub.sha256:
                raise SystemExit(f"{name} has wrong bytes")


def _measured(command: Sequence[str], env: dict[str, str]) -> Sample:
    start = time.perf_counter()
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, env=env, stdout=printed, stderr=printed)
        peak = 0
        while True:
            peak = max(peak, _memory(process.pid))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        if process.returncode:
            printed.seek(0)
            tail = printed.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{tail}")
    # Linux counts the largest process that ended too, which no sample has to catch.
    return Sample(wall, usage.ru_utime + usage.ru_stime, max(peak, usage.ru_maxrss * 1024))


def _memory(pid: int) -> int:
    """Return the memory of a process and its descendants."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGESIZE") + sum(_memory(int(child)) for child in children)


@contextlib.contextmanager
def _hub(size: int, files: int, rate: int) -> Iterator[Hub]:
    command = [sys.executable, "-m", "benchmarks.hub_server", f"--size={size}", f"--files={files}", f"--rate={rate}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        try:
            yield Hub(**json.loads(process.stdout.readline()))
        finally:
            process.kill()


@contextlib.contextmanager
def _store(folder: Path, scheme: str) -> Iterator[Store]:
    """Run a server of S3 that checks signatures and checksums, with an empty bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / f"data-{scheme}"
    data.mkdir()
    argv = [str(locate_part("versitygw")), "--port", f"127.0.0.1:{port}", "--quiet"]
    if scheme == "https":
        argv += ["--cert", str(folder / "server.pem"), "--key", str(folder / "server.key")]
    env = {**os.environ, "ROOT_ACCESS_KEY": _KEYS[0], "ROOT_SECRET_KEY": _KEYS[1]}
    with subprocess.Popen(
        [*argv, "posix", str(data)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for(port)
            client = boto3.client(
                "s3",
                endpoint_url=f"{scheme}://127.0.0.1:{port}",
                region_name="us-east-1",
                aws_access_key_id=_KEYS[0],
                aws_secret_access_key=_KEYS[1],
                verify=str(folder / "ca.pem"),
            )
            client.create_bucket(Bucket=_BUCKET)
            yield Store(f"{scheme}://127.0.0.1:{port}", folder / "ca.pem", client)
        finally:
            process.kill()


def _issue(folder: Path) -> None:
    """Write a certificate authority, and a certificate for loopback with its key."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "server.pem")
    issued.private_key_pem.write_to_path(folder / "server.key")


def _wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _table(title: str, samples: dict[str, list[Sample]], size: int, ruler: str) -> None:
    print(f"\n{title}")
    print(f"{'':25}{'MB/s':>8}{'seconds':>9}{'cpu s':>8}{'peak MiB':>10}   speed ÷ {ruler}")
    for name, own in samples.items():
        wall = median(each.wall for each in own)
        row = f"{name:25}{size / wall / 1e6:8.0f}{wall:9.2f}{median(each.cpu for each in own):8.2f}"
        row += f"{max(each.peak for each in own) >> 20:10}"
        ratios = [theirs.wall / mine.wall for mine, theirs in zip(own, samples[ruler], strict=True)]
        print(f"{row}   {median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})", flush=True)


_TARGETS = {
    "disk": [("curl", ["curl", "hf", "kaigen"])],
    "s3": [(_TWO_STEPS + tls, [_TWO_STEPS + tls, _TO_S3 + tls]) for tls in ("", _TLS)],
}
"""The groups of commands for each destination, each with the command that the others are compared with."""


def main(argv: Sequence[str]) -> None:
    """Print a table for each destination, without and with the limit of a connection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1, help="of the model (%(default)s)")
    parser.add_argument("--files", type=int, default=1, help="of the model (%(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="rounds (%(default)s)")
    parser.add_argument("--cap", type=int, default=50, metavar="MB", help="a second for each capped connection")
    parser.add_argument("--connections", type=int, default=4, help="of kaigen (%(default)s)")
    parser.add_argument("--only", choices=["disk", "s3"], nargs="+", default=["disk", "s3"])
    parser.add_argument("--limits", choices=["none", "cap"], nargs="+", default=["none", "cap"])
    options = parser.parse_args(argv)
    size = int(options.gib * 2**30) // options.files * options.files
    if shutil.which("curl") is None:
        raise SystemExit("no curl on the PATH")
    try:
        aws = str(python_environment("awscli", [Path(__file__).parent / "peers" / "awscli.txt"]) / "aws")
    except CommandFailed as error:
        raise SystemExit(f"aws cannot be installed: {error.reason()}") from None
    with (
        tempfile.TemporaryDirectory(prefix="kaigen-bench-") as place,
        _hub(size, options.files, options.cap * 10**6) as hub,
        contextlib.ExitStack() as servers,
    ):
        folder = Path(place)
        _issue(folder)
        stores = [servers.enter_context(_store(folder, scheme)) for scheme in ("http", "https")]
        bench = Bench(hub, stores, folder, aws, options.connections)
        for where in options.only:
            groups = _TARGETS[where]
            for limit in options.limits:
                samples: dict[str, list[Sample]] = {name: [] for _, names in groups for name in names}
                for number in range(options.runs):
                    for name, own in samples.items():
                        own.append(bench.run(name, limit == "cap", check=number == 0))
                cap = f", at most {options.cap} MB/s for each connection" if limit == "cap" else ""
                load = os.getloadavg()[0]
                title = f"Hub to {where}, {size / 2**30:.2f} GiB in {options.files} file(s){cap}; load {load:.1f}"
                for ruler, names in groups:
                    _table(title, {name: samples[name] for name in names}, size, ruler)


if __name__ == "__main__":
    main(sys.argv[1:])
