"""Flags of distributed-llama that a spec may set, and the values that they take.

Source: `AppCliArgs::parse` of distributed-llama v0.16.2 and v0.16.4. The program ends on a flag that it does not know,
and reads a number that is none as 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kaigen.diagnostics.suggest import did_you_mean


class RingFlag(Struct, frozen=True):
    """A flag of distributed-llama.

    Attributes:
        expected: its values in words.
        pattern: of a value as text.
        most: greatest number; None for no limit.
        choices: all values, where there are few.
    """

    expected: str
    pattern: str
    most: float | None = None
    choices: tuple[str, ...] = ()

    def accepts(self, value: str) -> bool:
        """Return whether the program reads a text as it is meant."""
        if self.choices:
            return value in self.choices
        if not re.fullmatch(self.pattern, value):
            return False
        return self.most is None or (float(value) if "." in value else int(value)) <= self.most


def _choice(*names: str) -> RingFlag:
    return RingFlag(" or ".join(f"`{name}`" for name in names), "", choices=names)


_WHOLE = r"[0-9]{1,20}"
_NUMBER = r"[0-9]{1,10}(\.[0-9]{1,20})?"

RING_FLAGS: Mapping[str, RingFlag] = {
    "chat-template": _choice("llama2", "llama3", "deepSeek3"),
    "gpu-index": RingFlag("a whole number from 0", r"[0-9]{1,4}"),
    "gpu-segments": RingFlag("two whole numbers such as `0:16`", r"[0-9]{1,9}:[0-9]{1,9}"),
    "net-turbo": _choice("0", "1"),
    "seed": RingFlag("a whole number from 0 to 2^63 - 1", _WHOLE, 2**63 - 1),
    "temperature": RingFlag("a number from 0", _NUMBER),
    "topp": RingFlag("a number from 0 to 1", _NUMBER, 1),
}
"""Flags by name, without dashes."""


def wrong_value(name: str, value: Any) -> tuple[str, str]:
    """Return what is wrong with the value of a flag, and what to do; both empty for nothing.

    Args:
        name: of the flag, without dashes.
        value: as JSON; None for no value.
    """
    flag = RING_FLAGS[name]
    text = value if isinstance(value, str) else json.dumps(value)
    if flag.accepts(text):
        return "", ""
    if value is None:
        return f"`--{name}` requires a value", f"write {flag.expected}"
    hint = did_you_mean(text, flag.choices) or f"write {flag.expected}"
    return f"`--{name}` must be {flag.expected}, and not `{text}`", hint
