"""How `benchmarks.serving` counts: which requests were lost or cut, and which a lost replica excuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks import serving_client
from benchmarks.serving import LOST, Disturbance, Request, Result

WHOLE = {"choices": [{"finish_reason": "length"}]}
ABORTED = {"choices": [{"finish_reason": "abort"}]}
CHUNK = {"choices": [{"finish_reason": None}]}


@contextmanager
def server(status: int, body: bytes) -> Iterator[str]:
    """Answer every request in the same way; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever).start()
    try:
        yield f"127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        listening.server_close()


def stream(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("streamed", "status", "body", "outcome"),
    [
        (False, 200, json.dumps(WHOLE).encode(), "whole"),
        (False, 200, json.dumps(ABORTED).encode(), "cut"),
        (False, 200, b"{", "cut"),
        (False, 500, b"{}", "lost"),
        (True, 200, stream(CHUNK, WHOLE), "whole"),
        (True, 200, stream(CHUNK, {"error": {}}), "cut"),
        (True, 200, stream(), "cut"),
        (True, 503, b"", "lost"),
    ],
)
def test_an_answer_is_whole_only_with_its_finish_reason(
    streamed: bool,
    status: int,
    body: bytes,
    outcome: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stop = tmp_path / "stop"
    monkeypatch.setattr(serving_client, "STOP", stop)
    monkeypatch.setattr("benchmarks.serving_client.time.sleep", lambda _: stop.touch())
    with server(status, body) as address:
        serving_client.Client("one", address, "host", stream=streamed, keep=False).run()
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["outcome"] == outcome


def request(start: float, end: float, outcome: str = "lost") -> Request:
    return Request("one", start, None, end, outcome, "")


def test_a_lost_replica_excuses_its_own_requests_until_its_probe_notices() -> None:
    excused = [request(90, 101), request(119, 140, "cut")]
    others = [request(90, 99), request(121, 122), request(300, 301)]
    disturbances = [Disturbance(LOST, 100, 200), Disturbance("drain", 290, 310)]
    result = Result([*excused, *others, request(100, 101, "whole")], disturbances, probe_seconds=20)
    assert result.unexcused() == others
