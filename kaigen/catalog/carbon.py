"""What a node emits in an hour: its power, and the carbon of its region, both from tables of the repository."""

from __future__ import annotations

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.instances import Instance


def carbon_of(item: Instance, catalog: Catalog, region: str) -> float | None:
    """Return the kilograms of CO2e of an hour of a node; None where a table lacks the instance type or the region.

    kaigen has no tables of its own, because neither figure is in a source that is pinned.

    Args:
        item: the instance type of the node.
        catalog: has the tables.
        region: of the environment; empty for none.
    """
    watts, grams = catalog.watts.get(item.name), catalog.carbon.get(region)
    return None if watts is None or grams is None else watts / 1000 * grams / 1000
