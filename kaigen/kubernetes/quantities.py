"""Quantities of resources (`500m`, `16Gi`) as exact numbers."""

from __future__ import annotations

import re
from functools import lru_cache

# Compiled by `re` at its first use: at import it would cost more than the module.
QUANTITY = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
NANO = 10**9
_SUFFIXES = {
    "": NANO,
    "n": 1,
    "u": 10**3,
    "m": 10**6,
    **{letter: NANO * 10 ** (3 * power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": NANO * 1024**power for power, letter in enumerate("KMGTPE", 1)},
}
_DECIMAL = dict(zip(range(-9, 21, 3), ("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), strict=True))
_MAX_LENGTH = 60
_MAX_POWER = 60
"""Longer texts and larger decimal exponents exceed every real quantity; the API server caps them as well."""


@lru_cache(maxsize=10_000)
def is_quantity(text: str) -> bool:
    """Whether a text is a quantity."""
    return re.fullmatch(QUANTITY, text) is not None


def nano(value: object) -> int | None:
    """Return a quantity in billionths of its unit (cores, bytes, devices), rounded up as the API server does.

    Returns:
        None when the value is not a quantity.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return _nano(str(value).strip())


def units(value: object) -> int | None:
    """Return the whole units of a quantity (bytes, devices), rounded down; None when it is not a quantity."""
    amount = nano(value)
    return None if amount is None else amount // NANO


@lru_cache(maxsize=10_000)
def canonical(text: str) -> str:
    """Return a quantity in the form in which the API server stores it: `1000m` is `1`, `10240Mi` is `10Gi`.

    Argo CD compares some objects as text, such as StatefulSets, so any other form is a difference that never ends.
    Source: `CanonicalizeBytes` in pkg/api/resource/quantity.go of k8s.io/apimachinery v0.36.3.

    Returns:
        The text itself when it is not a quantity, or above the 64 bits of the API server.
    """
    amount = nano(text)
    if amount is None or abs(amount) >= 2**63 * NANO:
        return text
    if "i" in text and amount % NANO == 0 and abs(amount) >= 1024 * NANO:
        units, power = amount // NANO, 0
        while units % 1024 == 0:
            units, power = units // 1024, power + 1
        return f"{units}{('', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei')[power]}" if power <= 6 else text
    if amount == 0:
        return "0"
    mantissa, power = amount, -9
    while mantissa % 1000 == 0 and power < 18:
        mantissa, power = mantissa // 1000, power + 3
    if re.search("[eE][-+]?[0-9]", text):
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{_DECIMAL[power]}"


@lru_cache(maxsize=10_000)
def _nano(text: str) -> int | None:
    if len(text) > _MAX_LENGTH or not is_quantity(text):
        return None
    number = text.rstrip("numkKMGTPEi")
    mantissa, _, exponent = number.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    scaled = int(whole + fraction) * _SUFFIXES[text[len(number) :]]
    power = int(exponent or 0) - len(fraction)
    if abs(power) > _MAX_POWER:
        return None
    amount: int = scaled * 10**power if power >= 0 else -(-scaled // 10**-power)
    return amount
