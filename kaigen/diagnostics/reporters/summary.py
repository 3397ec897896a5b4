"""Counts and fingerprints of diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from kaigen.core.text import plural, printable
from kaigen.diagnostics.diagnostic import Diagnostic, Severity

LONGEST_LINE = 1_000
"""Characters of a line that reports for programs repeat; a file may be one line of megabytes."""


def counts(diagnostics: Sequence[Diagnostic]) -> dict[str, int]:
    """How many there are of each severity, worst first, as in `{"error": 2, "warning": 0, "note": 0}`."""
    found = {severity.label: 0 for severity in sorted(Severity, reverse=True)}
    for item in diagnostics:
        found[item.severity.label] += 1
    return found


def sentence(diagnostics: Sequence[Diagnostic], files: Sequence[str]) -> str:
    """`3 errors, 1 warning in 2 files`; empty when nothing was found and no file was looked at."""
    if not diagnostics:
        return f"no problems in {plural(len(set(files)), 'file')}" if files else ""
    parts = ", ".join(plural(count, label) for label, count in counts(diagnostics).items() if count)
    places = {item.mark.file for item in diagnostics if item.mark}
    return parts + (f" in {plural(len(places), 'file')}" if places else "")


def safe_text(text: str) -> str:
    """The text without what a terminal or an XML parser would act on or choke on; tabs and line ends stay."""
    return printable(text, "�", keep="\t\n")


def fingerprints(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """Return a fingerprint of each problem, 32 hex digits that do not change when lines above it change.

    Of the code, the file, the field and the text of the line, and of how many like it came before.
    """
    seen: dict[str, int] = {}
    found = []
    for item in diagnostics:
        mark = item.mark
        parts = (item.code, mark.file if mark else "", item.path, mark.text.strip() if mark else "")
        key = "\0".join(parts if any(parts[2:]) else (*parts, item.message))
        number = seen[key] = seen.get(key, 0) + 1
        found.append(sha256(f"{key}\0{number}".encode("utf-8", "surrogatepass")).hexdigest()[:32])
    return found
