"""The specs that `kaigen plan` plans: of files, of apps, or of the whole repository."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kaigen.diagnostics.collector import Diagnostics
from kaigen.pipeline.app_names import unknown_app
from kaigen.pipeline.load import Loaded, load_others, load_specs
from kaigen.pipeline.sources import spec_key

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.kinds.spec import Spec


def select_specs(
    words: Sequence[str], config: Config, *, stdin: IO[bytes] | None = None
) -> tuple[list[Spec], list[Spec]]:
    """Return the specs to plan, and every spec that they may refer to.

    Args:
        words: files, folders, `-`, and apps by `NAME` or `NAMESPACE/NAME`; the whole repository when empty.
        config: the repository's settings.
        stdin: what `-` reads.

    Raises:
        InputError: a file has an error, or there is no such app.
    """
    paths = [word for word in words if _is_path(word)]
    names = [word for word in words if word not in paths]
    loaded = load_specs(paths, config, stdin=stdin, folder=Path()) if paths or not words else Loaded(())
    Diagnostics(loaded.diagnostics).raise_errors()
    others = load_others(loaded, config)
    known = [*others.specs, *loaded.specs]
    chosen = list(loaded.specs)
    for name in names:
        found = [spec for spec in known if name in _names(spec, config)]
        if not found:
            Diagnostics(others.diagnostics).raise_errors()
            raise unknown_app(name, [spec_key(spec, config.namespace)[1:] for spec in known])
        chosen += [spec for spec in found if spec not in chosen]
    return chosen, known


def _is_path(word: str) -> bool:
    return word == "-" or os.path.lexists(word) or word.lower().endswith((".yaml", ".yml", ".json"))


def _names(spec: Spec, config: Config) -> tuple[str, str]:
    _, namespace, name = spec_key(spec, config.namespace)
    return name, f"{namespace}/{name}"
