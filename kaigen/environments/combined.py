"""Work for every environment, with the diagnostics of all of them combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError

if TYPE_CHECKING:
    from kaigen.config.settings import Config

Result = TypeVar("Result")

_DENIED = "KG0582"
"""Of what tenants are not granted: one finding for a place of a spec and a hint, whatever the environments call it."""


def for_each(configs: Sequence[Config], work: Callable[[Config], Result]) -> list[Result]:
    """Return the result of the work for each configuration.

    Raises:
        InputError: with the diagnostics of all configurations, if one of them has an error.
    """
    results: list[Result] = []
    errors: dict[str, Sequence[Diagnostic]] = {}
    for config in configs:
        try:
            results.append(work(config))
        except InputError as error:
            errors[config.environment] = error.diagnostics
    if errors:
        raise InputError(
            combine_diagnostics({config.environment: errors.get(config.environment, ()) for config in configs})
        )
    return results


def combine_diagnostics(
    diagnostics: Mapping[str, Sequence[Diagnostic]], between: Iterable[Diagnostic] = ()
) -> list[Diagnostic]:
    """Return the diagnostics of several environments, each once; those of some environments name them.

    Args:
        diagnostics: by environment.
        between: diagnostics of environments that do not fit together.
    """
    environments: dict[Diagnostic, list[str]] = {}
    first: dict[tuple[Diagnostic, int], Diagnostic] = {}
    for environment, items in diagnostics.items():
        count: Counter[Diagnostic] = Counter()
        for item in items:
            if item.code == _DENIED:
                # The namespace of an environment is in the message.
                same = replace(item, message="")
                count[same] += 1
                item = first.setdefault((same, count[same]), item)
            names = environments.setdefault(item, [])
            if environment not in names:
                names.append(environment)
    merged = Diagnostics(between)
    for item, names in environments.items():
        where = f" (in {', '.join(names)})" if len(names) < len(diagnostics) else ""
        merged.add(replace(item, message=item.message + where))
    return merged.sorted()
