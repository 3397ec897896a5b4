"""A small server with OpenAI's API, for tests of what asks an engine. It also runs alone in a pod.

It knows some capitals. Variables: `DELAY` is the time to the first token in seconds, `WRONG` a question that it answers
wrongly.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CAPITALS = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi"}
KEY = os.environ.get("KEY", "")


class Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer `/v1/models`."""
        if KEY and self.headers.get("Authorization") != f"Bearer {KEY}":
            self.answer({"error": "no key"}, 401)
            return
        self.answer({"object": "list", "data": [{"id": "assistant", "object": "model"}]})

    def do_POST(self) -> None:
        """Answer a conversation or a text."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if KEY and self.headers.get("Authorization") != f"Bearer {KEY}":
            self.answer({"error": "no key"}, 401)
            return
        is_chat = self.path.endswith("/chat/completions")
        text = json.dumps(body["messages"][-1]["content"]) if is_chat else str(body["prompt"])
        found = next((city for land, city in CAPITALS.items() if land in text), "I do not know")
        found = "Atlantis" if os.environ.get("WRONG", "-") in text else found
        time.sleep(float(os.environ.get("DELAY", "0")))
        count = body.get("max_completion_tokens") or body.get("max_tokens") or 1
        usage = {"prompt_tokens": len(text.split()), "completion_tokens": count, "total_tokens": count}
        if body.get("stream"):
            self.stream(is_chat, count, usage)
            return
        choice = {"message": {"role": "assistant", "content": found}} if is_chat else {"text": found}
        self.answer({"choices": [{"index": 0, "finish_reason": "stop", **choice}], "usage": usage})

    def stream(self, is_chat: bool, count: int, usage: dict[str, int]) -> None:
        """Send an answer token by token."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(count):
            choice = {"delta": {"content": f"{number} "}} if is_chat else {"text": f"{number} "}
            self.event({"choices": [{"index": 0, **choice}]})
            time.sleep(0.001)
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, data: dict[str, Any]) -> None:
        """Send one event."""
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def answer(self, data: dict[str, Any], status: int = 200) -> None:
        """Send a whole answer."""
        text = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    ThreadingHTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
