"""Expressions of two settings, or of a setting and another value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from kaigen.compile.expressions import Expr, Scope, Setting
from kaigen.core.json_types import Json


class Fallback(Expr, frozen=True):
    """A value, or another one while it is empty."""

    given: Expr
    default: Expr

    def value(self, scope: Scope) -> Json:
        return self.given.value(scope) or self.default.value(scope)

    def pipeline(self) -> str:
        return f"{self.given.pipeline()} | default ({self.default.pipeline()})"

    def settings(self) -> Iterator[Setting]:
        yield from self.given.settings()
        yield from self.default.settings()


class Merged(Expr, frozen=True):
    """The entries of two settings, of which the first overrides the second."""

    first: Setting
    second: Setting

    @property
    def default(self) -> Any:
        """The entries by default."""
        return {**self.second.default, **self.first.default}

    def value(self, scope: Scope) -> Json:
        first, second = self.first.value(scope), self.second.value(scope)
        return {**second, **first} if isinstance(first, dict) and isinstance(second, dict) else first

    def pipeline(self) -> str:
        return f"(merge (dict) {self.first.pipeline()} {self.second.pipeline()})"

    def settings(self) -> Iterator[Setting]:
        yield self.first
        yield self.second


class Unless(Expr, frozen=True):
    """A number that is left out while a switch is on."""

    omit_empty: ClassVar[bool] = True

    switch: Setting
    number: Setting

    def value(self, scope: Scope) -> Json:
        return 0 if self.switch.value(scope) else self.number.value(scope)

    def pipeline(self) -> str:
        return f"{self.switch.pipeline()} | ternary 0 {self.number.pipeline()}"

    def settings(self) -> Iterator[Setting]:
        yield self.switch
        yield self.number
