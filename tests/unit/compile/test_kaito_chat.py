"""The middleware that answers KAITO's routes in front of vLLM: what it asks of the engine, and what it passes on.

`runtimes/chat/tests/served/test_kaito.py` runs it in a real server, next to kaigen's own.
"""

from __future__ import annotations

import ast
import asyncio
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kaigen.programs.kaito_chat import MOST_BYTES, NEUTRAL, KaitoChat

ROOT = Path(__file__).parents[3]
CONTEXT = 2048


class Vllm:
    """Routes that answer as those of vLLM 0.33.0 do, and the bodies that they were asked.

    Args:
        failing: statuses of routes that fail.
        hanging: completions last until the client is gone.
    """

    def __init__(self, *, failing: Mapping[str, int] | None = None, hanging: bool = False) -> None:
        self.failing, self.hanging = failing or {}, hanging
        self.asked: list[tuple[str, Any]] = []
        self.ended = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        path, headers = scope["path"], dict(scope["headers"])
        asked = json.loads(body or "null")
        self.asked.append((path, asked))
        assert headers[b"content-length"] == str(len(body)).encode()
        if path == "/v1/completions" and self.hanging:
            assert (await receive())["type"] == "http.disconnect"
            self.ended += 1
        answers: Mapping[str, Any] = {
            "/v1/models": {"object": "list", "data": []},
            "/tokenize": {"tokens": [7] * 40, "count": 40, "max_model_len": CONTEXT},
            "/v1/completions": {"choices": [{"index": 1, "text": "B"}, {"index": 0, "text": "A"}]},
        }
        status = self.failing.get(path, 200 if path in answers else 404)
        given = [(b"Content-Length", b"1"), (b"access-control-allow-origin", b"*"), (b"a", path.encode())]
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await send({"type": "http.response.body", "body": json.dumps(answers.get(path, path)).encode()})


def post(vllm: Vllm, path: str, body: Any, *, calls: float = math.inf) -> tuple[int, Any, dict[bytes, bytes]]:
    """Return status, content and headers of an answer; status 0 for none.

    Args:
        vllm: the engine.
        path: of the request.
        body: its content.
        calls: number of calls of the engine after which the client closes the connection.
    """
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = [{"type": "http.request", "body": text[:9], "more_body": True}, {"type": "http.request", "body": text[9:]}]
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        if given:
            return given.pop(0)
        while len(vllm.asked) < calls:
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def run() -> None:
        scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"content-length", b"%d" % len(text))]}
        await asyncio.wait_for(KaitoChat(vllm)(scope, receive, send), 20)

    asyncio.run(run())
    if not sent:
        return 0, None, {}
    content = json.loads(b"".join(message["body"] for message in sent[1:]))
    return sent[0]["status"], content, dict(sent[0]["headers"])


@pytest.mark.promise("KAITO", "`/chat` of presets that need several GPUs")
def test_a_prompt_of_falcon_is_completed_with_the_parameters_of_its_server() -> None:
    vllm = Vllm()
    status, answer, headers = post(vllm, "/chat", {"prompt": "Hello", "num_return_sequences": 2})
    assert (status, answer) == (200, {"Result": "HelloAHelloB"})
    assert headers[b"access-control-allow-origin"] == b"*"
    assert headers[b"content-length"] == str(len(json.dumps(answer))).encode()
    assert vllm.asked[1:] == [
        ("/tokenize", {"prompt": "Hello"}),
        (
            "/v1/completions",
            {
                **{"prompt": [7] * 40, "n": 2, "max_tokens": 160, "min_tokens": 0, "temperature": 1, "top_p": 1},
                **{"top_k": 10, "repetition_penalty": 1, "stop_token_ids": []},
            },
        ),
    ]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"do_sample": False, "num_return_sequences": 2}, {"temperature": 0, "top_k": 0, "n": 1}),
        ({"generate_kwargs": {"max_length": "50", "min_length": 50}}, {"max_tokens": 10, "min_tokens": 10}),
        ({"max_length": 30, "min_new_tokens": 9}, {"max_tokens": 1, "min_tokens": 1}),
        ({"max_new_tokens": 10**6, "eos_token_id": 11}, {"max_tokens": CONTEXT - 40, "stop_token_ids": [11]}),
        ({"temperature": 0.5, "top_p": 0.9, "typical_p": 1}, {"temperature": 0.5, "top_p": 0.9}),
    ],
)
def test_parameters_mean_what_they_meant(given: dict[str, Any], asked: dict[str, Any]) -> None:
    vllm = Vllm()
    assert post(vllm, "/chat", {"prompt": "Hello", "return_full_text": False, **given})[0] == 200
    assert asked.items() <= vllm.asked[-1][1].items()


