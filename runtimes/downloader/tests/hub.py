"""A Hub on loopback: the API, the files, and a CDN on a port of its own, with faults to order.

It speaks the protocol that the real one does towards huggingface_hub: typed errors, paging by `Link`,
`X-Repo-Commit`, a redirect to a signed URL, ranges.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
REPO = "owner/name"


@dataclass(frozen=True)
class Seen:
    """A request as the server got it."""

    server: str
    path: str
    query: str
    range: str
    authorization: str | None


@dataclass
class Stored:
    """A file of the repository; `lfs` files go to the CDN and have a sha256."""

    data: bytes
    lfs: bool
    listed_size: int | None = None
    listed_oid: str | None = None

    def entry(self, path: str) -> dict[str, object]:
        """As in the listing."""
        size = len(self.data) if self.listed_size is None else self.listed_size
        blob = hashlib.sha1(b"blob %d\0" % len(self.data) + self.data).hexdigest()
        entry: dict[str, object] = {"type": "file", "path": path, "size": size, "oid": blob}
        if self.lfs:
            oid = self.listed_oid or hashlib.sha256(self.data).hexdigest()
            entry["lfs"] = {"oid": oid, "size": size, "pointerSize": 134}
        elif self.listed_oid:
            entry["oid"] = self.listed_oid
        return entry


class _Server(ThreadingHTTPServer):
    """Is silent about clients that went away: tests read what is printed."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@dataclass
class Count:
    """Bytes of file content that some connections carried."""

    bytes: int = 0


# Looks at a request before it is served. Returns whether it answered it itself.
Fault = Callable[["Handler"], bool]


