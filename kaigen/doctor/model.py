"""The result of a check."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Status = Literal["ok", "warning", "failed"]


class Check(Struct, frozen=True):
    """The result of a check.

    Attributes:
        name: what was checked.
        status: `warning` for what some apps need, or for what could not be read.
        detail: what was found.
        fix: what to do; empty when nothing is wrong.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""
