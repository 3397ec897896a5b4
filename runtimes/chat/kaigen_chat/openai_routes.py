"""OpenAI's routes: /v1/chat/completions, /v1/completions, /v1/models."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from kaigen_chat.errors import Refused
from kaigen_chat.http import Events, as_json, read_json, unless_gone
from kaigen_chat.job import Job, Piece, Spelled, TokenLogprobs
from kaigen_chat.schemas import Body, parse_chat, parse_completion
from kaigen_chat.service import Answer, Service
from kaigen_chat.text import BROKEN

_DEFAULT_COMPLETION = 16  # tokens, as OpenAI documents for max_tokens of completions

Out = dict[str, object]


def router(service: Service) -> APIRouter:
    """The routes of a service."""
    made = int(time.time())

    async def chat(request: Request) -> Response:
        asked = parse_chat(await read_json(request))
        _check_model(asked, service)
        messages = [message.plain() for message in asked.messages]
        prompt = await service.read(lambda: service.model.chat(messages, asked.chat_template_kwargs))
        limit = service.check(prompt, asked.limit, "messages", asked.n)
        sampling = asked.sampling(service.model.defaults, limit, asked.top_count)
        job = Job(prompt, sampling, asked.n, whole=not asked.stream)
        return await _answer(request, service, asked, [job], _Chat(service.name, asked.top_count is not None))

    async def completions(request: Request) -> Response:
        asked = parse_completion(await read_json(request), service.limits.most)
        _check_model(asked, service)
        prompts = await service.read(lambda: [_tokens(service, prompt) for prompt in asked.prompts])
        jobs = []
        for number, prompt in enumerate(prompts):
            wanted = asked.max_tokens
            if wanted is None:
                wanted = min(_DEFAULT_COMPLETION, max(1, service.model.context - len(prompt)))
            limit = service.check(prompt, wanted, "prompt", asked.n)
            sampling = asked.sampling(service.model.defaults, limit, asked.logprobs)
            jobs.append(Job(prompt, sampling, asked.n, first=number * asked.n, whole=not asked.stream))
        if not jobs:
            raise Refused(400, "prompt must not be empty", param="prompt")
        return await _answer(request, service, asked, jobs, _Completion(service.name, asked.logprobs is not None))

    def card() -> Out:
        return {
            "id": service.name,
            "object": "model",
            "created": made,
            "owned_by": "kaigen",
            "max_model_len": service.model.context,
        }

    async def models() -> Response:
        return as_json({"object": "list", "data": [card()]})

    async def model(name: str) -> Response:
        if name != service.name:
            raise _no_model(name)
        return as_json(card())

    routes = APIRouter()
    routes.add_api_route("/v1/chat/completions", chat, methods=["POST"])
    routes.add_api_route("/v1/completions", completions, methods=["POST"])
    routes.add_api_route("/v1/models", models, methods=["GET"])
    routes.add_api_route("/v1/models/{name:path}", model, methods=["GET"])
    return routes


def _check_model(asked: Body, service: Service) -> None:
    if asked.model not in (None, service.name):
        raise _no_model(str(asked.model))


def _no_model(name: str) -> Refused:
    return Refused(404, f"There is no model {name!r} here", param="model", code="model_not_found")


def _tokens(service: Service, prompt: str | list[int]) -> list[int]:
    return service.model.encode(prompt) if isinstance(prompt, str) else prompt


@dataclass(frozen=True, slots=True)
class _Head:
    """Return the common fields of every object of one answer."""

    id: str
    kind: str
    created: int
    model: str

    def out(self, **more: object) -> Out:
        return {"id": self.id, "object": self.kind, "created": self.created, "model": self.model, **more}


class _Chat:
    """The shapes of a chat."""

    def __init__(self, model: str, logprobs: bool) -> None:
        self._id, self._created, self._model = f"chatcmpl-{uuid.uuid4().hex}", int(time.time()), model
        self._with_logprobs = logprobs

    def head(self, *, stream: bool) -> _Head:
        name = "chat.completion.chunk" if stream else "chat.completion"
        return _Head(self._id, name, self._created, self._model)

    def opening(self, choice: int) -> Out | None:
        """The first part of a stream, before there is text."""
        delta = {"role": "assistant", "content": ""}
        return {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}

    def part(self, piece: Piece) -> Out:
        delta = {"content": piece.text} if piece.text or not piece.finish else {}
        return self._choice(piece.choice, {"delta": delta}, piece.finish, piece.logprobs)

    def whole(self, piece: Piece) -> Out:
        message = {"role": "assistant", "content": piece.text, "refusal": None}
        return self._choice(piece.choice, {"message": message}, piece.finish, piece.logprobs)

    def _choice(self, number: int, content: Out, finish: str | None, logprobs: Sequence[TokenLogprobs]) -> Out:
        return {"index": number, **content, "logprobs": self._logprobs(logprobs), "finish_reason": finish}

    def _logprobs(self, logprobs: Sequence[TokenLogprobs]) -> Out | None:
        if not self._with_logprobs:
            return None
        return {
            "content": [
                {**_spelled(one.token), "top_logprobs": [_spelled(other) for other in one.top]} for one in logprobs
            ],
            "refusal": None,
        }


def _spelled(one: Spelled) -> Out:
    # A token that is a part of a character has no text of its own.
    data = None if BROKEN in one.text else list(one.text.encode())
    return {"token": one.text, "logprob": one.logprob, "bytes": data}


class _Completion:
    """The shapes of a completion."""

    def __init__(self, model: str, logprobs: bool) -> None:
        self._id, self._created, self._model = f"cmpl-{uuid.uuid4().hex}", int(time.time()), model
        self._with_logprobs = logprobs
        self._offsets: dict[int, int] = {}

    def head(self, *, stream: bool) -> _Head:
        return _Head(self._id, "text_completion", self._created, self._model)

    def opening(self, choice: int) -> Out | None:
        """Streams of completions have none."""
        return None

    def part(self, piece: Piece) -> Out:
        return self.whole(piece)

    def whole(self, piece: Piece) -> Out:
        return {
            "index": piece.choice,
            "text": piece.text,
            "logprobs": self._logprobs(piece),
            "finish_reason": piece.finish,
        }

    def _logprobs(self, piece: Piece) -> Out | None:
        if not self._with_logprobs:
            return None
        offsets = []
        for one in piece.logprobs:
            offset = self._offsets.get(piece.choice, 0)
            offsets.append(offset)
            self._offsets[piece.choice] = offset + len(one.token.text)
        return {
            "tokens": [one.token.text for one in piece.logprobs],
            "token_logprobs": [one.token.logprob for one in piece.logprobs],
            "top_logprobs": [{other.text: other.logprob for other in one.top} for one in piece.logprobs],
            "text_offset": offsets,
        }


def _usage(answer: Answer) -> Out:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


async def _answer(
    request: Request, service: Service, asked: Body, jobs: Sequence[Job], shape: _Chat | _Completion
) -> Response:
    answer = service.ask(jobs)
    if asked.stream:
        return Events(answer, _stream(answer, asked, shape))
    with answer:
        pieces = await unless_gone(request, answer.whole())
        head = shape.head(stream=False)
        return as_json(head.out(choices=[shape.whole(piece) for piece in pieces], usage=_usage(answer)))


async def _stream(answer: Answer, asked: Body, shape: _Chat | _Completion) -> AsyncIterator[Out]:
    head = shape.head(stream=True)
    # As OpenAI has it: when the usage is asked for, every part but the last has a null for it.
    no_usage: Out = {"usage": None} if asked.usage_in_stream else {}
    for choice in range(answer.choices):
        if (opening := shape.opening(choice)) is not None:
            yield head.out(choices=[opening], **no_usage)
    while pieces := await answer.next():
        for piece in _joined(pieces):
            yield head.out(choices=[shape.part(piece)], **no_usage)
    if asked.usage_in_stream:
        yield head.out(choices=[], usage=_usage(answer))


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Merge pieces into one per answer, when the client is slower than the engine."""
    joined: dict[int, Piece] = {}
    for piece in pieces:
        before = joined.get(piece.choice)
        joined[piece.choice] = (
            piece
            if before is None
            else Piece(
                piece.choice,
                before.text + piece.text,
                before.tokens + piece.tokens,
                before.logprobs + piece.logprobs,
                piece.finish,
            )
        )
    return list(joined.values())
