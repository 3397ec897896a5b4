"""Azure Blob Storage on loopback with the identity of a pod: what it refuses, as far as the downloader may meet it.

It verifies the MD5 of each body, the signature of account keys over method, headers and path, tokens and their end, and
conditions. Blobs of blocks have no MD5 of their own.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

ACCOUNT = "acmemodels"
KEY = base64.b64encode(b"a key of an account " * 3).decode()
SAS = "sv=2023-11-03&sr=c&sp=rwdl&se=2030-01-01T00%3A00%3A00Z&sig=c2lnbmF0dXJl%2Bof%2Fthe%2Btests%3D"
TENANT, CLIENT = "0aaa-tenant", "0bbb-client"


@dataclass
class Blob:
    """A blob as it is stored."""

    data: bytes
    metadata: dict[str, str]
    etag: str
    md5: str = ""
    modified: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass
class Azure:
    """One container, and the server of tokens. Change its fields while it runs."""

    bucket: str = "models"
    url: str = ""
    page: int = 1000
    seconds: float = 3600
    blobs: dict[str, Blob] = field(default_factory=dict)
    blocks: dict[str, dict[str, bytes]] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    issued: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    tokens_sent: list[str] = field(default_factory=list)
    faults: list[Callable[[Handler], bool]] = field(default_factory=list)
    issue: Callable[[int], str] = lambda number: f"eyJ.token-{number}-{time.monotonic_ns()}"
    lock: threading.RLock = field(default_factory=threading.RLock)

    def dest(self, prefix: str = "llm/v1") -> list[str]:
        """The arguments that name it."""
        return ["--dest", f"az://{ACCOUNT}/{self.bucket}/{prefix}", "--s3-endpoint", f"{self.url}/{ACCOUNT}"]

    def put(self, key: str, data: bytes, *, has_md5: bool = True) -> None:
        """Makes a blob, as anybody may."""
        md5 = base64.b64encode(hashlib.md5(data).digest()).decode() if has_md5 else ""
        self.blobs[key] = Blob(data, {}, f'"0x{uuid.uuid4().hex[:15].upper()}"', md5)

    def get(self, key: str) -> bytes | None:
        """A blob, or None."""
        return self.blobs[key].data if key in self.blobs else None

    def everything(self) -> set[str]:
        """The names of all blobs."""
        return set(self.blobs)

    def uploads(self) -> list[str]:
        """Nothing: uncommitted blocks disappear by themselves."""
        return []

    def requests(self, pattern: str) -> list[str]:
        """Those that came, as far as they match."""
        return [about for about in list(self.asked) if re.search(pattern, about)]

    def fail(self, times: int, pattern: str, status: int, code: str) -> None:
        """Orders an error for the next requests whose method, path and query match."""
        left = [times]

        def fault(handler: Handler) -> bool:
            with self.lock:
                if not left[0] or not re.search(pattern, handler.about):
                    return False
                left[0] -= 1
            handler.refuse(status, code)
            return True

        self.faults.append(fault)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    azure: Azure
    about: str
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def _serve(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.about = f"{self.command} {unquote(self.path)}"
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.key = unquote(parts.path).removeprefix(f"/{ACCOUNT}/{self.azure.bucket}").lstrip("/")
        if parts.path == f"/{TENANT}/oauth2/v2.0/token":
            return self._token()
        with self.azure.lock:
            self.azure.asked.append(self.about)
        if any(fault(self) for fault in list(self.azure.faults)):
            return None
        with self.azure.lock:
            return self._answer(parts.path)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

    def reply(self, status: int, data: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Answers."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, code: str) -> None:
        """Answers with an error."""
        self.reply(status, f"<Error><Code>{code}</Code></Error>".encode(), {"x-ms-error-code": code})

    def _token(self) -> None:
        form = {name: values[0] for name, values in parse_qs(self.body.decode()).items()}
        assert form["grant_type"] == "client_credentials"
        assert form["client_id"] == CLIENT
        assert form["scope"] == "https://storage.azure.com/.default"
        assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        with self.azure.lock:
            token = self.azure.issue(len(self.azure.issued))
            self.azure.issued.append(form["client_assertion"])
            self.azure.valid.add(token)
        answer = {"access_token": token, "expires_in": self.azure.seconds, "token_type": "Bearer"}
        self.reply(200, json.dumps(answer).encode())

    def _answer(self, path: str) -> None:
        refusal = self._refusal()
        if refusal:
            return self.refuse(*refusal)
        if not path.startswith(f"/{ACCOUNT}/{self.azure.bucket}"):
            return self.refuse(404, "ContainerNotFound")
        if self.query.get("comp") == "list":
            return self._list()
        if self.command == "PUT":
            return self._put()
        blob = self.azure.blobs.get(self.key)
        if blob is None:
            return self.refuse(404, "BlobNotFound")
        if self.command == "DELETE":
            del self.azure.blobs[self.key]
            return self.reply(202)
        return self._get(blob)

    def _refusal(self) -> tuple[int, str] | None:
        assert self.headers["x-ms-version"] == "2023-11-03"
        kind, _, text = (self.headers.get("Authorization") or "").partition(" ")
        if kind == "Bearer":
            self.azure.tokens_sent.append(text)
            return None if text in self.azure.valid else (401, "InvalidAuthenticationInfo")
        if kind == "SharedKey":
            return None if text == f"{ACCOUNT}:{self._signature()}" else (403, "AuthenticationFailed")
        return None if self.query.get("sig") == dict(parse_qsl(SAS))["sig"] else (403, "AuthenticationFailed")

    def _signature(self) -> str:
        """Return the signature, made independently of the downloader's: of the table in the documentation."""
        get = self.headers.get
        length = get("Content-Length", "")
        lines = [self.command, "", "", length if length != "0" else "", get("Content-MD5", ""), get("Content-Type", "")]
        lines += ["", "", get("If-Match", ""), get("If-None-Match", ""), "", get("Range", "")]
        lines += sorted(
            f"{name.lower()}:{value}" for name, value in self.headers.items() if name[:5].lower() == "x-ms-"
        )
        lines.append(f"/{ACCOUNT}{urlsplit(self.path).path}")
        lines += [f"{name}:{value}" for name, value in sorted(self.query.items())]
        digest = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()

    def _list(self) -> None:
        prefix, marker = self.query.get("prefix", ""), self.query.get("marker", "")
        names = sorted(name for name in self.azure.blobs if name.startswith(prefix) and name > marker)
        most = min(self.azure.page, int(self.query["maxresults"]))
        listed = names[:most]
        entries = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Etag>{blob.etag.strip(chr(34))}</Etag>"
            f"<Content-Length>{len(blob.data)}</Content-Length>"
            f"<Last-Modified>{format_datetime(blob.modified, usegmt=True)}</Last-Modified></Properties></Blob>"
            for name in listed
            for blob in [self.azure.blobs[name]]
        )
        following = listed[-1] if len(names) > most else ""
        text = f"<EnumerationResults><Blobs>{entries}</Blobs><NextMarker>{escape(following)}</NextMarker>"
        self.reply(200, f"{text}</EnumerationResults>".encode())

    def _put(self) -> None:
        md5 = base64.b64encode(hashlib.md5(self.body).digest()).decode()
        if self.headers.get("Content-MD5") != md5:
            return self.refuse(400, "Md5Mismatch")
        blob = self.azure.blobs.get(self.key)
        if self.headers.get("If-None-Match") == "*" and blob is not None:
            return self.refuse(409, "BlobAlreadyExists")
        if "If-Match" in self.headers and (blob is None or blob.etag != self.headers["If-Match"]):
            return self.refuse(412, "ConditionNotMet")
        blocks = self.azure.blocks.setdefault(self.key, {})
        if self.query.get("comp") == "block":
            blocks[self.query["blockid"]] = self.body
            return self.reply(201)
        if self.query.get("comp") == "blocklist":
            ids = [each.text or "" for each in ElementTree.fromstring(self.body)]
            if any(each not in blocks for each in ids):
                return self.refuse(400, "InvalidBlockList")
            self.azure.put(self.key, b"".join(blocks[each] for each in ids), has_md5=False)
        else:
            assert self.headers["x-ms-blob-type"] == "BlockBlob"
            self.azure.put(self.key, self.body)
        own = {name.lower()[10:]: value for name, value in self.headers.items() if name.lower()[:10] == "x-ms-meta-"}
        assert all(name.isidentifier() for name in own)
        self.azure.blobs[self.key].metadata = own
        return self.reply(201, b"", {"ETag": self.azure.blobs[self.key].etag})

    def _get(self, blob: Blob) -> None:
        headers = {"ETag": blob.etag, **({"Content-MD5": blob.md5} if blob.md5 else {})}
        headers |= {f"x-ms-meta-{name}": value for name, value in blob.metadata.items()}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None:
            if self.command == "HEAD":
                headers["Content-Length"] = str(len(blob.data))
            return self.reply(200, blob.data if self.command == "GET" else b"", headers)
        first, last = int(wanted[1]), min(int(wanted[2]), len(blob.data) - 1)
        headers.pop("Content-MD5", None)  # of the whole blob
        headers["Content-Range"] = f"bytes {first}-{last}/{len(blob.data)}"
        return self.reply(206, blob.data[first : last + 1], headers)


@contextmanager
def azure(folder: Path) -> Iterator[tuple[Azure, dict[str, str]]]:
    """An empty container, and the variables of a pod with an identity."""
    made = Azure()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"azure": made}))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    file = folder / "azure-identity-token"
    file.write_text("a.federated.token\n")
    variables = {
        "AZURE_CLIENT_ID": CLIENT,
        "AZURE_TENANT_ID": TENANT,
        "AZURE_FEDERATED_TOKEN_FILE": str(file),
        "AZURE_AUTHORITY_HOST": made.url,
    }
    yield made, variables
    server.shutdown()
    server.server_close()
