"""One run over a repository's specs: load, lower, compile and check them, and emit the output tree.

`Run.load` reads the files; every later step of the `Run` happens when its result is first needed. Each file becomes a
summary, either by compiling it or from the cache, and everything between files works on the summaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import IO, TYPE_CHECKING

from msgspec.structs import replace

from kaigen.config.settings import Config
from kaigen.diagnostics.category import Category
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.output.contents import data_of
from kaigen.pipeline.cross_checks import RunApps, check_apps, once_for_each_volume
from kaigen.pipeline.name_checks import duplicate_names, missing_objects, unknown_overrides, unmatched_overrides
from kaigen.pipeline.output import OutputTree
from kaigen.pipeline.run_files import RunFiles, read_files
from kaigen.pipeline.sources import (
    kind_problems,
)
from kaigen.pipeline.store import Stored, SyncRecord
from kaigen.pipeline.summary import AppRow, AppSummary, Detail, summarize
from kaigen.pipeline.units import summarize_units
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.progress import report_progress

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.compile.kind_compiler import Resolution
    from kaigen.config.settings import Format
    from kaigen.config.value_layers import Overrides
    from kaigen.kinds.spec import Spec
    from kaigen.output.contents import FileContent
    from kaigen.pipeline.external_secrets import SecretApps
    from kaigen.pipeline.result import Compilation, Compiled
    from kaigen.pipeline.sources import Inputs
    from kaigen.pipeline.unit import RunApp, Unit
    from kaigen.system.progress import Progress

with lazy_imports():
    from kaigen.emit import kustomizations
    from kaigen.pipeline import external_secrets, result, sync


class Run:
    """The specs of a repository in one environment.

    Attributes:
        config: the repository's settings.
        units: the files that are compiled.
        others: the repository's other files, which may be referred to.
        compiled: how many files were compiled by `files`, `rows` or `diagnostics`.
    """

    def __init__(self, files: RunFiles) -> None:
        """Use `load`, which reads the files."""
        self.config = files.compiler.config
        self.units = tuple(files.units)
        self.others = tuple(files.others or ())
        self.compiled = 0
        self._compiler = files.compiler
        self._partial = files.others is not None
        self._problems = tuple(files.problems)
        self._stored = files.stored
        self._store = files.store
        self._sync = SyncRecord()
        self._progress = files.progress
        self._form = ""

    @classmethod
    def load(
        cls,
        inputs: Inputs = (),
        config: Config | None = None,
        overrides: Sequence[Overrides] = (),
        *,
        stdin: IO[bytes] | None = None,
        folder: Path | None = None,
        use_cache: bool = True,
        progress: Progress | None = None,
    ) -> Run:
        """Read the files of a run.

        Args:
            inputs: files and folders, `-` for standard input, and specs as Python objects: those of the kinds, such as
                `Model`, or dicts with the content of a document. The configured specs when empty.
            config: the repository's settings; the defaults when None.
            overrides: values by app, later ones on top of earlier ones and of those in kaigen.yaml.
            stdin: what `-` reads.
            folder: that relative paths start from; the repository's folder when None.
            use_cache: False compiles every file, and stores nothing.
            progress: receives the number of files read and compiled.
        """
        return cls(
            read_files(inputs, config, overrides, stdin=stdin, folder=folder, use_cache=use_cache, progress=progress)
        )

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the files that are compiled."""
        return tuple(unit.source.path for unit in self.units)

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The valid specs of the files that are compiled, by kinds that kaigen compiles."""
        return tuple(spec for unit in self.units for spec in unit.loaded.specs)

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """All errors and warnings, by file and position."""
        self._summarize()
        found = Diagnostics(self._problems)
        for unit in self.units:
            found.extend(unit.summary.diagnostics)
        found.extend(self._duplicates[0])
        compiler, every = self._compiler, (*self.units, *self.others)
        names = [key[1:] for unit in every for key in unit.defines]
        # What one environment does not have is no unknown name: others do.
        names += compiler.absent
        found.extend(unknown_overrides(compiler, names))
        if self.config.patches:
            found.extend(compiler.patches.diagnostics)
        if not (compiler.broken or any(unit.has_errors for unit in self.others)):
            matched = {name for unit in every for name in unit.matched}
            partial = self._partial or found.has_errors
            found.extend(unmatched_overrides(compiler, matched, names, partial=partial))
        found.extend(self._secret_apps.diagnostics if self._secret_apps is not None else ())
        found.extend(self._missing_objects())
        check_apps(RunApps(self.units, self._apps, self.config), found, partial=self._partial)
        return [*Diagnostics(once_for_each_volume(found.sorted())).sorted()]

    @property
    def summaries(self) -> tuple[Config, list[RunApp]]:
        """The settings, and the summary of every app with its file."""
        self._summarize()
        return self.config, self._apps

    def every_summary(self) -> list[AppSummary]:
        """Return the summary of every app, of files that are not compiled too."""
        self._summarize()
        summarize_units(self.others, Detail())
        return [*(app for _, app in self._apps), *(app for unit in self.others for app in unit.summary.apps)]

    @property
    def rows(self) -> list[AppRow]:
        """Every app as a row of a table, by namespace and name."""
        self._summarize()
        return sorted(app.row for _, app in self._apps)

    def find(self, name: str) -> list[tuple[Unit, int]]:
        """Return the files of the specs of that name, `NAME` or `NAMESPACE/NAME`, each with the spec's position."""
        return [
            (unit, position)
            for unit in (*self.units, *self.others)
            for position, (_, namespace, own) in enumerate(unit.defines)
            if name in (own, f"{namespace}/{own}")
        ]

    @property
    def load_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Errors and warnings of reading the files, by file and position."""
        found = Diagnostics(self._problems)
        for unit in self.units:
            found.extend(unit.load_diagnostics)
        return tuple(found.sorted())

    def raise_errors(self) -> None:
        """Raise `InputError` with all diagnostics when one of them is an error."""
        Diagnostics(self.diagnostics).raise_errors()

    def resolve(self, spec: Spec) -> Resolution | None:
        """Return what is decided about a spec before its objects are made; None for a kind of a user."""
        return self._compiler.resolve(spec)

    def apps(self) -> tuple[Compiled, ...]:
        """Return every app with its objects, by namespace and name.

        Raises:
            InputError: with all diagnostics when one of them is an error.
        """
        items = [item for unit in report_progress(self.units, "compiling", self._progress) for item in unit.apps()]
        self.raise_errors()
        compiled = [
            replace(item, needs=(*item.needs, *self._waits((item.app.namespace, item.app.name)))) for item in items
        ]
        compiled += self._generated
        return tuple(sorted(compiled, key=lambda item: (item.app.namespace, item.app.name)))

    def compilation(self) -> result.Compilation:
        """Return every app with its objects, and the warnings.

        Raises:
            InputError: with all diagnostics when one of them is an error.
        """
        return result.Compilation(self.apps(), tuple(self.diagnostics))

    def files(self, form: Format | None = None) -> dict[str, FileContent]:
        """Return the output tree: content by path, sorted. Content that the cache knows is made when it is read.

        Files for Argo CD and Flux describe every app, so they are in it only when the run compiles every file.

        Args:
            form: `manifests`, `chart` or `both`; the configured one when None.

        Raises:
            InputError: with all diagnostics when one of them is an error.
        """
        form = form or self.config.format
        files = self._files(form)
        if self.config.gitops is not None and not self._partial:
            files |= self._sync_files(form)
        if self.config.kustomizations and not self._partial:
            files |= kustomizations.group_kustomizations(files)
        return dict(sorted(files.items()))

    def stream(self) -> str:
        """Return all objects as one YAML stream in the order of their waves, and by app within a wave.

        Raises:
            InputError: with all diagnostics when one of them is an error.
        """
        parts = {}
        for path, content in self._files(result.STREAM).items():
            wave, namespace, name = path.split("/")
            parts[int(wave), namespace, name] = content
        return b"".join(data_of(parts[key]) for key in sorted(parts)).decode()

    def _files(self, form: str) -> dict[str, FileContent]:
        self._form = form
        self._summarize()
        self.raise_errors()
        files: dict[str, FileContent] = {}
        for unit in self.units:
            files |= unit.files()
        for item in self._generated:
            files |= item.files(form)
        return files

    def tree(self, root: Path, form: Format | None = None, *, inside: Path | None = None) -> OutputTree:
        """Return the output tree as the content of a folder.

        Args:
            root: the folder.
            form: as for `files`.
            inside: the repository that must contain the folder; None for a folder that the user named.

        Raises:
            InputError: with all diagnostics when one of them is an error.
        """
        store = self._store if not self._partial else None
        state = store.read_tree(root) if store is not None else None

        def save() -> None:
            self.save()
            if store is not None and state is not None:
                store.write_tree(root, state)

        return OutputTree(
            root,
            self.files(form),
            self.rows,
            self.diagnostics,
            self.owns if self._partial else None,
            state,
            save,
            inside,
        )

    def owns(self, path: str) -> bool:
        """Return whether a path of the output tree belongs to one of the apps."""
        return tuple(path.split("/")[:2]) in self._keys

    def save(self) -> None:
        """Store the summaries for the next run, unless nothing changed."""
        if self._store is None:
            return
        sources = {unit.source.path: unit.summary for unit in self.units if unit.is_reusable}
        if self._partial:
            sources = {**self._stored.sources, **sources}
        kinds = self._stored.kind_problems
        if kinds is None:
            kinds = tuple(kind_problems(self.config))
        if any(item.category is Category.LIMIT for item in kinds):
            return
        stored = Stored(kinds, sources, self._sync if self._sync.digest else self._stored.sync)
        if stored != self._stored:
            self._store.write(stored)

    def _summarize(self) -> None:
        """Give every file a summary with what this run needs."""
        secrets = self.config.external_secrets is not None or any(unit.has_plain for unit in self.units)
        detail = Detail(self._form, self.config.gitops is not None, secrets, self._counts_gpus)
        self.compiled += summarize_units(self.units, detail, self._progress)

    @cached_property
    def _keys(self) -> set[tuple[str, ...]]:
        self._summarize()
        return {app.key for _, app in self._apps}

    @cached_property
    def _duplicates(self) -> tuple[list[Diagnostic], set[tuple[Unit, int]]]:
        return duplicate_names(self.units)

    @property
    def _apps(self) -> list[RunApp]:
        """The apps of all files, less those whose name is taken, and what kaigen adds, as summarized last."""
        duplicates = self._duplicates[1]
        apps: list[RunApp] = [
            (unit, app) for unit in self.units for app in unit.summary.apps if (unit, app.position) not in duplicates
        ]
        return [*apps, *self._generated_apps]

    @cached_property
    def _generated_apps(self) -> list[RunApp]:
        detail = Detail(facts=self.config.gitops is not None)
        return [(None, summarize(item, detail, -1, self.config)) for item in self._generated]

    @property
    def _has_quota(self) -> bool:
        """Whether GPUs of tenants or their cost are limited, and the run has every app that counts."""
        tenants = self.config.tenants
        return not self._partial and any(each.gpus is not None or each.per_hour is not None for each in tenants)

    @property
    def _counts_gpus(self) -> bool:
        """Whether a quota or a budget limits GPUs."""
        tenancy = self.config.gitops.tenancy if self.config.gitops is not None else None
        return self._has_quota or bool(tenancy is not None and tenancy.quota)

    def _missing_objects(self) -> list[Diagnostic]:
        """Return a warning for each reference to an object that no app of the repository makes."""
        missing = [item for unit in self.units for item in unit.summary.missing]
        if not missing:
            return []
        return list(missing_objects(missing, self.every_summary()))

    @cached_property
    def _secret_apps(self) -> SecretApps | None:
        """The apps with ExternalSecrets; None when nothing in the repository creates Secrets."""
        if self.config.external_secrets is None and not any(unit.has_plain for unit in self.units):
            return None
        return external_secrets.apps_of_units(self.units, self.others, self.config)

    @property
    def _generated(self) -> tuple[Compiled, ...]:
        """The apps that kaigen adds to those of the specs."""
        return self._secret_apps.apps if self._secret_apps is not None else ()

    def _waits(self, app: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the generated apps that an app reads Secrets of."""
        return self._secret_apps.needs.get(app, ()) if self._secret_apps is not None else ()

    def _sync_files(self, form: Format) -> Mapping[str, FileContent]:
        """Return the files for Argo CD and Flux. Those of unchanged facts are made when they are read."""
        apps = [
            replace(app.facts, needs=tuple(sorted({*app.facts.needs, *self._waits(app.key)})))
            for _, app in sorted(self._apps, key=lambda item: item[1].key)
            if app.facts is not None
        ]
        self._sync, files = sync.sync_files(apps, self.config, form, self._stored.sync)
        return files


