"""For GitLab: a code quality report, which becomes the widget of a merge request and marks in its diff.

Source of the form: GitLab's documentation, "Code Quality report format".
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.reporters.summary import fingerprints, safe_text

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}
_NO_FILE = "kaigen.yaml"
"""The file of problems outside of files, because the format requires one."""


def render(diagnostics: Sequence[Diagnostic], *, color: bool = False, files: Sequence[str] = ()) -> str:
    """The report: a list, empty when nothing was found."""
    marks = fingerprints(diagnostics)
    return json.dumps([_entry(item, mark) for item, mark in zip(diagnostics, marks, strict=True)], indent=2) + "\n"


def _entry(item: Diagnostic, fingerprint: str) -> dict[str, object]:
    text = item.message + (f"; {item.hint}" if item.hint else "")
    place = item.mark
    return {
        "check_name": item.code,
        "description": safe_text(f"{item.code}: {text}"),
        "severity": _SEVERITIES[item.severity],
        "fingerprint": fingerprint,
        "location": {"path": place.file if place else _NO_FILE, "lines": {"begin": max(place.line, 1) if place else 1}},
    }
