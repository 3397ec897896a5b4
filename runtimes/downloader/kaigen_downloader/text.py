"""Formats and parses sizes, durations and times, and prints messages without secrets."""

from __future__ import annotations

import itertools
import re
import sys
import threading
import time
from collections.abc import Iterable

OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""Names that Kubernetes accepts for most kinds of objects."""

_secrets: frozenset[str] = frozenset()
_hiding = threading.Lock()
_printing = threading.Lock()
_status = ""
_CLEAR = "\r\x1b[K"
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)))
_LONGEST_NAME = 100
"""Characters of a file name in a message."""
_LONGEST_LINE = 4000
"""Characters of a message. Servers write parts of it."""

_URL = re.compile(r"(?i)https?://[^\s'\"<>]+")
_USERINFO = re.compile(r"(?i)(https?://)[^\s/?#'\"<>]*@")
_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{6,}")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}")
_SIZE = re.compile(r"(\d+)\s*([kKMGT]i?)?B?")
_SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


def hide(secret: str) -> None:
    """Make `redact` replace this text everywhere."""
    global _secrets
    if secret:
        with _hiding:  # `redact` of another thread goes on with the old set.
            _secrets |= {secret}


def redact(text: str) -> str:
    """Return the text without tokens, signed queries and user names in URLs."""
    for secret in _secrets:
        text = text.replace(secret, "***")
    text = _USERINFO.sub(r"\1", text)
    text = _URL.sub(_without_query, text)
    text = _BEARER.sub(r"\1 ***", text)
    return _TOKEN.sub("***", text)


def _without_query(url: re.Match[str]) -> str:
    head, mark, _ = url[0].partition("?")
    return f"{head}?…" if mark else head


def shown(name: str) -> str:
    """Return the name of a file in quotes for a message, and only the start of a long one."""
    return repr(name) if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]!r}…"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return names in a row for a message, and of many of them the first ones."""
    rest = iter(names)
    return ", ".join(itertools.islice(rest, most)) + (", …" if next(rest, None) is not None else "")


def say(message: str) -> None:
    """Print one line on standard error, and of a long one the start."""
    line = " ".join(redact(message).split())
    emit(line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…")


def printable(line: str) -> str:
    """Return a line without characters that a terminal obeys or that no encoding has."""
    return line.translate(_CONTROLS).encode(errors="replace").decode()


def emit(line: str) -> None:
    """Print a line without secrets on standard error, in the place of the status line."""
    global _status
    with _printing:
        sys.stderr.write(f"{_CLEAR if _status else ''}{printable(line)}\n")
        sys.stderr.flush()
        _status = ""


def show_status(line: str) -> None:
    """Replace the last line of the terminal, which the next message replaces in turn; empty for none."""
    global _status
    with _printing:
        sys.stderr.write(f"{_CLEAR}{line}")
        sys.stderr.flush()
        _status = line


def has_status() -> bool:
    """Return whether the last line of the terminal is a status line."""
    return bool(_status)


def whole_number(text: str) -> int | None:
    """Return the number that a header writes in at most 18 digits, or None: servers write anything."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def file_size(value: object) -> int | None:
    """Return a number of bytes that a document has for a file, or None: no file system has larger ones."""
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def parse_size(text: str) -> int:
    """Return the bytes of a Kubernetes quantity such as `16Mi`, `64M` or `1048576`.

    Raises:
        ValueError: the text is not one.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text!r} (try 16Mi)")
    number, unit = int(match[1]), match[2] or ""
    if unit.endswith("i"):
        return int(number * 1024 ** ("KMGT".index(unit[0].upper()) + 1))
    return number * _SIZES["k" if unit == "K" else unit]


def parse_duration(text: str) -> float:
    """Return the seconds of `2h`, `1h30m`, `90s` or a bare number of seconds.

    Raises:
        ValueError: the text is not one, or not more than zero.
    """
    text = text.strip()
    match = _DURATION.fullmatch(text)
    try:
        if match is not None and match.group(0):
            hours, minutes, rest = (float(part or 0) for part in match.groups())
            seconds = hours * 3600 + minutes * 60 + rest
        else:
            seconds = float(text)
    except ValueError:
        raise ValueError(f"not a duration: {text!r} (try 90s or 1h30m)") from None
    if not 0 < seconds < 10**9:
        raise ValueError(f"not a duration above zero: {text!r}")
    return seconds


def size(count: float) -> str:
    """Return a number of bytes as text, in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def duration(seconds: float) -> str:
    """Return a time span as text: `0.5s`, `45s`, `12m30s`, `2h05m`."""
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def timestamp(when: float) -> str:
    """Return a Unix time in RFC 3339, in UTC with milliseconds."""
    millis = round(when * 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millis // 1000)) + f".{millis % 1000:03d}Z"


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