def compile_specs(
    inputs: Inputs = (),
    config: Config | None = None,
    overrides: Sequence[Overrides] = (),
    *,
    stdin: IO[bytes] | None = None,
) -> Compilation:
    """Return the apps of specs with their objects, checked and with overridden settings. The cache is not used.

    Args:
        inputs: as for `Run.load`.
        config: the repository's settings; the defaults when None.
        overrides: values by app, later ones on top of earlier ones and of those in kaigen.yaml.
        stdin: what `-` reads.

    Raises:
        InputError: with all diagnostics when one of them is an error.
    """
    return Run.load(inputs, config, overrides, stdin=stdin, use_cache=False).compilation()


def render(
    inputs: Inputs = (),
    config: Config | None = None,
    *,
    overrides: Sequence[Overrides] = (),
    form: Format | None = None,
    stdin: IO[bytes] | None = None,
) -> dict[str, bytes]:
    """Return the output tree of specs: content by relative path. Nothing is written.

    Files for Argo CD and Flux describe every app, so they are in it only when no inputs are given.

    Args:
        inputs: as for `Run.load`.
        config: the repository's settings; the defaults when None.
        overrides: values by app, later ones on top of earlier ones and of those in kaigen.yaml.
        form: `manifests`, `chart` or `both`; the configured one when None.
        stdin: what `-` reads.

    Raises:
        InputError: with all diagnostics when one of them is an error.
    """
    run = Run.load(inputs, config, overrides, stdin=stdin, use_cache=False)
    return {path: data_of(content) for path, content in run.files(form).items()}
