"""Which connections are closed when there are too many: those without a whole request, and of these the oldest.

The chat server and the proxy of rings have the same file: an image is built from its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Rank(IntEnum):
    """What a connection has shown of itself. Those of a lower rank are closed first."""

    STRANGER = 0
    """No request so far that needs the key; where there is no key, no whole one."""
    KNOWN = 1
    """Such a request was accepted on it, and no work is done for one now."""
    WORKING = 2
    """Work is done for a whole request. Never closed for another connection."""


class Places(Generic[T]):
    """The connections that are open, in the order in which they would be closed for a new one."""

    def __init__(self, most: int) -> None:
        """Initialize.

        Args:
            most: connections at the same time.
        """
        self._most = most
        self._ranks: dict[T, Rank] = {}
        # In each rank, the one that has been there for the longest is first.
        self._order: dict[Rank, dict[T, None]] = {rank: {} for rank in Rank}

    def enter(self, connection: T, close: Callable[[T], None]) -> bool:
        """Add a new connection; returns False if all places are taken by connections that work.

        Args:
            connection: the connection.
            close: closes a connection at once, to make room.
        """
        while len(self._ranks) >= self._most:
            waiting = self._order[Rank.STRANGER] or self._order[Rank.KNOWN]
            if not waiting:
                return False
            oldest = next(iter(waiting))
            self.leave(oldest)
            close(oldest)
        self.move(connection, Rank.STRANGER)
        return True

    def move(self, connection: T, rank: Rank) -> None:
        """Give a connection a rank, as the newest of it."""
        self.leave(connection)
        self._ranks[connection] = rank
        self._order[rank][connection] = None

    def rest(self, connection: T) -> None:
        """Note that a connection ended a request: it is the newest of those that do no work."""
        rank = self._ranks.get(connection)
        if rank is not None:
            self.move(connection, min(rank, Rank.KNOWN))

    def promote(self, connection: T, rank: Rank) -> None:
        """Raise a connection to a rank; one that has lost its place stays without."""
        if self._ranks.get(connection, Rank.WORKING) < rank:
            self.move(connection, rank)

    def leave(self, connection: T) -> None:
        """Remove a connection, if it has a place."""
        rank = self._ranks.pop(connection, None)
        if rank is not None:
            del self._order[rank][connection]


class Bodies(Generic[T]):
    """The memory of bodies that are not complete. Where it ends, the oldest is given up."""

    def __init__(self, most: int) -> None:
        """Initialize.

        Args:
            most: bytes of all bodies together.
        """
        self._most = most
        self._size = 0
        self._open: dict[T, int] = {}

    def add(self, body: T, size: int) -> list[T]:
        """Count bytes of a body; returns the bodies that must be given up for them.

        Args:
            body: the body that the bytes belong to.
            size: how many there are.
        """
        self._open[body] = self._open.get(body, 0) + size
        self._size += size
        late = []
        while self._size > self._most:
            late.append(next(iter(self._open)))
            self.end(late[-1])
        return late

    def end(self, body: T) -> None:
        """Forget a body: it is complete, or given up."""
        self._size -= self._open.pop(body, 0)
