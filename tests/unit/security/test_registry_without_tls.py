"""A registry that moves an upload to plain HTTP gets neither the credentials nor the content."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from kaigen.diagnostics.errors import SystemFailure
from kaigen.oci.http import Opener
from kaigen.oci.reference import parse_reference
from kaigen.oci.registry import Registry
from tests.unit.oci.web import Web


class Downgrading:
    """Serves TLS, answers an upload with an `http:` address of the same host, and keeps what comes without TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.plain: list[bytes] = []
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with closing(connection), suppress(OSError):
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        if connection.recv(1, socket.MSG_PEEK) != b"\x16":
            self.plain.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        with self._context.wrap_socket(connection, server_side=True) as secure:
            head = secure.recv(65536)
            if b"Authorization" not in head:
                status = 'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="x"'
            elif head.startswith(b"POST"):
                status = f"HTTP/1.1 202 Accepted\r\nLocation: http://registry.example:{self.port}/upload"
            else:
                status = "HTTP/1.1 404 Not Found"
            secure.sendall(f"{status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Downgrading]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("registry.example").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    find = socket.getaddrinfo

    def local(host: str, *arguments: Any, **options: Any) -> Any:
        return find("127.0.0.1" if host == "registry.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    server = Downgrading(context)
    login = {"auth": "YWRhOmNvcnJlY3QtaG9yc2U="}
    auth = json.dumps({"auths": {f"registry.example:{server.port}": login}})
    (tmp_path / "config.json").write_text(auth)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    yield server
    server.close()


def test_an_upload_does_not_leave_tls(registry: Downgrading) -> None:
    found = Registry(parse_reference(f"oci://registry.example:{registry.port}/charts/qwen", tag=False))
    with pytest.raises(SystemFailure, match="without TLS"):
        found.push_blob(b"content")
    assert registry.plain == []


@pytest.mark.parametrize("text", ["\u00b2", "9" * 5000, "-1", "1e9"])
def test_an_odd_pause_is_no_crash(make_web: Any, text: str) -> None:
    web: Web = make_web()
    web.answer = lambda method, path, auth: (503, {"Retry-After": text}, b"")
    pauses: list[float] = []
    response = Opener(pauses.append, "the registry").send("GET", f"http://{web.host}/", {})
    assert response.status == 503
    assert pauses
    assert max(pauses) <= 20
