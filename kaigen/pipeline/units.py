"""The files of a run: those that the cache knows, and those that are read; many are compiled on all cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.kinds.input_documents import Key, ObjectName, object_name
from kaigen.pipeline.sources import spec_key
from kaigen.pipeline.summary import Detail, SourceSummary
from kaigen.pipeline.unit import Unit
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.system.progress import Progress

with lazy_imports():
    from kaigen.pipeline import document as pipeline_document
    from kaigen.pipeline import load
    from kaigen.system import parallel


class CachedUnit(Unit):
    """A file that the cache has a summary of. It is read when another file needs it, or more than the summary."""

    @property
    def is_outdated(self) -> bool:
        """True when an object that the file's specs looked up has changed."""
        return any(self.compiler.documents.digest(name) != known for name, known in self.summary.lookups)

    @property
    def _is_repeatable(self) -> bool:
        return True

    @property
    def names(self) -> tuple[ObjectName, ...]:
        """apiVersion, kind and name of the file's documents."""
        return self.summary.documents

    @property
    def consumes(self) -> tuple[tuple[str, int], ...]:
        """Path and index of the documents of other files that became part of the file's specs."""
        return self.summary.consumed

    @property
    def looked_up(self) -> tuple[str, ...]:
        """Digests of the files that its specs looked up documents in."""
        return tuple(known for _, known in self.summary.lookups)

    @property
    def defines(self) -> tuple[Key, ...]:
        """Kind, namespace and name of the file's specs."""
        return self.summary.defines

    @property
    def absent(self) -> tuple[Key, ...]:
        """Kind, namespace and name of the file's specs that the environment does not have."""
        return self.summary.absent

    @property
    def matched(self) -> tuple[int | str, ...]:
        """The overrides, pins and patches that apply to the file's specs."""
        return self.summary.matched

    @property
    def broken(self) -> frozenset[Key]:
        """No documents: the cache has no file with errors."""
        return frozenset()

    @property
    def unreadable(self) -> bool:
        """False: the cache has no file with errors."""
        return False

    @property
    def has_plain(self) -> bool:
        """False: the cache has no file with Kubernetes objects that pass through."""
        return False

    @property
    def has_errors(self) -> bool:
        """True when the file had to be compiled again, and has an error now."""
        return self.summary.has_errors

    @property
    def load_diagnostics(self) -> tuple[Diagnostic, ...]:
        """No errors and warnings: they are in the summary."""
        return ()


class FreshUnit(Unit):
    """A file that is read and compiled in this run."""

    @property
    def _is_repeatable(self) -> bool:
        own = self.loaded.consumed
        return not any(spec.entry.volatile for spec in self.loaded.specs) and all(
            any(document is other for other in own)
            for document in self.parsed.documents
            if pipeline_document.is_kubernetes_object(document)
        )

    @property
    def names(self) -> tuple[ObjectName, ...]:
        """apiVersion, kind and name of the file's documents."""
        names = (object_name(document.data) for document in self.parsed.documents)
        return tuple(name for name in names if name is not None)

    @property
    def consumes(self) -> tuple[tuple[str, int], ...]:
        """Path and index of the documents of other files that became part of the file's specs."""
        return tuple(
            (document.source.path, document.index)
            for document in self.lowered.consumed
            if document.source.path != self.source.path
        )

    @property
    def looked_up(self) -> tuple[str, ...]:
        """Digests of the files that its specs looked up documents in."""
        return tuple(self.compiler.documents.digest(name) for name in self.lowered.lookups)

    @property
    def defines(self) -> tuple[Key, ...]:
        """Kind, namespace and name of the file's specs."""
        return tuple(spec_key(spec, self.compiler.config.namespace) for spec in self.loaded.specs)

    @property
    def absent(self) -> tuple[Key, ...]:
        """Kind, namespace and name of the file's specs that the environment does not have."""
        return load.absent_keys(self.parsed, self.compiler.config)

    @property
    def matched(self) -> tuple[int | str, ...]:
        """The overrides, pins and patches that apply to the file's specs, as far as it is compiled."""
        if self._summary is not None:
            return self._summary.matched
        absent = load.absent_matches(self.parsed, self.compiler.config)
        return (*absent, *(name for spec in self.loaded.specs for name in spec.matched))

    @property
    def broken(self) -> frozenset[Key]:
        """Kind, namespace and name of the file's invalid documents."""
        return self.loaded.broken

    @property
    def unreadable(self) -> bool:
        """True when a document of the file could not be parsed."""
        return self.loaded.unreadable

    @property
    def has_plain(self) -> bool:
        """True when the file has Kubernetes objects that pass through unchanged."""
        return bool(self.loaded.plain)

    @property
    def has_errors(self) -> bool:
        """True when the file has an error, as far as it is loaded or compiled."""
        return self.summary.has_errors if self._summary is not None else self.loaded.has_errors

    @property
    def load_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Errors and warnings of reading the file."""
        return self.loaded.diagnostics


def summarize_units(units: Sequence[Unit], detail: Detail, progress: Progress | None = None) -> int:
    """Give each file a summary with these details, compiling on all cores when there are many.

    Args:
        units: the files.
        detail: what the summaries must include.
        progress: receives the number of files compiled.

    Returns:
        How many files had to be compiled.
    """
    stale = [unit for unit in units if not unit.is_current(detail)]
    fresh = [unit for unit in stale if not unit.is_compiled]
    results: Sequence[tuple[SourceSummary, Mapping[str, bytes]]]
    if fresh:
        report = None if progress is None else lambda done: progress("compiling", done, len(stale))
        results = parallel.map_on_cores(partial(_summarize, detail=detail), stale, report)
    else:
        results = [unit.summarize(detail) for unit in stale]
    for unit, result in zip(stale, results, strict=True):
        unit.accept(*result)
    return len(fresh)


def _summarize(unit: Unit, detail: Detail) -> tuple[SourceSummary, Mapping[str, bytes]]:
    """Summarize a file, and free the memory of its objects."""
    result = unit.summarize(detail)
    if not unit.has_plain:  # ExternalSecrets are made from plain objects.
        unit.release()
    return result
