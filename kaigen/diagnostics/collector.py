"""A collector of diagnostics, so that one run reports all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import InputError


class Diagnostics:
    """A growing list of problems, so that one run reports all of them."""

    def __init__(self, items: Iterable[Diagnostic] = ()) -> None:
        self._items: list[Diagnostic] = list(items)

    def add(self, item: Diagnostic) -> None:
        """Add a problem."""
        self._items.append(item)

    def extend(self, items: Iterable[Diagnostic]) -> None:
        """Add problems."""
        self._items.extend(items)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.sorted())

    def __len__(self) -> int:
        return len(self._items)

    def sorted(self) -> list[Diagnostic]:
        """Return all problems by file and place, each once."""
        return sorted(dict.fromkeys(self._items), key=Diagnostic.sort_key)

    @property
    def has_errors(self) -> bool:
        """Whether at least one is an error."""
        return any(d.severity is Severity.ERROR for d in self._items)

    def raise_errors(self) -> None:
        """Raise `InputError` with all problems if at least one is an error."""
        if self.has_errors:
            raise InputError(self.sorted())
