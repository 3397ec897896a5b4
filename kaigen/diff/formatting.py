"""Formats values and lists as text that is short and safe to print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from kaigen.diff.model import Absent, Json

_AMBIGUOUS = re.compile(
    r"|~|null|true|false|yes|no|on|off"
    r"|[-+.0-9][-+.0-9_a-fox]*(?:e[-+]?[0-9]+)?"
    r"|.*[\n\"'{}\[\],#].*|.*: .*|[ &*!|>%@`-].*|.* ",
    re.IGNORECASE | re.DOTALL,
)


def clean(text: str) -> str:
    """Return the text on one line, with every invisible or misleading character escaped.

    Control characters move a terminal's cursor; bidirectional marks make a reviewer read a different text than the
    machine does; lone surrogates cannot be printed at all. Tabs stay.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if char.isprintable() or char == "\t":
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def clip(text: str, limit: int) -> str:
    """Return the beginning and end of a text, at most `limit` characters."""
    if len(text) <= limit:
        return text
    keep = max(limit - 1, 0)
    tail = keep // 4
    return text[: keep - tail] + "…" + (text[-tail:] if tail else "")


def value(item: Json | Absent, limit: int = 80) -> str:
    """Return a value on one line in YAML's flow style, at most `limit` characters."""
    if isinstance(item, Absent):
        return "not set"
    return clip(clean(_flow(item, limit)), limit)


def _flow(item: Json, limit: int) -> str:
    """Return a value in flow style; stops soon after `limit` characters, so that large values cost little."""
    if isinstance(item, str):
        head = clip(item, limit)
        return json.dumps(head, ensure_ascii=False) if _AMBIGUOUS.fullmatch(head) else head
    if isinstance(item, (dict, list)):
        parts: list[str] = []
        used = 0
        for key, child in item.items() if isinstance(item, dict) else ((None, child) for child in item):
            text = _flow(child, limit)
            parts.append(text if key is None else f"{key}: {text}")
            used += len(parts[-1]) + 2
            if used > limit:
                break
        return ("{" + ", ".join(parts) + "}") if isinstance(item, dict) else "[" + ", ".join(parts) + "]"
    return json.dumps(item)


def listing(items: Iterable[str], limit: int = 3) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b, c and 4 more`; each item once, in the given order."""
    unique = list(dict.fromkeys(items))
    if len(unique) > limit + 1:
        unique = [*unique[:limit], f"{len(unique) - limit} more"]
    return _join(unique)


def _join(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def size_text(size: int) -> str:
    """Return a number of bytes in a unit that people read."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return plural(size, "byte")
