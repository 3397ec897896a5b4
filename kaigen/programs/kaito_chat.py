"""A middleware of vLLM that answers KAITO's routes `POST /chat` and `POST /generate`.

Bodies, defaults and answers are those of kaigen's own server (runtimes/chat/kaigen_chat/kaito.py).
vLLM does the work: the middleware runs before the check of the API key, and calls `/v1/models`, `/tokenize` and
`/v1/completions` within the process. Sources, vLLM 0.33.0: vllm/sampling_params.py, and in vllm/entrypoints
serve/middleware/register.py, serve/tokenize/protocol.py, openai/models/protocol.py and openai/completion/protocol.py.
"""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

MOST_BYTES, MOST_PROMPTS, MOST_MESSAGES = 4 << 20, 128, 4096
"""Limits of a body: its size, its prompts or conversations, the messages of one."""

ROLES = ("system", "developer", "user", "assistant")

GENERATE: Mapping[str, tuple[type, float, float]] = {
    "max_length": (int, 1, math.inf),
    "max_new_tokens": (int, 1, math.inf),
    "min_length": (int, 0, math.inf),
    "min_new_tokens": (int, 0, math.inf),
    "do_sample": (bool, 0, 1),
    "temperature": (float, 0, math.inf),
    "top_k": (int, 0, math.inf),
    "top_p": (float, math.ulp(0), 1),
    "repetition_penalty": (float, math.ulp(0), math.inf),
    "eos_token_id": (int, 0, math.inf),
    "num_return_sequences": (int, 1, MOST_PROMPTS),
}
LLAMA: Mapping[str, tuple[type, float, float]] = {
    "max_gen_len": (int, 1, math.inf),
    "temperature": (float, 0, math.inf),
    "top_p": (float, math.ulp(0), 1),
}
"""Parameters of a text-generation server, and of a llama server: their types, least and greatest values."""

NEUTRAL: Mapping[str, Sequence[Any] | None] = {
    "early_stopping": (False,),
    "num_beams": (1,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0,),
    "typical_p": (1,),
    "length_penalty": (1,),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "bad_words_ids": ([],),
    "output_scores": (False,),
    "return_dict_in_generate": (False,),
    "pad_token_id": None,
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "remove_invalid_values": None,
    "clean_up_tokenization_spaces": (False,),
    "handle_long_generation": (),
    "use_cache": None,
}
"""Parameters without an effect here, with the values that ask for none. None: any does."""

OF_BODIES = {
    b"accept-encoding",
    b"content-encoding",
    b"content-length",
    b"content-type",
    b"expect",
    b"transfer-encoding",
}


