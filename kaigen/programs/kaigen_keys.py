"""API keys of a file, which may change while vLLM runs: `kaigen_keys.py COMMAND ...`, and a middleware.

vLLM reads its keys once, when it starts. So this starts it with a random key that nobody else knows. The middleware
writes that key into requests with a key of the file, and removes every other one. What needs a key, and the answer
without one, remain those of vLLM's version: it checks the key after this middleware (vLLM 0.33.0: `register_middleware`
in vllm/entrypoints/serve/middleware/register.py; 0.13.0 has the same order in vllm/entrypoints/openai/api_server.py).
"""

import hashlib
import hmac
import os
import secrets
import sys
from typing import Any

FILE, KEY = "KAIGEN_API_KEYS", "VLLM_API_KEY"
"""Variables: the file, with a key in each line, and vLLM's own key."""


class Keys:
    """The middleware, for `--middleware=kaigen_keys.Keys`."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.file = os.environ[FILE]
        self.own = b"Bearer " + os.environ[KEY].encode()
        self.version: tuple[int, ...] = ()
        self.digests: list[bytes] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Pass a request on with vLLM's own key, or without any."""
        if scope["type"] in {"http", "websocket"}:
            headers = [each for each in scope["headers"] if each[0] != b"authorization"]
            if any(self.is_valid(value) for name, value in scope["headers"] if name == b"authorization"):
                headers.append((b"authorization", self.own))
            scope = {**scope, "headers": headers}
        await self.app(scope, receive, send)

    def is_valid(self, header: bytes) -> bool:
        """Return whether a header has a key of the file; comparing takes as long whichever it is."""
        scheme, _, key = header.partition(b" ")
        digest = hashlib.sha256(key.strip()).digest()
        same = [hmac.compare_digest(digest, each) for each in self.current()]
        return scheme.lower() == b"bearer" and any(same)

    def current(self) -> list[bytes]:
        """Return the digests of the keys, read again when the file is another: kubelet replaces it as a whole."""
        try:
            found = os.stat(self.file)
            version = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
            if version != self.version:
                with open(self.file, "rb") as file:
                    lines = [line.strip() for line in file]
                self.digests = [hashlib.sha256(line).digest() for line in lines if line]
                self.version = version
                print(f"kaigen: {len(self.digests)} API keys in {self.file}", flush=True)
        except OSError as error:
            self.digests, self.version = [], ()
            print(f"kaigen: no API key is valid: {error}", flush=True)
        return self.digests


def main(*command: str) -> None:
    """Become the engine of a command line, with a key of its own."""
    os.environ[KEY] = secrets.token_urlsafe(32)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
