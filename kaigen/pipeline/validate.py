"""Check specs without a render."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from kaigen.pipeline.origin import origin_diagnostics
from kaigen.pipeline.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.config.settings import Config
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.pipeline.sources import Inputs


def validate(
    inputs: Inputs = (),
    config: Config | None = None,
    *,
    stdin: IO[bytes] | None = None,
    folder: Path | None = None,
    use_cache: bool = True,
) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """Check specs as rendering does.

    Args:
        inputs: as for `Run.load`.
        config: the repository's settings; the defaults when None.
        stdin: what `-` reads.
        folder: that relative paths start from; the repository's folder when None.
        use_cache: False compiles every file, and stores nothing.

    Returns:
        The diagnostics by file and position, and the files that were read.
    """
    run = Run.load(inputs, config, stdin=stdin, folder=folder, use_cache=use_cache)
    found = list(run.diagnostics)
    if not inputs and config is not None:
        found += origin_diagnostics(config.root / config.output_base, config.trees, config, config.root)
    run.save()
    return found, run.paths
