"""Finds the specs of a repository that have expired, and the files without them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.core.text import shown_name
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.errors import SystemFailure
from kaigen.pipeline.expiry import EXPIRES_AT, expiry_of, expiry_problem
from kaigen.pipeline.sources import read_named
from kaigen.scaffold.changes import mark_of
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source

_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)


class Expired(Struct, frozen=True):
    """A spec that has expired.

    Attributes:
        document: the spec.
        time: when it expired.
    """

    document: Document
    time: datetime

    def row(self) -> tuple[str, str, str]:
        """Return `KIND/NAME`, the time and the place, safe in the commit message that removes it.

        kind and name are one word, so that they cannot be `Closes` and the number of an issue. They may be any text:
        the spec is not validated before it is removed.
        """
        mark = self.document.mark()
        kind, name = (shown_name(str(word)).replace("/", "?") for word in (self.document.kind, self.document.name))
        place = f"{shown_name(mark.file)}:{mark.line}:{mark.column}"
        return f"{kind}/{name}", f"{self.time:%Y-%m-%d %H:%M} UTC", place


class Pruned(Struct, frozen=True):
    """A file without the specs that have expired.

    Attributes:
        path: the file.
        old: its text.
        new: its text afterwards; None if nothing is left, so that the file is deleted.
        specs: the specs that are removed.
    """

    path: Path
    old: str
    new: str | None
    specs: tuple[Expired, ...]


def find_expired(config: Config, now: datetime) -> list[Pruned]:
    """Return the files with specs that have expired; nothing is written yet.

    Args:
        config: the repository's settings.
        now: the present time.

    Raises:
        InputError: a file cannot be read, an annotation is not a time, or a document cannot be removed alone.
    """
    sources, problems = read_named((), config)
    found = []
    for source in sources:
        if EXPIRES_AT not in source.text:
            continue
        documents = parse(source, problems)
        invalid = [expiry_problem(document, now) for document in documents]
        problems.extend(item for item in invalid if item is not None and item.severity is Severity.ERROR)
        if problems.has_errors:
            continue
        expired = [
            Expired(document, time)
            for document in documents
            if (time := expiry_of(document)) is not None and time <= now
        ]
        if expired:
            found.append(_pruned(source, documents, expired, problems))
    problems.raise_errors()
    return found


def _pruned(source: Source, documents: Sequence[Document], expired: Sequence[Expired], problems: Diagnostics) -> Pruned:
    gone = {item.document.index for item in expired}
    kept = [document for document in documents if document.index not in gone]
    new = without_documents(source.text, [item.document for item in expired]) if kept else None
    again = Diagnostics()
    if new is not None and (
        [each.data for each in parse(Source(source.path, new), again)] != [each.data for each in kept]
        or again.has_errors
    ):
        problems.add(
            Diagnostic(
                "KG0373",
                f"`{expired[0].document.name}` has expired and cannot be removed from this file",
                expired[0].document.mark(),
                "remove it by hand",
            )
        )
    path = Path(source.path)
    mark = mark_of(path)
    return Pruned(path, mark + source.text, None if new is None else mark + new, tuple(expired))


def without_documents(text: str, documents: Sequence[Document]) -> str:
    """Return a YAML text without some documents, each with its comments and the `---` before it."""
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(text))]
    parts = [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]
    places = [document.node.start_mark.index for document in documents]
    ends = [*starts[1:], len(text) + 1]
    gone = {
        number
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
        if any(start <= place < end for place in places)
    }
    return "".join(part for number, part in enumerate(parts) if number not in gone)


def write_pruned(files: Sequence[Pruned]) -> None:
    """Write the files without what has expired.

    Raises:
        SystemFailure: a file cannot be written; all are as they were.
    """
    try:
        for file in files:
            if file.new is None:
                file.path.unlink()
            else:
                file.path.write_text(file.new, encoding="utf-8", newline="")
    except OSError as error:
        restore(files)
        raise SystemFailure(f"{error.filename}: {error.strerror}") from error


def restore(files: Sequence[Pruned]) -> None:
    """Write the files as they were."""
    for file in files:
        file.path.write_text(file.old, encoding="utf-8", newline="")
