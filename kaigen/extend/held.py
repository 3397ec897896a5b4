"""Stand-ins for the expressions of an object, in the process that patches it.

That process cannot evaluate expressions, and its answer can only refer to those that it was given.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kaigen.compile.expressions import Expr, Scope


class Held(Expr, frozen=True):
    """An expression of the object.

    Attributes:
        number: which one.
        known: its value.
        inside: the tree inside it that a patch can reach; None where there is none.
        is_open: whether the expression stays around the patched tree.
    """

    number: int
    known: Any
    inside: Any = None
    is_open: bool = False

    def value(self, scope: Scope) -> Any:
        """Return the value that the expression has in kaigen."""
        return self.known


class HeldOptional(Held, frozen=True):
    """An expression that leaves its field out while its value is empty."""

    omit_empty: ClassVar[bool] = True


class Changed(Expr, frozen=True):
    """An expression of the object with other fixed items or entries.

    Attributes:
        number: which one.
        fixed: the items or entries.
    """

    number: int
    fixed: Any
