"""The clients of `benchmarks.serving`. They run in a pod and need nothing but Python.

Each asks, one request after another, until a file appears. Every request is printed as a line of JSON.
"""

from __future__ import annotations

import http.client
import json
import random
import select
import sys
import threading
import time
from pathlib import Path

STOP = Path("/tmp/stop")
RETRIED = "sent again over a new connection"


class Client(threading.Thread):
    """Sends requests to one address, each over a new connection or all over one.

    A request is `lost` without an answer, `cut` if the answer has not the reason of an answer that is complete, and
    else `whole`.
    """

    def __init__(self, name: str, address: str, host: str, *, stream: bool, keep: bool) -> None:
        super().__init__(name=name)
        self._address, self._host, self._stream, self._keep = address, host, stream, keep
        self._connection: http.client.HTTPConnection | None = None
        self._first: float | None = None

    def run(self) -> None:
        """Send requests until the file is there."""
        chance = random.Random(self.name)
        while not STOP.exists():
            start, self._first = time.time(), None
            outcome, detail = self._ask(chance.randint(20, 60))
            entry = {
                "client": self.name,
                "start": start,
                "first": self._first,
                "end": time.time(),
                "outcome": outcome,
                "detail": detail,
            }
            print(json.dumps(entry), flush=True)
            time.sleep(chance.uniform(1, 3))
        self._close()

    def _connect(self) -> http.client.HTTPConnection:
        """Return a connection; as usual for clients, one that the server has closed is not used again."""
        kept = self._connection
        if kept is None or kept.sock is None or select.select([kept.sock], [], [], 0)[0]:
            self._close()
            kept = self._connection = http.client.HTTPConnection(self._address, timeout=120)
        return kept

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _ask(self, tokens: int) -> tuple[str, str]:
        """Send a request; again, as most clients do, if the server had just closed the kept connection."""
        connection = self._connect()
        kept = connection.sock is not None
        try:
            answer = self._send(connection, tokens)
        except (OSError, http.client.HTTPException) as error:
            self._close()
            if kept and isinstance(error, ConnectionError | http.client.RemoteDisconnected):
                outcome, detail = self._ask(tokens)
                return outcome, detail or RETRIED
            return "lost", repr(error)
        try:
            result = self._read(answer)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._close()
            return "cut", repr(error)
        if not self._keep:
            self._close()
        return result

    def _send(self, connection: http.client.HTTPConnection, tokens: int) -> http.client.HTTPResponse:
        messages = [{"role": "user", "content": "Hello"}]
        body = {"model": "chat", "messages": messages, "stream": self._stream, "ignore_eos": True}
        headers = {"Host": self._host, "Content-Type": "application/json"}
        if not self._keep:
            headers["Connection"] = "close"
        connection.request("POST", "/v1/chat/completions", json.dumps({**body, "max_tokens": tokens}), headers)
        return connection.getresponse()

    def _read(self, answer: http.client.HTTPResponse) -> tuple[str, str]:
        if answer.status != 200:
            return "lost", f"{answer.status} {answer.read().decode()[:200]}"
        reason, last = None, b""
        for line in answer if self._stream else [b"data: " + answer.read()]:
            last = line.strip() or last
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:]).get("choices") or ():
                    self._first = self._first or time.time()
                    reason = choice["finish_reason"] or reason
        if reason == "length":
            return "whole", ""
        return "cut", f"finish_reason is {reason}, the last line is {last[:200]!r}"


def main(targets: dict[str, tuple[str, str]]) -> None:
    """Run four clients for each target.

    Args:
        targets: address and host by name.
    """
    clients = [
        Client(
            f"{name}, {'streamed' if stream else 'at once'}, {'one connection' if keep else 'new connections'}",
            address,
            host,
            stream=stream,
            keep=keep,
        )
        for name, (address, host) in targets.items()
        for stream in (False, True)
        for keep in (False, True)
    ]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
