"""Roles of objects: the names of their files, of which an app has each once."""

from __future__ import annotations

RESERVED = "kustomization"
"""The file that lists the others has this name."""


class Roles:
    """The roles of an app's objects.

    Attributes:
        separator: between a role and the number that distinguishes it.
    """

    def __init__(self, separator: str = "-") -> None:
        self.separator = separator
        self._taken = {RESERVED}
        self._numbers: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """Return a role that no other object has, and reserve it: the wanted one, or that with the next free number."""
        role = wanted
        number = self._numbers.get(wanted, 1)
        while role in self._taken:
            number += 1
            role = f"{wanted}{self.separator}{number}"
        self._numbers[wanted] = number
        self._taken.add(role)
        return role