@pytest.mark.promise("KAITO", "`/chat` of presets that need several GPUs")
def test_conversations_of_llama_are_answered_up_to_the_end_of_the_context() -> None:
    vllm = Vllm()
    dialogs = [[{"role": "user", "content": word}] for word in ("One", "Two")]
    status, answer, _ = post(vllm, "/chat", {"input_data": {"input_string": dialogs}, "parameters": None})
    assert status == 200
    assert answer["results"][1] == [{"role": "User", "content": "Two"}, {"role": "Assistant", "content": "A"}]
    completions = [asked for path, asked in vllm.asked if path == "/v1/completions"]
    assert [(each["max_tokens"], each["temperature"], each["top_p"]) for each in completions] == [(2008, 0.6, 0.9)] * 2


@pytest.mark.parametrize("path", ["/v1/models", "/tokenize", "/v1/completions"])
def test_an_error_of_the_engine_is_passed_on(path: str) -> None:
    status, answer, headers = post(Vllm(failing={path: 401}), "/chat", {"prompt": "Hello"})
    assert status == 401
    assert headers[b"a"] == path.encode()
    assert answer is not None
    assert "Result" not in answer


def test_no_body_is_read_before_the_key_was_checked() -> None:
    assert post(Vllm(failing={"/v1/models": 401}), "/chat", b"{")[0] == 401
    assert post(Vllm(), "/chat", b"{")[0] == 400


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"[]", 400, None),
        (b"\xff", 400, None),
        (b"[" * 100_000, 400, None),
        (b'{"prompt": "\\ud800"}', 400, None),
        (b'{"prompt": "a", "temperature": NaN}', 400, None),
        (b'{"prompt": "a", "temperature": 1e999}', 400, "temperature"),
        (b'{"prompt": "a", "max_length": 1.5}', 400, "max_length"),
        (b'{"prompt": "a", "max_length": true}', 400, "max_length"),
        (b'{"prompt": "a", "do_sample": 1}', 400, "do_sample"),
        (b'{"prompt": "a", "top_p": 0}', 400, "top_p"),
        (b'{"messages": [{"role": "user", "content": 7}]}', 400, "messages.0.content"),
        (b'{"messages": [{"role": "robot"}]}', 400, "messages.0.role"),
        (b'{"input_data": {"input_string": []}}', 400, "input_data.input_string"),
        (b'{"prompt": "' + b"a" * MOST_BYTES + b'"}', 413, None),
    ],
)
def test_what_is_invalid_is_refused_and_never_reaches_the_engine(body: bytes, status: int, param: str | None) -> None:
    vllm = Vllm()
    found, answer, headers = post(vllm, "/chat", body)
    assert (found, answer["error"]["param"]) == (status, param)
    assert headers[b"access-control-allow-origin"] == b"*"
    assert [path for path, _ in vllm.asked] == ["/v1/models"]


def test_the_engine_stops_when_the_client_is_gone() -> None:
    vllm = Vllm(hanging=True)
    assert post(vllm, "/generate", {"prompts": ["One", "Two"]}, calls=5) == (0, None, {})
    assert vllm.ended == 2


def test_other_routes_are_the_engines() -> None:
    vllm = Vllm()
    assert post(vllm, "/v1/chat/completions", {})[:2] == (404, "/v1/chat/completions")
    assert [path for path, _ in vllm.asked] == ["/v1/chat/completions"]


def test_ignored_parameters_are_those_of_kaigens_own_server() -> None:
    # The middleware runs in the image of vLLM, where that server is not installed.
    tree = ast.parse((ROOT / "runtimes" / "chat" / "kaigen_chat" / "kaito.py").read_text(encoding="utf-8"))
    (own,) = [
        each.value
        for each in tree.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id == "_NEUTRAL"
    ]
    assert own is not None
    assert ast.literal_eval(own) == NEUTRAL
