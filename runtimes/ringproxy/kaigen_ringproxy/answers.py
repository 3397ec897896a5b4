"""Answers in the format of OpenAI's API.

Those of distributed-llama have wrong numbers in `index`, and no `finish_reason`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kaigen_ringproxy.checks import Refused

_TYPES = {401: "authentication_error", 404: "not_found_error"}


def answer(model: str, text: str) -> bytes:
    """Return a complete answer."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return _encoded({**_head("chat.completion", model), "choices": [choice]})


def chunk(model: str) -> Callable[[Mapping[str, str], str | None], bytes]:
    """Return the function that writes the events of one stream, from a delta and the reason for the end."""
    head = _head("chat.completion.chunk", model)

    def write(delta: Mapping[str, str], reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return b"data: " + _encoded({**head, "choices": [choice]}) + b"\n\n"

    return write


def models(names: Sequence[str]) -> bytes:
    """Return the list of models."""
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "kaigen"} for name in names]
    return _encoded({"object": "list", "data": data})


def error_body(refused: Refused) -> bytes:
    """Return the body of an error."""
    kind = _TYPES.get(refused.status, "invalid_request_error" if refused.status < 500 else "server_error")
    error = {"message": str(refused), "type": kind, "param": refused.param or None, "code": refused.status}
    return _encoded({"error": error})


def _head(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _encoded(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
