"""The settings and specs of a run that compiling a source file takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kaigen.config.value_layers import value_layers
from kaigen.diagnostics.category import Category
from kaigen.kinds.input_documents import InputDocuments, Key, ObjectName, lookups_of, object_name
from kaigen.pipeline.sources import spec_key
from kaigen.pipeline.units import CachedUnit, FreshUnit
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.progress import report_progress

if TYPE_CHECKING:
    from kaigen.compile.context import Context
    from kaigen.compile.kind_compiler import Resolution
    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.extend.patches import Patches
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.compile_spec import SpecResult
    from kaigen.pipeline.summary import SourceSummary
    from kaigen.pipeline.unit import Unit
    from kaigen.system.progress import Progress
    from kaigen.yaml.document import Document
    from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.compile import context as compile_context
    from kaigen.extend import patch_files
    from kaigen.kinds import config_files
    from kaigen.pipeline import commits
    from kaigen.pipeline import compile_spec as pipeline_compile_spec


class Compiler:
    """Everything that compiling a source file takes, except the file.

    Attributes:
        config: the repository's settings.
        overrides: values by app, later ones on top.
        documents: every document of the run.
        consumed: documents that became part of specs.
        defines: the file of each spec; the first file when several define it.
        broken: kind, namespace and name of invalid documents.
        absent: namespace and name of the specs that the environment does not have.
    """

    def __init__(self, config: Config, overrides: Sequence[Overrides] = ()) -> None:
        self.config = config
        self.overrides = (*value_layers(config), *overrides)
        self.documents = _Documents()
        self.consumed: list[Document] = []
        self.defines: dict[Key, Unit] = {}
        self.broken: set[Key] = set()
        self.absent: set[tuple[str, str]] = set()
        self._unreadable = False
        self._configs: dict[str, Config] = {"": config}
        self._contexts: dict[str, Context] = {}
        self._stopped: dict[tuple[str, str], Diagnostic] = {}
        """What stopped the templates of a user's kind, by its apiVersion and kind."""

    def unit_of(self, source: Source, stored: SourceSummary | None = None) -> Unit:
        """Return a file of the run.

        Args:
            source: the file.
            stored: what the cache knows about the file of that path; not used when its text is another one.
        """
        if stored is not None and stored.digest == source.digest:
            return CachedUnit(source, self, stored)
        return FreshUnit(source, self)

    def load(
        self, units: Sequence[Unit], *, unreadable: bool = False, progress: Progress | None = None
    ) -> Sequence[Unit]:
        """Load the files that the cache does not know, so that specs can refer to each other.

        Args:
            units: every file of the run; a spec in an earlier one takes precedence.
            unreadable: other files could not be read, so any spec may be missing.
            progress: receives the number of files loaded.

        Returns:
            The files. One of which the cache does not know the present state is read anew.
        """
        self._unreadable = unreadable
        self.documents.add(units)
        outdated = {unit for unit in units if isinstance(unit, CachedUnit) and unit.is_outdated}
        if outdated:
            units = [FreshUnit(unit.source, self) if unit in outdated else unit for unit in units]
            self.documents.add(units)
        fresh = [unit for unit in units if isinstance(unit, FreshUnit)]
        for each in report_progress(fresh, "reading", progress):
            self.consumed += each.lowered.consumed
        paths = {unit.source.path: unit for unit in units}
        for unit in units:
            for path, index in unit.consumes:
                self.consumed += [item for item in paths[path].parsed.documents if item.index == index]
        for unit in units:
            for key in unit.defines:
                self.defines.setdefault(key, unit)
            self.broken |= unit.broken
            self.absent |= {key[1:] for key in unit.absent}
            self._unreadable |= unit.unreadable
        return units

    def _may_exist(self, key: Key) -> bool:
        """Return whether a spec that is not among those read may be in a document that is wrong."""
        return self._unreadable or key in self.broken

    def compile(self, spec: Spec) -> SpecResult:
        """Compile one spec."""
        kind = (spec.entry.api_version, spec.entry.kind)
        if kind in self._stopped:
            # Each document of this kind would take as long again.
            return pipeline_compile_spec.SpecResult(None, (self._stopped[kind],), ())
        result = pipeline_compile_spec.compile_spec(spec, self._context(spec.commit), self.overrides)
        if result.compiled is None:
            for item in result.diagnostics:
                if item.category is Category.LIMIT:
                    self._stopped[kind] = item
        if not any(map(self._may_exist, result.references)):
            return result
        # A document that is wrong is reported where it is, and not again where it is referred to.
        kept = [item for item in result.diagnostics if item.category is not Category.SPEC_REFERENCE]
        return replace(result, diagnostics=tuple(kept))

    def resolve(self, spec: Spec) -> Resolution | None:
        """Return what is decided about a spec before its objects are made; None for a kind of a user."""
        return pipeline_compile_spec.resolve_spec(spec, self._context(spec.commit))

    def config_of(self, commit: str) -> Config:
        """Return the settings that the specs of a commit are compiled with: those of the run, with its lock."""
        if commit not in self._configs:
            self._configs[commit] = commits.with_lock_at(self.config, commit)
        return self._configs[commit]

    @property
    def context(self) -> Context:
        """What specs of the working tree are compiled in."""
        return self._context("")

    @cached_property
    def _blocks(self) -> _Blocks:
        return _Blocks(self.defines, self.config)

    def _context(self, commit: str) -> Context:
        """Return what the specs of a commit are compiled in."""
        if commit not in self._contexts:
            self._contexts[commit] = pipeline_compile_spec.make_context(
                self.config_of(commit),
                compile_context.SpecIndex(self._blocks, self.absent),
                self.patches if self.config.patches else None,
                self._objects_of,
            )
        return self._contexts[commit]

    def _objects_of(self, key: Key, context: Context) -> Sequence[Mapping[str, Any]] | None:
        """Return the objects of a spec that another one refers to, whose context records what it looks up."""
        spec = self._blocks.spec(key)
        own = replace(self._context(spec.commit), specs=context.specs)
        return pipeline_compile_spec.spec_objects(spec, own, self.overrides)

    @cached_property
    def patches(self) -> Patches:
        """The user's patches."""
        return patch_files.read_patches(self.config)


