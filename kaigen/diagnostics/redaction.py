"""Redact credentials in diagnostics."""

from __future__ import annotations

from msgspec.structs import replace

from kaigen.core.credentials import redact
from kaigen.diagnostics.diagnostic import Diagnostic


def redact_diagnostic(item: Diagnostic) -> Diagnostic:
    """Return a diagnostic whose message, hint, path and excerpt show no credential."""
    message, hint, path = redact(item.message), redact(item.hint), redact(item.path)
    mark = item.mark
    if mark:
        text = redact(mark.text)
        mark = mark if text is mark.text else replace(mark, text=text)
    if mark is item.mark and (message, hint, path) == (item.message, item.hint, item.path):
        return item
    return replace(item, message=message, hint=hint, path=path, mark=mark)
