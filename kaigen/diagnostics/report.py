"""Diagnostics as text, JSON, SARIF, GitHub annotations or JUnit: a module a form, loaded when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module

from kaigen.diagnostics.diagnostic import Diagnostic

OUTPUTS = ("text", "json", "sarif", "github", "gitlab", "junit")
"""The forms, as the command line names them."""
FORGES = ("sarif", "github", "gitlab")
"""Forms for those who know the repository only, and not the folder that kaigen ran in."""


def render_report(
    diagnostics: Iterable[Diagnostic],
    output: str,
    *,
    color: bool = False,
    files: Sequence[str] = (),
    folder: str = "",
) -> str:
    """A report, ending in a line end unless it is empty.

    Args:
        diagnostics: what was found, in any order.
        output: one of `OUTPUTS`.
        color: whether text has colours; the other forms never have.
        files: the files that were looked at, for forms that say what is right too.
        folder: from which relative paths start, as seen from the repository; for `FORGES`.

    Raises:
        ValueError: for another output.
    """
    if output not in OUTPUTS:
        raise ValueError(f"unknown output {output!r}")
    found = sorted(dict.fromkeys(diagnostics), key=Diagnostic.sort_key)
    if folder and output in FORGES:
        files = [_below(folder, file) for file in files]
        found = [
            replace(item, mark=replace(item.mark, file=_below(folder, item.mark.file))) if item.mark else item
            for item in found
        ]
    if found:
        from kaigen.diagnostics.redaction import redact_diagnostic

        found = [redact_diagnostic(item) for item in found]
    render = import_module(f"kaigen.diagnostics.reporters.{output}").render
    text: str = render(found, color=color, files=files)
    return text


def _below(folder: str, path: str) -> str:
    from posixpath import join, normpath

    return path if path.startswith(("/", "<")) else normpath(join(folder, path))
