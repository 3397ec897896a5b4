"""Kubernetes quantities, to tell a larger one from a smaller."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from kaigen.gitops.diff.model import Absent, Json

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40}))"
    r"(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]{1,2}))?"
)
_BINARY = {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)} | {
    letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)
}


def parse(item: Json | Absent) -> Fraction | None:
    """The number that a quantity stands for (`10Gi`, `500m`, `1e3`, 2); None when it is none."""
    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        return None
    match = _QUANTITY.fullmatch(str(item))
    if match is None:
        return None
    digits, binary, decimal, exponent = match.groups()
    number = Fraction(Decimal(digits))
    if binary:
        return number * _BINARY[binary]
    if decimal:
        return number * _DECIMAL[decimal]
    return number * Fraction(10) ** int(exponent) if exponent else number
