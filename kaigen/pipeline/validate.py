"""Check specs without a render."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import IO, TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Severity
from kaigen.environments.combined import combine_diagnostics
from kaigen.pipeline.host_checks import hosts_of_clusters
from kaigen.pipeline.origin import origin_diagnostics
from kaigen.pipeline.run import Run
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.config.settings import Config
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.pipeline.sources import Inputs

with lazy_imports():
    from kaigen.pipeline import routing_tests


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
    return _problems(run, inputs, config), run.paths


def validate_environments(
    inputs: Inputs,
    configs: Sequence[Config],
    *,
    stdin: bytes | None,
    folder: Path,
    say: Callable[[str], object],
) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """Check specs in several environments, and whether these fit together.

    Args:
        inputs: as for `Run.load`.
        configs: the settings of each environment.
        stdin: the content of what `-` reads.
        folder: that relative paths start from.
        say: prints what was done with the tests of Endpoints.

    Returns:
        As `validate`.
    """
    runs = [
        Run.load(inputs, config, stdin=BytesIO(stdin) if stdin is not None else None, folder=folder)
        for config in configs
    ]
    found = {config.environment: _problems(run, inputs, config) for config, run in zip(configs, runs, strict=True)}
    said: dict[str, None] = {}  # Each line once, for environments that have the same tests.
    for config, run in zip(configs, runs, strict=True):
        failed = any(item.severity is Severity.ERROR for item in found[config.environment])
        if not failed and any(key[0] == "Endpoint" for unit in run.units for key in unit.defines):
            found[config.environment] += routing_tests.routing_problems(run, said.setdefault)
    for line in said:
        say(line)
    return combine_diagnostics(found, hosts_of_clusters(run.summaries for run in runs)), runs[-1].paths


def _problems(run: Run, inputs: Inputs, config: Config | None) -> list[Diagnostic]:
    found = list(run.diagnostics)
    if not inputs and config is not None:
        found += origin_diagnostics(config.root / config.output_base, config.trees, config, config.root)
    run.save()
    return found
