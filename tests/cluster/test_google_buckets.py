"""The downloader with a server of Google's API that is not ours: listings, ranges, and the checksums of Google."""

from __future__ import annotations

import json
import random
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from runtimes.downloader.tests.gcs import METADATA, Identity, identity
from tests.cluster.bucket_server import run
from tests.cluster.processes import Command, Processes, free_ports, listening
from tests.cluster.tools.parts import locate_part

pytestmark = pytest.mark.engine

FILES = {
    "model.safetensors": random.Random(3).randbytes((3 << 20) + 7),
    "config.json": b"{}",
    "a folder/vocab.txt": b"a\nb\n",
    "empty": b"",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The URL of fake-gcs-server with the files below `llm` of the bucket `models`."""
    for path, data in FILES.items():
        file = tmp_path / "data" / "models" / "llm" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (port,) = free_ports(1)
    host = f"127.0.0.1:{port}"
    argv = [str(locate_part("fake-gcs-server")), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    argv += ["-public-host", host, "-backend", "memory", "-data", str(tmp_path / "data")]
    (tmp_path / "processes").mkdir()
    processes = Processes(tmp_path / "processes", tmp_path / "scratch")
    try:
        processes.start(Command("fake-gcs-server", argv, {}))
        processes.wait_until(partial(listening, port, "127.0.0.1"), "the server listens")
        yield f"http://{host}"
    finally:
        processes.close()


@pytest.fixture
def pod() -> Iterator[Identity]:
    with identity() as made:
        yield made


def test_a_folder_of_a_bucket_is_read_with_a_token(server: str, pod: Identity, tmp_path: Path) -> None:
    parts = [{"name": f"llm/{name}"} for name in ("model.safetensors", "config.json")]
    request = urllib.request.Request(
        f"{server}/storage/v1/b/models/o/llm%2Fcomposed/compose",
        json.dumps({"sourceObjects": parts}).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()
    dest = tmp_path / "model"
    where = ["--uri", "gs://models/llm", "--endpoint", server, "--dest", str(dest), "--identity", "1d" * 16]
    metadata = {"GCE_METADATA_HOST": pod.url.removeprefix("http://")}
    code, printed = run(["fetch", "s3", *where, "--part-size", "256Ki"], **metadata)
    assert code == 0, printed
    assert "every checksum right" in printed
    files = {**FILES, "composed": FILES["model.safetensors"] + FILES["config.json"]}
    assert {path: (dest / path).read_bytes() for path in files} == files
    assert pod.asked == [METADATA]
    code, printed = run(["fetch", "s3", *where], **metadata)
    assert "already complete" in printed
