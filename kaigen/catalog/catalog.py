"""The catalogue of a run: kaigen's own tables, and the rows that a repository adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from kaigen.catalog.json_tables import load_table

Row = Mapping[str, Any]


class Catalog(Struct, frozen=True, eq=False):
    """kaigen's tables with the rows of a repository. Catalogs of the same files are equal.

    Attributes:
        digest: of the files that the rows come from; empty without files.
        tables: rows of the repository by table: `presets`, `gpus`, `instances`.
        prices: price of an hour by name of the instance type, as written.
        currency: of the prices; empty without prices.
        discounts: in percent off the list price, by cloud or instance type.
        carbon: grams of CO2e of a kilowatt hour, by region.
        watts: power of a node, by name of the instance type.
    """

    digest: str = ""
    tables: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    currency: str = ""
    discounts: Mapping[str, float] = field(default_factory=dict)
    carbon: Mapping[str, float] = field(default_factory=dict)
    watts: Mapping[str, float] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Compare by the files."""
        return isinstance(other, Catalog) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash by the files, so that functions can cache what they read of a catalog."""
        return hash(self.digest)

    def rows(self, table: str) -> Sequence[Row]:
        """Return all rows of a table in its order. A row of the repository replaces kaigen's row of the same name."""
        return _rows(table, self)

    def index(self, table: str, names: Mapping[str, Sequence[str]]) -> dict[str, Row]:
        """Return the rows of a table by their names in lower case.

        Args:
            table: the table.
            names: all names of each row by its main name. Of rows that share one, the repository's has it; a main name
                takes precedence over another.
        """
        own = {row["name"] for row in self.tables.get(table, ())}
        found: dict[str, Row] = {}
        ordered = sorted(self.rows(table), key=lambda row: row["name"] in own)
        for row in ordered:
            found |= {name.lower(): row for name in names[row["name"]]}
        for row in ordered:
            found[row["name"].lower()] = row
        return found


BUILT_IN = Catalog()
"""kaigen's own tables alone, for what does not depend on a repository."""


@lru_cache(maxsize=16)
def _rows(table: str, catalog: Catalog) -> Sequence[Row]:
    known: Sequence[Row] = load_table(table)[table]
    own = {row["name"].lower(): row for row in catalog.tables.get(table, ())}
    if not own:
        return known
    replaced = [own.pop(row["name"].lower(), row) for row in known]
    added = [*replaced, *own.values()]
    return sorted(added, key=lambda row: str(row["name"])) if table == "presets" else added
