"""An image with a stand-in of vLLM for a real node: its API, its metrics, and the name of its pod in each answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cluster.apps import spec
from tests.cluster.client import Object
from tests.cluster.images import BASE, build_from

IMAGE = "kaigen.test/stand-in-vllm:1"
_PROGRAM = '''#!/usr/bin/python3
"""Answers completions after `SECONDS`, and is ready `DELAY` seconds after its start."""
import http.server, json, os, signal, sys, threading, time
delay, seconds = float(os.environ.get("DELAY", 0)), float(os.environ.get("SECONDS", 0))
running, lock = 0, threading.Lock()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, text, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        values = {"num_requests_waiting": 0, "num_requests_running": running, "kv_cache_usage_perc": running / 100}
        named = {f"vllm:{name}": value for name, value in values.items()}
        lines = (f'# TYPE {name} gauge\\n{name}{{model_name="m"}} {value}\\n' for name, value in named.items())
        self.answer("".join(lines) if self.path == "/metrics" else "{}", "text/plain; version=0.0.4")
    def body(self):
        """Return the body, which has no length where a picker has looked at it."""
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        data = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data
    def do_POST(self):
        global running
        asked = json.loads(self.body())
        with lock:
            running += 1
        time.sleep(seconds)
        with lock:
            running -= 1
        key = self.headers.get("Authorization", "")
        self.answer(json.dumps({"pod": os.environ["HOSTNAME"], "model": asked["model"], "key": key}))
    def log_message(self, *_): pass

signal.signal(signal.SIGTERM, lambda *_: sys.exit())
time.sleep(delay)
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
'''


def stand_in() -> Path:
    """Return the archive of the image."""
    return build_from(IMAGE, f"FROM {BASE}\nCOPY vllm /usr/local/bin/vllm\n", {"vllm": _PROGRAM.encode()})


def topology(name: str, **fields: Any) -> Object:
    """Return the spec of a Topology that runs it."""
    whole: dict[str, Any] = {
        "model": {"folder": "/weights"},
        "image": IMAGE,
        "engineVersion": "0.32.0",
        "resources": {"gpus": 0, "cpu": "50m", "memory": "128Mi"},
        "probes": {"startup": "30s"},
        "drain": "2s",
    }
    return spec("Topology", name, **{**whole, **fields})
