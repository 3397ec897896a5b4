"""The request and response bodies of KAITO's servers on /chat and /generate.

On /chat there were three: flat parameters next to `prompt` (the first falcon server), `prompt` or `messages` with
`generate_kwargs` (text-generation servers to 0.8), and `input_data` (llama servers, whose /generate takes `prompts`).
Their defaults apply. What they took and this server does not have, such as beams, is refused unless it is the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from kaigen_chat.errors import bad_request
from kaigen_chat.sampling import Sampling
from kaigen_chat.schemas import FIRST_ERROR, Message, Messages, Schema, check_count, refusal

# Parameters that this server does not have, with the values that mean what it does anyway. None: any does.
_NEUTRAL: dict[str, tuple[JsonValue, ...] | None] = {
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


class _Generate(Schema):
    """Parameters of a text-generation server."""

    max_length: Annotated[int, Field(ge=1)] = 200
    max_new_tokens: Annotated[int, Field(ge=1)] | None = None
    min_length: Annotated[int, Field(ge=0)] = 0
    min_new_tokens: Annotated[int, Field(ge=0)] | None = None
    do_sample: bool = True
    temperature: Annotated[float, Field(ge=0)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 10
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    repetition_penalty: Annotated[float, Field(gt=0)] = 1.0
    eos_token_id: Annotated[int, Field(ge=0)] | None = None
    num_return_sequences: Annotated[int, Field(ge=1, le=128)] = 1


class _Dialogs(Schema):
    input_string: Annotated[list[Messages], Field(min_length=1), FIRST_ERROR]


class _Llama(Schema):
    """Parameters of a llama server."""

    max_gen_len: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0)] = 0.6
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9


class _LlamaChat(Schema):
    input_data: _Dialogs
    parameters: _Llama | None = None


class _LlamaText(Schema):
    prompts: Annotated[list[str], Field(min_length=1), FIRST_ERROR]
    parameters: _Llama | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """Answer `prompt` with `{"Result": text}`.

    Attributes:
        prompt: what to go on from.
        full: the answer begins with the prompt.
        generate: how.
    """

    prompt: str
    full: bool
    generate: _Generate


@dataclass(frozen=True, slots=True)
class Chat:
    """Answer `messages` with `{"Result": text}`."""

    messages: tuple[Message, ...]
    generate: _Generate


@dataclass(frozen=True, slots=True)
class Dialogs:
    """Conversations were sent: answered with each, its answer as the last message."""

    dialogs: tuple[tuple[Message, ...], ...]
    parameters: _Llama


@dataclass(frozen=True, slots=True)
class Prompts:
    """Complete each of the given texts."""

    prompts: tuple[str, ...]
    parameters: _Llama


def parse_chat(data: JsonValue, most: int) -> Text | Chat | Dialogs:
    """Return the request of a /chat body.

    Args:
        data: the body.
        most: conversations that the server takes in one request.

    Raises:
        Refused: the body is invalid.
    """
    if not isinstance(data, dict):
        raise bad_request("The body must be a JSON object")
    try:
        if "input_data" in data:
            dialogs = data["input_data"]
            if isinstance(dialogs, dict):
                check_count(dialogs.get("input_string"), most, "input_data.input_string")
            chat = _LlamaChat.model_validate(data)
            return Dialogs(tuple(map(tuple, chat.input_data.input_string)), chat.parameters or _Llama())
        rest = dict(data)
        prompt, messages = rest.pop("prompt", None), rest.pop("messages", None)
        full, prefix = rest.pop("return_full_text", None), rest.pop("prefix", None)
        generate = _generate(rest)
        if messages is not None:
            return Chat(tuple(_Conversation.model_validate({"messages": messages}).messages), generate)
    except ValidationError as error:
        raise refusal(error) from None
    if not isinstance(prompt, str) or not prompt:
        raise bad_request("prompt, messages or input_data is required, and none is there", "prompt")
    return Text(f"{prefix or ''}{prompt}", full is not False, generate)


class _Conversation(Schema):
    messages: Messages


def parse_generate(data: JsonValue, most: int) -> Prompts:
    """Return the request of a /generate body.

    Args:
        data: the body.
        most: prompts that the server takes in one request.

    Raises:
        Refused: the body is invalid.
    """
    if isinstance(data, dict):
        check_count(data.get("prompts"), most, "prompts")
    try:
        text = _LlamaText.model_validate(data)
    except ValidationError as error:
        raise refusal(error) from None
    return Prompts(tuple(text.prompts), text.parameters or _Llama())


def _generate(data: dict[str, JsonValue]) -> _Generate:
    nested = data.pop("generate_kwargs", None)
    if nested is not None and not isinstance(nested, dict):
        raise bad_request("generate_kwargs must be an object", "generate_kwargs")
    kept: dict[str, JsonValue] = {}
    for name, value in {**data, **(nested or {})}.items():
        if value is None:
            continue
        if name in _NEUTRAL:
            allowed = _NEUTRAL[name]
            if allowed is not None and value not in allowed:
                raise bad_request(f"{name} is not supported by this server", name, "unsupported_parameter")
            continue
        kept[name] = value
    return _Generate.model_validate(kept)


def sampling(generate: _Generate, prompt: int, context: int) -> Sampling:
    """The engine's parameters of a text-generation body.

    `max_length` counts the prompt, too, as in transformers; at least one token is generated.

    Args:
        generate: the body's.
        prompt: tokens of the prompt.
        context: most tokens of prompt and answer.
    """
    room = max(1, context - prompt)
    most = generate.max_new_tokens or max(1, generate.max_length - prompt)
    least = generate.min_length - prompt if generate.min_new_tokens is None else generate.min_new_tokens
    return Sampling(
        max_tokens=min(most, room),
        min_tokens=max(0, least),
        temperature=generate.temperature if generate.do_sample else 0.0,
        top_p=generate.top_p if generate.do_sample else 1.0,
        top_k=generate.top_k if generate.do_sample else 0,
        repetition_penalty=generate.repetition_penalty,
        stop_tokens=frozenset(() if generate.eos_token_id is None else (generate.eos_token_id,)),
    )


def llama_sampling(parameters: _Llama, prompt: int, context: int) -> Sampling:
    """The engine's parameters of a llama body; without `max_gen_len` to the end of the context."""
    room = max(1, context - prompt)
    return Sampling(
        max_tokens=min(parameters.max_gen_len or room, room), temperature=parameters.temperature, top_p=parameters.top_p
    )
