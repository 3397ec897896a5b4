"""What a change of an app does to the price of its GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from kaigen.catalog.rates import currency_of
from kaigen.config.settings import Config
from kaigen.diff.objects import Obj
from kaigen.kubernetes.costs import PodCost, carbon_hour_of, hour_of, is_run, pod_costs
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.requests import least_replicas, most_replicas, scaled_replicas


def affects_cost(obj: Obj) -> bool:
    """Return whether an object has pods or scales some."""
    data = cast("Object", obj.data)
    return bool(kind_of(data).pods) or scaled_replicas(data) is not None


def cost_change(old: Sequence[Obj], new: Sequence[Obj], config: Config) -> str:
    """Return how the price of an hour of the GPUs of an app changes, in words; empty if it does not or is unknown.

    Args:
        old: all objects of the app before.
        new: all objects of the app now.
        config: the settings of its environment.
    """
    before, now = _hours(old, config), _hours(new, config)
    if before is None or now is None or before == now:
        return ""
    currency = currency_of(config.catalog)
    if not any(now):
        return f"its GPUs cost nothing any more: {_text(before)} {currency} an hour before"
    return f"its GPUs cost {_text(now)} {currency} an hour" + (f": {_text(before)} before" if any(before) else "")


def carbon_change(old: Sequence[Obj], new: Sequence[Obj], config: Config) -> str:
    """Return how the carbon of an hour of the GPUs of an app changes, in words. The arguments are as above."""
    if not config.region:
        return ""
    before, now = _hours(old, config, _carbon), _hours(new, config, _carbon)
    if before is None or now is None or before == now:
        return ""
    return f"its GPUs emit {_text(now)} kg CO2e an hour" + (f": {_text(before)} before" if any(before) else "")


def _price(costs: list[PodCost], _: Config) -> float | None:
    return hour_of(costs)


def _carbon(costs: list[PodCost], config: Config) -> float | None:
    return carbon_hour_of(costs, config.catalog, config.region)


def _hours(
    objs: Sequence[Obj], config: Config, each: Callable[[list[PodCost], Config], float | None] = _price
) -> tuple[float, float] | None:
    """Return the price or carbon of an hour at least and at most; runs have none at least. None when one is unknown."""
    bodies = [cast("Object", obj.data) for obj in objs]
    # The objects of an app are in one namespace, which files may leave out.
    placed = [("", body) for body in bodies]
    least, most = least_replicas(placed), most_replicas(placed)
    total = [0.0, 0.0]
    for body in bodies:
        key = ("", str(body.get("kind")), str(mapping(body.get("metadata")).get("name")))
        for number, replicas in enumerate((least.get(key), most.get(key))):
            hour = each(pod_costs(_with_replicas(body, replicas), config.catalog, config.profile), config)
            if hour is None:
                return None
            total[number] += 0 if is_run(body) and number == 0 else hour
    return round(total[0], 2), round(total[1], 2)


def _with_replicas(body: Object, replicas: int | None) -> Object:
    return body if replicas is None else {**body, "spec": {**mapping(body.get("spec")), "replicas": replicas}}


def _text(hours: tuple[float, float]) -> str:
    least, most = (f"{hour:,.2f}" for hour in hours)
    return least if least == most else f"{least} to {most}"
