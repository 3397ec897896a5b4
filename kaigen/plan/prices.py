"""The price of a plan: of an hour, and of a million tokens."""

from __future__ import annotations

from msgspec import Struct

from kaigen.catalog.carbon import carbon_of
from kaigen.catalog.catalog import Catalog
from kaigen.catalog.instances import find_instance
from kaigen.catalog.rates import Rate, currency_of, rate_of
from kaigen.core.json_types import Json
from kaigen.sizing.plan import Plan


class Prices(Struct, frozen=True):
    """Prices of plans.

    Attributes:
        catalog: has the prices.
        tokens_per_second: what all replicas together process, as measured; None when it is unknown.
        region: of the environment, for its carbon; empty for none.
    """

    catalog: Catalog
    tokens_per_second: float | None = None
    region: str = ""

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        """Return price and carbon of a plan as rows of a name and a text; none when they are unknown."""
        carbon = self._carbon(plan)
        rows = [("carbon", f"{carbon:,.2f} kg CO2e an hour in {self.region}")] if carbon is not None else []
        return [*self._price_rows(plan), *rows]

    def _price_rows(self, plan: Plan) -> list[tuple[str, str]]:
        rate = self._rate(plan)
        if rate is None:
            return []
        nodes, currency = plan.total_nodes, currency_of(self.catalog)
        text = f"{nodes * rate.amount:,.2f} {currency} an hour"
        text += f", {nodes} × {rate.amount:,.2f}" if nodes > 1 else ""
        rows = [("price", text if rate.source == "catalog" else f"{text} ({rate.source})")]
        million = self._million(plan, rate)
        if million is not None:
            rows.append(("", f"{million:,.2f} {currency} for a million tokens, at {self.tokens_per_second:g} a second"))
        return rows

    def data(self, plan: Plan) -> dict[str, Json]:
        """Return price and carbon of a plan as plain data; empty when they are unknown."""
        carbon = self._carbon(plan)
        return self._price_data(plan) | ({"kgCO2ePerHour": round(carbon, 4)} if carbon is not None else {})

    def _price_data(self, plan: Plan) -> dict[str, Json]:
        rate = self._rate(plan)
        if rate is None:
            return {}
        found: dict[str, Json] = {
            "perHour": round(plan.total_nodes * rate.amount, 4),
            "currency": currency_of(self.catalog),
            "from": rate.source,
        }
        million = self._million(plan, rate)
        return {"price": found | ({"perMillionTokens": round(million, 4)} if million is not None else {})}

    def _carbon(self, plan: Plan) -> float | None:
        item = find_instance(plan.hardware.instance, self.catalog) if plan.hardware.instance else None
        carbon = carbon_of(item, self.catalog, self.region) if item is not None else None
        return None if carbon is None else plan.total_nodes * carbon

    def _rate(self, plan: Plan) -> Rate | None:
        item = find_instance(plan.hardware.instance, self.catalog) if plan.hardware.instance else None
        return rate_of(item, self.catalog) if item is not None else None

    def _million(self, plan: Plan, rate: Rate) -> float | None:
        """Return the price of a million tokens while all replicas are busy."""
        if self.tokens_per_second is None:
            return None
        return plan.total_nodes * rate.amount / 3600 / self.tokens_per_second * 1e6