class Answered(Exception):
    """The answer to a request that fails: status, headers of its own, and body."""

    def __init__(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


class Gone(Exception):
    """The client closed the connection."""


def refusal(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Answered:
    """Return the answer to a body that is invalid, in OpenAI's format."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Answered(status, [(b"content-type", b"application/json")], json.dumps({"error": error}).encode())


class KaitoChat:
    """The middleware, for `--middleware=kaito_chat.KaitoChat`."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer a request for one of the routes; the engine answers all others."""
        route = ROUTES.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if route is None:
            await self.app(scope, receive, send)
            return
        engine = Engine(self.app, scope)
        headers: list[tuple[bytes, bytes]] = []
        try:
            # It answers 401 without a valid API key. Its other headers, as for browsers, are those of every answer.
            headers = (await engine.call("GET", "/v1/models"))[0]
            data = read(await body_of(receive))
            with engine.watching(receive):
                answer = await route(engine, data)
            found = Answered(200, [(b"content-type", b"application/json")], json.dumps(answer).encode())
        except Gone:
            return
        except Answered as error:
            found = error
        own = [*found.headers, (b"content-length", str(len(found.body)).encode())]
        headers = own + [each for each in headers if each[0].lower() not in {name.lower() for name, _ in own}]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": found.body})


class Engine:
    """The engine's own routes, as the client of one request calls them."""

    def __init__(self, app: Any, scope: Mapping[str, Any]) -> None:
        self.app, self.scope, self.gone = app, scope, asyncio.Event()

    @contextmanager
    def watching(self, receive: Callable[[], Awaitable[Any]]) -> Iterator[None]:
        """Cancel what the engine does as soon as the client, whose body was read, closes the connection."""

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.gone.set()

        task = asyncio.create_task(watch())
        try:
            yield
        finally:
            task.cancel()

    async def call(self, method: str, path: str, data: Any = None) -> tuple[list[tuple[bytes, bytes]], Any]:
        """Return the headers and the JSON of an answer; raise the answer if its status is not 200."""
        body = b"" if data is None else json.dumps(data).encode()
        given = [each for each in self.scope["headers"] if each[0] not in OF_BODIES]
        length = (b"content-length", str(len(body)).encode())
        own = {"method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        scope = {**self.scope, **own, "headers": [*given, length, (b"content-type", b"application/json")]}
        asked = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if asked:
                return asked.pop()
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        if self.gone.is_set():
            raise Gone
        content = b"".join(message.get("body", b"") for message in sent[1:])
        headers = [each for each in sent[0].get("headers", ()) if each[0].lower() != b"content-length"]
        if sent[0]["status"] != 200:
            raise Answered(sent[0]["status"], headers, content)
        return headers, json.loads(content)

    async def tokens(self, prompt: Mapping[str, Any], param: str) -> tuple[list[int], int]:
        """Return the tokens of a prompt, or of messages, and the number of tokens that an answer may have."""
        _, found = await self.call("POST", "/tokenize", prompt)
        tokens: list[int] = found["tokens"]
        context: int = found["max_model_len"]
        if not tokens:
            raise refusal("The prompt is empty", param)
        if len(tokens) >= context:
            message = f"The context of this model is {context} tokens: the prompt alone has {len(tokens)}"
            raise refusal(message, param, "context_length_exceeded")
        return tokens, context - len(tokens)

    async def complete(self, tokens: Sequence[int], sampling: Mapping[str, Any], count: int = 1) -> list[str]:
        """Return the answers to a prompt."""
        # vLLM refuses several of the likeliest answer, which are all the same.
        n = count if sampling["temperature"] else 1
        _, found = await self.call("POST", "/v1/completions", {"prompt": tokens, "n": n, **sampling})
        texts: list[str] = [each["text"] for each in sorted(found["choices"], key=lambda each: each["index"])]
        return texts * (count // n)

    async def llama(self, prompt: Mapping[str, Any], given: Mapping[str, Any], param: str) -> str:
        """Return the answer of a llama server."""
        tokens, room = await self.tokens(prompt, param)
        most = min(given.get("max_gen_len", room), room)
        sampling = {"temperature": given.get("temperature", 0.6), "top_p": given.get("top_p", 0.9), "top_k": 0}
        return (await self.complete(tokens, {"max_tokens": most, "repetition_penalty": 1, **sampling}))[0]


async def chat(engine: Engine, data: dict[str, Any]) -> Any:
    """Return the answer to a body of /chat: of a text-generation server, or of a llama server."""
    if "input_data" in data:
        fields(data, ("input_data", "parameters"))
        fields(data["input_data"], ("input_string",), "input_data")
        param = "input_data.input_string"
        dialogs = [
            conversation(each, f"{param}.{number}")
            for number, each in enumerate(items(data["input_data"].get("input_string"), param, MOST_PROMPTS))
        ]
        given = parameters(data.get("parameters"), LLAMA, "parameters.")
        texts = await together(engine.llama({"messages": dialog}, given, param) for dialog in dialogs)
        conversations = zip(dialogs, texts, strict=True)
        return {
            "results": [
                [*map(message_of, dialog), {"role": "Assistant", "content": text}] for dialog, text in conversations
            ]
        }
    rest = dict(data)
    prompt, messages, full, prefix = (
        rest.pop(name, None) for name in ("prompt", "messages", "return_full_text", "prefix")
    )
    given = generate_parameters(rest)
    if messages is not None:
        asked: dict[str, Any] = {"messages": conversation(messages, "messages")}
        param, before = "messages", ""
    elif isinstance(prompt, str) and prompt:
        text = f"{prefix or ''}{prompt}"
        asked, param, before = {"prompt": text}, "prompt", "" if full is False else text
    else:
        raise refusal("prompt, messages or input_data is required, and none is there", "prompt")
    tokens, room = await engine.tokens(asked, param)
    texts = await engine.complete(
        tokens, sampling_of(given, len(tokens), room), int(given.get("num_return_sequences", 1))
    )
    return {"Result": "".join(before + text for text in texts)}


async def generate(engine: Engine, data: dict[str, Any]) -> Any:
    """Return the answer to a body of /generate, which llama servers had for models that are not trained to chat."""
    fields(data, ("prompts", "parameters"))
    prompts = items(data.get("prompts"), "prompts", MOST_PROMPTS)
    for number, prompt in enumerate(prompts):
        if not isinstance(prompt, str):
            raise refusal("A prompt must be a string", f"prompts.{number}")
    given = parameters(data.get("parameters"), LLAMA, "parameters.")
    texts = await together(engine.llama({"prompt": prompt}, given, "prompts") for prompt in prompts)
    return {"results": [{"prompt": p, "response": text} for p, text in zip(prompts, texts, strict=True)]}


ROUTES: Mapping[str, Callable[[Engine, dict[str, Any]], Awaitable[Any]]] = {"/chat": chat, "/generate": generate}


async def together(asked: Iterator[Any]) -> list[str]:
    """Return the results of requests that run at the same time; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def sampling_of(given: Mapping[str, Any], prompt: int, room: int) -> dict[str, Any]:
    """Return vLLM's parameters of a text-generation body; `max_length` and `min_length` count the prompt, too."""
    most = min(given.get("max_new_tokens") or max(1, given.get("max_length", 200) - prompt), room)
    least = given.get("min_new_tokens", given.get("min_length", 0) - prompt)
    sample = given.get("do_sample", True)
    return {
        "max_tokens": most,
        "min_tokens": min(max(0, least), most),
        "temperature": given.get("temperature", 1) if sample else 0,
        "top_p": given.get("top_p", 1) if sample else 1,
        "top_k": given.get("top_k", 10) if sample else 0,
        "repetition_penalty": given.get("repetition_penalty", 1),
        "stop_token_ids": [given["eos_token_id"]] if "eos_token_id" in given else [],
    }


def generate_parameters(data: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a text-generation body, which may be nested."""
    nested = data.pop("generate_kwargs", None)
    if not isinstance(nested, dict | None):
        raise refusal("generate_kwargs must be a JSON object", "generate_kwargs")
    given = {name: value for name, value in {**data, **(nested or {})}.items() if value is not None}
    for name in given.keys() & NEUTRAL.keys():
        allowed, value = NEUTRAL[name], given.pop(name)
        if allowed is not None and value not in allowed:
            raise refusal(f"{name} is not supported by this server", name, "unsupported_parameter")
    return parameters(given, GENERATE)


def parameters(given: Any, known: Mapping[str, tuple[type, float, float]], before: str = "") -> dict[str, Any]:
    """Return the parameters of a body that are not null."""
    given = {} if given is None else given
    fields(given, known, before.rstrip("."))
    found = {}
    for name, value in given.items():
        kind, least, most = known[name]
        if value is None:
            continue
        try:
            number = value if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        valid = isinstance(number, bool) is (kind is bool) and math.isfinite(number) and least <= number <= most
        if not valid or kind(number) != number:
            words = {bool: "true or false", int: "a whole number"}.get(kind, "a number")
            limits = f" from {least:g} to {most:g}" if most < math.inf else f" of at least {least:g}"
            raise refusal(f"{before}{name} must be {words}{'' if kind is bool else limits}", before + name)
        found[name] = kind(number)
    return found


def conversation(given: Any, param: str) -> list[dict[str, Any]]:
    """Return messages, each with its content as one text."""
    messages = items(given, param, MOST_MESSAGES)
    found = []
    for number, message in enumerate(messages):
        at = f"{param}.{number}"
        fields(message, ("role", "content", "name"), at)
        if message.get("role") not in ROLES:
            raise refusal(f"{at}.role must be one of {', '.join(ROLES)}", f"{at}.role")
        content, name = message.get("content"), message.get("name")
        if isinstance(content, list):
            if not all(isinstance(each, dict) and isinstance(each.get("text"), str) for each in content):
                raise refusal(f"{at}.content must be text", f"{at}.content")
            content = "".join(each["text"] for each in content)
        for field, value in (("content", content), ("name", name)):
            if not isinstance(value, str | None):
                raise refusal(f"{at}.{field} must be a string", f"{at}.{field}")
        found.append({"role": message["role"], "content": content or "", **({} if name is None else {"name": name})})
    return found


def message_of(message: Mapping[str, Any]) -> dict[str, str]:
    """Return a message as llama servers answer with it."""
    return {"role": message["role"].capitalize(), "content": message["content"]}


def items(given: Any, param: str, most: int) -> list[Any]:
    """Return a list that has an item."""
    if not isinstance(given, list) or not given:
        raise refusal(f"{param} must be a list with an item", param)
    if len(given) > most:
        raise refusal(f"{param} must have at most {most} items", param)
    return given


def fields(given: Any, known: Sequence[str] | Mapping[str, Any], param: str = "") -> None:
    """Refuse what is no object, and fields that are not known."""
    if not isinstance(given, dict):
        raise refusal(f"{param or 'The body'} must be a JSON object", param or None)
    for name in given:
        if name not in known:
            at = f"{param}.{name}" if param else name
            raise refusal(f"Unknown field: {at}", at)


async def body_of(receive: Callable[[], Awaitable[Any]]) -> bytes:
    """Return the body of a request."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            raise refusal(f"The body is larger than {MOST_BYTES} bytes", code="request_too_large", status=413)
        more = message.get("more_body", False)
    return b"".join(parts)


def read(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, regardless of its content type."""

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")

    try:
        found = json.loads(body.decode(), parse_constant=refuse)
        json.dumps(found, ensure_ascii=False).encode()  # Halves of surrogate pairs, which no tokenizer can encode.
    except RecursionError:
        raise refusal("The body is nested too deep") from None
    except ValueError as error:
        raise refusal(f"The body is not JSON: {error}") from None
    fields(found, found)
    return dict(found)
