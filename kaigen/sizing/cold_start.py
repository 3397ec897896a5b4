"""How long the first request waits while no replica runs."""

from __future__ import annotations

from math import sqrt

from msgspec import Struct


class ColdStart(Struct, frozen=True):
    """The wait of a request to no replica, in seconds.

    Attributes:
        polling: interval at which the scaler asks for the load.
        scrape: interval at which Prometheus reads the load; 0 if the scaler asks the router itself.
        start: longest time until a pod is ready: the limit of the startup probe.
        given: whether the spec says how long a pod may start; if not, the size of the weights does.
        hold: how long the router holds the request.
        hours: whether replicas run in the hours of a schedule, so that this is about the other hours.
    """

    polling: int
    scrape: int
    start: int
    given: bool
    hold: int
    hours: bool = False

    def noticed(self, share: float) -> float:
        """Return after how many seconds the scaler has noticed this share of requests.

        A request comes at any time between two reads of Prometheus, and the read at any time between two of the scaler,
        so the time is the sum of two that are uniform.
        """
        longer, shorter = max(self.polling, self.scrape), min(self.polling, self.scrape)
        area = share * longer * shorter
        if 2 * area < shorter**2:
            return sqrt(2 * area)
        if share * longer <= longer - shorter / 2:
            return share * longer + shorter / 2
        return longer + shorter - sqrt(2 * (1 - share) * longer * shorter)
