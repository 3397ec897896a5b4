"""Make kaigen/catalog/vllm_flags.json: flags, environment variables, metrics and packages of each version of vLLM."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kaigen.catalog.vllm_flags import first_name
from tools.facts.sources import SourceError, metadata_of, package_date

ROOT = Path(__file__).parent.parent.parent
TABLE = ROOT / "kaigen" / "catalog" / "vllm_flags.json"
_READERS = (ROOT / "tools" / "vllm_parser.py", ROOT / "tools" / "facts" / "stand_ins.py")
_SETS = ("choices", "registered")
"""Keys of a flag whose values mostly change by a few words."""
_PACKAGES = ("opentelemetry-exporter-otlp", "opentelemetry-sdk")
"""Packages without which a flag does not work, and which some versions do not bring."""
Rows = Mapping[str, Any]


def read_flags(folder: Path) -> list[Rows]:
    """Return the flags of a version, which are kept next to its files as long as their readers do not change.

    Raises:
        SourceError: the parser of the version cannot be built.
    """
    readers = hashlib.sha256(b"".join(Path(name).read_bytes() for name in _READERS)).hexdigest()[:16]
    kept = folder / f".flags-{readers}.json"
    if not kept.is_file():
        kept.write_text(json.dumps(_run(folder, [])[0]))
    rows: list[Rows] = json.loads(kept.read_text())
    return rows


def refused_lines(folder: Path, lines: Sequence[Sequence[str]]) -> Mapping[str, str]:
    """Return why the parser of a version refuses command lines, by line.

    Raises:
        SourceError: the parser of the version cannot be built.
    """
    return _run(folder, lines)[1]


def _run(folder: Path, lines: Sequence[Sequence[str]]) -> tuple[list[Rows], Mapping[str, str]]:
    with tempfile.TemporaryDirectory() as scratch:
        given, flags, refused = (Path(scratch, name) for name in ("lines", "flags", "refused"))
        given.write_text(json.dumps([json.dumps(line) for line in lines]))
        # Neither bytecode in the cache nor modules of the working folder.
        command = [sys.executable, "-P", "-B", "-W", "ignore", "-m", "tools.facts.stand_ins"]
        paths = os.pathsep.join([str(folder), str(ROOT)])
        environment = os.environ | {"PYTHONPATH": paths, "HOME": scratch, "VLLM_LOGGING_LEVEL": "ERROR"}
        run = subprocess.run(
            [*command, flags, given, refused], env=environment, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise SourceError(f"{folder.name}: its parser cannot be built:\n{run.stderr[-2000:]}")
        return json.loads(flags.read_text()), json.loads(refused.read_text())


def environment_variables(folder: Path) -> list[str]:
    """Return the variables that a version reads, the keys of its table in `vllm/envs.py`."""
    tree = ast.parse((folder / "vllm" / "envs.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "environment_variables":
            keys = getattr(node.value, "keys", ())
            return sorted(str(key.value) for key in keys if isinstance(key, ast.Constant))
    raise SourceError(f"{folder.name}: vllm/envs.py has no table of variables")


def metrics(folder: Path) -> list[str]:
    """Return the names of the metrics in the Python files of a version."""
    found: set[str] = set()
    for path in sorted((folder / "vllm" / "v1").rglob("*.py")):
        text = path.read_text()
        if '"vllm:' in text:
            found |= set(re.findall(r'name="(vllm:[a-z0-9_]+)"', text))
            found |= set(re.findall(r'^\s*"(vllm:[a-z0-9_]+)",$', text, re.MULTILINE))
    return sorted(found)


def packages(folder: Path) -> list[str]:
    """Return which of the packages that flags need a version installs with itself, from its metadata."""
    needed = re.findall(r"(?m)^Requires-Dist: ([A-Za-z0-9._-]+)(?!.*extra ==)", metadata_of(folder).read_text())
    return sorted(set(needed) & set(_PACKAGES))


def changes(rows: Sequence[Rows | None]) -> list[list[Any]]:
    """Return the versions from which a flag is another, and what of it changes.

    Args:
        rows: the flag in each version; None where there is none.
    """
    found: list[list[Any]] = []
    before: Rows | None = None
    for number, row in enumerate(rows):
        if row != before:
            found.append([number, None if row is None else _change(before, row)])
        before = row
    return found


def _change(before: Rows | None, row: Rows) -> dict[str, Any]:
    if before is None:
        return dict(row)
    change: dict[str, Any] = {}
    for key in [*row, *(key for key in before if key not in row)]:
        old, new = before.get(key), row.get(key)
        if old == new:
            continue
        if key in _SETS and old and new:
            change[f"+{key}"] = [word for word in new if word not in old]
            change[f"-{key}"] = [word for word in old if word not in new]
        else:
            change[key] = new
    return {key: value for key, value in change.items() if value != []}


def spans(names: Sequence[Iterable[str]]) -> dict[str, list[list[int]]]:
    """Return the first and last version of each span of versions in which a name is known."""
    found: dict[str, list[list[int]]] = {}
    for number, known in enumerate(names):
        for name in known:
            own = found.setdefault(name, [])
            if own and own[-1][1] == number - 1:
                own[-1][1] = number
            else:
                own.append([number, number])
    return dict(sorted(found.items()))


def table(folders: Mapping[str, Path], rows: Mapping[str, Sequence[Rows]]) -> str:
    """Return the content of the table.

    Args:
        folders: files of each version, oldest first.
        rows: flags of each version.
    """
    by_version = [{first_name(row["names"]): row for row in rows[version]} for version in folders]
    dates = {version: package_date(folder) for version, folder in folders.items()}
    names = sorted({name for flags in by_version for name in flags})
    parts = {
        "source": json.dumps("the parser of `vllm serve`, vllm/envs.py and the metadata of each package"),
        "date": json.dumps(max(dates.values())),
        "versions": json.dumps(dates),
        "flags": _lines({name: changes([flags.get(name) for flags in by_version]) for name in names}),
        "environment": _lines(spans([environment_variables(folder) for folder in folders.values()])),
        "metrics": _lines(spans([metrics(folder) for folder in folders.values()])),
        "packages": _lines(spans([packages(folder) for folder in folders.values()])),
    }
    return "{\n" + ",\n".join(f' "{key}": {value}' for key, value in parts.items()) + "\n}\n"


def _lines(rows: Mapping[str, Any]) -> str:
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()) + "\n }"
