"""JSON text exactly as Go's `encoding/json` writes it, since Helm's `toJson` is that.

A content hash in a name must be the same whether kaigen or Helm computes it, so every byte counts: keys
sorted, no spaces, `<`, `>`, `&` and the two JavaScript line ends escaped, and numbers as Helm sees them after
it has read YAML, which is as 64-bit floats (source: encoding/json's floatEncoder).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from hashlib import sha256
from json.encoder import ESCAPE_DCT, JSONEncoder
from typing import Any

EXACT_MAX = 2**53
"""Largest integer up to which 64-bit floats represent every integer exactly."""

_SPECIAL = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029]')
_ESCAPES: dict[str, str] = {
    **{chr(code): f"\\u{code:04x}" for code in (*range(0x20), 0x3C, 0x3E, 0x26, 0x2028, 0x2029)},
    **{char: text for char, text in ESCAPE_DCT.items() if char in '\b\f\n\r\t"\\'},
}


def _text(value: str) -> str:
    return '"' + _SPECIAL.sub(lambda match: _ESCAPES[match.group()], value) + '"'


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("JSON has no infinity and no NaN")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    digits, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    point = len(digits) + int(exponent or 0)
    significant = (digits + fraction).lstrip("0")
    point -= len(digits + fraction) - len(significant)
    significant = significant.rstrip("0")
    sign = "-" if value < 0 else ""
    if 1e-6 <= abs(value) < 1e21:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{significant}"
        if point >= len(significant):
            return sign + significant + "0" * (point - len(significant))
        return f"{sign}{significant[:point]}.{significant[point:]}"
    power = point - 1
    head = significant[0] + ("." + significant[1:] if len(significant) > 1 else "")
    # Go drops the leading zero of a negative exponent only.
    exponent_text = f"-{-power}" if power < 0 else f"+{power:02d}"
    return f"{sign}{head}e{exponent_text}"


_encode = JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_HTML = re.compile("[<>&\u2028\u2029]")
# A number that Python and Go may write differently; also found in some texts, which costs time only.
_DELICATE = re.compile(r"[:,\[]-?[0-9]+(?:\.[0-9]+(?:e[-+]?[0-9]+)?|e[-+]?[0-9]+|[0-9]{15,})[]},]")


def go_json(value: Any) -> str:
    """Return `value` as JSON, as Go would write it.

    Raises:
        TypeError: JSON has no such type.
        ValueError: the value is infinite or NaN.
    """
    if isinstance(value, dict | list):
        text = _encode(value)
        if not _DELICATE.search(text):
            return _HTML.sub(lambda match: _ESCAPES[match.group()], text) if _HTML.search(text) else text
    return _go_json(value)


def _go_json(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value) if -EXACT_MAX <= value <= EXACT_MAX else _number(float(value))
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        # Go compares strings by their UTF-8 bytes, which for code points is Python's own order.
        return "{" + ",".join(f"{_text(key)}:{_go_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_go_json, value)) + "]"
    raise TypeError(f"JSON has no type for a {type(value).__name__}")


def sha256_hex(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, in hex, as Helm's `sha256sum`."""
    return sha256(text.encode()).hexdigest()
