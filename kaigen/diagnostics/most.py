"""The most problems of one document that a run reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from kaigen.diagnostics.problem import Problem

T = TypeVar("T")

MOST = 1000
"""Most problems of one document that are reported. Finding the position and the hint of each takes time."""


def first_problems(found: Sequence[Problem]) -> list[Problem]:
    """Return at most `MOST` problems of a document, the most severe ones, and one that says how many more there are."""
    return [problem for _, problem in first_of([(None, problem) for problem in found])]


def first_of(found: Sequence[tuple[T, Problem]]) -> list[tuple[T, Problem]]:
    """Return the same for problems of the objects of a document, each with its object."""
    if len(found) <= MOST:
        return [*found]
    ranked = sorted(range(len(found)), key=lambda place: -found[place][1].severity)
    shown = [found[place] for place in sorted(ranked[:MOST])]
    item, last = shown[-1]
    how_many = f"{len(found) - MOST:,} more problems"
    return [*shown, (item, more_problems(last, how_many, found[ranked[MOST]][1]))]


def more_problems(last: Problem, how_many: str, next_: Problem | None = None) -> Problem:
    """Return the problem that a document has more of them than are reported.

    Args:
        last: the last one that is reported.
        how_many: those that are not.
        next_: the most severe one of those; an error if it is not known.
    """
    message = f"the document has {how_many} than the {MOST:,} that are shown"
    problem = Problem("KG0210", message, last.path, "correct these first")
    return problem if next_ is None else replace(problem, severity=next_.severity)
