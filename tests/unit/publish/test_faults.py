"""`kaigen publish` reports remotes and registries that are missing, broken or silent in one line."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kaigen.cli.main import run
from tests.unit.publish.clones import Clone


class Broken(BaseHTTPRequestHandler):
    """Answers every request with 503."""

    def do_GET(self) -> None:
        """Answer 503."""
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_POST = do_PUT = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def broken() -> Iterator[str]:
    """Host and port of a server that always answers 503."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Host and port of a server that accepts connections and never answers."""
    monkeypatch.setattr("kaigen.git.remote.STALL_LIMIT_S", 1)
    monkeypatch.setattr("kaigen.oci.http.TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def unreachable() -> str:
    """A port with no listener."""
    return "127.0.0.1:1"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("unreachable", "cannot reach http://127.0.0.1:1/x.git"),
        ("silent", "/x.git"),
        ("broken", "/x.git: unable to access"),
    ],
)
def test_a_failing_git_server_is_reported_in_one_line(
    clone: Clone,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    place: str,
    words: str,
) -> None:
    monkeypatch.chdir(clone.folder)
    remote = f"http://{request.getfixturevalue(place)}/x.git"
    assert run(["publish", "--remote", remote]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    first, *rest = printed.err.splitlines()
    assert first.startswith("error: ")
    assert words in first
    assert len(rest) <= 1
    assert all(line.startswith("  = hint: ") for line in rest)


@pytest.mark.parametrize("place", ["unreachable", "silent", "broken"])
def test_a_failing_registry_is_reported_in_one_line(
    clone: Clone,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    place: str,
) -> None:
    monkeypatch.chdir(clone.folder)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    host = request.getfixturevalue(place)
    assert run(["publish", "--charts", f"oci://{host}/charts"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.match(rf"error: (cannot reach )?the registry {re.escape(host)}\b", printed.err)
    assert len(printed.err.splitlines()) == 1
