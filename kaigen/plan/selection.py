"""The specs that `kaigen plan` plans: of files, of apps, or of the whole repository."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kaigen.diagnostics.collector import Diagnostics
from kaigen.pipeline.app_names import unknown_app
from kaigen.pipeline.run import Run

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.kinds.spec import Spec


def select_specs(words: Sequence[str], config: Config, *, stdin: IO[bytes] | None = None) -> tuple[Run, list[Spec]]:
    """Return a run of the repository, and the specs to plan.

    Args:
        words: files, folders, `-`, and apps by `NAME` or `NAMESPACE/NAME`; the whole repository when empty.
        config: the repository's settings.
        stdin: what `-` reads.

    Raises:
        InputError: a file has an error, or there is no such app.
    """
    paths = [word for word in words if _is_path(word)]
    names = [word for word in words if word not in paths]
    run = Run.load(paths, config, stdin=stdin, folder=Path() if paths else None)
    chosen: list[Spec] = []
    if paths or not names:
        Diagnostics(run.load_diagnostics).raise_errors()
        chosen += run.specs
    for name in names:
        found = [unit.loaded.specs[position] for unit, position in run.find(name)]
        if not found:
            every = (*run.units, *run.others)
            problems = Diagnostics(run.load_diagnostics)
            problems.extend(item for unit in run.others for item in unit.load_diagnostics)
            problems.raise_errors()
            raise unknown_app(name, [key[1:] for unit in every for key in unit.defines])
        chosen += [spec for spec in found if spec not in chosen]
    return run, chosen


def _is_path(word: str) -> bool:
    return word == "-" or os.path.lexists(word) or word.lower().endswith((".yaml", ".yml", ".json"))
