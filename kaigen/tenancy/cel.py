"""Parts of CEL expressions, as admission policies evaluate them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from kaigen.config.tenant_settings import Tenant

OBJECT = "object"
TYPE = "variables.type"

_LEVELS = 16
"""Levels of an object that `exists_below` searches. Those of RayJob's containers are 7."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def text(value: str) -> str:
    """Return a text as a literal."""
    return json.dumps(value)


def texts(values: Iterable[str]) -> str:
    """Return a list of texts as a literal."""
    return f"[{', '.join(map(text, values))}]"


def at(base: str, steps: Iterable[str]) -> str:
    """Return the expression of the optional value at a path below another expression."""
    for step in steps:
        base += f".?{step}" if _NAME.fullmatch(step) else f"[?{text(step)}]"
    return base


def matches(value: str, pattern: str) -> str:
    """Return the expression that a pattern of RE2 matches the whole of a text."""
    return f"{value}.matches({text(f'^({pattern})$')})"


def among(value: str, tenant: Tenant) -> str:
    """Return the expression that a text is one of the tenant's namespaces."""
    return f"{value} in {texts(tenant.namespaces)}"


def exists_below(value: str, test: Callable[[str], str], level: int = 1) -> str:
    """Return the expression that a value below another one passes a test.

    CEL has no recursion, so it searches a limited number of levels.
    """
    item = f"v{level}"
    below = f"(type({value}) == map ? {value}.map(k, {value}[k]) : type({value}) == list ? {value} : [])"
    deeper = f" || {exists_below(item, test, level + 1)}" if level < _LEVELS else ""
    return f"{below}.exists({item}, {test(item)}{deeper})"