@dataclass
class Hub:
    """The server. Change its fields while it runs."""

    files: dict[str, Stored] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT, COMMIT: COMMIT})
    commits: dict[str, dict[str, Stored]] = field(default_factory=dict)  # files of commits that have their own
    card: dict[str, object] = field(default_factory=dict)  # metadata of the model card
    repo: str = REPO
    token: str | None = None
    gated: bool = False
    page: int = 1000
    cdn: bool = True
    ranges: bool = True
    etag: str | None = None  # of every file
    rate: float | None = None  # bytes a second of one connection
    faults: list[Fault] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    count: Count = field(default_factory=Count)
    signature: str = "sig-1"
    tls: ssl.SSLContext | None = None  # for the Hub itself
    next_page_at: str = ""  # the origin that `Link` names
    host: str = "127.0.0.1"  # the address of both servers
    name: str = ""  # by which clients know that address
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Hub:
        self._servers = []
        for name in ("hub", "cdn"):
            server = _Server((self.host, 0), type("Bound", (Handler,), {"hub": self, "name": name}))
            if self.tls is not None and name == "hub":
                server.socket = self.tls.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            self._servers.append(server)
        hub, cdn = (f"//{self.name or self.host}:{server.server_port}" for server in self._servers)
        self.url, self.cdn_url = ("https:" if self.tls else "http:") + hub, "http:" + cdn
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def sent(self) -> int:
        """Bytes of file content over connections that were opened since it was last set.

        A client that was killed may have sent its next request already, and is still answered.
        """
        return self.count.bytes

    @sent.setter
    def sent(self, count: int) -> None:
        self.count = Count(count)

    def add(self, path: str, data: bytes, *, lfs: bool | None = None) -> Stored:
        """Puts a file into the repository; large ones go to large-file storage."""
        self.files[path] = Stored(data, len(data) > 1000 if lfs is None else lfs)
        return self.files[path]

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Moves a branch to a new commit with these files, and returns the commit."""
        stored = {path: Stored(data, path.endswith(".safetensors")) for path, data in files.items()}
        listing = "".join(f"{path} {stored[path].entry(path)['oid']}\n" for path in sorted(stored))
        commit = hashlib.sha1(f"{len(self.commits)}\n{listing}".encode()).hexdigest()
        self.commits[commit] = stored
        self.revisions |= {branch: commit, commit: commit}
        return commit

    def at(self, revision: str) -> dict[str, Stored]:
        """The files of a branch or commit."""
        return self.commits.get(self.revisions.get(revision, revision), self.files)

    def info(self, revision: str, blobs: bool) -> dict[str, object]:
        """What the API says about a branch or commit."""
        listed = [stored.entry(path) for path, stored in self.at(revision).items()]
        siblings = [{"rfilename": each["path"]} for each in listed]
        if blobs:
            for sibling, each in zip(siblings, listed, strict=True):
                sibling |= {"blobId": each["oid"], "size": each["size"]}
                if "lfs" in each:
                    lfs = each["lfs"]
                    assert isinstance(lfs, dict)
                    sibling["lfs"] = {"sha256": lfs["oid"], "size": lfs["size"], "pointerSize": lfs["pointerSize"]}
        return {
            "id": self.repo,
            "sha": self.revisions[revision],
            "gated": "manual" if self.gated else False,
            "cardData": self.card,
            "siblings": siblings,
        }

    def requests(self, server: str, part: str = "") -> list[Seen]:
        """What one of the two servers was asked, as far as `part` is in the path."""
        return [seen for seen in list(self.seen) if seen.server == server and part in seen.path]

    def fail(self, times: int, where: str, answer: Callable[[Handler], None], part: str = "") -> None:
        """Orders a fault for the next requests to `hub` or `cdn` with `part` in their path."""
        left = [times]

        def fault(handler: Handler) -> bool:
            with self.lock:
                if handler.name != where or part not in handler.path or not left[0]:
                    return False
                left[0] -= 1
            answer(handler)
            return True

        self.faults.append(fault)


def status(code: int, **headers: str) -> Callable[[Handler], None]:
    """A fault that answers with a status; `Retry_After="1"` becomes a header."""
    return lambda handler: handler.reply(
        code, b"busy", {name.replace("_", "-"): value for name, value in headers.items()}
    )


def cut(after: int) -> Callable[[Handler], None]:
    """A fault that closes the connection after some bytes of the body."""
    return lambda handler: handler.content(limit=after)


def stall(after: int, seconds: float) -> Callable[[Handler], None]:
    """A fault that stops in the middle of the body."""

    def answer(handler: Handler) -> None:
        handler.content(limit=after, pause=seconds)

    return answer


def corrupt(handler: Handler) -> None:
    """A fault that changes one byte."""
    handler.content(change=True)


class Handler(BaseHTTPRequestHandler):
    """One request to either server."""

    hub: Hub
    name: str
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def setup(self) -> None:
        """Set a timeout, and where the bytes of this connection count."""
        super().setup()
        self.count = self.hub.count
        self.request.settimeout(20)

    def do_GET(self) -> None:
        """Notes the request, and serves it unless a fault does."""
        if self.path.startswith("http://"):  # asked as a proxy
            parts = urlsplit(self.path)
            self.path = parts.path + (f"?{parts.query}" if parts.query else "")
        path, _, query = self.path.partition("?")
        headers = self.headers
        with self.hub.lock:
            self.hub.seen.append(
                Seen(self.name, unquote(path), query, headers.get("Range", ""), headers.get("Authorization"))
            )
        try:
            if not any(fault(self) for fault in list(self.hub.faults)):
                self.content() if self.name == "cdn" else self.api(unquote(path), query)
        except OSError:
            self.close_connection = True

    def reply(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Sends a whole answer."""
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def json(self, document: object, headers: dict[str, str] | None = None) -> None:
        """Sends a document."""
        self.reply(200, json.dumps(document).encode(), {"Content-Type": "application/json"} | (headers or {}))

    def api(self, path: str, query: str) -> None:
        """Serves what the Hub itself does."""
        hub = self.hub
        allowed = hub.token is None or self.headers.get("Authorization") == f"Bearer {hub.token}"
        if not allowed and not hub.gated:
            return self.reply(401, b"", {"X-Error-Code": "RepoNotFound"})
        base = f"/api/{hub.repo if hub.repo.startswith('datasets/') else f'models/{hub.repo}'}/"
        if path.startswith(base + "revision/"):
            revision = path.removeprefix(base + "revision/")
            if revision not in hub.revisions:
                return self.reply(404, b"", {"X-Error-Code": "RevisionNotFound"})
            return self.json(hub.info(revision, "blobs" in parse_qs(query)))
        if path.startswith(base + "tree/"):
            files = hub.at(path.removeprefix(base + "tree/"))
            entries = [stored.entry(name) for name, stored in files.items()]
            entries.insert(0, {"type": "directory", "path": "folder", "oid": "0" * 40, "size": 0})
            start = int(parse_qs(query).get("cursor", ["0"])[0])
            link = f'<{hub.next_page_at or hub.url}{path}?cursor={start + hub.page}>; rel="next"'
            more = {"Link": link} if start + hub.page < len(entries) else {}
            return self.json(entries[start : start + hub.page], more)
        if path.startswith(f"/{hub.repo}/resolve/"):
            if not allowed:
                return self.reply(401, b"", {"X-Error-Code": "GatedRepo"})
            revision, name = path.removeprefix(f"/{hub.repo}/resolve/").split("/", 1)
            files = hub.at(revision)
            if name not in files:
                return self.reply(404, b"", {"X-Error-Code": "EntryNotFound"})
            if hub.cdn and files[name].lfs:
                place = f"{revision}/{name}" if revision in hub.commits else name
                target = f"{hub.cdn_url}/{place}?X-Amz-Signature={hub.signature}"
                return self.reply(302, b"", {"Location": target, "X-Repo-Commit": COMMIT})
            return self.content()
        return self.reply(404, b"", {"X-Error-Code": "RepoNotFound"})

    def content(self, limit: int | None = None, pause: float = 0, change: bool = False) -> None:
        """Serves the file, or the part of it that is asked for."""
        hub = self.hub
        parts = urlsplit(self.path)
        if self.name == "cdn" and parts.query != f"X-Amz-Signature={hub.signature}":
            return self.reply(403, b"expired")
        path = unquote(parts.path)
        name = path[1:] if self.name == "cdn" else path.split("/resolve/", 1)[1]
        revision, _, rest = name.partition("/")
        if self.name != "cdn" or revision in hub.commits:
            data = memoryview(hub.at(revision)[rest].data)
        else:
            data = memoryview(hub.files[name].data)
        asked = self.headers.get("Range")
        first, last = 0, len(data) - 1
        if asked and hub.ranges:
            begin, until = asked.removeprefix("bytes=").split("-")
            first, last = int(begin), min(int(until), last)
            if first > last:
                return self.reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        else:
            self.send_response(200)
        body = data[first : last + 1]
        if hub.etag is not None:
            self.send_header("ETag", hub.etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if change:
            body = memoryview(bytes([body[0] ^ 1]) + bytes(body[1:]))
        step = 1 << 16
        end = len(body) if limit is None else min(limit, len(body))
        for offset in range(0, end, step):
            piece = body[offset : min(offset + step, end)]
            with hub.lock:  # before the client has it: it may end, and the test read the sum, at once
                self.count.bytes += len(piece)
            self.wfile.write(piece)
            if hub.rate:
                time.sleep(len(piece) / hub.rate)
        if limit is not None:
            time.sleep(pause)
            self.close_connection = True
        return None
