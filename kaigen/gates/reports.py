"""Reports of gates: files in `reports/` of a repository, which a pull request shows, and which a promotion reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaigen.diagnostics.errors import InputError

FOLDER = "reports"
_BEGIN, _END = "\n```json\n", "\n```\n"


class Report(Struct, frozen=True):
    """What a run of a gate found.

    Attributes:
        run: name of its Job, which ends in a hash of what it judged.
        passed: whether every requirement is met.
        reason: why it did not pass; else empty.
        text: the report as Markdown.
        data: the report as plain data.
    """

    run: str
    passed: bool
    reason: str
    text: str
    data: dict[str, Any]


def report_path(root: Path, environment: str, namespace: str, app: str) -> Path:
    """Return the path of the report about an app's gate in an environment."""
    return root / FOLDER / (environment or "default") / namespace / f"{app}.md"


def make_report(data: dict[str, Any], text: str) -> Report:
    """Return a report from its data, as the program of the gate writes it, and its text."""
    return Report(str(data.get("run")), data.get("passed") is True, str(data.get("reason") or ""), text, data)


def file_text(report: Report) -> str:
    """Return the content of the file: Markdown, with the data at its end."""
    return f"{report.text.rstrip()}\n{_BEGIN}{json.dumps(report.data, indent=2, ensure_ascii=False)}{_END}"


def read_report(path: Path) -> Report | None:
    """Return the report in a file; None if there is no file.

    Raises:
        InputError: the file is not a report.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    shown, begin, rest = text.rpartition(_BEGIN)
    try:
        data = json.loads(rest.removesuffix(_END)) if begin else None
    except ValueError:
        data = None
    if not isinstance(data, dict):
        hint = "delete it, and write it again with `kaigen gates --from-cluster`"
        raise InputError.of("KG0467", f"{path.as_posix()} is not the report of a gate", hint=hint)
    return make_report(data, shown.strip() + "\n")


def write_report(path: Path, report: Report) -> None:
    """Write a report to its file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_text(file_text(report), encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
