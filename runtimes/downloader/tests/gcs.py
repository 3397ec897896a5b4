"""Google Cloud Storage on loopback: its XML API with tokens in front of moto, a metadata server, a server of tokens.

What is refused here is what Google refuses, or ignores so that nothing is verified: names of Amazon's headers, requests
without a token that is valid at the time, wrong checksums.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google_crc32c import value

ACCOUNT = "models@acme.iam.gserviceaccount.com"
METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"


@dataclass
class Identity:
    """The servers that give tokens.

    Attributes:
        seconds: how long a token is valid, as they say.
        valid: tokens that Cloud Storage accepts.
        asked: requests for tokens, by path.
        statuses: answers given before those that are meant.
    """

    seconds: float = 3600
    valid: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    url: str = ""

    @functools.cached_property
    def key(self) -> RSAPrivateKey:
        """Return the key of the service account."""
        return generate_private_key(65537, 2048)

    def issue(self) -> dict[str, Any]:
        """Return another token."""
        token = f"ya29.token-{len(self.asked)}-{time.monotonic_ns()}"
        self.valid.add(token)
        return {"access_token": token, "expires_in": self.seconds, "token_type": "Bearer"}

    def key_file(self, **other: object) -> str:
        """Return the key file of the service account."""
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        fields = {"type": "service_account", "client_email": ACCOUNT, "private_key_id": "k1", "private_key": pem}
        return json.dumps({**fields, "token_uri": f"{self.url}/token", **other})


def _part(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class _Tokens(BaseHTTPRequestHandler):
    identity: Identity

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _reply(self, code: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _is_refused(self) -> bool:
        self.identity.asked.append(self.path)
        if self.identity.statuses:
            self._reply(self.identity.statuses.pop(0), {"error": "not now"})
            return True
        return False

    def do_GET(self) -> None:
        """The metadata server."""
        if self._is_refused():
            return
        good = self.path == METADATA and self.headers.get("Metadata-Flavor") == "Google"
        self._reply(200 if good else 404, self.identity.issue() if good else {})

    def do_POST(self) -> None:
        """The server that takes signed claims."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self._is_refused():
            return
        form = parse_qs(body)
        head, claims, signature = form["assertion"][0].split(".")
        self.identity.key.public_key().verify(_part(signature), f"{head}.{claims}".encode(), PKCS1v15(), SHA256())
        said = json.loads(_part(claims))
        assert json.loads(_part(head)) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
        assert (said["iss"], said["aud"]) == (ACCOUNT, f"{self.identity.url}/token")
        assert said["exp"] - said["iat"] <= 3600
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        assert said["scope"].endswith("/auth/devstorage.read_write")
        self._reply(200, self.identity.issue())


@contextlib.contextmanager
def identity() -> Iterator[Identity]:
    """Servers that give tokens."""
    made = Identity()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Tokens,), {"identity": made}))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    server.server_close()


def _refuse(handler: Any, status: int, code: str) -> None:
    handler.body()
    handler.reply(status, f"<Error><Code>{code}</Code><Message>No.</Message></Error>".encode())


class Google:
    """What Cloud Storage does with requests for a bucket of `S3`: it refuses some, and moto gets the others."""

    def __init__(self, s3: Any, identity: Identity) -> None:
        """Takes a server that runs, whose bucket is named `gs://` from now on."""
        self.s3 = s3
        self.identity = identity
        self.has_md5 = True
        s3.scheme = "gs"
        s3.faults.append(self._translate)

    def _translate(self, handler: Any) -> bool:
        """Do as Cloud Storage does, and let moto do the rest."""
        kind, _, token = handler.headers.get("Authorization", "").partition(" ")
        if kind != "Bearer" or token not in self.identity.valid:
            _refuse(handler, 401, "AuthenticationRequired")
            return True
        names = [name for name in handler.headers if name.lower().startswith("x-amz-")]
        assert not names, f"headers of Amazon: {names}"
        reply, body = handler.reply, handler.body()
        handler.body = lambda: body
        if handler.command == "PUT" and self._is_wrong(handler, body):
            return True
        if (
            handler.command == "DELETE"
            and "uploadId" not in handler.path
            and self._generation(self._key(handler)) == "0"
        ):
            _refuse(handler, 404, "NoSuchKey")
            return True

        def answer(code: int, data: bytes, headers: dict[str, str] | None = None) -> None:
            given = dict(headers or {})
            meta = {name: text for name, text in given.items() if name.lower().startswith("x-amz-")}
            rest = {name: text for name, text in given.items() if name not in meta}
            rest |= {f"x-goog-{name[6:]}": text for name, text in meta.items()}
            key = self._key(handler)
            if code == 200 and handler.command in ("HEAD", "GET") and key and (data_ := self.s3.get(key)) is not None:
                rest |= {"x-goog-hash": self._hash(key, data_), "x-goog-generation": self._generation(key)}
            reply(code, data, rest)

        handler.reply = answer
        for name in [name for name in handler.headers if name.lower().startswith("x-goog-")]:
            text = handler.headers[name]
            del handler.headers[name]
            handler.headers[f"x-amz-{name[7:]}"] = text
        return False

    def _is_wrong(self, handler: Any, body: bytes) -> bool:
        """Refuse a body without its checksum, and another version than the one that is meant."""
        if "x-goog-copy-source" not in handler.headers:
            crc = base64.b64encode(value(body).to_bytes(4, "big")).decode()
            if handler.headers.get("x-goog-hash") != f"crc32c={crc}":
                _refuse(handler, 400, "BadDigest")
                return True
        assert "If-Match" not in handler.headers
        assert "If-None-Match" not in handler.headers
        wanted = handler.headers.get("x-goog-if-generation-match")
        key = self._key(handler)
        if wanted is not None and wanted != self._generation(key):
            _refuse(handler, 412, "PreconditionFailed")
            return True
        return False

    def _key(self, handler: Any) -> str:
        return unquote(urlsplit(handler.path).path).partition(f"/{self.s3.bucket}/")[2]

    def _generation(self, key: str) -> str:
        try:
            found = self.s3.client.head_object(Bucket=self.s3.bucket, Key=key)
        except self.s3.client.exceptions.ClientError:
            return "0"
        return str(int(found["ETag"].strip('"').partition("-")[0][:12], 16) + int(found["LastModified"].timestamp()))

    def _hash(self, key: str, data: bytes) -> str:
        """Return the checksums of an object; one of several parts has no MD5."""
        etag = self.s3.client.head_object(Bucket=self.s3.bucket, Key=key)["ETag"].strip('"')
        crc = f"crc32c={base64.b64encode(value(data).to_bytes(4, 'big')).decode()}"
        if "-" in etag or not self.has_md5:
            return crc
        return f"{crc},md5={base64.b64encode(bytes.fromhex(etag)).decode()}"
