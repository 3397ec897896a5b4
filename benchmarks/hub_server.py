"""A Hub for `benchmarks.downloader`: one model of any size, which needs neither disk nor memory of that size.

It sends with sendfile from one block of random bytes, over and over, so that it takes little of the processor. A path
that begins with /capped/ sends each connection a limited number of bytes a second.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPO = "bench/model"
_COMMIT = "c0ffee" + "0" * 34
_BLOCK = (64 << 20) + 4099
_PIECE = 1 << 20


def content(size: int, block: bytes) -> str:
    """Return the sha256 of a file."""
    digest = hashlib.sha256()
    for start in range(0, size, len(block)):
        digest.update(block[: size - start])
    return digest.hexdigest()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    files: dict[str, tuple[int, str]]
    block: int
    rate: int
    cdn: str

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Send the headers of an answer."""
        self.do_GET()

    def do_GET(self) -> None:
        """Send a listing, the redirect of a file, or its bytes."""
        path = self.path.partition("?")[0]
        capped = path.startswith("/capped/")
        path = path.removeprefix("/capped")
        name = path.rpartition("/")[2]
        if path.startswith("/cdn/"):
            self._send(name, capped)
        elif "/resolve/" in path:
            size, sha256 = self.files[name]
            headers = {"X-Repo-Commit": _COMMIT, "X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(size)}
            place = f"{self.cdn}{'/capped' if capped else ''}/cdn/{name}"
            self._reply(302, b"", {**headers, "Location": place, "ETag": f'"{sha256}"'})
        elif "/tree/" in path:
            self._reply(200, json.dumps([self._entry(each) for each in self.files]).encode(), {})
        else:
            siblings = [{"rfilename": each} for each in self.files]
            self._reply(200, json.dumps({"id": REPO, "sha": _COMMIT, "siblings": siblings}).encode(), {})

    def _entry(self, name: str) -> dict[str, Any]:
        size, sha256 = self.files[name]
        lfs = {"oid": sha256, "size": size, "pointerSize": 134}
        return {"type": "file", "path": name, "size": size, "oid": "0" * 40, "lfs": lfs}

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send(self, name: str, capped: bool) -> None:
        size, sha256 = self.files[name]
        first, last = 0, size - 1
        asked = self.headers.get("Range")
        if asked:
            begin, _, end = asked.removeprefix("bytes=").partition("-")
            first, last = int(begin), min(int(end or last), last)
        self.send_response_only(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{sha256}"')
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        if self.command == "HEAD":
            return
        at, start, sent = first, time.monotonic(), 0
        while at <= last:
            place = at % _BLOCK
            count = os.sendfile(self.connection.fileno(), self.block, place, min(_PIECE, last + 1 - at, _BLOCK - place))
            at, sent = at + count, sent + count
            if capped:
                time.sleep(max(0.0, start + sent / self.rate - time.monotonic()))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def main() -> None:
    """Print the port and the sha256 of each file as JSON, then serve until the standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, required=True, help="bytes of all files")
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--rate", type=int, required=True, help="bytes a second of a capped connection")
    options = parser.parse_args()
    data = random.Random(1).randbytes(_BLOCK)
    size = options.size // options.files
    sha256 = content(size, data)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        Handler.block, Handler.rate = file.fileno(), options.rate
        Handler.files = {f"model-{number:05}.safetensors": (size, sha256) for number in range(1, options.files + 1)}
        with _Server(("127.0.0.1", 0), Handler) as hub, _Server(("127.0.0.1", 0), Handler) as cdn:
            Handler.cdn = f"http://127.0.0.1:{cdn.server_port}"
            for server in (hub, cdn):
                threading.Thread(target=server.serve_forever, daemon=True).start()
            facts = {"port": hub.server_port, "files": list(Handler.files), "sha256": sha256}
            print(json.dumps(facts), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
