"""Uploads to a Jupyter server whose connections break, and its address for the browser.

`tests/cluster/test_notebook.py` asks a real one.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from kaigen.diagnostics.errors import SystemFailure
from kaigen.ops.contents import Contents
from kaigen.ops.folder_sync import Base, digest_of, synchronize
from kaigen.ops.open_notebook import Opened, show_address
from tests.unit.ops.test_folder_sync import Files


class Server(ThreadingHTTPServer):
    """The requests of the contents API that kaigen sends. Closes the connection instead of answering a numbered PUT."""

    files: dict[str, bytes]
    closes = 0
    silent: threading.Event | None = None

    def handle_error(self, *_: object) -> None:
        """Print nothing: clients hang up."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        if self.server.silent is not None:
            self.server.silent.wait(60)
        path = unquote(urlsplit(self.path).path).removeprefix("/api/contents/")
        files = self.server.files
        if not path:
            listed = [
                {"path": name, "type": "file", "size": len(data), "last_modified": digest_of(data)}
                for name, data in files.items()
            ]
            self.answer(200, {"content": listed})
        elif path in files:
            text = base64.b64encode(files[path]).decode()
            self.answer(200, {"hash": digest_of(files[path]), "content": text})
        else:
            self.answer(404, {"message": "No such file"})

    def do_PUT(self) -> None:
        path = unquote(urlsplit(self.path).path).removeprefix("/api/contents/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.closes -= 1
        if self.server.closes == 0:
            self.close_connection = True
            return
        before = self.server.files.get(path, b"") if body.get("chunk", 1) != 1 else b""
        self.server.files[path] = before + base64.b64decode(body["content"])
        self.answer(201, {})

    def answer(self, code: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.files = {}
        thread = threading.Thread(target=lambda: running.serve_forever(poll_interval=0.01))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_the_beginning_of_a_broken_upload_is_no_version_of_the_notebook(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaigen.ops.contents._CHUNK", 4)
    base: Base = {"a.bin": digest_of(b"old")}
    local, server.files = Files({"a.bin": b"0123456789"}), {"a.bin": b"old"}
    contents = Contents(server.server_port, "token", lambda: lambda path: False)
    server.closes = 2
    with pytest.raises(SystemFailure, match="does not answer"):
        synchronize(local, contents, base)
    assert server.files == {"a.bin": b"0123"}
    synchronize(local, contents, base)
    assert server.files == local == {"a.bin": b"0123456789"}
    contents.close()


def test_a_request_on_a_connection_that_the_server_closed_is_repeated(server: Server) -> None:
    contents = Contents(server.server_port, "token", lambda: lambda path: False)
    server.closes = 1
    assert contents.write("a b.txt", b"text", None)
    assert not contents.write("a b.txt", b"other", None)
    assert contents.read("a b.txt") == b"text"
    contents.close()


def test_a_server_that_is_silent_at_the_end_is_not_waited_for(server: Server) -> None:
    contents = Contents(server.server_port, "token", lambda: lambda path: False)
    assert contents.digests() == {}
    server.silent = threading.Event()
    contents.wait_at_most(0.2)
    began = time.monotonic()
    with pytest.raises(SystemFailure, match="does not answer: TimeoutError"):
        contents.digests()
    assert time.monotonic() - began < 10
    server.silent.set()
    contents.close()


def test_the_token_is_in_a_private_file_and_not_in_the_arguments_of_the_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    url = Opened(8888, "s3cret").url
    with show_address(url):
        (address,) = opened
        page = Path(unquote(urlsplit(address).path))
        assert "s3cret" not in address
        assert f"url={url}" in page.read_text()
        assert page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()
