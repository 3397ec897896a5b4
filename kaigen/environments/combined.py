"""Work for every environment, with the diagnostics of all of them combined."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from kaigen.diagnostics.category import Category
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError

if TYPE_CHECKING:
    from kaigen.config.settings import Config

Result = TypeVar("Result")

_COMMIT = re.compile(r"@[0-9a-f]{12}$")
"""End of the path of a file as of a commit; see `kaigen.yaml.sources.Source`."""
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

    A problem of a spec as of a commit that the working tree has too, or another commit, is the same problem.

    Args:
        diagnostics: by environment.
        between: diagnostics of environments that do not fit together.
    """
    found: dict[tuple[Diagnostic, int], Diagnostic] = {}
    environments: dict[Diagnostic, list[str]] = {}
    promoted: list[tuple[str, Diagnostic]] = []
    for environment, items in diagnostics.items():
        count: Counter[Diagnostic] = Counter()
        for item in items:
            if _written(item) is not item:
                promoted.append((environment, item))
                continue
            same = _same(item)
            count[same] += 1
            environments.setdefault(found.setdefault((same, count[same]), item), []).append(environment)
    alike = {_without_position(item): item for item in reversed([*environments])}
    for environment, item in promoted:
        first = alike.setdefault(_without_position(_written(item)), item)
        environments.setdefault(first, []).append(environment)
    merged = Diagnostics(between)
    for item, names in environments.items():
        where = ", ".join(name for name in diagnostics if name in names)
        merged.add(replace(item, message=f"{item.message} (in {where})") if len({*names}) < len(diagnostics) else item)
    return merged.sorted()


def _same(item: Diagnostic) -> Diagnostic:
    """Return what a problem has in every environment: of some, the message has a name that depends on it."""
    varies = item.code == _DENIED or item.category is Category.REPRODUCIBILITY
    return replace(item, message="") if varies else item


def _written(item: Diagnostic) -> Diagnostic:
    """Return a problem of a file as of a commit as one of the file itself."""
    if item.mark is None or not (commit := _COMMIT.search(item.mark.file)):
        return item
    return replace(item, mark=replace(item.mark, file=item.mark.file[: commit.start()]))


def _without_position(item: Diagnostic) -> Diagnostic:
    """Return a problem without its line number, which other commits change."""
    mark = replace(item.mark, line=0, column=0) if item.mark is not None else None
    return replace(_same(item), mark=mark)
