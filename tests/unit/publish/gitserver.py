"""A real Git server over HTTP with a password: `git http-backend` behind a small server on loopback."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

USER = "ada"
PASSWORD = "correct-horse"


class _Handler(BaseHTTPRequestHandler):
    """Passes a request to the CGI program that comes with Git (RFC 3875)."""

    protocol_version = "HTTP/1.1"
    root: ClassVar[Path]
    asked: ClassVar[list[str]]

    def do_GET(self) -> None:
        """Start a clone or fetch."""
        self._serve()

    def do_POST(self) -> None:
        """Send or receive objects."""
        self._serve()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().strip(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _serve(self) -> None:
        body = self._body()
        path, _, query = self.path.partition("?")
        self.asked.append(f"{self.command} {self.path}")
        wanted = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if (scheme.lower(), given) != ("basic", wanted):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "REMOTE_USER": USER,
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.partition(": ")[::2] for line in head.decode().split("\r\n") if line]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        self.send_response(status)
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that were killed."""


class GitServer:
    """Bare repositories in a folder, served at `url`.

    Attributes:
        folder: where they are.
        asked: every request, as `METHOD PATH`.
    """

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        self.folder = folder
        self._host = host
        self.asked: list[str] = []
        handler = type("Handler", (_Handler,), {"root": folder, "asked": self.asked})
        self._server = _Server((host, 0), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self._server.server_address[1])

    def url(self, name: str, *, user: str = USER, password: str = PASSWORD) -> str:
        """Return the URL of a repository, with credentials unless `user` is empty."""
        return f"http://{f'{user}:{password}@' if user else ''}{self._host}:{self.port}/{name}.git"

    def make(self, name: str = "deploy") -> Bare:
        """Create an empty repository that accepts pushes."""
        path = self.folder / f"{name}.git"
        git(self.folder, "init", "--quiet", "--bare", "--initial-branch=main", str(path))
        git(path, "config", "http.receivepack", "true")
        return Bare(path)

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


def log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the user's Git the password of the server."""
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "http.extraHeader")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"Authorization: Basic {auth}")


class Bare:
    """A bare repository, seen from the server."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str) -> str:
        """Return the output of git in the repository."""
        return git(self.path, *arguments)

    def hook(self, name: str, script: str) -> None:
        """Install a hook."""
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def branches(self) -> dict[str, str]:
        """Return the commit of each branch."""
        listed = self.git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads")
        return dict(line.split(" ") for line in listed.splitlines())

    def files(self, branch: str = "deploy") -> dict[str, str]:
        """Return every file of a branch."""
        names = self.git("ls-tree", "-r", "-z", "--name-only", branch).split("\0")
        return {name: self.git("cat-file", "blob", f"{branch}:{name}") for name in names if name}

    def message(self, branch: str = "deploy") -> str:
        """Return the message of a branch's tip."""
        return self.git("log", "-1", "--format=%B", branch)

    def commits(self, branch: str = "deploy") -> list[str]:
        """Return the commit subjects, newest first."""
        return self.git("log", "--format=%s", branch).splitlines()


def git(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run git, which must succeed, and return its output."""
    fixed = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **fixed, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout


@contextmanager
def serving(folder: Path) -> Iterator[GitServer]:
    """A server for the length of a `with`."""
    server = GitServer(folder)
    try:
        yield server
    finally:
        server.close()
