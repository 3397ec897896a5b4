"""When a spec expires: an annotation with a time, for specs of every kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from kaigen.pipeline.unit import Unit
    from kaigen.yaml.document import Document

EXPIRES_AT = "kaigen.dev/expires-at"
"""Annotation of a spec: a date, or a time with a time zone."""

_PATH = ("metadata", "annotations", EXPIRES_AT)
_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2}))?")


def expiry_of(document: Document) -> datetime | None:
    """Return when a spec expires: a date means 00:00 UTC of that day; None if it does not.

    Raises:
        ValueError: the annotation is not a time.
    """
    text = document.raw(_PATH)
    if text is None:
        return None
    if not _FORM.fullmatch(text):
        raise ValueError(text)
    time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def expiry_problems(units: Sequence[Unit], now: datetime) -> Iterator[Diagnostic]:
    """Return an error for each annotation that is not a time, and a warning for each spec that has expired.

    Args:
        units: the files of the run.
        now: the present time.
    """
    for unit in units:
        if EXPIRES_AT not in unit.source.text:
            continue
        for document in unit.parsed.documents:
            problem = expiry_problem(document, now)
            if problem is not None:
                yield problem


def expiry_problem(document: Document, now: datetime) -> Diagnostic | None:
    """Return the problem of one document, as in `expiry_problems`."""
    try:
        time = expiry_of(document)
    except ValueError as error:
        return Diagnostic(
            "KG0372",
            f"`{EXPIRES_AT}: {error}` is not a date, or a time with a time zone",
            document.mark(_PATH),
            "write it like `2027-01-31` or `2027-01-31T18:00:00Z`",
        )
    if time is None or time > now:
        return None
    message = f"`{document.name}` expired on {document.raw(_PATH)}"
    hint = "run `kaigen prune --expired`, or set a later time"
    return Diagnostic("KG0373", message, document.mark(_PATH), hint, Severity.WARNING)
