"""Request bodies of OpenAI's API. Fields that this server does not support are rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from kaigen_chat.errors import Refused, bad_request
from kaigen_chat.sampling import Defaults, Sampling

Token = Annotated[int, Field(ge=0)]
_MOST_CHOICES = 128
_MOST_STOPS = 16
_MOST_MESSAGES = 4096
_MOST_ENTRIES = 4096
"""Entries of a mapping, and stop tokens. A body of 4 MiB could have a million, with an error for each."""

# A list is valid only if all of its items are, so the first error is enough.
FIRST_ERROR = Field(fail_fast=True)

# Fields of OpenAI's API that say something about the account, not about the answer.
_IGNORED = frozenset(
    {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "parallel_tool_calls"}
)
# Fields that mean: no such thing, when they have one of these values.
_ABSENT: dict[str, tuple[JsonValue, ...]] = {
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "echo": (False,),
    "suffix": ("",),
    "best_of": (1,),
}


class Schema(BaseModel):
    """A part of a body; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > _MOST_ENTRIES:
            raise ValueError(f"at most {_MOST_ENTRIES} fields")
        return value


class Part(Schema):
    """A part of a message's content."""

    type: Literal["text"]
    text: str


class Message(Schema):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[Part], Field(max_length=_MOST_MESSAGES), FIRST_ERROR] | None = None
    name: str | None = None

    def plain(self) -> dict[str, str]:
        """Return the message with its content as one text, as chat templates expect."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text for part in content)
        named = {} if self.name is None else {"name": self.name}
        return {"role": self.role, "content": content or "", **named}


Messages = Annotated[list[Message], Field(min_length=1, max_length=_MOST_MESSAGES), FIRST_ERROR]
"""A conversation."""


class StreamOptions(Schema):
    """How to stream."""

    include_usage: bool = False


class Body(Schema):
    """Common fields of chats and completions. Fields after `seed` are vLLM's."""

    model: str | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=_MOST_CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    stop: str | Annotated[list[str], Field(max_length=_MOST_STOPS), FIRST_ERROR] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] = 0.0
    logit_bias: dict[Token, Annotated[float, Field(ge=-100, le=100)]] | None = None
    seed: int | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    min_tokens: Annotated[int, Field(ge=0)] = 0
    stop_token_ids: Annotated[list[Token], Field(max_length=_MOST_ENTRIES), FIRST_ERROR] | None = None
    ignore_eos: bool = False

    @field_validator("n", "stream", "presence_penalty", "frequency_penalty", "min_tokens", "ignore_eos", mode="before")
    @classmethod
    def _null_is_default(cls, value: JsonValue, info: object) -> JsonValue:
        name = getattr(info, "field_name", "")
        default: JsonValue = cls.model_fields[name].default
        return default if value is None else value

    @field_validator("logit_bias", mode="before")
    @classmethod
    def _few_biases(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > _MOST_ENTRIES:
            raise ValueError(f"at most {_MOST_ENTRIES} tokens")
        return value

    @field_validator("stop")
    @classmethod
    def _stops(cls, value: str | list[str] | None) -> str | list[str] | None:
        texts = [value] if isinstance(value, str) else value or []
        if not all(texts):
            raise ValueError("a stop text must not be empty")
        return value

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop texts."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def usage_in_stream(self) -> bool:
        """Whether the stream ends with the number of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage

    def sampling(self, defaults: Defaults, max_tokens: int, logprobs: int | None) -> Sampling:
        """The engine's parameters.

        Args:
            defaults: for what the body does not say.
            max_tokens: most tokens of an answer.
            logprobs: how many of the most likely tokens to return.
        """
        return Sampling(
            max_tokens=max_tokens,
            min_tokens=self.min_tokens,
            temperature=defaults.temperature if self.temperature is None else self.temperature,
            top_p=defaults.top_p if self.top_p is None else self.top_p,
            top_k=max(0, defaults.top_k if self.top_k is None else self.top_k),
            repetition_penalty=(
                defaults.repetition_penalty if self.repetition_penalty is None else self.repetition_penalty
            ),
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            logit_bias=tuple((self.logit_bias or {}).items()),
            seed=self.seed,
            stop=self.stops,
            stop_tokens=frozenset(self.stop_token_ids or ()),
            ignore_eos=self.ignore_eos,
            logprobs=logprobs,
        )


class ChatBody(Body):
    """The body of /v1/chat/completions."""

    messages: Messages
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    logprobs: bool = False
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    chat_template_kwargs: dict[str, JsonValue] | None = None

    @field_validator("logprobs", mode="before")
    @classmethod
    def _null_is_false(cls, value: JsonValue) -> JsonValue:
        return False if value is None else value

    @property
    def limit(self) -> int | None:
        """Most tokens of an answer, when the body says so."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    @property
    def top_count(self) -> int | None:
        """How many of the most likely tokens to return; None to return no probabilities."""
        if not self.logprobs:
            if self.top_logprobs:
                raise bad_request("top_logprobs needs logprobs to be true", "top_logprobs")
            return None
        return self.top_logprobs or 0


class CompletionBody(Body):
    """The body of /v1/completions."""

    prompt: (
        str
        | Annotated[list[str], FIRST_ERROR]
        | Annotated[list[Token], FIRST_ERROR]
        | Annotated[list[Annotated[list[Token], FIRST_ERROR]], FIRST_ERROR]
    )
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    @property
    def prompts(self) -> list[str | list[int]]:
        """One for each prompt: its text, or its tokens."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [[token for token in self.prompt if isinstance(token, int)]]
        return [one for one in self.prompt if not isinstance(one, int)]


Parsed = TypeVar("Parsed", bound=Schema)


def parse_chat(data: JsonValue) -> ChatBody:
    """Raise `Refused` for the first invalid field."""
    return _parse(ChatBody, data)


def parse_completion(data: JsonValue, most: int) -> CompletionBody:
    """Raise `Refused` for the first invalid field.

    Args:
        data: the body.
        most: prompts that the server takes in one request.
    """
    prompt = data.get("prompt") if isinstance(data, dict) else None
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        check_count(prompt, most, "prompt")
    return _parse(CompletionBody, data)


def check_count(prompts: JsonValue, most: int, param: str) -> None:
    """Raise `Refused` for more prompts than the server takes in one request, before any of them is looked at."""
    if isinstance(prompts, list) and len(prompts) > most:
        raise bad_request(f"This server takes at most {most} prompts in one request", param)


def _parse(schema: type[Parsed], data: JsonValue) -> Parsed:
    if not isinstance(data, dict):
        raise bad_request("The body must be a JSON object")
    kept: dict[str, JsonValue] = {}
    for name, value in data.items():
        if name in schema.model_fields:
            kept[name] = value
        elif name in _IGNORED or value is None or value in _ABSENT.get(name, ()):
            continue
        elif name in _ABSENT:
            raise bad_request(f"{name} is not supported by this server", name, "unsupported_parameter")
        else:
            raise bad_request(f"Unknown field: {name}", name, "unknown_parameter")
    try:
        return schema.model_validate(kept)
    except ValidationError as error:
        raise refusal(error) from None


def refusal(error: ValidationError) -> Refused:
    """Return a 400 response that names the first invalid field."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = path(first["loc"])
    more = error.error_count() - 1
    rest = f" (and {more} more)" if more else ""
    message = str(first["msg"]).removeprefix("Value error, ")
    return bad_request(f"{where}: {message}{rest}" if where else message, where or None)


def path(parts: Sequence[str | int]) -> str:
    """`messages.0.role`, without the names of types that pydantic adds for unions."""
    return ".".join(
        str(part) for part in parts if isinstance(part, int) or (part.replace("_", "").isalnum() and part not in _TYPES)
    )


_TYPES = frozenset({"str", "int", "float", "bool"})
