"""The cache of a repository: the summary of each source file, valid while its text and references are unchanged.

It contains no output. The output tree itself keeps the content; the cache knows the digests. A cache that is lost,
damaged or of another version of kaigen costs time and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import MsgspecError, Struct, field, msgpack, to_builtins

from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.output.contents import TreeState, digest
from kaigen.pipeline.summary import SourceSummary
from kaigen.system.cache import build_id, replace_file
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides

with lazy_imports():
    from kaigen.extend import digest as extend_digest


class SyncRecord(Struct, frozen=True, array_like=True):
    """The files for Argo CD and Flux that were last written.

    Attributes:
        digest: of the facts that they were made from, and of their form.
        files: the digest of each file.
    """

    digest: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


class Stored(Struct, frozen=True, array_like=True):
    """The content of a cache.

    Attributes:
        kind_problems: the diagnostics of the repository's own kinds; None when they are not known.
        sources: summaries by path.
        sync: the files for Argo CD and Flux.
    """

    kind_problems: tuple[Diagnostic, ...] | None = None
    sources: Mapping[str, SourceSummary] = field(default_factory=dict)
    sync: SyncRecord = field(default_factory=SyncRecord)


class Store:
    """The cache of one repository and environment, for runs with the same settings."""

    def __init__(self, folder: Path, config: Config, overrides: Sequence[Overrides]) -> None:
        self._folder = folder / "render"
        name = f"{config.root.absolute()}\0{config.root}\0{config.environment}"
        self._path = self._folder / f"{digest(name.encode())[:32]}.cache"
        self._run = _run_digest(config, overrides)

    def read(self) -> Stored:
        """Return what the last run stored; nothing when its settings were different."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return Stored()
        return _decode(data, self._run) or Stored()

    def write(self, stored: Stored) -> None:
        """Replace the stored summaries. A failure to write is ignored."""
        try:
            content = msgpack.encode(stored)
        except (UnicodeEncodeError, OverflowError):  # The name of a file is not UTF-8, a number has over 64 bits.
            return
        replace_file(self._path, _header(self._run, content) + content)

    def read_tree(self, root: Path) -> TreeState:
        """Return what is known about the files of an output folder."""
        try:
            return TreeState.load(self._tree_path(root).read_bytes())
        except OSError:
            return TreeState()

    def write_tree(self, root: Path, state: TreeState) -> None:
        """Store what is known about the files of an output folder."""
        replace_file(self._tree_path(root), state.dump())

    def _tree_path(self, root: Path) -> Path:
        return self._folder / f"{digest(str(root.absolute()).encode())[:32]}.state"


def _header(run: str, content: bytes) -> bytes:
    """Return what a cache begins with: a digest of its content and of the run that it is valid for."""
    return digest(f"{run}\0".encode() + content).encode() + b"\n"


def _decode(data: bytes, run: str) -> Stored | None:
    """Return what a cache stores; None when it is damaged, of a run with other settings, or no cache of kaigen's."""
    header, _, content = data.partition(b"\n")
    if header + b"\n" != _header(run, content):
        return None
    try:
        return msgpack.decode(content, type=Stored)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _run_digest(config: Config, overrides: Sequence[Overrides]) -> str:
    """Return a digest of everything but the source files that a summary depends on."""
    meaning = {**to_builtins(config, enc_hook=str), "root": "", "output": "", "format": "", "publish": None}
    meaning |= {"overrides": overrides, "build": build_id(), "versions": config.digest_in_version}
    if config.kinds or config.patches:
        meaning["extensions"] = extend_digest.extension_digest(config)
    return digest(json.dumps(meaning, sort_keys=True, default=repr).encode())
