"""`find-image`: what a registry answers, and what is written."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from kaigen_downloader.cli import main

MANIFEST = b'{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []}'
LOGIN = "builder:a-password"
FAST = {"KAIGEN_ATTEMPTS": "3", "KAIGEN_BACKOFF": "0.01"}


class Server(ThreadingHTTPServer):
    """A registry with `acme/train:1`, which gives tokens to one user, and fails as often as `failures` says."""

    daemon_threads = True
    failures = 0
    hides = False

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.server.failures:
            self.server.failures -= 1
            return self.reply(503)
        login = self.headers.get("Authorization", "")
        if self.path.startswith("/token"):
            known = login == f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
            return self.reply(
                200 if known else 401, json.dumps({"token": "a-short-lived-token"}).encode() if known else b""
            )
        if login != "Bearer a-short-lived-token":
            realm = f'Bearer realm="http://{self.server.host}/token",service="test"'
            return self.reply(401, b"", {"WWW-Authenticate": realm})
        found = self.path == "/v2/acme/train/manifests/1"
        return self.reply((200 if found else 404) if not self.server.hides else 403, MANIFEST if found else b"")

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def find(server: Server, file: Path, tag: str = "1", login: str = LOGIN) -> int:
    """Run the command, with the credentials of a Secret."""
    auth = base64.b64encode(login.encode()).decode()
    env = {**FAST, "REGISTRY_AUTH": json.dumps({"auths": {server.host: {"auth": auth}}})} if login else FAST
    return main(["find-image", f"--ref={server.host}/acme/train:{tag}", f"--write={file}", "--plain-http"], env)


def test_digest_is_written(server: Server, tmp_path: Path) -> None:
    assert find(server, tmp_path / "found") == 0
    assert (tmp_path / "found").read_text() == f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}\n"


@pytest.mark.parametrize(("tag", "login"), [("2", LOGIN), ("1", "builder:wrong"), ("1", "")])
def test_nothing_is_written_for_an_image_that_is_not_shown(
    server: Server, tmp_path: Path, tag: str, login: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert find(server, tmp_path / "found", tag, login) == 0
    assert not (tmp_path / "found").exists()
    printed = capsys.readouterr().err
    assert printed.startswith("not found: ")
    assert "a-password" not in printed


def test_registry_that_hides_what_a_user_may_not_see_counts_as_one_without_it(server: Server, tmp_path: Path) -> None:
    server.hides = True
    assert find(server, tmp_path / "found") == 0
    assert not (tmp_path / "found").exists()


def test_registry_that_fails_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.failures = 2
    assert find(server, tmp_path / "found") == 0
    assert (tmp_path / "found").exists()


def test_registry_that_cannot_be_reached_is_no_registry_without_the_image(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.failures = 100
    assert find(server, tmp_path / "found") == 20
    assert not (tmp_path / "found").exists()


def test_invalid_reference_and_missing_folder_are_reported_in_a_line(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["find-image", "--ref=https://a/b", "--write=x"], {}) == 13
    assert find(server, tmp_path / "missing" / "found") == 20
    assert "Traceback" not in capsys.readouterr().err
