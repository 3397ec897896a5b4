"""Checks the body of a request, and writes the one that distributed-llama reads.

The program ends on a body that is not JSON, has no messages, or has content that is not text. So nothing of a request
is passed on: what it asks for is read, and written again in the few fields that the program knows.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NoReturn

ROLES = ("system", "user", "assistant")
_MOST_MESSAGES = 4096
_MOST_SEED = 2**63 - 1


class Refused(Exception):
    """A request is not passed on. The text says why.

    Attributes:
        status: HTTP status of the answer.
        param: field of the request; empty for all of it.
    """

    def __init__(self, message: str, param: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.param = param
        self.status = status


@dataclass(frozen=True, slots=True)
class Chat:
    """A request that was checked.

    Attributes:
        body: the request for distributed-llama. It always streams: only then an answer in broken UTF-8 does not end it.
        model: name of the model in the answer.
        stream: whether the client asked for a stream.
    """

    body: bytes
    model: str
    stream: bool


def checked(body: bytes, names: Collection[str], context: int) -> Chat:
    """Return the request in a body.

    Args:
        body: of the request.
        names: names of the model, the first of which is the default.
        context: longest context of the model, in tokens.

    Raises:
        Refused: the request cannot be answered.
    """
    given = _object(body)
    model = given.get("model") or next(iter(names))
    if model not in names:
        raise Refused(f"the model {json.dumps(model)[:200]} does not exist", "model", 404)
    stream = given.get("stream") or False
    if not isinstance(stream, bool):
        raise Refused("`stream` must be true or false", "stream")
    _check_unsupported(given)
    wanted: dict[str, Any] = {"messages": _messages(given.get("messages")), "stream": True}
    tokens = given.get("max_completion_tokens")
    name = "max_tokens" if tokens is None else "max_completion_tokens"
    tokens = given.get("max_tokens") if tokens is None else tokens
    if tokens is not None:
        wanted["max_tokens"] = min(_integer(tokens, name, 1), context)
    if given.get("seed") is not None:
        wanted["seed"] = min(_integer(given["seed"], "seed", 0), _MOST_SEED)
    return Chat(_written(wanted), model, stream)


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body.decode("utf-8"), parse_constant=_constant)
    except RecursionError:
        raise Refused("the body is nested too deeply") from None
    except ValueError as error:
        raise Refused(f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(given, dict):
        raise Refused("the body must be a JSON object")
    return given


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _messages(given: Any) -> list[dict[str, str]]:
    if not isinstance(given, list) or not given:
        raise Refused("`messages` must be a list of at least one message", "messages")
    if len(given) > _MOST_MESSAGES:
        raise Refused(f"`messages` must have at most {_MOST_MESSAGES} messages", "messages")
    return [_message(each, f"messages[{index}]") for index, each in enumerate(given)]


def _message(given: Any, at: str) -> dict[str, str]:
    if not isinstance(given, dict):
        raise Refused(f"`{at}` must be an object", at)
    role = given.get("role")
    role = "system" if role == "developer" else role
    if role not in ROLES:
        raise Refused(f"`{at}.role` must be one of {', '.join(ROLES)}", f"{at}.role")
    return {"role": role, "content": _content(given.get("content"), f"{at}.content")}


def _content(given: Any, at: str) -> str:
    """Return the text of a message; parts of text are joined."""
    if isinstance(given, list) and given:
        given = "".join(_part(each, f"{at}[{index}]") for index, each in enumerate(given))
    if not isinstance(given, str):
        raise Refused(f"`{at}` must be a text, or a list of parts of type `text`", at)
    if "\0" in given:
        raise Refused(f"`{at}` has a character that distributed-llama cannot read, U+0000", at)
    return given


def _part(given: Any, at: str) -> str:
    text = given.get("text") if isinstance(given, dict) and given.get("type") == "text" else None
    if not isinstance(text, str):
        raise Refused(f"`{at}` must be a part of type `text`: the model reads text only", at)
    return text


def _integer(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Refused(f"`{name}` must be a whole number of at least {least}", name)
    return value


def _check_unsupported(given: dict[str, Any]) -> None:
    """Report what changes the answer, and what distributed-llama cannot do."""
    if given.get("n") not in (None, 1):
        raise Refused("`n` must be 1: the server gives one answer", "n")
    for name in ("tools", "functions", "logprobs"):
        if given.get(name):
            raise Refused(f"the server does not support `{name}`", name)
    form = given.get("response_format")
    if form is not None and not (isinstance(form, dict) and form.get("type") == "text"):
        raise Refused("the server answers with text only", "response_format")


def _written(wanted: dict[str, Any]) -> bytes:
    try:
        return json.dumps(wanted, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("a message has half of a surrogate pair, which is not a character", "messages") from None
