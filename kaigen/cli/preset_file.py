"""`kaigen presets add`: write a preset of the repository's own catalogue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from kaigen.cli.options import read_config
from kaigen.cli.sizing import refusals
from kaigen.diagnostics.collector import Diagnostics
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.cli.console import Console

with lazy_imports():
    from kaigen.config import catalog, catalog_rows
    from kaigen.sizing import preset_row
    from kaigen.yaml import dump

_GIB = 2**30
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(|Gi|G|Mi|M)B?")
_UNITS = {"": _GIB, "Gi": _GIB, "G": 10**9, "Mi": 2**20, "M": 10**6}


class SizeParam(click.ParamType[float]):
    """A size in GiB, or with a unit; its value is in GiB."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the size in GiB."""
        found = _SIZE.fullmatch(str(value))
        size = float(found[1]) * _UNITS[found[2]] / _GIB if found else 0.0
        if not size:
            self.fail(f"{value} is not a size; write 14.2Gi, or 15.2G", param, ctx)
        return round(size, 2)


def add_preset(
    console: Console,
    name: str,
    *,
    config_file: str,
    weights: float,
    repo: str,
    revision: str,
    licence: str,
    force: bool,
) -> None:
    """Write the file of a preset in the catalogue of the repository, and check it.

    Raises:
        InputError: the config or the preset is invalid.
        UsageError: the file exists.
    """
    if not re.fullmatch("[a-z0-9][a-z0-9.-]*", name):
        raise click.UsageError(f"{name}: a preset's name has lower-case letters, digits, dots and dashes")
    if revision and not re.fullmatch("[0-9a-f]{40}", revision):
        raise click.UsageError(f"--revision {revision}: a commit has 40 hexadecimal digits")
    settings = read_config()
    path = settings.root / settings.catalog_folder / f"{name}.yaml"
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; replace it with --force")
    if path.exists() and not path.is_file():
        raise click.UsageError(f"{path} is not a file")
    with refusals():
        row = preset_row.preset_row(config_file, weights, name=name, repo=repo, revision=revision, licence=licence)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.exists() else None
    entry = catalog.CATALOG_ENTRY
    text = dump.dump({"apiVersion": entry.api_version, "kind": entry.kind, "presets": [row]})
    path.write_text(text, encoding="utf-8", newline="\n")
    problems = Diagnostics()
    catalog_rows.read_catalog(settings.root, settings.catalog_folder, problems)
    if problems.has_errors:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)
    problems.raise_errors()
    console.say(f"wrote {path}; `kaigen presets {name}` shows it")
    missing = [field for field in ("revision", "engine") if field not in row] + ["licence"] * (licence == "unknown")
    console.say(f"complete it by hand where you know more: {', '.join(missing)}")