class _Blocks(Mapping[Key, Any]):
    """The specs of a run. A file that is unchanged since the last run is loaded when one of its specs is needed."""

    def __init__(self, units: Mapping[Key, Unit], config: Config) -> None:
        self._units = units
        self._namespace = config.namespace

    def __getitem__(self, key: Key) -> Any:
        return self.spec(key).block

    def spec(self, key: Key) -> Spec:
        """Return the spec of that kind, namespace and name.

        Raises:
            KeyError: the run has no such spec.
        """
        for spec in self._units[key].loaded.specs:
            if spec_key(spec, self._namespace) == key:
                return spec
        raise KeyError(key)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._units)

    def __len__(self) -> int:
        return len(self._units)


class _Documents(InputDocuments):
    """The documents of a run. A file that is unchanged since the last run is parsed when a document is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self._units: dict[ObjectName, list[Unit]] = {}

    def add(self, units: Iterable[Unit]) -> None:
        """Find documents among those of these files, and in no others."""
        self._units = {}
        for unit in units:
            for name in unit.names:
                for lookup in lookups_of(name):
                    self._units.setdefault(lookup, []).append(unit)

    def named(self, api_version: str, kind: str, name: str) -> Sequence[Document]:
        """Return the documents with that name, or with any for `ANY_NAME`, of any namespace."""
        wanted = (api_version, kind, name)
        return [
            document
            for unit in dict.fromkeys(self._units.get(wanted, ()))
            for document in unit.parsed.documents
            if (found := object_name(document.data)) and wanted in lookups_of(found)
        ]

    def digest(self, name: ObjectName) -> str:
        """Return a digest of the files that have a document of that name, or of the file; empty when there is none."""
        if name == config_files.file_key(name[2]):
            return config_files.file_digest(name[2])
        return " ".join(f"{unit.source.path} {unit.digest}" for unit in dict.fromkeys(self._units.get(name, ())))
