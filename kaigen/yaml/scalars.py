"""What an unquoted scalar is: YAML 1.2's core schema, less what Kubernetes' parsers would read differently.

Those parsers follow YAML 1.1 in `yes`, `no`, `on` and `off`, and have no numbers beyond 64 bits, no infinity
and no NaN. Where the two disagree about what a person surely meant as text (`0123`, `12:30`, dates), it is
text.
Source: YAML 1.2.2, section 10.3 (https://yaml.org/spec/1.2.2/); JSON, which all of it must fit into.
"""

from __future__ import annotations

import re

WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

SWITCHES: dict[str, bool] = {
    form: meaning
    for word, meaning in (("yes", True), ("on", True), ("no", False), ("off", False))
    for form in (word, word.title(), word.upper())
}
"""What YAML 1.1 reads as a boolean and YAML 1.2 does not."""

_NUMBER = re.compile(
    r"""(?P<int>[-+]?(?:0|[1-9][0-9]*))
    |   0x(?P<hex>[0-9a-fA-F]+)
    |   0o(?P<oct>[0-7]+)
    |   (?P<float>[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)
    |   (?P<no>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))
    """,
    re.VERBOSE,
)
_NUMBER_START = frozenset("0123456789-+.")
_LARGEST = 2**63 - 1
_SMALLEST = -(2**63)


class Refused(Exception):
    """A scalar that has no value kaigen could stand for.

    Attributes:
        code: of the diagnostic.
        hint: how to mend it.
    """

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def plain_value(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar.

    Raises:
        Refused: for a word that YAML 1.1 reads as a boolean, and for numbers that JSON cannot hold.
    """
    if text in WORDS:
        return WORDS[text]
    if text[0] not in _NUMBER_START:
        if text in SWITCHES:
            meant = "true" if SWITCHES[text] else "false"
            raise Refused(
                "KG0140",
                f"unquoted `{text}` is the boolean {meant} to Kubernetes' parsers and text to others",
                f'write `{meant}`, or quote it where text is meant: "{text}"',
            )
        return text
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    kind = found.lastgroup
    if kind == "float":
        return _float(text)
    if kind == "no":
        raise Refused(
            "KG0141", f"`{text}` is no number that JSON can hold", "write a finite number, or quote it"
        )
    digits, base = (text, 10) if kind == "int" else (text[2:], 16 if kind == "hex" else 8)
    value = int(digits, base) if len(digits) <= 30 else _LARGEST + 1
    if not _SMALLEST <= value <= _LARGEST:
        shown = text if len(text) <= 24 else text[:24] + "…"
        raise Refused("KG0142", f"`{shown}` does not fit into 64 bits", "quote it where text is meant")
    return value


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        shown = text if len(text) <= 24 else text[:24] + "…"
        raise Refused("KG0141", f"`{shown}` is larger than any number", "quote it where text is meant")
    return value
