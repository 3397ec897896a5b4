"""Rows of the catalogue that a repository adds to kaigen's own tables, and which rows a run uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from kaigen.catalog.json_tables import load_table

Row = Mapping[str, Any]


class OwnRows(Struct, frozen=True):
    """The rows of a repository.

    Attributes:
        digest: of the files that they come from; empty without files.
        tables: rows by table: `presets`, `gpus`, `instances`.
        prices: price of an hour by name of the instance type, as written.
        currency: of the prices; empty without prices.
    """

    digest: str = ""
    tables: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    currency: str = ""


_NONE = OwnRows()
_used: ContextVar[OwnRows] = ContextVar("own_rows", default=_NONE)


@contextmanager
def using(rows: OwnRows) -> Iterator[None]:
    """Add the rows of a repository to the tables, for the calls inside of `with`."""
    token = _used.set(rows)
    try:
        yield
    finally:
        _used.reset(token)


def used_digest() -> str:
    """Return what distinguishes the rows in use from others; functions that cache what they read take it."""
    return _used.get().digest


def rows(table: str) -> Sequence[Row]:
    """Return all rows of a table in its order. A row of the repository replaces kaigen's row of the same name.

    Names of the repository's rows take precedence over those of kaigen's: callers index the rows in this order.
    """
    return _rows(table, used_digest())


def prices() -> tuple[Mapping[str, float], str]:
    """Return the price of an hour by name of the instance type, and the currency."""
    used = _used.get()
    return used.prices, used.currency


@lru_cache(maxsize=16)
def _rows(table: str, digest: str) -> Sequence[Row]:
    known: Sequence[Row] = load_table(table)[table]
    own = {row["name"].lower(): row for row in _used.get().tables.get(table, ())}
    if not own:
        return known
    replaced = [own.pop(row["name"].lower(), row) for row in known]
    added = [*replaced, *own.values()]
    return sorted(added, key=lambda row: str(row["name"])) if table == "presets" else added


def index(table: str, names: Mapping[str, Sequence[str]]) -> dict[str, Row]:
    """Return the rows of a table by their names in lower case.

    Args:
        table: the table.
        names: all names of each row by its main name. Of rows that share one, the repository's has it; a main name
            takes precedence over another.
    """
    own = {row["name"] for row in _used.get().tables.get(table, ())}
    found: dict[str, Row] = {}
    ordered = sorted(rows(table), key=lambda row: row["name"] in own)
    for row in ordered:
        found |= {name.lower(): row for name in names[row["name"]]}
    for row in ordered:
        found[row["name"].lower()] = row
    return found
