"""Format results as text and as JSON data."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from statistics import median
from typing import Any

from benchmarks.results import Row, Table, Target

_HEAD = ("", "median ms", "min-max", "cpu ms", "peak MiB", "× ruler", "min-max", "cpu × ruler")


def as_text(table: Table) -> str:
    """Return a table for the terminal."""
    rows = [_HEAD, *(_cells(row) for row in table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["", table.title]
    for row in rows:
        name, *numbers = row
        right = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join(["  " + name.ljust(widths[0]), *right]).rstrip())
    lines.append(f"  ruler: {table.ruler}{'' if table.row(table.ruler) else ' (missing)'}")
    lines += [f"  {note}" for note in table.notes]
    lines += [f"  {_verdict(target)}" for target in table.targets]
    return "\n".join(lines)


def as_data(tables: Sequence[Table]) -> dict[str, Any]:
    """Return all results for `json.dump`. Times are in seconds, memory in KiB."""
    return {
        "date": date.today().isoformat(),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "tables": [
            {
                "title": table.title,
                "ruler": table.ruler,
                "notes": table.notes,
                "rows": [
                    {
                        "name": row.name,
                        "wall_s": [sample.wall_s for sample in row.samples],
                        "cpu_s": [sample.cpu_s for sample in row.samples],
                        "peak_kib": [sample.peak_kib for sample in row.samples],
                        "ratios": list(row.ratios),
                        "cpu_ratio": row.cpu_ratio,
                    }
                    for row in table.rows
                ],
                "targets": [
                    {
                        "what": target.what,
                        "ratio": target.ratio,
                        "cpu_ratio": target.cpu_ratio,
                        "limit": target.limit,
                        "at_least": target.at_least,
                        "met": target.is_met,
                    }
                    for target in table.targets
                ],
            }
            for table in tables
        ],
    }


def _cells(row: Row) -> tuple[str, ...]:
    walls = [sample.wall_s * 1000 for sample in row.samples]
    cpu = median(sample.cpu_s * 1000 for sample in row.samples)
    once = " (1 run)" if len(walls) == 1 else ""
    cells = [row.name + once, f"{median(walls):.0f}", _span(walls, "{:.0f}"), f"{cpu:.0f}"]
    cells.append(f"{row.peak_kib / 1024:.0f}")
    if not row.ratios:
        return (*cells, "", "", "")
    return (*cells, f"{row.ratio:.2f}", _span(row.ratios, "{:.2f}"), f"{row.cpu_ratio:.2f}")


def _span(values: Sequence[float], form: str) -> str:
    return f"{form.format(min(values))}-{form.format(max(values))}"


def _verdict(target: Target) -> str:
    sign = "≥" if target.at_least else "≤"
    word = "met" if target.is_met else "MISSED"
    measured = f"{target.ratio:.2f}, in processor time {target.cpu_ratio:.2f}"
    return f"target {word}: {target.what}: {measured} (target {sign} {target.limit:g})"
