"""For programs, in a shape that only grows.

`{"version": 1, "summary": {"error": 1, "warning": 0, "note": 0, "files": 1}, "diagnostics": [{"code": "KG0118",
"url": "https://…#kg0118", "severity": "error", "message": "…", "hint": "…", "path": "spec.image", "file":
"specs/a.yaml", "line": 3, "column": 5, "endColumn": 9, "text": "…"}]}`.

A `hint` and a `path` may be empty; what is unknown of a place is null. Columns are counted in characters (Unicode code
points) from 1, and `endColumn` is the first one behind the place. `text` is the line, null when it is longer than
1,000 characters. `files` counts those that were looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kaigen.diagnostics.codes import code_url
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.reporters.summary import LONGEST_LINE, counts


def render(diagnostics: Sequence[Diagnostic], *, color: bool = False, files: Sequence[str] = ()) -> str:
    """The report; colour is not for programs."""
    looked_at = {*files, *(item.mark.file for item in diagnostics if item.mark)}
    report = {
        "version": 1,
        "summary": {**counts(diagnostics), "files": len(looked_at)},
        "diagnostics": [_entry(item) for item in diagnostics],
    }
    return json.dumps(report, indent=2) + "\n"


def _entry(item: Diagnostic) -> dict[str, str | int | None]:
    mark = item.mark
    line = mark.line if mark and mark.line else None
    column = mark.column if mark and mark.column else None
    return {
        "code": item.code,
        "url": code_url(item.code),
        "severity": item.severity.label,
        "message": item.message,
        "hint": item.hint,
        "path": item.path,
        "file": mark.file if mark else None,
        "line": line,
        "column": column,
        "endColumn": column + max(mark.length, 1) if mark and column else None,
        "text": mark.text if mark and line and len(mark.text) <= LONGEST_LINE else None,
    }
