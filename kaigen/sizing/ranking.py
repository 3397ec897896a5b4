"""Rank instance types for a model."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kaigen.sizing.facts import Hardware, ModelFacts, Request
from kaigen.sizing.plan import Plan, plan
from kaigen.sizing.problem import PlanError


class Refused(Struct, frozen=True):
    """A kind of node on which the model does not fit.

    Attributes:
        hardware: of each node.
        error: the reason.
    """

    hardware: Hardware
    error: PlanError


class Ranking(Struct, frozen=True):
    """Kinds of nodes, ranked.

    Attributes:
        plans: those that fit, best first.
        refused: the others, in the given order.
    """

    plans: tuple[Plan, ...]
    refused: tuple[Refused, ...]


def rank(facts: ModelFacts, request: Request, choices: Iterable[Hardware]) -> Ranking:
    """Rank kinds of nodes: fewest nodes first, then least GPU memory, then fewest GPUs.

    Prices depend on the day, region and contract, so kaigen has none; GPU memory approximates them. Nodes whose price
    is in the repository's catalogue come first, the cheapest first. Of a cloud's instance types that have the same
    GPUs and price, only the first is listed.
    """
    plans: list[Plan] = []
    refused: list[Refused] = []
    seen: set[tuple[str, str, int, float, float | None]] = set()
    for hardware in choices:
        alike = (hardware.cloud, hardware.gpu, hardware.count, hardware.nominal, hardware.price)
        if alike in seen:
            continue
        seen.add(alike)
        try:
            plans.append(plan(facts, request, hardware))
        except PlanError as error:
            refused.append(Refused(hardware, error))
    return Ranking(tuple(sorted(plans, key=_cost)), tuple(refused))


def _cost(found: Plan) -> tuple[bool, float, int, float, int, str]:
    gpus = found.nodes * found.hardware.count
    price = found.hardware.price
    unknown = price is None
    return (unknown, found.nodes * (price or 0), found.nodes, gpus * found.hardware.nominal, gpus, found.hardware.name)
