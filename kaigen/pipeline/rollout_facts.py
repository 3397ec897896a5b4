"""The facts about versions side by side that the cache stores."""

from __future__ import annotations

from msgspec import Struct


class RolloutFacts(Struct, frozen=True, array_like=True):
    """Versions side by side.

    Attributes:
        pools: names of the apps with the pods of the version that serves, and of the next one.
        unsplit: percentage of the requests that the next one gets and that no Gateway sends to it.
    """

    pools: tuple[str, ...]
    unsplit: int
