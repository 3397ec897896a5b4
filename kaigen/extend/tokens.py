"""Tokens: what a template writes in place of values, which replace them after its output was parsed as YAML.

This module is used on both sides: in the process that renders templates, and in the one that reads their output.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from msgspec import Struct, field

from kaigen.extend.template_errors import MisusedValue

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
