"""Messages between kaigen and the processes of templates and patches, as MessagePack.

What a process answers is data and nothing else: to read it runs no code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.msgpack import Ext

from kaigen.core.json_types import FieldPath
from kaigen.extend.tokens import MisusedValue, Placeholder

LIMIT = "KG1012"
"""Code of a template or patch whose process reached a limit."""

_TOKEN, _SETTING, _INTEGER, _OTHER = 1, 2, 3, 4
_SMALLEST, _LARGEST, _MOST_BITS = -(2**63), 2**63 - 1, 4096
_VIEWS = frozenset({"dict_keys", "dict_values"})

T = TypeVar("T")


class SettingPath(Struct, frozen=True):
    """A token's value that is a setting, by its path."""

    path: str


class Other(Struct, frozen=True):
    """A value of a template that is not data, such as a macro."""


def plain(value: Any) -> Any:
    """Return a value of a template as it is sent.

    Raises:
        MisusedValue: for a text that cannot be encoded, or a number of more than 4,096 bits.
    """
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Placeholder):
        return Ext(_TOKEN, value.token.encode())
    if isinstance(value, Mapping):
        return {_text(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | range) or type(value).__name__ in _VIEWS:
        return [plain(item) for item in value]
    return Ext(_OTHER, b"")


def _integer(value: int) -> Any:
    if _SMALLEST <= value <= _LARGEST:
        return int(value)
    if value.bit_length() > _MOST_BITS:
        raise MisusedValue(f"a number of {value.bit_length():,} bits is too large")
    return Ext(_INTEGER, format(value, "x").encode())


def _text(value: str) -> str:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MisusedValue("a text contains half of a surrogate pair") from None
    return text


def setting_value(path: str) -> Any:
    """Return the value of a setting's token as it is sent."""
    return Ext(_SETTING, path.encode())


def _read_extension(code: int, data: memoryview) -> Any:
    text = bytes(data).decode()
    if code == _TOKEN:
        return Placeholder(text, "")
    if code == _SETTING:
        return SettingPath(text)
    if code == _INTEGER and len(text) <= _MOST_BITS // 4 + 1:
        return int(text, 16)
    return Other()


encode = msgspec.msgpack.Encoder().encode
"""Return a message as bytes."""


def decode(data: bytes, type_: type[T]) -> T:
    """Return a message.

    Raises:
        ValueError: the bytes are not a message of this type.
    """
    try:
        return msgspec.msgpack.decode(data, type=type_, ext_hook=_read_extension)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None


class Check(Struct, frozen=True):
    """Request: check the syntax of templates, whose texts are given by name."""

    templates: dict[str, str]


class Render(Struct, frozen=True):
    """Request: render the templates of a kind for one document.

    Attributes:
        templates: their texts by name, as an encoded mapping.
        objects: names of those that make objects.
        signature: digest of the kind.
        nonce: beginning of every token.
        names: the values that the templates can use, except those with tokens.
    """

    templates: msgspec.Raw
    objects: tuple[str, ...]
    signature: str
    nonce: str
    names: dict[str, Any]


class Locate(Struct, frozen=True):
    """Request: the line of a template that a line of its code was made from."""

    templates: dict[str, str]
    name: str
    line: int


class Failure(Struct, frozen=True):
    """Why a template cannot be used.

    Attributes:
        template: its name.
        line: its line, from 1.
        message: the error.
        hint: how to fix it.
        word: the word to mark on the line; empty for the whole line.
        code: of the diagnostic.
    """

    template: str
    line: int
    message: str
    hint: str = ""
    word: str = ""
    code: str = "KG1005"


class SettingCall(Struct, frozen=True):
    """The first call of `setting` with a path.

    Attributes:
        path: name of the setting.
        default: plain data.
        doc: a sentence, or empty.
        schema: the JSON Schema that the template gave it, or None.
        template: the template that calls it.
        line: the line there.
        origin: the field of the spec that the default comes from.
    """

    path: str
    default: Any
    doc: str
    schema: dict[str, Any] | None
    template: str
    line: int
    origin: FieldPath


class Output(Struct, frozen=True):
    """What one template wrote, or why it failed.

    Attributes:
        template: its name.
        text: with source marks and tokens.
        failure: the error; None without one.
        settings: the settings that it defined.
    """

    template: str
    text: str = ""
    failure: Failure | None = None
    settings: tuple[SettingCall, ...] = ()


class Rendered(Struct, frozen=True):
    """Answer to `Render`.

    Attributes:
        outputs: one for each template that makes objects.
        values: those that tokens replace, after the first ones.
    """

    outputs: tuple[Output, ...]
    values: tuple[Any, ...]


class TemplateRequest(Struct, frozen=True):
    """A request to the process of templates; one of the three."""

    check: Check | None = None
    render: Render | None = None
    locate: Locate | None = None
