"""The downloader with a server of the API of Azure that is not ours: blocks, conditions, ranges, all credentials."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
import shutil
import ssl
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest
import trustme

from benchmarks.environments import node_environment
from runtimes.downloader.tests.blobs import ACCOUNT, KEY, azure
from tests.cluster.bucket_server import run
from tests.cluster.processes import Command, Processes, free_ports, listening

pytestmark = pytest.mark.engine

TOOL = Path(__file__).parent / "tools" / "azurite"
BIG = (11 << 20) + 77
"""Bytes of a file of three blocks."""
FILES = {
    "model.safetensors": random.Random(3).randbytes(BIG),
    "config.json": b"{}",
    "a folder/with+signs ~(1)%2f.txt": b"a\nb\n",
    "empty": b"",
}
VERSION = "2023-11-03"


@dataclass(frozen=True)
class Server:
    """Azurite with the empty container `models`.

    Attributes:
        url: of the account.
        authority: file with the certificate of its authority.
    """

    url: str
    authority: str

    def where(self, prefix: str) -> str:
        """Return the URI of a folder."""
        return f"az://{ACCOUNT}/models/{prefix}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("azurite")
    programs = node_environment("azurite", TOOL / "package.json", TOOL / "package-lock.json")
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    (port,) = free_ports(1)
    main = programs / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    argv = [
        shutil.which("node") or "node",
        str(main),
        "--inMemoryPersistence",
        "--disableTelemetry",
        "--oauth",
        "basic",
    ]
    argv += ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent"]
    argv += ["--cert", str(folder / "cert.pem"), "--key", str(folder / "key.pem")]
    (folder / "processes").mkdir()
    processes = Processes(folder / "processes", folder / "scratch")
    try:
        processes.start(Command("azurite", argv, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}))
        processes.wait_until(partial(listening, port, "127.0.0.1"), "the server listens")
        made = Server(f"https://127.0.0.1:{port}/{ACCOUNT}", str(folder / "ca.pem"))
        query = {"restype": "container", **signature()}
        request = urllib.request.Request(f"{made.url}/models?{urlencode(query)}", method="PUT")
        request.add_header("x-ms-version", VERSION)
        context = ssl.create_default_context(cafile=made.authority)
        urllib.request.urlopen(request, context=context).close()
        yield made
    finally:
        processes.close()


def signature() -> dict[str, str]:
    """Return an account SAS that is valid for an hour (source: Azure Storage, create an account SAS)."""
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    own = {"sp": "rwdlac", "ss": "b", "srt": "co", "st": "", "se": end, "sip": "", "spr": "", "sv": VERSION, "ses": ""}
    text = "\n".join([ACCOUNT, *own.values(), ""])
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return {name: value for name, value in own.items() if value} | {"sig": base64.b64encode(digest).decode()}


def token(seconds: float) -> str:
    """Return a token that Azurite accepts for so long; it does not verify who signed it."""
    now = int(time.time())
    claims = {"iss": "https://sts.windows.net/tenant/", "aud": "https://storage.azure.com", "iat": now, "nbf": now - 60}
    parts: list[dict[str, object]] = [{"alg": "none", "typ": "JWT"}, {**claims, "exp": now + int(seconds)}, {}]
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


def test_a_folder_is_stored_and_read_with_each_kind_of_credentials(server: Server, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for path, data in FILES.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(data)
    with azure(tmp_path) as (tokens, identity):
        # The first token has expired, whatever its server says.
        tokens.issue = lambda number: token(-5 if number == 0 else 600)
        kinds = {"key": {"AZURE_STORAGE_KEY": KEY}, "sas": {"AZURE_STORAGE_SAS_TOKEN": urlencode(signature())}}
        for name, variables in {**kinds, "identity": identity}.items():
            given = {**variables, "SSL_CERT_FILE": server.authority}
            to = ["--dest", server.where(name), "--s3-endpoint", server.url, "--identity", "1d" * 16]
            code, printed = run(["put", str(source), *to, "--part-size", "5Mi"], **given)
            assert code == 0, printed
            code, printed = run(["put", str(source), *to], **given)
            assert "already complete" in printed
            dest = tmp_path / name
            where = ["--uri", server.where(name), "--endpoint", server.url, "--dest", str(dest)]
            code, printed = run(["fetch", "s3", *where, "--identity", "2e" * 16, "--part-size", "256Ki"], **given)
            assert code == 0, printed
            assert "every checksum right" in printed
            assert {path: (dest / path).read_bytes() for path in FILES} == FILES
            assert KEY not in printed
        assert len(tokens.issued) > 1
    other = ["put", str(source), "--dest", server.where("key"), "--s3-endpoint", server.url, "--identity", "3f" * 16]
    wrong = base64.b64encode(b"another key").decode()
    code, printed = run(other, AZURE_STORAGE_KEY=wrong, SSL_CERT_FILE=server.authority)
    assert (code, "rejects the credentials" in printed) == (10, True), printed
