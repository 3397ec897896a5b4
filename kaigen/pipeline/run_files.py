"""The files of a run, read: those of the repository or those that a caller names, with what the cache has of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, NamedTuple

from kaigen.config.settings import Config
from kaigen.pipeline.compiler import Compiler
from kaigen.pipeline.sources import (
    is_unreadable,
    kind_problems,
    list_inputs,
    overrides_among,
    read_named,
    read_others,
)
from kaigen.pipeline.store import Store, Stored
from kaigen.system.cache import cache_folder
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.config.value_layers import Overrides
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.pipeline.sources import Inputs
    from kaigen.pipeline.unit import Unit
    from kaigen.system.progress import Progress

with lazy_imports():
    from kaigen.environments import folder_overrides
    from kaigen.pipeline import commits


class RunFiles(NamedTuple):
    """The files of a run, loaded so that specs can refer to each other.

    Attributes:
        units: the files that are compiled.
        others: the repository's other files; None when every file is compiled.
        compiler: what compiling them takes.
        problems: of files that could not be read, and of the repository's own kinds.
        stored: what the cache has.
        store: the cache; None for none.
        progress: receives the number of files compiled.
    """

    units: Sequence[Unit]
    others: Sequence[Unit] | None
    compiler: Compiler
    problems: Sequence[Diagnostic]
    stored: Stored
    store: Store | None
    progress: Progress | None


def read_files(
    inputs: Inputs,
    config: Config | None,
    overrides: Sequence[Overrides],
    *,
    stdin: IO[bytes] | None,
    folder: Path | None,
    use_cache: bool,
    progress: Progress | None,
) -> RunFiles:
    """Read the files of a run; the arguments are those of `kaigen.pipeline.run.Run.load`."""
    config = config or Config()
    given = list_inputs(inputs)
    named, problems = read_named(given, config, stdin=stdin, folder=folder)
    others = read_others([source.path for source in named], config) if given else []
    overriding = overrides_among((*named, *others), config)
    if overriding:
        config = folder_overrides.with_folder_overrides(config, overriding, problems)
    cache = cache_folder() if use_cache else None
    store = Store(cache, config, overrides) if cache is not None else None
    stored = store.read() if store is not None else Stored()
    compiler = Compiler(config, overrides)
    kinds = kind_problems(config) if stored.kind_problems is None else stored.kind_problems
    problems.extend(kinds)
    if config.follows_commits:
        named, others = commits.add_sources(named, others if given else None, config, problems)
    every = [compiler.unit_of(source, stored.sources.get(source.path)) for source in (*named, *others)]
    units = compiler.load(every, unreadable=is_unreadable(problems), progress=progress)
    count = len(named)
    return RunFiles(units[:count], units[count:] if given else None, compiler, tuple(problems), stored, store, progress)
