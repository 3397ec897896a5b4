"""An S3 server on loopback: moto's, behind a proxy of ours that faults are ordered from."""

from __future__ import annotations

import base64
import contextlib
import functools
import http.client
import re
import ssl
import sys
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.loaders import JSONFileLoader

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@functools.cache
def _client(backend: str) -> Any:
    """Looks at the server directly."""
    return boto3.client(
        "s3",
        endpoint_url=f"http://{backend}",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(s3={"addressing_style": "path"}),
    )


@dataclass(frozen=True)
class Asked:
    """A request as the proxy got it. `about` is its method, path and query, decoded."""

    about: str
    headers: dict[str, str]


class _Server(ThreadingHTTPServer):
    """Is silent about clients that went away: tests read what is printed."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


# Looks at a request before it is passed on. Returns whether it answered it itself.
Fault = Callable[["Handler"], bool]


@dataclass
class S3:
    """A bucket, and the proxy that leads to it. Change its fields while it runs.

    With `verifies`, it compares the CRC32 of a body with the header and confirms it, as Amazon does; moto ignores it.
    """

    backend: str
    bucket: str = ""
    tls: ssl.SSLContext | None = None
    verifies: bool = False
    scheme: str = "s3"
    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> S3:
        # All servers of moto in a process have the same buckets.
        self.make_bucket(self.bucket or f"models-{uuid.uuid4().hex}")
        self._server = _Server(("127.0.0.1", 0), type("Bound", (Handler,), {"s3": self}))
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{self._server.server_port}"
        return self

    def make_bucket(self, name: str) -> None:
        """Makes the bucket in moto itself, for the reason of `put`."""
        self.bucket = name
        self.client = _client(self.backend)
        self._moto().create_bucket(name, "us-east-1")

    @staticmethod
    def _moto() -> Any:
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def dest(self, prefix: str = "llm/v1", **options: str) -> list[str]:
        """The arguments that name it."""
        return ["--dest", f"{self.scheme}://{self.bucket}/{prefix}", "--s3-endpoint", self.url]

    def everything(self) -> set[str]:
        """All of the bucket."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {entry["Key"] for page in pages for entry in page.get("Contents", ())}

    def get(self, key: str) -> bytes | None:
        """An object, or None."""
        try:
            content: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None
        return content

    def put(self, key: str, data: bytes, modified: datetime | None = None) -> None:
        """Makes an object in moto itself: rarely, a request for one was answered with 200, and there was none."""
        made = self._moto().put_object(self.bucket, key, data)
        if modified is not None:
            made.last_modified = modified.replace(tzinfo=None)

    def upload(self, key: str, data: bytes, **more: Any) -> None:
        """Makes an object by a request, with what moto adds for its fields."""
        self.client.put_object(Bucket=self.bucket, Key=key, Body=data, **more)

    def sums(self, key: str) -> dict[str, str]:
        """What an object says of itself."""
        found: dict[str, str] = self.client.head_object(Bucket=self.bucket, Key=key)["Metadata"]
        return found

    def uploads(self) -> list[str]:
        """The keys of unfinished uploads."""
        found = self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", ())
        return [upload["Key"] for upload in found]

    def requests(self, pattern: str) -> list[str]:
        """Those that came, as far as they match."""
        return [asked.about for asked in list(self.asked) if re.search(pattern, asked.about)]

    def fail(self, times: int, pattern: str, answer: Callable[[Handler], None]) -> None:
        """Orders a fault for the next requests whose method, path and query match."""
        left = [times]

        def fault(handler: Handler) -> bool:
            with self.lock:
                if not left[0] or not re.search(pattern, handler.about):
                    return False
                left[0] -= 1
            answer(handler)
            return True

        self.faults.append(fault)


class Handler(BaseHTTPRequestHandler):
    """One request to the proxy."""

    s3: S3
    about: str
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def handle_one_request(self) -> None:
        """Lets a client go when it pleases."""
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def _serve(self) -> None:
        for name in ("body", "reply"):
            self.__dict__.pop(name, None)  # a fault of the request before replaced it
        if self.path.startswith("http://"):  # asked as a proxy, for BUCKET.s3.invalid or s3.invalid
            parts = urlsplit(self.path)
            bucket = parts.netloc.removesuffix("s3.invalid").rstrip(".")
            self.path = (f"/{bucket}" if bucket else "") + parts.path + (f"?{parts.query}" if parts.query else "")
        self.about = f"{self.command} {unquote(self.path)}"
        with self.s3.lock:
            self.s3.asked.append(Asked(self.about, dict(self.headers)))
        if not any(fault(self) for fault in list(self.s3.faults)):
            self.forward()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

    def body(self) -> bytes:
        """What was sent."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def forward(self, *, answer: bool = True, damaged: bool = False) -> None:
        """Lets moto do it, with other bytes if they are to be damaged on the way."""
        backend = http.client.HTTPConnection(self.s3.backend, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Expect")}
        body = self.body()
        if damaged:
            body = bytes([body[0] ^ 1]) + body[1:]
        confirmed = {CRC32: crc} if self.s3.verifies and (crc := self.headers.get(CRC32)) else {}
        if confirmed and crc != base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode():
            self.reply(400, b"<Error><Code>BadDigest</Code><Message>No.</Message></Error>")
            return
        with contextlib.closing(backend):
            backend.request(self.command, self.path, body, headers | {"Host": self.s3.backend})
            response = backend.getresponse()
            data = response.read()
        if answer:
            self.reply(response.status, data, dict(response.headers) | confirmed)

    def reply(self, code: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        """Sends a whole answer."""
        self.send_response_only(code)
        kept = {name: value for name, value in (headers or {}).items() if name not in _OWN}
        for name, value in kept.items():
            self.send_header(name, value)
        if "Content-Length" not in kept:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


_OWN = {"Connection", "Transfer-Encoding"}
CRC32 = "x-amz-checksum-crc32"


def damage(handler: Handler) -> None:
    """A fault that changes a bit of the body on its way."""
    handler.forward(damaged=True)


def error(status: int, code: str, inside: str = "", **headers: str) -> Callable[[Handler], None]:
    """A fault that answers as S3 does when it refuses."""

    def answer(handler: Handler) -> None:
        handler.body()
        text = f"<Error><Code>{code}</Code><Message>No.</Message>{inside}</Error>"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        handler.reply(status, text.encode(), {"Content-Type": "application/xml"} | sent)

    return answer


def drop(after: int) -> Callable[[Handler], None]:
    """A fault that reads some of the body and closes the connection."""

    def answer(handler: Handler) -> None:
        handler.rfile.read(after)
        handler.close_connection = True

    return answer


def lose(handler: Handler) -> None:
    """A fault that does what is asked and closes the connection without a word."""
    handler.forward(answer=False)
    handler.close_connection = True


def stall(seconds: float) -> Callable[[Handler], None]:
    """A fault that answers nothing for a while, and then nothing."""

    def answer(handler: Handler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return answer


@contextmanager
def moto(host: str = "127.0.0.1") -> Iterator[str]:
    """A server for all tests of a process: its address.

    It answers one request at a time. moto keeps the request in an object that its threads share, so an upload that a
    killed client left behind gave a request of the next test the wrong answer.

    Until it ends, botocore reads each of its data files once in the process, and not for each client again.
    """
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    app = DomainDispatcherApplication(create_backend_app)
    server = make_server(host, 0, app, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address, port = server.server_address[:2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", staticmethod(functools.cache(JSONFileLoader().load_file)))
        yield f"{address!s}:{port}"
    server.shutdown()
    thread.join()
