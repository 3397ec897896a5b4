"""One source file on its way through a run. Each step runs when its result is first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.catalog import own_rows
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.kinds.input_documents import Key, ObjectName, object_name
from kaigen.output.contents import digest
from kaigen.pipeline.output import LazyFile
from kaigen.pipeline.sources import spec_key
from kaigen.pipeline.summary import AppSummary, Detail, Missing, SourceSummary, summarize
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.expressions import SpecPath
    from kaigen.config.settings import Format
    from kaigen.pipeline.compiler import Compiler
    from kaigen.pipeline.load import LoadedSource, ParsedSource
    from kaigen.pipeline.result import Compiled
    from kaigen.system.progress import Progress
    from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.pipeline import document as pipeline_document
    from kaigen.pipeline import load, plain_objects
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


class Unit:
    """One source file of a run.

    Attributes:
        source: the file.
        compiler: what compiling it takes.
    """

    def __init__(
        self,
        source: Source,
        compiler: Compiler,
        *,
        stored: SourceSummary | None = None,
        loaded: LoadedSource | None = None,
    ) -> None:
        self.source = source
        self.compiler = compiler
        self._cached = stored is not None and stored.digest == self.digest
        self._summary = stored if self._cached else None
        self._files: Mapping[str, bytes] | None = None
        if loaded is not None:
            self.__dict__.update(parsed=loaded.parsed, lowered=loaded, loaded=loaded)

    @cached_property
    def digest(self) -> str:
        """Digest of the text."""
        return self.source.digest

    def use_cache(self) -> bool:
        """Return whether the cache knows the file; forget what it knows when a looked-up object has changed."""
        if self._cached and any(
            self.compiler.documents.digest(name) != known for name, known in self.summary.lookups
        ):
            self._cached, self._summary = False, None
        return self._cached

    @cached_property
    def parsed(self) -> ParsedSource:
        """The file's documents."""
        return load.parse_source(self.source)

    @cached_property
    def lowered(self) -> LoadedSource:
        """The file's specs, before it is known which of its Kubernetes objects became part of a spec."""
        return load.lower_specs(self.parsed, self.compiler.config, self.compiler.documents)

    @cached_property
    def loaded(self) -> LoadedSource:
        """The file's specs and Kubernetes objects."""
        consumed = (*self.compiler.consumed, *self.lowered.consumed)
        return load.add_objects(self.lowered, self.compiler.config, consumed)

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
        if self.loaded.plain:
            names = [key[1:] for key in compiler.defines]
            if (item := plain_objects.compile_plain(self.loaded, names, compiler.config, found)) is not None:
                apps.append((-1, item))
        return CompiledSource(tuple(apps), tuple(found), tuple(dict.fromkeys(references)), tuple(missing))

    @property
    def is_cached(self) -> bool:
        """True when the cache has a summary of this text."""
        return self._cached

    @property
    def is_compiled(self) -> bool:
        """True when `compiled` is there already."""
        return "compiled" in self.__dict__

    @property
    def is_reusable(self) -> bool:
        """True when a later run may use the summary: it depends on the file and its references only."""
        if self._summary is None or self._summary.has_errors or self.source.path.startswith("<"):
            return False
        if self._cached:
            return True
        own = self.loaded.consumed
        return not any(spec.entry.volatile for spec in self.loaded.specs) and all(
            any(document is other for other in own)
            for document in self.parsed.documents
            if pipeline_document.is_kubernetes_object(document)
        )

    @property
    def names(self) -> tuple[ObjectName, ...]:
        """apiVersion, kind and name of the file's documents."""
        if self._cached:
            return self.summary.documents
        names = (object_name(document.data) for document in self.parsed.documents)
        return tuple(name for name in names if name is not None)

    @property
    def consumes(self) -> tuple[tuple[str, int], ...]:
        """Path and index of the documents of other files that became part of the file's specs."""
        if self._cached:
            return self.summary.consumed
        return tuple(
            (document.source.path, document.index)
            for document in self.lowered.consumed
            if document.source.path != self.source.path
        )

    @property
    def identity(self) -> str:
        """A digest of the text and of the files that it looks up."""
        if self._cached:
            known = [value for _, value in self.summary.lookups]
        else:
            known = [self.compiler.documents.digest(name) for name in self.lowered.lookups]
        return digest("\n".join((self.digest, *known)).encode()) if known else self.digest

    @property
    def defines(self) -> tuple[Key, ...]:
        """Kind, namespace and name of the file's specs."""
        if self._summary is not None:
            return self._summary.defines
        return tuple(spec_key(spec, self.compiler.config.namespace) for spec in self.loaded.specs)

    @property
    def matched(self) -> tuple[int | str, ...]:
        """The overrides, pins and patches that apply to the file's specs, as far as it is compiled."""
        if self._summary is not None:
            return self._summary.matched
        return tuple(name for spec in self.loaded.specs for name in spec.matched)

    @property
    def broken(self) -> frozenset[Key]:
        """Kind, namespace and name of the file's invalid documents."""
        return frozenset() if self._cached else self.loaded.broken

    @property
    def unreadable(self) -> bool:
        """True when a document of the file could not be parsed."""
        return not self._cached and self.loaded.unreadable

    @property
    def has_plain(self) -> bool:
        """True when the file has Kubernetes objects that pass through unchanged."""
        return not self._cached and bool(self.loaded.plain)

    @property
    def has_errors(self) -> bool:
        """True when the file has an error, as far as it is loaded or compiled."""
        return self.summary.has_errors if self._summary is not None else self.loaded.has_errors

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
        matched = [name for spec in self.loaded.specs for name in spec.matched]
        matched += [name for _, item in compiled.apps for name in item.patched]
        with own_rows.using(self.compiler.config.rows):
            apps = tuple(summarize(item, detail, position) for position, item in compiled.apps)
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

    def diagnostic(
        self, app: AppSummary, code: str, message: str, field: SpecPath, hint: str = ""
    ) -> Diagnostic:
        """Return an error at a field of the spec that an app was compiled from."""
        if app.position >= 0:
            return self.loaded.specs[app.position].diagnostic(code, message, field, hint)
        return Diagnostic(code, message, Mark(app.source), hint)

    def _emit(self, form: Format | str) -> Mapping[str, bytes]:
        files: dict[str, bytes] = {}
        for _, item in self.compiled.apps:
            files |= item.files(form)  # type: ignore[arg-type]
        return files

    def _digest_of(self, key: Key) -> str:
        unit = self.compiler.defines.get(key)
        return unit.identity if unit is not None else ""


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
