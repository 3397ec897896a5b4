"""One source file on its way through a run. Each step runs when its result is first needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.kinds.input_documents import Key, ObjectName, object_name
from kaigen.output.contents import digest
from kaigen.pipeline.output import LazyFile
from kaigen.pipeline.sources import spec_key
from kaigen.pipeline.summary import AppSummary, Detail, Missing, SourceSummary, summarize
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config, Format
    from kaigen.core.json_types import FieldPath
    from kaigen.pipeline.compiler import Compiler
    from kaigen.pipeline.load import LoadedSource, ParsedSource
    from kaigen.pipeline.result import Compiled
    from kaigen.system.progress import Progress
    from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.pipeline import app_reach, load, plain_objects
    from kaigen.pipeline import document as pipeline_document
    from kaigen.system import parallel


class CompiledSource(Struct, frozen=True):
    """One source file after compiling.

    Attributes:
        apps: its apps, each with the position of its spec in the file; -1 for its plain objects.
        diagnostics: errors and warnings of loading and compiling.
        references: the specs that were looked up.
        missing: references to objects that an app of another file may make.
    """

    apps: tuple[tuple[int, Compiled], ...]
    diagnostics: tuple[Diagnostic, ...]
    references: tuple[Key, ...]
    missing: tuple[Missing, ...] = ()


class Unit(ABC):
    """One source file of a run: one that the cache knows, or one that is read.

    Attributes:
        source: the file.
        compiler: what compiling it takes.
    """

    def __init__(self, source: Source, compiler: Compiler) -> None:
        self.source = source
        self.compiler = compiler
        self._summary: SourceSummary | None = None
        self._files: Mapping[str, bytes] | None = None

    @cached_property
    def config(self) -> Config:
        """The settings of the run, with the lock of the file's commit."""
        return self.compiler.config_of(self.source.commit)

    @property
    def digest(self) -> str:
        """Digest of the text."""
        return self.source.digest

    @cached_property
    def parsed(self) -> ParsedSource:
        """The file's documents."""
        return load.parse_source(self.source, self.config)

    @cached_property
    def lowered(self) -> LoadedSource:
        """The file's specs, before it is known which of its Kubernetes objects became part of a spec."""
        return load.lower_specs(self.parsed, self.config, self.compiler.documents)

    @cached_property
    def loaded(self) -> LoadedSource:
        """The file's specs and Kubernetes objects."""
        consumed = (*self.compiler.consumed, *self.lowered.consumed)
        return load.add_objects(self.lowered, self.config, consumed)

    @cached_property
    def compiled(self) -> CompiledSource:
        """The file's apps with their objects."""
        compiler = self.compiler
        found = Diagnostics(self.loaded.diagnostics)
        apps: list[tuple[int, Compiled]] = []
        references: list[Key] = []
        missing: list[Missing] = []
        for position, spec in enumerate(self.loaded.specs):
            result = compiler.compile(spec)
            found.extend(result.diagnostics)
            references += result.references
            missing += result.missing
            if result.compiled is not None:
                apps.append((position, result.compiled))
        for spec, repaired in self.loaded.doubtful:
            found.extend(repaired.sound(compiler.compile(spec).diagnostics))
        if self.loaded.plain:
            names = [key[1:] for key in compiler.defines]
            if (item := plain_objects.compile_plain(self.loaded, names, self.config, found)) is not None:
                apps.append((-1, item))
        return CompiledSource(tuple(apps), tuple(found), tuple(dict.fromkeys(references)), tuple(missing))

    @property
    def is_compiled(self) -> bool:
        """True when `compiled` is there already."""
        return "compiled" in self.__dict__

    @property
    def is_reusable(self) -> bool:
        """True when a later run may use the summary: it depends on the file and its references only."""
        return (
            self._summary is not None
            and not self._summary.has_errors
            and not self.source.path.startswith("<")
            and self._is_repeatable
        )

    @property
    @abstractmethod
    def _is_repeatable(self) -> bool:
        """True when the same text has the same apps in every run."""

    @property
    @abstractmethod
    def names(self) -> tuple[ObjectName, ...]:
        """apiVersion, kind and name of the file's documents."""

    @property
    @abstractmethod
    def consumes(self) -> tuple[tuple[str, int], ...]:
        """Path and index of the documents of other files that became part of the file's specs."""

    @property
    @abstractmethod
    def looked_up(self) -> tuple[str, ...]:
        """Digests of the files that its specs looked up documents in."""

    @property
    def identity(self) -> str:
        """A digest of the text and of the files that it looks up."""
        known = self.looked_up
        return digest("\n".join((self.digest, *known)).encode()) if known else self.digest

    @property
    @abstractmethod
    def defines(self) -> tuple[Key, ...]:
        """Kind, namespace and name of the file's specs."""

    @property
    @abstractmethod
    def absent(self) -> tuple[Key, ...]:
        """Kind, namespace and name of the file's specs that the environment does not have."""

    @property
    @abstractmethod
    def matched(self) -> tuple[int | str, ...]:
        """The overrides, pins and patches that apply to the file's specs, as far as it is compiled."""

    @property
    @abstractmethod
    def broken(self) -> frozenset[Key]:
        """Kind, namespace and name of the file's invalid documents."""

    @property
    @abstractmethod
    def unreadable(self) -> bool:
        """True when a document of the file could not be parsed."""

    @property
    @abstractmethod
    def has_plain(self) -> bool:
        """True when the file has Kubernetes objects that pass through unchanged."""

    @property
    @abstractmethod
    def has_errors(self) -> bool:
        """True when the file has an error, as far as it is loaded or compiled."""

    @property
    @abstractmethod
    def load_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Errors and warnings of reading the file; none of a file that the cache knows."""

    def apps(self) -> list[Compiled]:
        """Return the file's apps with their objects."""
        return [item for _, item in self.compiled.apps]

    @property
    def summary(self) -> SourceSummary:
        """The file's summary, after `summarize` or from the cache."""
        assert self._summary is not None, f"{self.source.path} is not summarized"
        return self._summary

    def is_current(self, detail: Detail) -> bool:
        """Return whether the summary has these details and every reference leads to an unchanged file."""
        return (
            self._summary is not None
            and detail.covers(self._summary)
            and all(self._digest_of(key) == known for key, known in self._summary.references)
        )

    def summarize(self, detail: Detail) -> tuple[SourceSummary, Mapping[str, bytes]]:
        """Compile the file, and return its summary and the content of its output files."""
        compiled = self.compiled
        files = self._emit(detail.form) if detail.form else {}
        matched = load.absent_matches(self.parsed, self.compiler.config)
        matched += [name for spec in self.loaded.specs for name in spec.matched]
        matched += [name for _, item in compiled.apps for name in item.patched]
        config = self.compiler.config
        apps = tuple(
            summarize(
                item,
                detail,
                position,
                config,
                app_reach.unpinned_images(item, self.compiler.context) if item.spec is not None else (),
            )
            for position, item in compiled.apps
        )
        summary = SourceSummary(
            digest=self.digest,
            defines=tuple(spec_key(spec, self.compiler.config.namespace) for spec in self.loaded.specs),
            documents=self.names,
            lookups=tuple((name, self.compiler.documents.digest(name)) for name in self.loaded.lookups),
            consumed=self.consumes,
            references=tuple((key, self._digest_of(key)) for key in compiled.references),
            diagnostics=compiled.diagnostics,
            matched=tuple(matched),
            apps=apps,
            form=detail.form,
            files={path: digest(data) for path, data in files.items()},
            missing=compiled.missing,
            absent=self.absent,
        )
        return summary, files

    def release(self) -> None:
        """Forget the apps with their objects, which are compiled again when they are needed after all."""
        self.__dict__.pop("compiled", None)

    def accept(self, summary: SourceSummary, files: Mapping[str, bytes]) -> None:
        """Take the results of `summarize`, perhaps of another process."""
        self._summary = summary
        self._files = files if summary.form else None

    def files(self) -> dict[str, LazyFile]:
        """Return the file's output files by path. The file is compiled when content is needed that is not there."""

        def read(path: str) -> bytes:
            if self._files is None:
                self._files = self._emit(self.summary.form)
            return self._files[path]

        return {path: LazyFile(known, partial(read, path)) for path, known in self.summary.files.items()}

    def diagnostic(self, app: AppSummary, code: str, message: str, field: FieldPath, hint: str = "") -> Diagnostic:
        """Return an error at a field of the spec that an app was compiled from."""
        if app.position >= 0:
            return self.loaded.specs[app.position].diagnostic(code, message, field, hint)
        return Diagnostic(code, message, Mark(app.source), hint)

    def _emit(self, form: Format | str) -> Mapping[str, bytes]:
        files: dict[str, bytes] = {}
        for _, item in self.compiled.apps:
            files |= item.files(form)
        return files

    def _digest_of(self, key: Key) -> str:
        unit = self.compiler.defines.get(key)
        return unit.identity if unit is not None else ""


class CachedUnit(Unit):
    """A file that the cache has a summary of. It is read when another file needs it, or more than the summary."""

    def __init__(self, source: Source, compiler: Compiler, stored: SourceSummary) -> None:
        super().__init__(source, compiler)
        self._summary = stored

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


RunApp = tuple[Unit | None, AppSummary]
"""An app and its file; None for an app that kaigen generates."""


def unit_of(source: Source, compiler: Compiler, stored: SourceSummary | None = None) -> Unit:
    """Return a file of a run.

    Args:
        source: the file.
        compiler: what compiling it takes.
        stored: what the cache knows about the file of that path; not used when its text is another one.
    """
    if stored is not None and stored.digest == source.digest:
        return CachedUnit(source, compiler, stored)
    return FreshUnit(source, compiler)


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
