"""How the path of a field is written in messages: `spec.command[2]`, `spec.containers[run].image`,
`metadata.labels["kaigen.dev/app"]`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SIMPLE = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


class At(str):
    """A step of a path into a list: the element's name, or its number when it has none."""

    __slots__ = ()


def dotted_path(path: Iterable[str | int]) -> str:
    """The path as text; empty for the document itself."""
    text = ""
    for step in path:
        if isinstance(step, (int, At)):
            text += f"[{step}]"
        elif _SIMPLE.fullmatch(step):
            text += f".{step}" if text else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text
