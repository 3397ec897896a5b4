"""What templates and their reader share: tokens in place of values, replaced after the output was parsed, and errors.

This module is used on both sides: in the process that renders templates, and in the one that reads their output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import Struct, field

from kaigen.diagnostics.errors import InputError, KaigenError

NAMES = ("spec", "name", "release", "run", "namespace", "labels", "profile", "kubernetes", "setting")
"""What a template knows, next to `range` and `dict`."""


class TemplateFailure(KaigenError):
    """A template cannot be rendered.

    Attributes:
        message: the error.
        word: the word to mark on the template's line; empty for the whole line.
    """

    exit_code = InputError.exit_code

    def __init__(self, message: str, hint: str = "", word: str = "") -> None:
        super().__init__(message, hint=hint)
        self.message = message
        self.word = word


class MisusedValue(TemplateFailure):
    """A value is used in a way that it does not allow."""


class LimitExceeded(TemplateFailure):
    """A template takes too many steps or produces too much text."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "limit what the template loops over, for example with `maxItems` in the schema")


MAX_STEPS = 200_000
"""Loop iterations, macro calls and blocks of 64 characters in one template."""

MAX_TEXT = 1_000_000
"""Characters of one text."""

MARK, END = "\ufdd0", "\ufdd1"
"""Unicode noncharacters around a source mark in the output; no text of a user contains them."""

SOURCE_MARK = re.compile(f"{MARK}([^{MARK}{END}]*):([0-9]{{1,9}}){END}")
"""A source mark in the output: name and line of the template."""

FIRST_TOKENS = ("release", "run", "namespace", "appName", "releaseName")
"""The values that every rendering has, in the order of their tokens."""


class Placeholder(Struct, frozen=True, eq=False):
    """A value known only at deploy time: a template can write it, alone or inside a string, and do nothing else.

    Attributes:
        token: what is written.
        description: how messages name it.
    """

    token: str
    description: str

    def __str__(self) -> str:
        return self.token

    def __add__(self, other: object) -> str:
        return f"{self.token}{other}"

    def __radd__(self, other: object) -> str:
        return f"{other}{self.token}"

    def _refuse(self, *_: object) -> NoReturn:
        raise MisusedValue(
            f"{self.description} is known only at deploy time, so a template cannot inspect it",
            "inspect the field of `spec` that it comes from",
        )

    __bool__ = __len__ = __iter__ = __eq__ = __ne__ = __hash__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __int__ = __float__ = _refuse
    __getitem__ = __mul__ = __rmul__ = __sub__ = __mod__ = __truediv__ = __floordiv__ = _refuse


class Run(Struct):
    """One rendering.

    Attributes:
        nonce: what every token starts with; no text of the spec or the templates contains it.
        values: the values that tokens replace, by the token's number.
        steps: how many steps it took.
    """

    nonce: str
    values: list[Any] = field(default_factory=list)
    steps: int = 0

    def token(self, value: Any) -> str:
        """Store a value and return its token."""
        self.values.append(value)
        return f"{self.nonce}{len(self.values) - 1}z"


_PATH = re.compile(r"[a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*")


def check_path(path: object) -> str:
    """Return the name of a setting.

    Raises:
        MisusedValue: it is not one.
    """
    if not isinstance(path, str) or not _PATH.fullmatch(path) or path.split(".")[0] == "global":
        raise MisusedValue(
            f"`{path}` is not a valid name of a setting",
            "use letters and digits, with dots between levels, such as `storage.size`",
        )
    return str.__str__(path)


def check_default(path: str, default: Any, nonce: str) -> Any:
    """Return the default of a setting as plain data.

    Args:
        path: name of the setting.
        default: as the template passes it.
        nonce: beginning of the tokens, which a default must not contain.

    Raises:
        MisusedValue: there is none, or it is not plain data.
    """
    if default is None:
        raise MisusedValue(f"the setting `{path}` requires a default")
    if isinstance(default, Placeholder):
        raise MisusedValue(f"the default of `{path}` must be known at render time")
    return _plain(path, default, nonce)


def _plain(path: str, default: Any, nonce: str) -> Any:
    if isinstance(default, str) and nonce in default:
        raise MisusedValue(f"the default of `{path}` must be known at render time")
    if isinstance(default, Mapping):
        return {str(key): _plain(path, value, nonce) for key, value in default.items()}
    if isinstance(default, list | tuple):
        return [_plain(path, value, nonce) for value in default]
    if not isinstance(default, str | int | float | bool):
        raise MisusedValue(f"the default of `{path}` must be plain data")
    return str(default) if isinstance(default, str) else default


def check_same(path: str, known: object, default: object) -> None:
    """Check that two calls for one setting have the same default.

    Raises:
        MisusedValue: they have not.
    """
    if known != default:
        raise MisusedValue(f"the setting `{path}` has two different defaults", "rename one of the two settings")
