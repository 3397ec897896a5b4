"""Evaluates rules in CEL, which `tools/schemas/cel.py` has read from the definitions of custom kinds.

A rule is a list: the name of a form, followed by its parts. Source of the meaning: `doc/langdef.md` of
github.com/google/cel-spec v0.25.1, and `pkg/cel/library` of k8s.io/apiserver v0.36.3 for `find` and `split`.

A library is not used: cel-python needs RE2 and Pendulum, and common-expression-language needs Typer and Rich, which
take 0.16 s to import. Both read the text of a rule each time; here it is read when the data is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Rule = list[Any]
Names = dict[str, object]


class CelError(Exception):
    """A rule has no result, for which the API server refuses the object, too."""


def evaluate(rule: Rule, names: Names) -> Any:
    """Return the value of an expression.

    Args:
        rule: the expression.
        names: the values of its variables.

    Raises:
        CelError: it has no value: a field is missing, or a text is no number.
    """
    form = rule[0]
    special = _FORMS.get(form)
    if special is not None:
        return special(rule, names)
    values = [evaluate(part, names) for part in rule[1:]]
    try:
        return _FUNCTIONS[form](*values)
    except (TypeError, AttributeError) as error:
        raise CelError(f"{form} has no result for values of these types") from error


def _field(rule: Rule, names: Names) -> object:
    owner = evaluate(rule[1], names)
    if not isinstance(owner, dict) or owner.get(rule[2]) is None:
        raise CelError(f"missing field `{rule[2]}`")
    return owner[rule[2]]


def _has(rule: Rule, names: Names) -> bool:
    owner = evaluate(rule[1], names)
    return isinstance(owner, dict) and owner.get(rule[2]) is not None


def _decided(values: Iterator[Callable[[], object]], by: bool) -> bool:
    """Return `by` if a value is, else the opposite; an error of one value counts only if no other decides."""
    failed: CelError | None = None
    for value in values:
        try:
            if value() is by:
                return by
        except CelError as error:
            failed = error
    if failed is not None:
        raise failed
    return not by


def _either(rule: Rule, names: Names) -> bool:
    return _decided((partial(evaluate, part, names) for part in rule[1:]), by=rule[0] == "||")


def _each(rule: Rule, names: Names) -> Iterator[tuple[object, Callable[[], object]]]:
    """Yield the items of a list, or the keys of a map, each with a function that evaluates the body of a macro."""
    items = evaluate(rule[1], names)
    if not isinstance(items, (list, dict)):
        raise CelError(f"{rule[0]} needs a list or a map")
    for item in items:
        yield item, partial(evaluate, rule[3], {**names, rule[2]: item})


def _quantified(rule: Rule, names: Names) -> bool:
    return _decided((body for _, body in _each(rule, names)), by=rule[0] == "exists")


def _filter(rule: Rule, names: Names) -> list[object]:
    return [item for item, body in _each(rule, names) if body() is True]


def _item(owner: Any, key: Any) -> object:
    try:
        return owner[key]
    except (LookupError, TypeError) as error:
        raise CelError(f"nothing at [{key}]") from error


def _equal(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(value, other[key]) for key, value in one.items())
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _int(value: Any) -> int:
    if isinstance(value, str) and not re.fullmatch("[-+]?[0-9]+", value):
        raise CelError(f"`{value}` is not an integer")
    return int(value)


_UNITS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 10**9, "ms": 10**6, "us": 1000, "µs": 1000, "ns": 1}
_AMOUNT = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(h|ms|m|s|us|µs|ns)"


def _duration(text: str) -> float:
    """Return the nanoseconds of a duration of Go."""
    if text.lstrip("-+") == "0":
        return 0
    if not re.fullmatch(f"[-+]?(?:{_AMOUNT})+", text):
        raise CelError(f"`{text}` is not a duration")
    found = sum(float(amount) * _UNITS[unit] for amount, unit in re.findall(_AMOUNT, text))
    return -found if text.startswith("-") else found


def _split(text: str, by: str) -> list[str]:
    return text.split(by) if by else list(text)


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _in(item: object, owner: Any) -> bool:
    return any(_equal(item, each) for each in owner)


_FORMS: dict[str, Callable[[Rule, Names], object]] = {
    "value": lambda rule, names: rule[1],
    "name": lambda rule, names: names[rule[1]],
    "list": lambda rule, names: [evaluate(part, names) for part in rule[1:]],
    "if": lambda rule, names: evaluate(rule[2 if evaluate(rule[1], names) is True else 3], names),
    "field": _field,
    "has": _has,
    "&&": _either,
    "||": _either,
    "all": _quantified,
    "exists": _quantified,
    "exists_one": lambda rule, names: len(_filter(rule, names)) == 1,
    "filter": _filter,
}
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "not": lambda value: value is False,
    "negative": lambda value: -value,
    "item": _item,
    "==": _equal,
    "!=": lambda one, other: not _equal(one, other),
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "in": _in,
    "size": len,
    "int": _int,
    "duration": _duration,
    "contains": lambda text, part: part in text,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "find": _find,
    "split": _split,
}
