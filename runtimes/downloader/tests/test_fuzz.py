"""Servers that answer with anything: whatever they send, a download ends in time, in a few lines, without a traceback.

`make fuzz` runs this for as long as it is asked to, with new examples.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from kaigen_downloader.cli import main
from kaigen_downloader.errors import Failure
from kaigen_downloader.names import is_state
from kaigen_downloader.retry import Patience, Retry
from kaigen_downloader.s3 import Client, address
from runs import ID
from signer import SIGNED_BY

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "sha256:" + "ab" * 32
MOST_BYTES = 2 << 30
"""Address space that downloads may add. Most of it is that of threads; an answer has a limit of 8 MiB."""
MOST_SECONDS = 60
"""Time of a download whose reads time out after 0.2 s, on a busy machine."""
EXAMPLES = int(os.environ.get("KAIGEN_FUZZ_EXAMPLES", "4"))
SPEED = ("--speed-limit", "1Ki", "--speed-time", "0.5s")
OPTIONS = ("--identity", ID, "--part-size", "64Ki", "--timeout", "0.2s", *SPEED)
ENVIRONMENT = {
    "KAIGEN_ATTEMPTS": "2",
    "KAIGEN_BACKOFF": "0.01",
    "HF_TOKEN": "hf_secret",
    "SOURCE_AWS_ACCESS_KEY_ID": "key",
    "SOURCE_AWS_SECRET_ACCESS_KEY": "s3_secret",
}
ENDS = (10, 11, 12, 13, 20, 21, 22, 23)
"""Exit codes of a download that fails."""


@dataclass(frozen=True, repr=False)
class Reply:
    """Bytes that a server sends, and what comes after them: nothing, an end, a pause, many bytes, or few of them."""

    content: bytes
    ending: str

    def __repr__(self) -> str:
        return f"Reply({self.content[:500]!r}, {self.ending!r})"


class Server:
    """Answers each request with the next of its replies, and with the last one from then on."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = replies
        self._asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.connections: list[tuple[socket.socket, threading.Thread]] = []
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def serve(self) -> None:
        """Accept connections until the server is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
                self.connections.append((connection, thread))
                thread.start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while self._request(connection):
                with self._lock:
                    reply = self._replies[min(self._asked, len(self._replies) - 1)]
                    self._asked += 1
                connection.sendall(reply.content.replace(b"HOST", self.host.encode()))
                if reply.ending == "stall":
                    self._ended.wait(MOST_SECONDS)
                elif reply.ending == "endless":
                    while not self._ended.is_set():
                        connection.sendall(b"0" * 65536)
                elif reply.ending == "continue":
                    while not self._ended.is_set():
                        connection.sendall(b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" * 1000)
                elif reply.ending == "drip":
                    while not self._ended.wait(0.05):
                        connection.sendall(b"0")
                elif reply.ending == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if reply.ending != "keep":
                    return

    @staticmethod
    def _request(connection: socket.socket) -> bool:
        """Read a request without a body; return whether there was one."""
        connection.settimeout(MOST_SECONDS)
        head = b""
        while b"\r\n\r\n" not in head:
            data = connection.recv(65536)
            if not data:
                return False
            head += data
        return True

    def stop(self) -> None:
        """Accept no more connections."""
        self._socket.shutdown(socket.SHUT_RDWR)  # closing it would not end the call that waits for one
        self._socket.close()

    def close(self) -> None:
        """End every connection, and the threads: each has megabytes of the address space."""
        self._ended.set()
        for connection, thread in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(MOST_SECONDS)


@contextmanager
def serving(replies: Sequence[Reply]) -> Iterator[Server]:
    """A server that runs during the block."""
    server = Server(replies)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(MOST_SECONDS)
        server.close()


ODD = st.sampled_from(
    [
        *("", "0", "-1", "1", "16", "9" * 30, "1e9", "\u00b2", "NaN", "nan", "inf", "null", "*", "/", "..", "\x7f"),
        *("bytes 0-0/1", "bytes 0-15/16", "bytes 5-1/16", "bytes */16", "bytes 0-65535/99999999999", "bytes=0-1"),
        *("http://HOST/x", "http://HOST/", "https://HOST/", "//HOST", "/loop", "http://[::1", "file:///etc/passwd"),
        *("ftp://HOST/", "http://u:p@HOST/", "javascript:1", '<http://HOST/n?>; rel="next"', "<>; rel=next"),
        *(
            'Bearer realm="http://HOST/token",service="x"',
            "Bearer",
            "Basic",
            'Bearer realm="',
            'Bearer realm="HTTP://HOST/token?x=1#y"',
            "http://a b/",
            "\x1b[2J",
            "chunked",
            "gzip",
        ),
        *("identity", "close", "keep-alive", DIGEST, "sha256:" + "0" * 64, "sha256:../x", COMMIT, '"etag"', "W/x"),
        *("Thu, 01 Jan 1970 00:00:00 GMT", "application/json", "text/html", "a" * 70_000, "t=\u0663"),
        *("application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"),
    ]
)
HEADERS = st.sampled_from(
    [
        *("Content-Length", "Content-Range", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Connection"),
        *("Location", "Retry-After", "RateLimit", "ETag", "Link", "Last-Modified", "WWW-Authenticate", "Accept-Ranges"),
        *("X-Repo-Commit", "X-Linked-Size", "X-Linked-ETag", "Docker-Content-Digest", "OCI-Chunk-Min-Length"),
        *("x-amz-version-id", "x-amz-checksum-sha256", "x-amz-meta-sha256", "x-amz-bucket-region", "Date"),
    ]
)
NAMES = st.sampled_from(
    [
        "a",
        "config.json",
        "../x",
        "/x",
        "a/../b",
        "",
        "a\\b",
        "x\ny",
        ".kaigen/model.json",
        ".KAIGEN/owned.json",
        "\uff0ekaigen./owned.json",
        "KAIGEN~1/model.json",
        "A",
        "CONFIG.json",
        "model.sig",
        "a" * 5000,
        "a/" * 5000 + "a",
        "a\x1b[2J",
        "\ud800",
        "a//b",
    ]
)
NUMBERS: st.SearchStrategy[object] = st.sampled_from(
    [0, 1, 16, -1, 10**13, 10**30, 10**400, 1.5, float("inf"), None, "16", True, [], {}]
)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), NAMES)
JSON = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
SHA256 = st.sampled_from(["ab" * 32, DIGEST, "", None, 5, "zz" * 32])


def one_of(valid: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Return a strategy of mostly valid values."""
    return valid | valid | valid | JSON


