"""Files of a Jupyter server, through its contents API."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from kaigen.diagnostics.errors import SystemFailure
from kaigen.ops.folder_sync import digest_of
from kaigen.ops.local_folder import MOST_BYTES

_CHUNK = 4 * 1024 * 1024
_TIMEOUT_S = 60


class Refused(SystemFailure):
    """The Jupyter server refused a request.

    Attributes:
        code: HTTP status.
    """

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        hint = "restart the notebook if its token was changed" if code in (401, 403) else ""
        super().__init__(f"the Jupyter server answered {code}: {message}", hint=hint)


class Contents:
    """The files below the root folder of a Jupyter server.

    Attributes:
        skipped: paths of files that are too large.
    """

    def __init__(self, port: int, token: str, ignores: Callable[[], Callable[[str], bool]]) -> None:
        """Nothing is sent yet.

        Args:
            port: local port that is forwarded to the server.
            token: token of the server.
            ignores: returns which paths are not read or written.
        """
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
        self._token, self._ignores = token, ignores
        self._known: dict[str, tuple[tuple[int, str], str]] = {}
        self._broken: dict[str, _Broken] = {}
        self.skipped: set[str] = set()

    def wait_at_most(self, seconds: float) -> None:
        """Wait at most some seconds for each answer from now on."""
        self._connection.timeout = seconds
        if self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file by its path. Files that did not change are not read again."""
        ignored = self._ignores()
        found: dict[str, str] = {}
        known: dict[str, tuple[tuple[int, str], str]] = {}
        self.skipped = set()
        folders = [""]
        while folders:
            for item in self._get(folders.pop(), type="directory", content="1")["content"]:
                path = item["path"]
                if item["type"] == "directory":
                    folders += [] if ignored(f"{path}/") else [path]
                elif ignored(path):
                    continue
                elif (item["size"] or 0) > MOST_BYTES:
                    self.skipped.add(path)
                else:
                    mark = (item["size"] or 0, item["last_modified"])
                    before = self._known.get(path)
                    digest = before[1] if before and before[0] == mark else self._digest(path)
                    if digest is not None:
                        known[path], found[path] = (mark, digest), digest
        self._known = known
        return found

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return base64.b64decode(self._get(path, type="file", format="base64", content="1")["content"])

    def write(self, path: str, data: bytes, expected: str | None) -> bool:
        """Write a file if it still has the expected hash, or does not exist if that is None.

        Raises:
            SystemFailure: the server has other content than was sent.
        """
        if self._ignores()(path) or self._digest(path) != expected:
            return False
        parts = path.split("/")
        for count in range(1, len(parts)):
            self._make_folder("/".join(parts[:count]))
        starts = range(0, max(len(data), 1), _CHUNK)
        prefixes = {digest_of(data[:start]) for start in starts if start}
        self._broken[path] = _Broken(expected, prefixes)
        for number, start in enumerate(starts, 1):
            chunk = {} if len(starts) == 1 else {"chunk": -1 if number == len(starts) else number}
            text = base64.b64encode(data[start : start + _CHUNK]).decode()
            self._send("PUT", path, {"type": "file", "format": "base64", "content": text, **chunk})
        del self._broken[path]
        if self._digest(path) != digest_of(data):
            raise SystemFailure(f"{path}: changed in the notebook while it was written")
        return True

    def _digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file, or of what was there before an upload that broke; None if there is none."""
        try:
            found = str(self._get(path, type="file", content="0", hash="1")["hash"])
            broken = self._broken.get(path)
            return broken.before if broken is not None and found in broken.prefixes else found
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def _make_folder(self, path: str) -> None:
        try:
            self._get(path, type="directory", content="0")
        except Refused as error:
            if error.code != 404:
                raise
            self._send("PUT", path, {"type": "directory"})

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        return self._send("GET", path, None, **query)

    def _send(self, method: str, path: str, body: dict[str, Any] | None, **query: str) -> dict[str, Any]:
        # Requests of a synchronization are not activity of the user.
        query["no_track_activity"] = "1"
        address = f"/api/contents/{quote(path)}?{urlencode(query)}"
        headers = {"Authorization": f"token {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            answer, text = self._answer(method, address, data, headers, repeat="chunk" not in (body or {}))
        except (http.client.HTTPException, OSError) as error:
            raise SystemFailure(f"the Jupyter server does not answer: {error!r}") from None
        if answer.status >= 400:
            raise Refused(answer.status, _message(text))
        value: dict[str, Any] = json.loads(text)
        return value

    def _answer(
        self, method: str, address: str, data: bytes | None, headers: dict[str, str], *, repeat: bool
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Return an answer and its body.

        The server may have closed the connection, or started again: a request is repeated once. A repeated chunk would
        be appended twice.
        """
        try:
            self._connection.request(method, address, data, headers)
            answer = self._connection.getresponse()
            return answer, answer.read()
        except (http.client.HTTPException, OSError):
            self._connection.close()
            if not repeat:
                raise
            return self._answer(method, address, data, headers, repeat=False)
        except BaseException:
            self._connection.close()  # of an interrupted request, whose answer is not that of the next one
            raise


class _Broken(Struct, frozen=True):
    """An upload that has not ended.

    Attributes:
        before: the SHA-256 of the file before it; None if there was none.
        prefixes: those of the beginnings of the file that it may leave.
    """

    before: str | None
    prefixes: set[str]


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode(errors="replace").strip()[:200]
