"""Read the catalogue of a repository, and check it against kaigen's own tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaigen.catalog.catalog import BUILT_IN, Catalog
from kaigen.core.json_types import FieldPath
from kaigen.core.text import series
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.system.lazy_import import lazy_imports
from kaigen.yaml.sources import Source, read_sources

if TYPE_CHECKING:
    from kaigen.yaml.document import Document

with lazy_imports():
    from kaigen.catalog import gpus, instances, presets, rates
    from kaigen.config import catalog
    from kaigen.kinds import validate
    from kaigen.yaml import document, document_secrets

TABLES = ("presets", "gpus", "instances")


def catalog_sources(root: Path, folder: str) -> tuple[list[Source], Diagnostics]:
    """Return the files of a repository's catalogue; none without the folder."""
    path = root / folder
    if not os.path.isdir(path):
        return [], Diagnostics()
    return read_sources([str(path)], root=root)


def catalog_digest(sources: Sequence[Source]) -> str:
    """Return a digest of the files; empty without files."""
    if not sources:
        return ""
    return sha256("".join(f"{source.path}\0{source.digest}\0" for source in sources).encode()).hexdigest()


def read_catalog(root: Path, folder: str, problems: Diagnostics) -> Catalog:
    """Return kaigen's tables with the rows of a repository's catalogue.

    Args:
        root: the repository's folder.
        folder: the catalogue, relative to it.
        problems: receives what is wrong.
    """
    sources, unread = catalog_sources(root, folder)
    problems.extend(unread)
    documents = [item for source in sources for item in _valid(source, problems)]
    prices: dict[str, float] = {}
    discounts: dict[str, float] = {}
    carbon: dict[str, float] = {}
    watts: dict[str, float] = {}
    currency = ""
    for each in documents:
        prices |= _data(each).get("prices", {})
        discounts |= _data(each).get("discounts", {})
        carbon |= _data(each).get("carbon", {})
        watts |= _data(each).get("watts", {})
        currency = _data(each).get("currency", currency)
    tables = {table: tuple(row for _, _, row in _rows(documents, table)) for table in TABLES}
    own = Catalog(catalog_digest(sources), tables, prices, currency, discounts, carbon, watts)
    if not problems.has_errors:
        for table in TABLES:
            _check_names(table, documents, problems)
        _check_references(documents, own, problems)
        _check_prices(documents, own, problems)
        _check_watts(documents, own, problems)
        _check_discounts(documents, own, problems)
    return own


def _valid(source: Source, problems: Diagnostics) -> Iterator[Document]:
    """Yield the documents of a file that follow the schema and do not contradict themselves."""
    for each in document.parse(source, problems):
        problems.extend(document_secrets.find_secrets(each))
        model, found = validate.validate_document(each, catalog.CATALOG_ENTRY)
        problems.extend(found)
        if model is None:
            continue
        for table in TABLES:
            for index, _, row in _rows([each], table):
                for path, message, hint in catalog.row_problems(table, row):
                    problems.add(_problem(each, (table, index, *path), message, hint))
        yield each


def _data(each: Document) -> Mapping[str, Any]:
    """Return the mapping of a valid document."""
    assert isinstance(each.data, dict)
    return each.data


def _problem(each: Document, path: FieldPath, message: str, hint: str) -> Diagnostic:
    return Diagnostic("KG0740", message, each.mark(path), hint)


def _rows(documents: Sequence[Document], table: str) -> list[tuple[int, Document, Mapping[str, Any]]]:
    return [(index, each, row) for each in documents for index, row in enumerate(_data(each).get(table, ()))]


