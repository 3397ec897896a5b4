"""Names that a template uses and that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import UndefinedError
from jinja2.utils import missing

from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.tokens import NAMES, TemplateFailure

_MOST_LISTED = 12


class UndefinedName(UndefinedError):
    """A template uses a name that does not exist.

    Attributes:
        failure: the error.
    """

    def __init__(self, failure: TemplateFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Undefined(StrictUndefined):
    """A name that does not exist; its error suggests the one that was probably meant."""

    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: Any = missing,
        name: str | None = None,
        exc: Callable[[TemplateFailure], Exception] = UndefinedName,
    ) -> None:
        super().__init__(hint, obj, name, exc)  # type: ignore[arg-type]

    @property
    def _undefined_message(self) -> TemplateFailure:  # type: ignore[override]
        """The error; Jinja passes it to the exception."""
        name, owner = str(self._undefined_name), self._undefined_obj
        if isinstance(owner, dict):
            known = [key for key in owner if isinstance(key, str)]
            hint = did_you_mean(name, known) or _listed("fields here", known) or "the mapping is empty"
            return TemplateFailure(f"unknown field `{name}`", hint, name)
        if self._undefined_hint:
            return TemplateFailure(self._undefined_hint, word=name)
        if isinstance(owner, list | tuple | str | int | float | bool):
            return TemplateFailure(f"{_type_name(owner)} has no `{name}`", word=name)
        return TemplateFailure(
            f"`{name}` is not defined", did_you_mean(name, NAMES) or _listed("available names", NAMES), name
        )


def _listed(title: str, names: Sequence[str]) -> str:
    return f"{title}: " + ", ".join(f"`{name}`" for name in names[:_MOST_LISTED]) if names else ""


def _type_name(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return "a list" if isinstance(value, list | tuple) else "a string" if isinstance(value, str) else "a number"
