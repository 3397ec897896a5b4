"""Values of unquoted scalars: YAML 1.2's core schema, without what Kubernetes' parsers read differently.

Those parsers follow YAML 1.1 for `yes`, `no`, `on` and `off`, and have no numbers beyond 64 bits, no infinity and no
NaN. Where the versions disagree about obvious text (`0123`, `12:30`, dates), it is text.
Source: YAML 1.2.2, section 10.3 (https://yaml.org/spec/1.2.2/); JSON, which all of it must fit into.
"""

from __future__ import annotations

import re

from kaigen.diagnostics.problem import ProblemError

Plain = str | int | float | bool | None

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
"""Words that are booleans in YAML 1.1 and text in YAML 1.2."""

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


def plain_value(text: str) -> Plain:
    """Return the value of an unquoted scalar.

    Raises:
        ProblemError: for a word that YAML 1.1 reads as a boolean, and for numbers that JSON does not have.
    """
    if text in WORDS:
        return WORDS[text]
    if text[0] not in _NUMBER_START:
        if text in SWITCHES:
            raise _ambiguous(text, SWITCHES[text])
        return text
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    kind = found.lastgroup
    if kind == "float":
        return _float(text)
    if kind == "no":
        raise ProblemError("KG0141", f"`{text}` is not a number in JSON", hint="write a finite number, or quote it")
    digits, base = (text, 10) if kind == "int" else (text[2:], 16 if kind == "hex" else 8)
    value = int(digits, base) if len(digits) <= 30 else _LARGEST + 1
    if not _SMALLEST <= value <= _LARGEST:
        raise ProblemError("KG0142", f"`{_short(text)}` does not fit into 64 bits", hint="quote it to make it text")
    return value


def _ambiguous(text: str, value: bool) -> ProblemError:
    meant = "true" if value else "false"
    return ProblemError(
        "KG0140",
        f"unquoted `{text}` is the boolean {meant} to Kubernetes and text to other parsers",
        hint=f'write `{meant}`, or quote it to make it text: "{text}"',
    )


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:24] + "…"


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ProblemError("KG0141", f"`{_short(text)}` is too large for a number", hint="quote it to make it text")
    return value


_EXACT = 2**53
_SWITCHES_1_1 = {**SWITCHES, "y": True, "Y": True, "n": False, "N": False}
_FLOAT_1_1 = re.compile(r"(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def kubernetes_value(text: str) -> Plain:
    """Return the value of an unquoted scalar as Kubernetes, Argo CD and Flux read it, in old forms of YAML 1.1 as well.

    `yes` is true, `0123` is octal, `0b11` is binary, and `1_000` is a number. Source: sigs.k8s.io/yaml,
    `goyaml.v2/resolve.go`, and `strconv.ParseInt` with base 0 of Go.

    Raises:
        ProblemError: for numbers that JSON does not have.
    """
    if text in _SWITCHES_1_1:
        return _SWITCHES_1_1[text]
    value = plain_value(text)
    if not isinstance(value, str) or text[0] not in _NUMBER_START - {"."}:
        return value
    plain = text.replace("_", "")
    digits = plain.lstrip("+-") if plain[1:2] not in ("+", "-") else ""
    prefix, body = digits[:2].lower(), digits[2:]
    number: Plain = None
    if prefix == "0b" and re.fullmatch("[01]{1,64}", body):
        number = int(body, 2)
    elif prefix in ("0x", "0o"):
        number = plain_value(prefix + body)
    elif re.fullmatch("0[0-7]+", digits):
        number = plain_value(f"0o{digits[1:]}")
    elif _FLOAT_1_1.fullmatch(digits):
        number = plain_value(digits)
        number = _float(digits) if isinstance(number, str) else number
    if number is None or isinstance(number, str):
        return text
    return -number if plain[0] == "-" else number


def manifest_value(text: str) -> Plain:
    """Return the value of an unquoted scalar of a manifest: as Kubernetes reads it, and as other parsers do.

    kustomize (go-yaml v3) reads `y` and `yes` as text and all numbers as Kubernetes does.

    Raises:
        ProblemError: for a word that YAML 1.1 reads as a boolean, also `y` and `n`, and for numbers that JSON does not
            have.
    """
    if text in _SWITCHES_1_1:
        raise _ambiguous(text, _SWITCHES_1_1[text])
    value = kubernetes_value(text)
    # As JSON, which Go writes without an exponent or a fraction here, `1e3` and `09` are integers.
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT else value


FILE_MODES = frozenset({"mode", "defaultMode"})
"""Fields of Kubernetes with the permissions of files. People write octal numbers of YAML 1.1, such as `0644`."""


def file_mode(text: str) -> int | None:
    """Return the number that an octal form of YAML 1.1 stands for: 420 for `0644`; None for any other text."""
    return int(text, 8) if re.fullmatch("0[0-7]{1,10}", text) else None
