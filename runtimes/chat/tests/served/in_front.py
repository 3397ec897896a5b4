"""`python in_front.py`: routes that answer as vLLM's do, with the middleware for vLLM that answers KAITO's in front."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

from kaigen_chat import app, serve
from kaigen_chat.cli import run
from kaigen_chat.http import App, Event, Receive, Scope, Send
from kaigen_chat.keys import Keys
from kaigen_chat.service import Service

PROGRAM = Path(__file__).parents[4] / "kaigen" / "programs" / "kaito_chat.py"


class Vllm:
    """This server with vLLM's route `/tokenize`, and without KAITO's.

    The route is that of vLLM 0.33.0: vllm/entrypoints/serve/tokenize, protocol.py and serving.py. It needs no key.
    """

    def __init__(self, served: App, service: Service) -> None:
        self._served, self._service = served, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope.get("path")
        if path == "/tokenize":
            body = (await receive())["body"]
            assert isinstance(body, bytes)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": json.dumps(self._tokens(json.loads(body))).encode()})
            return
        await self._served(scope | ({"path": "/none"} if path in {"/chat", "/generate"} else {}), receive, send)

    def _tokens(self, asked: Event) -> Event:
        model = self._service.model
        messages, prompt = asked.get("messages"), asked.get("prompt")
        assert isinstance(messages, list) is not isinstance(prompt, str)
        tokens = model.chat(messages) if isinstance(messages, list) else model._tokenizer.encode(prompt)
        return {"count": len(tokens), "max_model_len": model.context, "tokens": tokens, "token_strs": None}


def build(service: Service, keys: Keys, max_body: int, probe_port: int | None = None) -> App:
    """Return the application of the server, with both in front."""
    vllm = Vllm(app.build(service, keys, max_body, probe_port), service)
    in_front: App = runpy.run_path(str(PROGRAM))["KaitoChat"](vllm)
    return in_front


if __name__ == "__main__":
    vars(serve)["build"] = build
    run()