def _check_names(table: str, documents: Sequence[Document], problems: Diagnostics) -> None:
    """Report names of two rows, and other names of a row that are the name of a row of kaigen's."""
    module = {"presets": presets.preset_names, "gpus": gpus.gpu_names, "instances": instances.instance_names}
    shipped = {name.lower() for name in module[table](BUILT_IN)}
    seen: dict[str, Mark] = {}
    for index, each, row in _rows(documents, table):
        named: list[tuple[str, FieldPath]] = [(row["name"], ("name",))]
        named += [(name, ("aliases", place)) for place, name in enumerate(row.get("aliases", ()))]
        named += [(row["repo"], ("repo",))] if "repo" in row else []
        for name, path in named:
            key, mark = name.lower(), each.mark((table, index, *path))
            if key in seen:
                hint = f"choose another name; it is also at {seen[key]}"
                problems.add(Diagnostic("KG0741", f"two entries are named `{name}`", mark, hint))
            elif path[0] != "name" and key in shipped and key != row["name"].lower():
                hint = "an entry replaces kaigen's by its `name`; choose another alias"
                problems.add(Diagnostic("KG0741", f"kaigen's catalogue has `{name}`", mark, hint))
            seen.setdefault(key, mark)


def _check_references(documents: Sequence[Document], own: Catalog, problems: Diagnostics) -> None:
    """Report instance types with a GPU that neither catalogue has."""
    for index, each, row in _rows(documents, "instances"):
        if gpus.get_gpu(row["gpu"], own) is None:
            mark = each.mark(("instances", index, "gpu"))
            problems.add(Diagnostic("KG0306", f"unknown GPU type `{row['gpu']}`", mark, gpus.gpu_hint(row["gpu"], own)))


def _check_prices(documents: Sequence[Document], own: Catalog, problems: Diagnostics) -> None:
    """Report prices without a currency, in two currencies, of unknown instance types, or given twice."""
    seen: dict[str, Mark] = {}
    for each in documents:
        if _data(each).get("currency", own.currency) != own.currency:
            message = f"prices have one currency; another file has {own.currency}"
            problems.add(_problem(each, ("currency",), message, "convert the prices"))
        for name in _data(each).get("prices", {}):
            mark = each.mark(("prices", name), key=True)
            if not own.currency:
                problems.add(Diagnostic("KG0740", "`prices` require `currency`", mark, "add `currency: USD`"))
                return
            if (wrong := _wrong_instance(name, own, mark)) is not None:
                problems.add(wrong)
            elif name in seen:
                hint = f"delete one; it is also at {seen[name]}"
                problems.add(Diagnostic("KG0741", f"two prices of `{name}`", mark, hint))
            seen.setdefault(name, mark)


def _check_watts(documents: Sequence[Document], own: Catalog, problems: Diagnostics) -> None:
    """Report powers of unknown instance types."""
    for each in documents:
        for name in _data(each).get("watts", {}):
            if (wrong := _wrong_instance(name, own, each.mark(("watts", name), key=True))) is not None:
                problems.add(wrong)


def _check_discounts(documents: Sequence[Document], own: Catalog, problems: Diagnostics) -> None:
    """Report discounts of neither a cloud with list prices nor an instance type, and those that are off no price."""
    for each in documents:
        for name in _data(each).get("discounts", {}):
            mark = each.mark(("discounts", name), key=True)
            if rates.currency_of(own) != rates.LIST_CURRENCY:
                message = f"`discounts` are off list prices, which are in {rates.LIST_CURRENCY}, not in {own.currency}"
                problems.add(Diagnostic("KG0740", message, mark, "delete it, and set `prices` to what you pay"))
                return
            clouds = instances.listed_clouds()
            if name in clouds or _wrong_instance(name, own, mark) is None:
                continue
            near = did_you_mean(name, [*clouds, *instances.nearest_instances(name, own, limit=1)])
            hint = near or f"name {series([f'`{cloud}`' for cloud in clouds], 'or')}, or an instance type"
            problems.add(
                Diagnostic("KG1102", f"`{name}` is no cloud with list prices and no instance type", mark, hint)
            )


def _wrong_instance(name: str, own: Catalog, mark: Mark) -> Diagnostic | None:
    """Return why a name is not that of an instance type; None if it is."""
    found = instances.find_instance(name, own)
    if found is None:
        near = instances.nearest_instances(name, own, limit=1)
        hint = f"did you mean `{near[0]}`?" if near else "add it to `instances`"
        return Diagnostic("KG1102", f"unknown instance type `{name}`", mark, hint)
    if found.name != name:
        return Diagnostic("KG0740", f"`{name}` is another name of `{found.name}`", mark, f"write `{found.name}`")
    return None
