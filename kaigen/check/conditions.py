"""Rules between the fields of one mapping, as the schema data has them: where some are so, others must be so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.check import codes
from kaigen.check.atoms import Mismatch
from kaigen.core.text import describe

if TYPE_CHECKING:
    from kaigen.kubernetes.schema_nodes import Condition, Scalar

SET, GIVEN, UNSET = "set", "given", "unset"


def rule_problems(when: Condition, then: Condition, value: dict[str, object]) -> list[Mismatch]:
    """Return the mismatches of a mapping that meets the first condition but not the second."""
    if not all(_meets(value.get(field), wanted) for field, wanted in when.items()):
        return []
    return [
        _mismatch(field, wanted, value.get(field), when)
        for field, wanted in then.items()
        if not _meets(value.get(field), wanted)
    ]


def _meets(value: object, wanted: str | list[Scalar]) -> bool:
    if wanted == GIVEN:
        return value is not None
    empty = value in (None, "", [], {}) or (value == 0 and value is not False)
    if isinstance(wanted, str):
        return empty is (wanted == UNSET)
    # An empty list is no scalar, and True is not 1.
    return ("" if empty else value) in [each for each in wanted if type(each) is type(value) or (empty and each == "")]


def _mismatch(field: str, wanted: str | list[Scalar], value: object, when: Condition) -> Mismatch:
    reason = f" where {' and '.join(_words(name, each) for name, each in when.items())}" if when else ""
    if isinstance(wanted, str) and wanted != UNSET:
        return Mismatch(codes.MISSING_FIELD, f"missing field `{field}`{reason}")
    if isinstance(wanted, str):
        return Mismatch(codes.FIELD_CONFLICT, f"`{field}` must not be set{reason}", path=[field])
    allowed = " or ".join(describe(each).strip("`") for each in wanted if each != "")
    shown = "" if value in (None, "") else f", not {describe(value)}"
    if not allowed:
        return Mismatch(codes.FIELD_CONFLICT, f"`{field}` must not be set{reason}", path=[field])
    message = f"`{field}` must be {allowed}{reason}{shown}"
    return Mismatch(
        codes.FIELD_CONFLICT,
        message,
        f"set {field}: {allowed}" if " or " not in allowed else "",
        [field] if shown else [],
    )


def _words(field: str, wanted: str | list[Scalar]) -> str:
    if isinstance(wanted, str):
        return f"`{field}` is {'not ' if wanted == UNSET else ''}set"
    return f"`{field}` is {' or '.join(describe(each).strip('`') if each != '' else 'not set' for each in wanted)}"
