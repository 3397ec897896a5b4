"""The source files of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kaigen.config.settings import FILE_NAME, paths_without_specs
from kaigen.diagnostics.category import UNREADABLE
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.pipeline.inputs import object_sources, paths_of
from kaigen.system.lazy_import import lazy_imports
from kaigen.yaml.sources import read_sources

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.inputs import Input
    from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.config import missing
    from kaigen.extend import find


def read_named(
    inputs: Sequence[Input], config: Config, *, stdin: IO[bytes] | None = None, folder: Path | None = None
) -> tuple[list[Source], Diagnostics]:
    """Return the texts of specs, by default the configured ones, and what could not be read.

    Args:
        inputs: files, folders, `-` for standard input, and specs as Python objects.
        config: the repository's settings.
        stdin: what `-` reads.
        folder: that relative paths start from; the repository's folder when None.
    """
    problem = None if inputs else missing_repository(config)
    if problem is not None:
        return [], Diagnostics([problem])
    objects = object_sources(inputs)
    named = paths_of(inputs, config.root if folder is None else folder)
    if not inputs:
        named = [str(config.root / path) for path in config.specs]
    sources, problems = read_sources(named, root=config.root, stdin=stdin, exclude=paths_without_specs(config))
    return [*objects, *sources], problems


def missing_repository(config: Config) -> Diagnostic | None:
    """Return the problem of a folder with neither kaigen.yaml nor specs; None for any other folder."""
    root = config.root
    if os.path.lexists(root / FILE_NAME) or any((root / path).exists() for path in config.specs):
        return None
    return missing.missing_config(root)


def read_others(files: Iterable[str], config: Config) -> list[Source]:
    """Return the texts of the configured files, less those given."""
    seen = {Path(path).absolute() for path in files}
    folders = [str(config.root / path) for path in config.specs if (config.root / path).exists()]
    sources, _ = read_sources(folders, root=config.root, exclude=paths_without_specs(config))
    return [source for source in sources if Path(source.path).absolute() not in seen]


def kind_problems(config: Config) -> Sequence[Diagnostic]:
    """Return the diagnostics of the kinds that the repository's folders define."""
    if not config.kinds:
        return ()
    return find.folder_kinds(config).diagnostics


def is_unreadable(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether a text or file could not be read, so that any spec may be missing."""
    return any(item.severity is Severity.ERROR and item.category in UNREADABLE for item in diagnostics)


def relative_path(path: str, root: Path) -> str:
    """Return a file's path in the repository, its name when it is outside, and nothing for standard input."""
    if path.startswith("<"):
        return ""
    base = f"{root}/"
    # pathlib takes as long as reading the file.
    if path.startswith(base):
        return path.removeprefix(base)
    if base == "./" and not path.startswith(("/", ".")):
        return path
    try:
        return Path(path).absolute().relative_to(root.absolute()).as_posix()
    except ValueError:
        return Path(path).name


def spec_key(spec: Spec, namespace: str) -> tuple[str, str, str]:
    """Return the kind, namespace and name of a spec."""
    metadata = spec.block.metadata
    return (spec.block.kind, metadata.namespace or namespace, metadata.name)
