"""Put the package and the test helpers on the path, and give each test its own Hub."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from botocore import session

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from api import Api, serving  # noqa: E402
from hub import Hub  # noqa: E402
from kaigen_downloader import text  # noqa: E402
from runs import Runner, content  # noqa: E402

if TYPE_CHECKING:
    from s3 import S3


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)
    # A program runs once in a process; a later test may print what was the token of an earlier one.
    monkeypatch.setattr(text, "_secrets", frozenset())


@pytest.fixture(scope="session", autouse=True)
def _botocore_data() -> Iterator[None]:
    """Let botocore read its data files once, instead of for each of hundreds of clients.

    The clients of one botocore session share them, too. The program makes one session.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "create_loader", cache(session.create_loader))
        yield


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A model of five files: small ones in git, one of a single part, one of sixteen, one empty."""
    with Hub() as server:
        server.add("config.json", b'{"model_type": "llama"}\n')
        server.add("tokenizer/vocab with space.txt", b"a\nb\n")
        server.add("empty", b"")
        server.add("model-00001.safetensors", content(50_000, 1))
        server.add("model-00002.safetensors", content(16 * 65536 - 5, 2))
        yield server


@pytest.fixture
def large(hub: Hub) -> Hub:
    """A model with one file of three parts."""
    hub.add("big.bin", content((11 << 20) + 77, 3))
    return hub


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "model"


@pytest.fixture(scope="session")
def backend() -> Iterator[str]:
    """The address of a server of S3."""
    from s3 import moto

    with moto() as address:
        yield address


@pytest.fixture
def s3(backend: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """An empty bucket, and the credentials for it."""
    from s3 import KEYS, S3

    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with S3(backend) as server:
        yield server


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    mount = tmp_path / "serviceaccount"
    mount.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(mount / "ca.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with serving(mount, context) as api:
        yield api
