"""One source file on its way through a run. Each step runs when its result is first needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.kinds.input_documents import Key, ObjectName
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
    from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.pipeline import app_reach, load, plain_objects


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

    def __init__(self, source: Source, compiler: Compiler, stored: SourceSummary | None = None) -> None:
        """Start with what the cache knows about the file; None for nothing."""
        self.source = source
        self.compiler = compiler
        self._summary = stored
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


RunApp = tuple[Unit | None, AppSummary]
"""An app and its file; None for an app that kaigen generates."""
