"""Amounts of resources: what Kubernetes calls quantities, as exact numbers."""

from __future__ import annotations

import re

from kaigen.check.atoms import QUANTITY

NANO = 10**9
SUFFIXES = {
    "": NANO,
    "n": 1,
    "u": 10**3,
    "m": 10**6,
    **{letter: NANO * 10 ** (3 * power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": NANO * 1024**power for power, letter in enumerate("KMGTPE", 1)},
}
_known: dict[str, int] = {}


def nano(value: object) -> int | None:
    """A quantity in billionths of its unit (cores, bytes, devices), rounded up as the API server does.

    Returns:
        None when the value is no quantity.
    """
    if isinstance(value, str) and value in _known:
        return _known[value]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    text = str(value)
    if not re.fullmatch(QUANTITY, text):
        return None
    number = text.rstrip("numkMGTPEi")
    mantissa, _, exponent = number.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    scaled = int(whole + fraction) * SUFFIXES[text[len(number) :]]
    power = int(exponent or 0) - len(fraction)
    if abs(power) > 60:  # beyond every amount; the server caps it as well
        return None
    amount: int = scaled * 10**power if power >= 0 else -(-scaled // 10**-power)
    if len(_known) < 10_000:
        _known[text] = amount
    return amount
