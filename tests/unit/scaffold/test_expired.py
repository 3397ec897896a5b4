"""Texts without the documents that have expired, and times of expiry."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kaigen.diagnostics.collector import Diagnostics
from kaigen.pipeline.expiry import expiry_of
from kaigen.scaffold.expired import without_documents
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source

FIRST = "# Of the first.\na: 1 # one\n"
SECOND = "---\n# Of the second.\nb: |\n  text\n  --- no separator\n"
THIRD = "--- # Of the third.\nc: {}\n"


@pytest.mark.parametrize(
    ("gone", "left"), [([0], SECOND + THIRD), ([1], FIRST + THIRD), ([2], FIRST + SECOND), ([0, 2], SECOND)]
)
def test_other_documents_and_their_comments_stay(gone: list[int], left: str) -> None:
    text = FIRST + SECOND + THIRD
    documents = parse(Source("a.yaml", text), Diagnostics())
    assert without_documents(text, [documents[index] for index in gone]) == left


def test_empty_documents_and_windows_line_ends_stay() -> None:
    text = "---\r\n# Empty.\r\n---\r\na: 1\r\n---\r\nb: 2\r\n"
    documents = parse(Source("a.yaml", text), Diagnostics())
    assert without_documents(text, documents[:1]) == "---\r\n# Empty.\r\n---\r\nb: 2\r\n"


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
        ('"2027-01-31"', datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T10:30+01:00", datetime(2027, 1, 31, 9, 30, tzinfo=UTC)),
        ("2027-01-31T10:30:05Z", datetime(2027, 1, 31, 10, 30, 5, tzinfo=UTC)),
    ],
)
def test_time_of_expiry_is_a_date_or_a_time_with_a_zone(written: str, time: datetime) -> None:
    text = f"metadata: {{annotations: {{kaigen.dev/expires-at: {written}}}}}"
    (document,) = parse(Source("a.yaml", text), Diagnostics())
    assert expiry_of(document) == time


@pytest.mark.parametrize("written", ["soon", "2027-13-01", "2027-01-31T10:30", "30d", "20270131"])
def test_another_text_is_no_time(written: str) -> None:
    text = f"metadata: {{annotations: {{kaigen.dev/expires-at: {written}}}}}"
    (document,) = parse(Source("a.yaml", text), Diagnostics())
    with pytest.raises(ValueError, match=r"."):
        expiry_of(document)


def test_document_without_the_annotation_does_not_expire() -> None:
    (document,) = parse(Source("a.yaml", "metadata: {annotations: {}}"), Diagnostics())
    assert expiry_of(document) is None
