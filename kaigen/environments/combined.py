"""One work done for each environment, and what was said in all of them told once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, InputError

if TYPE_CHECKING:
    from kaigen.config.settings import Config

Found = TypeVar("Found")


def for_each(configs: Sequence[Config], work: Callable[[Config], Found]) -> list[Found]:
    """What the work gives for each configuration.

    Raises:
        InputError: with the problems of all of them, when one has any.
    """
    results: list[Found] = []
    wrong: dict[str, Sequence[Diagnostic]] = {}
    for config in configs:
        try:
            results.append(work(config))
        except InputError as error:
            wrong[config.environment] = error.diagnostics
    if wrong:
        raise InputError(
            combined({config.environment: wrong.get(config.environment, ()) for config in configs})
        )
    return results


def combined(found: Mapping[str, Sequence[Diagnostic]]) -> list[Diagnostic]:
    """What was said for several environments: each once, and for which when it was not for all.

    Args:
        found: diagnostics by environment.
    """
    places: dict[Diagnostic, list[str]] = {}
    for environment, diagnostics in found.items():
        for item in diagnostics:
            names = places.setdefault(item, [])
            if environment not in names:
                names.append(environment)
    told = Diagnostics()
    for item, names in places.items():
        where = f" (in {', '.join(names)})" if len(names) < len(found) else ""
        told.add(replace(item, message=item.message + where))
    return told.sorted()