HUB_FILES = st.lists(
    one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["file", "directory", 3]), "path": NAMES, "size": NUMBERS, "oid": SHA256},
            optional={"lfs": one_of(st.fixed_dictionaries({"oid": SHA256, "size": NUMBERS, "pointerSize": NUMBERS}))},
        )
    ),
    max_size=3,
)
HUB_MODEL = st.fixed_dictionaries(
    {"id": one_of(st.just("org/model")), "sha": one_of(st.just(COMMIT)), "siblings": one_of(HUB_FILES)},
    optional={"rfilename": NAMES, "gated": PLAIN, "private": PLAIN, "tags": JSON, "cardData": JSON},
)
LAYERS = st.lists(
    one_of(
        st.fixed_dictionaries(
            {"mediaType": ODD, "digest": one_of(st.just(DIGEST)), "size": NUMBERS},
            optional={"annotations": one_of(st.fixed_dictionaries({"org.opencontainers.image.title": NAMES}))},
        )
    ),
    max_size=3,
)
MANIFEST = st.fixed_dictionaries(
    {"schemaVersion": NUMBERS, "layers": one_of(LAYERS), "config": one_of(st.just({"digest": DIGEST, "size": 2}))},
    optional={"mediaType": ODD, "manifests": one_of(LAYERS), "token": PLAIN, "access_token": PLAIN},
)
LISTING = st.builds(
    lambda name, size, more, tail: (
        '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Contents><Key>{name}</Key><Size>{size}</Size><ETag>x</ETag></Contents>"
        f"<IsTruncated>{more}</IsTruncated><NextContinuationToken>{name}</NextContinuationToken>{tail}"
    ),
    NAMES,
    NUMBERS,
    st.sampled_from(["true", "false", "maybe"]),
    st.sampled_from(["</ListBucketResult>", "", "<!DOCTYPE x [<!ENTITY a 'b'>]>&a;", "<x>" * 2000]),
)
TEXT = st.one_of(
    st.one_of(HUB_MODEL, HUB_FILES, MANIFEST, JSON).map(json.dumps),
    LISTING,
    st.sampled_from(["[" * 100_000, '{"a":' * 50_000, "9" * 5000, "\x1f\x8b\x08", "<", "{}", "[]", "null", ""]),
)
BODY = TEXT.map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=64)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Draw a reply."""
    if draw(st.integers(0, 19)) == 0:
        return Reply(
            draw(st.binary(max_size=64)), draw(st.sampled_from(["close", "reset", "endless", "drip", "continue"]))
        )
    codes = [200, 200, 200, 200, 206, 206, 204, 301, 302, 304, 307, 401, 403, 404, 409, 416, 429, 500, 503, 99, 1000]
    code, body = draw(st.sampled_from(codes)), draw(BODY)
    headers = draw(st.dictionaries(HEADERS, ODD, max_size=4))
    if draw(st.integers(0, 4)):
        headers |= {"Content-Length": str(len(body))}
    head = f"HTTP/1.1 {code} Odd\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    endings = ["keep", "keep", "keep", "close", "close", "reset", "stall", "endless", "drip"]
    ending = draw(st.sampled_from(endings))
    return Reply(head.encode("utf-8", "replace") + b"\r\n" + body, ending)


@pytest.fixture(scope="module", autouse=True)
def _little_memory() -> Iterator[None]:
    """A download without a limit fails the test, and not the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


