"""What an hour of an instance type costs: the price of the repository, or the list price less its discount."""

from __future__ import annotations

from msgspec import Struct

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.instances import Instance, list_price

LIST_CURRENCY = "USD"
"""Currency of the list prices."""


class Rate(Struct, frozen=True):
    """The price of an hour.

    Attributes:
        amount: in the currency of the catalogue.
        source: where it is from, in words.
    """

    amount: float
    source: str


def currency_of(catalog: Catalog) -> str:
    """Return the currency of all rates."""
    return catalog.currency or LIST_CURRENCY


def rate_of(item: Instance, catalog: Catalog) -> Rate | None:
    """Return the price of an hour of an instance type on demand; None when it is unknown.

    List prices are in USD, so a catalogue in another currency has only its own prices.
    """
    if item.price is not None:
        return Rate(item.price, "catalog")
    listed = list_price(item)
    if listed is None or currency_of(catalog) != LIST_CURRENCY:
        return None
    discount = catalog.discounts.get(item.name, catalog.discounts.get(item.cloud, 0))
    less = f", less {discount:g}%" if discount else ""
    return Rate(listed.usd * (100 - discount) / 100, f"list price, {listed.region}, {listed.date}{less}")
