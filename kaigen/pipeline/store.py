"""The cache of a repository: the summary of each source file, valid while its text and references are unchanged.

It contains no output. The output tree itself keeps the content; the cache knows the digests. A cache that is lost,
damaged or of another version of kaigen costs time and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import astuple

from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.output.contents import digest
from kaigen.output.tree_state import TreeState
from kaigen.pipeline.summary import AppSummary, Missing, ObjectKey, SourceSummary
from kaigen.system.cache import build_id, replace_file
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides

with lazy_imports():
    from kaigen.extend import digest as extend_digest
    from kaigen.gitops import delivery
    from kaigen.pipeline import app_reach
    from kaigen.secrets import expected


class SyncRecord(Struct, frozen=True):
    """The files for Argo CD and Flux that were last written.

    Attributes:
        digest: of the facts that they were made from, and of their form.
        files: the digest of each file.
    """

    digest: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


class Stored(Struct, frozen=True):
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
        self._path = self._folder / f"{digest(name.encode())[:32]}.json"
        self._run = _run_digest(config, overrides)

    def read(self) -> Stored:
        """Return what the last run stored; nothing when its settings were different."""
        try:
            data = json.loads(self._path.read_bytes())
            if data["run"] != self._run:
                return Stored()
            return Stored(
                tuple(map(_diagnostic, data["kinds"])),
                {path: _source(raw) for path, raw in data["sources"].items()},
                SyncRecord(*data["sync"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Stored()

    def write(self, stored: Stored) -> None:
        """Replace the stored summaries. A failure to write is ignored."""
        data = {
            "run": self._run,
            "kinds": stored.kind_problems,
            "sources": stored.sources,
            "sync": stored.sync,
        }
        replace_file(self._path, json.dumps(data, default=_plain).encode())

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


def _run_digest(config: Config, overrides: Sequence[Overrides]) -> str:
    """Return a digest of everything but the source files that a summary depends on."""
    meaning = {**to_builtins(config, enc_hook=str), "root": "", "output": "", "format": "", "publish": None}
    meaning |= {"overrides": overrides, "build": build_id(), "versions": config.digest_in_version}
    if config.kinds or config.patches:
        meaning["extensions"] = extend_digest.extension_digest(config)
    return digest(json.dumps(meaning, sort_keys=True, default=repr).encode())


def _plain(value: object) -> object:
    """Return a record as the list of its values, which the functions below read again."""
    if isinstance(value, Struct):
        return astuple(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return dict(value) if isinstance(value, Mapping) else repr(value)


def _source(raw: Sequence[Any]) -> SourceSummary:
    (
        text,
        defines,
        documents,
        lookups,
        consumed,
        references,
        diagnostics,
        matched,
        apps,
        form,
        files,
        missing,
    ) = raw
    return SourceSummary(
        digest=text,
        defines=tuple(map(_three, defines)),
        documents=tuple(map(_three, documents)),
        lookups=tuple((_three(name), known) for name, known in lookups),
        consumed=tuple((path, index) for path, index in consumed),
        references=tuple((_three(key), known) for key, known in references),
        diagnostics=tuple(map(_diagnostic, diagnostics)),
        matched=tuple(matched),
        apps=tuple(map(_app, apps)),
        form=form,
        files=files,
        missing=tuple(Missing(kind, place, name, _diagnostic(item)) for kind, place, name, item in missing),
    )


def _three(raw: Sequence[str]) -> tuple[str, str, str]:
    first, second, third = raw
    return (first, second, third)


def _app(raw: Sequence[Any]) -> AppSummary:
    namespace, name, kind, source, position, objects, needs, facts, secrets, hosts, gpus = raw
    if facts is not None:
        facts = delivery.facts_from(dict(zip(delivery.AppFacts.__struct_fields__, facts, strict=True)))
    return AppSummary(
        namespace,
        name,
        kind,
        source,
        position,
        tuple(ObjectKey(*key) for key in objects),
        tuple((place, other) for place, other in needs),
        facts,
        None if secrets is None else _secrets(secrets),
        tuple(hosts),
        None if gpus is None else _gpus(gpus),
    )


def _gpus(raw: Sequence[Any]) -> app_reach.GpuFacts:
    objects, replicas = raw
    return app_reach.GpuFacts(
        tuple(app_reach.GpuObject(_three(key), *others) for key, *others in objects),
        tuple((_three(key), most) for key, most in replicas),
    )


def _secrets(raw: Sequence[Any]) -> expected.Facts:
    reads, makes = raw
    uses = [
        (namespace, name, kind, expected.Use(app, item, tuple(keys), purpose, _mark(mark), *others))
        for namespace, name, kind, (app, item, keys, purpose, mark, *others) in reads
    ]
    makers = [
        (namespace, name, expected.Maker(way, app, None if keys is None else frozenset(keys), _mark(mark)))
        for namespace, name, (way, app, keys, mark) in makes
    ]
    return expected.Facts(tuple(uses), tuple(makers))


def _diagnostic(raw: Sequence[Any]) -> Diagnostic:
    code, message, mark, hint, severity, path = raw
    return Diagnostic(code, message, _mark(mark), hint, Severity(severity), path)


def _mark(raw: Sequence[Any] | None) -> Mark | None:
    return None if raw is None else Mark(*raw)
