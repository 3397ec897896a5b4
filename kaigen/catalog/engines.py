"""Engines that serve, and how long they may take to start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaigen.catalog.data import load

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Spreading:
    """How versions of an engine spread one copy over nodes, from one version on.

    Attributes:
        since: first version.
        native: by the engine's own means.
        ray: whether its image holds Ray.
    """

    since: tuple[int, ...]
    native: bool
    ray: bool


@dataclass(frozen=True, slots=True)
class Engine:
    """What a compiler must know of an engine.

    Attributes:
        name: as a spec says it.
        image: name of its image among kaigen's; empty when the spec must name one.
        command: entry point; empty for the image's.
        ready: HTTP path that tells readiness; empty for none.
        live: HTTP path that tells life; empty for none.
        metrics_path: HTTP path of its metrics.
        metrics: names of metrics by what they tell: `waiting`, `running`, `cache`.
        requests: metrics that count requests at work; empty when it drains by itself.
        spreading: how it spreads over nodes, oldest version first; empty when it cannot.
    """

    name: str
    image: str
    command: Sequence[str]
    ready: str
    live: str
    metrics_path: str
    metrics: Mapping[str, str]
    requests: Sequence[str]
    spreading: Sequence[Spreading]

    def spread(self, version: tuple[int, ...] | None) -> Spreading | None:
        """How a version spreads over nodes, the newest for None; None when it cannot."""
        known = [way for way in self.spreading if version is None or way.since <= version]
        return known[-1] if known else None


def get_engine(name: str) -> Engine:
    """The engine of that name.

    Raises:
        KeyError: when there is none.
    """
    data = load("engines")[name]
    metrics = dict(data["metrics"])
    return Engine(
        name=name,
        image=data["image"],
        command=data["command"],
        ready=data["ready"],
        live=data["live"],
        metrics_path=metrics.pop("path"),
        metrics=metrics,
        requests=data["requests"],
        spreading=[
            Spreading(parse_version(way["since"]), way["native"], way["ray"]) for way in data["nodes"]
        ],
    )


def parse_version(text: str) -> tuple[int, ...]:
    """A version such as `0.25.1` as numbers that compare."""
    return tuple(int(part) for part in text.split("."))


def startup_seconds(weights: int | None, source: str) -> int:
    """How long an engine may take until it is ready, in seconds, as whole minutes.

    Args:
        weights: bytes of the weights; None when nobody knows.
        source: where they come from: `hub`, `bucket`, `volume` or `image`.
    """
    facts = load("engines")["startup"]
    if weights is None:
        return int(facts["unknown"])
    seconds = facts["base"] + weights / (facts["rates"][source] * MIB)
    return int(min(facts["most"], 60 * -(-seconds // 60)))
