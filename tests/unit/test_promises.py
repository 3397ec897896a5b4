"""The page of promises: every promise of another system's document has a test or a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import promises
from tools.promises import Promise, Shown, System

ROOT = Path(__file__).parents[2]
BARE = {name: System("A document", ("a",)) for name in promises.dialects()}
SHOWN = tuple(Shown(name, "a", "tests/unit/test_a.py", "test_a") for name in BARE)


def test_every_promise_has_a_test_or_a_reason() -> None:
    assert promises.problems(promises.systems(), promises.shown()) == []


def test_every_promise_is_a_row_of_the_page() -> None:
    rows = [line for line in promises.page().splitlines() if re.search(r" \| (works|no) \| ", line)]
    listed = [entry for system in promises.systems().values() for entry in system.promises]
    assert len(rows) - 1 == len(listed) > 100  # One line is the head of the summary.
    assert all(line.count(" | ") == 2 for line in rows[1:])


def test_every_reason_is_in_the_page_of_dialects() -> None:
    page = (ROOT / promises.DIALECTS_PAGE).read_text(encoding="utf-8")
    for name, system in promises.systems().items():
        for entry in system.promises:
            if isinstance(entry, Promise):
                assert f"| {entry.promise} | {entry.no} |" in page, name


def test_each_page_of_a_dialect_links_to_its_promises() -> None:
    for system, page in promises.dialects().items():
        assert f"](../promises.md#{promises.anchor(system)})" in (ROOT / "docs" / page).read_text(encoding="utf-8")


def changed(*entries: str | Promise) -> dict[str, System]:
    return BARE | {"KAITO": System("A document", entries)}


TEST = "tests/unit/test_a.py"


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (("a", "b"), ["KAITO: b: add a test with the marker `promise`, or a reason to tools/promises.yaml"]),
        ((Promise("a", no="c"),), [f"KAITO: a: {TEST} shows it; remove its reason from tools/promises.yaml"]),
        (("a", "a"), ["KAITO: a: it is listed 2 times"]),
        ((Promise("b", no="c"),), [f"{TEST}: promises.yaml does not have `KAITO: a`"]),
        ((), ["KAITO: promises.yaml has no promise of it", f"{TEST}: promises.yaml does not have `KAITO: a`"]),
    ],
)
def test_a_promise_needs_either_a_test_or_a_reason(entries: tuple[str | Promise, ...], expected: list[str]) -> None:
    assert promises.problems(BARE, SHOWN) == []
    assert promises.problems(changed(*entries), SHOWN) == expected


def test_a_system_is_a_dialect() -> None:
    unknown = Shown("Unicorn", "a", TEST, "test_a")
    assert promises.problems(BARE, (*SHOWN, unknown)) == [f"{TEST}: promises.yaml does not have `Unicorn: a`"]
    more = BARE | {"Unicorn": System("A document", ("a",))}
    assert promises.problems(more, (*SHOWN, unknown)) == ["Unicorn: no page of docs/dialects/ has this title"]
    fewer = {name: system for name, system in BARE.items() if name != "KAITO"}
    assert "KAITO: promises.yaml has no promise of it" in promises.problems(fewer, SHOWN)


def test_promises_are_read_from_decorators_and_from_single_cases() -> None:
    source = """
import pytest
@pytest.mark.promise("KAITO", "a")
@pytest.mark.promise("KAITO", "b")
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.promise("Koldun", "c"))])
def test_it(x): ...
"""
    found = list(promises.shown_in_python(source, "test_it.py"))
    assert {(entry.system, entry.promise, entry.test) for entry in found} == {
        ("KAITO", "a", "test_it"),
        ("KAITO", "b", "test_it"),
        ("Koldun", "c", "test_it"),
    }
    with pytest.raises(ValueError, match="`promise` of test_it needs a system and a promise"):
        list(promises.shown_in_python(source.replace('"KAITO", "b"', '"KAITO"'), "test_it.py"))


def test_promises_are_read_from_the_top_of_a_scenario() -> None:
    text = "A sentence.\npromise: KAITO: `a`: b\n\n--- a.yaml\npromise: KAITO: c\n$ kaigen validate\n"
    assert list(promises.shown_in_scenario(text, "a.txt")) == [Shown("KAITO", "`a`: b", "a.txt")]
