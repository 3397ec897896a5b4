"""What a run reads: paths, specs as Python objects, and the text of the files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from msgspec import to_builtins

from kaigen.config.settings import FILE_NAME, paths_without_specs
from kaigen.diagnostics.category import UNREADABLE
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.kinds.entry import API_VERSION
from kaigen.system.lazy_import import lazy_imports
from kaigen.yaml.sources import STDIN, Source, read_sources

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.kinds.block import Block
    from kaigen.kinds.spec import Spec
    from kaigen.yaml.document import Document

with lazy_imports():
    from kaigen.config import missing
    from kaigen.extend import find
    from kaigen.kinds import block as kinds_block
    from kaigen.yaml import dump as yaml_dump


Input: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Block"
"""A file or folder, or a spec: an object of a kind such as `Model`, or a dict with the same content as in YAML."""

Inputs: TypeAlias = "Input | Sequence[Input]"
"""One input or several; none for the specs that are configured."""

_DOCUMENT = ("api_version", "kind")

OVERRIDES = "Overrides"
"""The kind of files with overrides next to the specs, which `Run.load` reads itself."""


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


def overrides_among(sources: Iterable[Source], config: Config) -> dict[str, Source]:
    """Return the texts that may be overrides next to the specs, by their paths relative to the repository."""
    # Every render searches every text, so they are not parsed for it.
    return {relative_path(source.path, config.root): source for source in sources if OVERRIDES in source.text}


def is_overrides(document: Document) -> bool:
    """Return whether a document has overrides of the specs next to it."""
    return (document.apiVersion, document.kind) == (API_VERSION, OVERRIDES)


def kind_problems(config: Config) -> Sequence[Diagnostic]:
    """Return the diagnostics of the kinds that the repository's folders define."""
    if not config.kinds:
        return ()
    return find.folder_kinds(config).diagnostics


def is_unreadable(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether a text or file could not be read, so that any spec may be missing."""
    return any(item.severity is Severity.ERROR and item.category in UNREADABLE for item in diagnostics)


def is_path(word: str) -> bool:
    """Return whether a word of a command line names files of specs, and not an app."""
    return word == "-" or os.path.lexists(word) or word.lower().endswith((".yaml", ".yml", ".json"))


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


def list_inputs(inputs: Inputs) -> list[Input]:
    """Return inputs as a list."""
    # Kinds are not imported for paths: start-up is import time.
    if isinstance(inputs, str | os.PathLike | Mapping):
        return [inputs]
    if isinstance(inputs, list | tuple):
        return list(inputs)
    return [inputs] if isinstance(inputs, kinds_block.Block) else list(inputs)


def paths_of(inputs: Iterable[Input], folder: Path) -> list[str]:
    """Return the paths among inputs.

    Args:
        inputs: paths and specs.
        folder: that relative paths start from.
    """
    paths = [os.fspath(item) for item in inputs if isinstance(item, str | os.PathLike)]
    if folder == Path():
        return paths
    return [path if path in ("", "-") or os.path.isabs(path) else str(folder / path) for path in paths]


def object_sources(inputs: Iterable[Input]) -> list[Source]:
    """Return the specs among inputs as YAML, so that messages can show a line of it."""
    sources: dict[str, Source] = {}
    for item in inputs:
        if isinstance(item, str | os.PathLike):
            continue
        data = plain(item)
        metadata = data.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        title = f"{data.get('kind', 'spec')} {name}".strip()
        path = f"<{title}>"
        while path in sources or path == STDIN:
            path = f"<{title} {len(sources) + 1}>"
        sources[path] = Source(path, yaml_dump.dump(data))
    return list(sources.values())


def plain(value: Any) -> Any:
    """Return a spec, or a part of it, as plain data with the names of a document.

    Raises:
        TypeError: a value cannot be written to YAML.
    """
    if isinstance(value, kinds_block.Block):
        names = kinds_block.set_fields(value)
        if set(_DOCUMENT) <= set(value.__struct_fields__):
            names |= set(_DOCUMENT)
        return {
            kinds_block.document_name(value, name): plain(getattr(value, name))
            for name in value.__struct_fields__
            if name in names
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return to_builtins(value)
