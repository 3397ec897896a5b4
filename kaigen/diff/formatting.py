"""Formats values and lists as text that is short and safe to print."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kaigen.core.json_types import Json
from kaigen.core.text import plural, series
from kaigen.diff.model import Absent

_AMBIGUOUS = re.compile(
    r"|~|null|true|false|yes|no|on|off"
    r"|[-+.0-9][-+.0-9_a-fox]*(?:e[-+]?[0-9]+)?"
    r"|.*[\n\"'{}\[\],#].*|.*: .*|[ &*!|>%@`-].*|.* ",
    re.IGNORECASE | re.DOTALL,
)

_GRAVE = tuple(
    (re.compile(pattern), grade)
    for pattern, grade in (
        (r"\bprivileged\b", 5),
        (r"\bhost(Path|PID|IPC|Network|Process)\b|\bHostProcess\b|\bof (the|a) node\b", 5),
        (r"(?<![\w/.-])\*(?![\w/.-])|\beverything\b|\bdo anything\b", 5),
        (r"\bSYS_\w+|\b(ALL|BPF|DAC_READ_SEARCH|NET_ADMIN|NET_RAW|PERFMON)\b", 5),
        (r"\bsecrets\b", 4),
        (r"\bescalate\b", 4),
        (r"\bbind\b", 4),
        (r"\bimpersonate\b", 4),
        (r"\bcluster-admin\b|\bsystem:", 4),
        (r"\b169\.254\.|\b127\.|\bfe80:|(?<![\w:])::1\b|\bfd00:ec2:", 4),
        (r"\banywhere\b|\b[0-9.:]+/[0-7](?![0-9])|(?<![\w:])::/[0-7]\b", 4),
        (r"\b(pods|nodes|services|serviceaccounts|\*)/[a-z]", 3),
        (r"\b(cluster)?role(binding)?s\b|(?<!in )\bnamespaces\b|\bnetworkpolicies\b|\bresourcequotas\b", 3),
        (r"\ball (namespaces|pods)\b|\bevery\b", 3),
        (r"\broot\b|\bUnconfined\b", 2),
        (r"\b(create|patch|update|delete|deletecollection|approve|sign)\b", 1),
    )
)
"""What must not be left out of a shortened list, with its weight."""

_MOST_GRAVE = 24
"""Most grave items of a list that are shown; more than there are kinds of them."""


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
    """`a`, `a and b`, `a, b and c`, `a, b, c and 4 more`; each item once, the gravest first, then in the given order.

    Grave items are shown beyond the limit: see `gravest`.
    """
    unique = list(dict.fromkeys(items))
    if len(unique) <= limit + 1:
        return series(sorted(unique, key=lambda item: -weight(item)))
    shown = gravest(unique, limit)
    rest = len(unique) - len(shown)
    return series([*shown, f"{rest} more"] if rest else shown)


def weight(text: str) -> int:
    """Return how grave what a text says is; 0 for what may be left out of a list."""
    return max((grade for pattern, grade in _GRAVE if pattern.search(text)), default=0)


def gravest(items: Sequence[str], limit: int) -> list[str]:
    """Return the items to show of a list: the gravest first, then others up to the limit.

    Of each kind of grave item at least one is shown, so that no number of others hides it.
    """
    weights = {item: weight(item) for item in items}
    seen: Counter[int] = Counter()
    turns = []
    for item in (item for item in items if weights[item]):
        kind = next(number for number, (pattern, _) in enumerate(_GRAVE) if pattern.search(item))
        turns.append((seen[kind], -weights[item], item))
        seen[kind] += 1
    grave = [item for *_, item in sorted(turns, key=lambda turn: turn[:2])][:_MOST_GRAVE]
    grave.sort(key=lambda item: -weights[item])
    return [*grave, *(item for item in items if not weights[item])][: max(limit, len(grave))]


def size_text(size: int) -> str:
    """Return a number of bytes in a unit that people read."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return plural(size, "byte")
