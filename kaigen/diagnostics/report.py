"""Reports of diagnostics as text, JSON, SARIF, GitHub annotations, GitLab code quality or JUnit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from posixpath import join, normpath

from msgspec.structs import replace

from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.core import credentials

OUTPUTS = ("text", "json", "sarif", "github", "gitlab", "junit")
"""Output formats of the command line."""
FORGES = ("sarif", "github", "gitlab")
"""Formats with paths relative to the repository instead of the working folder."""


def render_report(
    diagnostics: Iterable[Diagnostic], output: str, *, color: bool = False, files: Sequence[str] = (), folder: str = ""
) -> str:
    """Return a report, ending in a line end unless it is empty.

    Args:
        diagnostics: in any order.
        output: one of `OUTPUTS`.
        color: whether text is colored; other formats never are.
        files: all checked files, for formats that list successes too.
        folder: the working folder relative to the repository; for `FORGES`.

    Raises:
        ValueError: the output format is unknown.
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
        found = [_redact_diagnostic(item) for item in found]
    render = import_module(f"kaigen.diagnostics.reporters.{output}").render
    text: str = render(found, color=color, files=files)
    return text


def _below(folder: str, path: str) -> str:
    return path if path.startswith(("/", "<")) else normpath(join(folder, path))


def _redact_diagnostic(item: Diagnostic) -> Diagnostic:
    """Return a diagnostic whose message, hint, path and excerpt show no credential."""
    message, hint, path = credentials.redact(item.message), credentials.redact(item.hint), credentials.redact(item.path)
    mark = item.mark
    if mark:
        text = credentials.redact(mark.text)
        mark = mark if text is mark.text else replace(mark, text=text)
    if mark is item.mark and (message, hint, path) == (item.message, item.hint, item.path):
        return item
    return replace(item, message=message, hint=hint, path=path, mark=mark)
