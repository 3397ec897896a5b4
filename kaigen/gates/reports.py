"""Reports of gates: files in `reports/` of a repository, which a pull request shows, and which a promotion reads.

What a pod wrote, or the author of a pull request changed, is only data here: the text for readers is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaigen.core.text import clip_text
from kaigen.diagnostics.errors import InputError
from kaigen.diff.markdown import code_span, escape
from kaigen.files import read_file
from kaigen.programs.gate import amount_text

FOLDER = "reports"
_BEGIN, _END = "\n```json\n", "\n```\n"
_LARGEST = 1 << 20
"""Bytes of a file."""
_HINT = "delete it, and write it again with `kaigen gates --from-cluster`"
_MOST_CHECKS = 100
_LONGEST = 500


class Report(Struct, frozen=True):
    """What a run of a gate found.

    Attributes:
        run: name of its Job, which ends in a hash of what it judged.
        passed: whether every requirement is met.
        reason: why it did not pass; else empty.
        data: the report as plain data.
    """

    run: str
    passed: bool
    reason: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The report as Markdown, in which nothing of the data is markup."""
        return "\n".join(_lines(self)) + "\n"


def report_path(root: Path, environment: str, namespace: str, app: str) -> Path:
    """Return the path of the report about an app's gate in an environment."""
    return root / FOLDER / (environment or "default") / namespace / f"{app}.md"


def make_report(data: dict[str, Any]) -> Report:
    """Return a report from its data, as the program of the gate writes it."""
    reason = clip_text(str(data.get("reason") or ""), _LONGEST)
    return Report(str(data.get("run")), data.get("passed") is True, reason, data)


def _lines(report: Report) -> Iterator[str]:
    data = report.data
    yield f"### {_shown(data.get('gate'))}: {'passed' if report.passed else 'failed'}"
    if report.reason:
        yield from ("", escape(report.reason))
    given = data.get("checks")
    checks = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    if checks:
        yield from ("", "| requirement | limit | measured | |", "|---|---|---|---|")
    for each in checks[:_MOST_CHECKS]:
        limit = f"{_shown(each.get('bound'))} {_amount(each, 'limit')}"
        met = "met" if each.get("passed") is True else "not met"
        yield f"| {_shown(each.get('name'))} | {limit} | {_amount(each, 'value')} | {met} |"
    if len(checks) > _MOST_CHECKS:
        yield f"| and {len(checks) - _MOST_CHECKS} more | | | |"
    if "target" in data:
        judged = f"{_code(report.run)} judged {_code(data['target'])}"
        yield from ("", f"{judged} with {_shown(data.get('tool'))}, {_shown(data.get('finished'))}.")


def _amount(check: dict[str, Any], field: str) -> str:
    value = check.get(field)
    return amount_text(str(check.get("name")), value) if isinstance(value, int | float) else "-"


def _shown(value: object) -> str:
    return escape(clip_text(str(value), _LONGEST))


def _code(value: object) -> str:
    return code_span(clip_text(str(value), _LONGEST))


def file_text(report: Report) -> str:
    """Return the content of the file: Markdown, with the data at its end."""
    return f"{report.text}\n{_BEGIN}{json.dumps(report.data, indent=2, ensure_ascii=False)}{_END}"


def read_report(path: Path, root: Path) -> Report | None:
    """Return the report in a file; None if there is no file.

    Args:
        path: the file.
        root: the repository, out of which no link leads.

    Raises:
        InputError: the file is not a report.
    """
    content = read_file(path, root, _LARGEST, _HINT)
    if content is None:
        return None
    _, begin, rest = content.decode(errors="replace").rpartition(_BEGIN)
    try:
        data = json.loads(rest.removesuffix(_END)) if begin else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise InputError.of("KG0467", f"{path.as_posix()} is not the report of a gate", hint=_HINT)
    return make_report(data)


def write_report(path: Path, report: Report) -> None:
    """Write a report to its file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_text(file_text(report), encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
