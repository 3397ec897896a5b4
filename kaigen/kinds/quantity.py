"""What Kubernetes quantities stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40}))"
    r"(?:([KMGTPE])i|([numkMGTPE])|[eE]([+-]?[0-9]{1,2}))?"
)
_POWERS = {letter: power for power, letter in enumerate("KMGTPE", 1)}
_EXPONENTS = {"n": -9, "u": -6, "m": -3, "k": 3} | {letter: 3 * power for letter, power in _POWERS.items()}


def parse(item: object) -> Fraction | None:
    """The number that a quantity stands for (`10Gi`, `500m`, `1e3`, 2); None when it is none."""
    from fractions import Fraction

    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        return None
    match = _QUANTITY.fullmatch(str(item))
    if match is None:
        return None
    digits, binary, decimal, exponent = match.groups()
    number = Fraction(digits)
    if binary:
        unit: int = 1024 ** _POWERS[binary]
        return number * unit
    power = _EXPONENTS[decimal] if decimal else int(exponent or 0)
    factor: int = 10 ** abs(power)
    return number * factor if power >= 0 else number / factor
