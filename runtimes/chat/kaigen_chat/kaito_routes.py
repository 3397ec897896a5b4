"""KAITO's routes: /chat and /generate, for clients that were written for its servers."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from kaigen_chat import kaito
from kaigen_chat.http import as_json, read_json, unless_gone
from kaigen_chat.job import Job, Piece
from kaigen_chat.sampling import Sampling
from kaigen_chat.schemas import Message
from kaigen_chat.service import Service


def router(service: Service) -> APIRouter:
    """The routes of a service."""

    async def tokens(texts: Sequence[str], param: str) -> list[list[int]]:
        found = await service.read(lambda: [service.model.encode(text) for text in texts])
        for prompt in found:
            service.check(prompt, None, param)
        return found

    async def conversations(dialogs: Sequence[Sequence[Message]], param: str) -> list[list[int]]:
        found = await service.read(
            lambda: [service.model.chat([message.plain() for message in dialog]) for dialog in dialogs]
        )
        for prompt in found:
            service.check(prompt, None, param)
        return found

    async def run(request: Request, jobs: Sequence[Job]) -> list[Piece]:
        with service.ask(jobs) as answer:
            return await unless_gone(request, answer.whole())

    def jobs(prompts: Sequence[Sequence[int]], sampling: Sequence[Sampling]) -> list[Job]:
        return [
            Job(prompt, how, first=number, whole=True)
            for number, (prompt, how) in enumerate(zip(prompts, sampling, strict=True))
        ]

    async def chat(request: Request) -> Response:
        asked = kaito.parse_chat(await read_json(request), service.limits.most)
        if isinstance(asked, kaito.Dialogs):
            prompts = await conversations(asked.dialogs, "input_data.input_string")
            how = [kaito.llama_sampling(asked.parameters, len(prompt), service.span()) for prompt in prompts]
            pieces = await run(request, jobs(prompts, how))
            results = [
                [_message(message.role, message.plain()["content"]) for message in dialog]
                + [_message("assistant", piece.text)]
                for dialog, piece in zip(asked.dialogs, pieces, strict=True)
            ]
            return as_json({"results": results})
        if isinstance(asked, kaito.Chat):
            [prompt] = await conversations([asked.messages], "messages")
            before = ""
        else:
            [prompt] = await tokens([asked.prompt], "prompt")
            before = asked.prompt if asked.full else ""
        count = asked.generate.num_return_sequences
        sampling = kaito.sampling(asked.generate, len(prompt), service.span(count))
        job = Job(prompt, sampling, count, whole=True)
        return as_json({"Result": "".join(before + piece.text for piece in await run(request, [job]))})

    async def generate(request: Request) -> Response:
        asked = kaito.parse_generate(await read_json(request), service.limits.most)
        prompts = await tokens(asked.prompts, "prompts")
        how = [kaito.llama_sampling(asked.parameters, len(prompt), service.span()) for prompt in prompts]
        pieces = await run(request, jobs(prompts, how))
        results = [
            {"prompt": prompt, "response": piece.text} for prompt, piece in zip(asked.prompts, pieces, strict=True)
        ]
        return as_json({"results": results})

    routes = APIRouter()
    routes.add_api_route("/chat", chat, methods=["POST"])
    routes.add_api_route("/generate", generate, methods=["POST"])
    return routes


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role.capitalize(), "content": content}