SOURCES = {
    "hub": ("huggingface", "--repo", "org/model", "--endpoint", "http://HOST"),
    "pinned hub": ("huggingface", "--repo", "org/model", "--revision", COMMIT, "--endpoint", "http://HOST"),
    "signed hub": ("huggingface", "--repo", "org/model", "--endpoint", "http://HOST", SIGNED_BY),
    "http": ("http", "--file", "a=http://HOST/a", "--file", "b=http://HOST/b", "--sha256", "a=" + "ab" * 32),
    "s3": ("s3", "--uri", "s3://models/a", "--region", "us-east-1", "--endpoint", "http://HOST"),
    "oci": ("oci", "--ref", "HOST/model:1", "--plain-http"),
    "signed oci": ("oci", "--ref", "HOST/model:1", "--plain-http", SIGNED_BY),
    "pinned oci": ("oci", "--ref", f"HOST/model@{DIGEST}", "--plain-http"),
}


@pytest.mark.parametrize("source", SOURCES)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    # To make an example smaller takes minutes: each attempt is a download.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(given_replies=st.lists(replies(), min_size=1, max_size=5))
@example(given_replies=[Reply(b"", "stall")])
@example(given_replies=[Reply(b"HTTP/1.1 200 OK\r\nX: ", "endless")])
@example(given_replies=[Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "endless")])
@example(given_replies=[Reply(b"HTTP/1.1 200 OK\r\n\r\n", "endless")])
@example(given_replies=[Reply(b"", "drip")])
@example(given_replies=[Reply(b"", "continue")])
@example(given_replies=[Reply(b"HTTP/1.1 200 OK\r\nX: ", "drip")])
@example(given_replies=[Reply(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", "drip")])
@example(given_replies=[Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "drip")])
@example(given_replies=[Reply(b"HTTP/1.1 403 No\r\nContent-Length: 9999\r\n\r\n", "drip")])
@example(given_replies=[Reply(b"HTTP/1.1 307 Go\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n", "keep")])
def test_any_server_ends_a_download_in_time_and_in_a_few_lines(source: str, given_replies: list[Reply]) -> None:
    err = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(given_replies) as server,
        contextlib.redirect_stderr(err),
        contextlib.redirect_stdout(err),
    ):
        where = [word.replace("HOST", server.host) for word in SOURCES[source]]
        begin = time.monotonic()
        code = main(["fetch", *where, "--dest", f"{folder}/model", *OPTIONS], ENVIRONMENT)
        seconds = time.monotonic() - begin
        owned = Path(folder, "model", ".kaigen", "owned.json")
        stored = {path.name for path in Path(folder, "model").glob("*") if path.name != ".kaigen"}
        is_ours = not owned.exists() or isinstance(json.loads(owned.read_bytes()), list)
        outside = [path.name for path in Path(folder).iterdir() if path.name != "model"]
    text = err.getvalue()
    assert code == 0 or code in ENDS, text
    assert "Traceback" not in text
    assert "_secret" not in text
    assert "\x1b" not in text
    assert text.count("\n") < 60, text
    assert outside == []
    assert is_ours
    assert not any(map(is_state, stored)), stored
    assert seconds < MOST_SECONDS, text


def bucket_of(server: Server) -> Client:
    """Return a client of a bucket."""
    retry = Retry(Patience(), threading.Event())
    where = address("s3://models/a", f"http://{server.host}", "us-east-1")
    return Client(where, retry, timeout=5, connections=1, keys=("key", "s3_secret"))


@pytest.mark.parametrize("location", ["/x", "http://[::1", "t=\u0663"])
def test_a_redirect_of_a_bucket_is_reported_whatever_its_address(location: str) -> None:
    reply = Reply(f"HTTP/1.1 301 Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode(), "keep")
    with serving([reply]) as server:
        client = bucket_of(server)
        for _ in range(2):
            with pytest.raises(Failure, match=r"redirects to .* \(301\): set the right --s3-endpoint"):
                client.once("GetObject", "a")
        assert len(server.connections) == 1


@pytest.mark.parametrize("status", ["300 Multiple Choices", "403 Forbidden", "404 Not Found", "500 Error"])
def test_an_endless_error_in_place_of_an_object_is_not_kept_in_memory(status: str) -> None:
    endless = Reply(f"HTTP/1.1 {status}\r\n\r\n<Error>".encode(), "endless")
    with serving([endless]) as server:
        client = bucket_of(server)
        with pytest.raises(Failure, match=r"the answer is larger than 8.0 MiB"):
            client.once("GetObject", "a")
