"""Values that several rules need, computed once for a whole comparison."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

_T = TypeVar("_T")


class Once:
    """Remembers values, so that an index is made once and not for each object that is judged."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return the value of a key, computed by the first call.

        Args:
            key: names the value; one key is always used with functions of one result.
            compute: returns the value.
        """
        if key not in self._values:
            self._values[key] = compute()
        found: _T = self._values[key]
        return found
