"""For GitHub Actions: workflow commands, which become annotations on the lines of a pull request.

Source of the form and its escapes: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.diagnostics.codes import code_url, codes
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.reporters.summary import safe_text

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(diagnostics: Sequence[Diagnostic], *, color: bool = False, files: Sequence[str] = ()) -> str:
    """The report, a command a line; empty when nothing was found."""
    return "".join(_command(item) + "\n" for item in diagnostics)


def _command(item: Diagnostic) -> str:
    mark = item.mark
    known = codes().get(item.code)
    properties: dict[str, str] = {}
    if mark:
        properties["file"] = mark.file
        if mark.line:
            properties["line"] = str(mark.line)
            if mark.column:
                properties["col"] = str(mark.column)
                properties["endColumn"] = str(mark.column + max(mark.length, 1) - 1)
    properties["title"] = f"{item.code} {known.title}" if known else item.code
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = "\n".join(filter(None, (item.message, item.hint, code_url(item.code) if known else "")))
    return f"::{_COMMANDS[item.severity]} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return safe_text(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
