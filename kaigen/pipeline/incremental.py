"""Rendering only what changed: specs whose text, settings and references are as they were are not compiled again.

The cache holds no output, only what each source came to: the digests of its files and what was said about it.
The tree itself is the store; where it holds something else, the source is compiled again. A cache that is
lost, damaged or of another kaigen costs time and nothing else. Whatever is not plainly right, such as a
problem or two apps of one name, is left to the full way of `kaigen.pipeline.run`, which tells it well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaigen.compile.context import Key, SpecIndex
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Mark, Severity
from kaigen.output.contents import digest
from kaigen.output.tree_state import TreeState
from kaigen.system.cache import build_id, cache_folder, replace_file
from kaigen.system.progress import counted

if TYPE_CHECKING:
    from kaigen.config.settings import Config, Format
    from kaigen.config.value_layers import Overrides
    from kaigen.gitops.delivery import AppFacts
    from kaigen.kinds.spec import Spec
    from kaigen.output.contents import FileContent
    from kaigen.pipeline.result import Compilation, Compiled
    from kaigen.system.progress import Progress
    from kaigen.yaml.document import Document
    from kaigen.yaml.sources import Source


@dataclass(frozen=True, slots=True)
class AppRow:
    """One app, as the table at the end of a render shows it."""

    namespace: str
    name: str
    kind: str
    objects: int
    source: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What one source came to.

    Attributes:
        text: digest of its text.
        defines: kind, namespace and name of its specs.
        refers: the specs that were looked up, each with the digest of its source; empty where there was none.
        objects: group, kind, namespace and name of its objects.
        apps: its apps.
        files: digest of each of its files in the tree.
        warnings: what was said about it.
        matched: which overrides and pins its specs got.
        facts: what Argo CD and Flux must know of its apps; empty when kaigen.yaml does not ask for them.
    """

    text: str
    defines: list[Key]
    refers: list[tuple[Key, str]]
    objects: list[tuple[str, str, str, str]]
    apps: list[AppRow]
    files: dict[str, str]
    warnings: list[Diagnostic]
    matched: list[int | str] = field(default_factory=list)
    facts: list[AppFacts] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """What a render comes to.

    Attributes:
        files: the output tree; content that the tree is known to hold is made only when it does not.
        apps: every app.
        diagnostics: what is worth a warning.
        state: what is known of the tree; brought up to date by writing it.
        compiled: how many sources were compiled.
    """

    files: Mapping[str, FileContent]
    apps: Sequence[AppRow]
    diagnostics: Sequence[Diagnostic]
    state: TreeState | None = None
    compiled: int = 0
    _forgotten: bool = False
    _entries: dict[str, Entry] = field(default_factory=dict)
    _store: Store | None = None

    def keep(self) -> None:
        """Remember this run for the next. Failing to is no problem."""
        if self._store is not None and self.state is not None and (self.compiled or self._forgotten):
            self._store.write(self._entries, self.state)


class Store:
    """The cache of one tree."""

    def __init__(self, folder: Path, root: Path, run: str) -> None:
        name = digest(str(root.absolute()).encode())[:32]
        self._path = folder / "render" / f"{name}.json"
        self._state_path = folder / "render" / f"{name}.state"
        self._run = run

    def read(self) -> tuple[dict[str, Entry], TreeState]:
        """What the last run left; nothing when it was another kind of run."""
        try:
            data = json.loads(self._path.read_bytes())
            state = TreeState.load(self._state_path.read_bytes())
            if data["run"] != self._run:
                return {}, state
            return {path: _entry(raw) for path, raw in data["sources"].items()}, state
        except (OSError, ValueError, KeyError, TypeError):
            return {}, TreeState()

    def write(self, entries: Mapping[str, Entry], state: TreeState) -> None:
        """Replace it. A cache that cannot be written is no problem."""
        data = {"run": self._run, "sources": {path: _raw(entry) for path, entry in entries.items()}}
        replace_file(self._path, json.dumps(data).encode())
        replace_file(self._state_path, state.dump())


def _raw(entry: Entry) -> list[Any]:
    warnings = [asdict(item) for item in entry.warnings]
    apps = [[app.namespace, app.name, app.kind, app.objects, app.source] for app in entry.apps]
    facts = [asdict(item) for item in entry.facts]
    said = (warnings, entry.matched, facts)
    return [entry.text, entry.defines, entry.refers, entry.objects, apps, entry.files, *said]


def _entry(raw: Sequence[Any]) -> Entry:
    text, defines, refers, objects, apps, files, warnings, matched, facts = raw
    return Entry(
        text=text,
        defines=[(kind, namespace, name) for kind, namespace, name in defines],
        refers=[((key[0], key[1], key[2]), source) for key, source in refers],
        objects=[(group, kind, namespace, name) for group, kind, namespace, name in objects],
        apps=[AppRow(*app) for app in apps],
        files=files,
        warnings=[_diagnostic(item) for item in warnings],
        matched=matched,
        facts=[_facts(item) for item in facts],
    )


def _facts(raw: Mapping[str, Any]) -> AppFacts:
    from kaigen.gitops.delivery import facts_from

    return facts_from(raw)


def _diagnostic(raw: Mapping[str, Any]) -> Diagnostic:
    mark = Mark(**raw["mark"]) if raw["mark"] else None
    return Diagnostic(raw["code"], raw["message"], mark, raw["hint"], Severity(raw["severity"]), raw["path"])


def run_id(config: Config, overrides: Sequence[Overrides], form: Format) -> str:
    """What all of a run's sources have in common: kaigen, the configuration, the overrides, the form."""
    meaning = {**asdict(config), "root": "", "overrides": overrides, "form": form, "build": build_id()}
    if config.kinds or config.patches:
        from kaigen.extend.digest import extension_digest

        meaning["extensions"] = extension_digest(config)
    return digest(json.dumps(meaning, sort_keys=True, default=repr).encode())


_SYNC = "gitops"
"""Stands among the sources for the files for Argo CD and Flux, which come from all of them; no path is so."""


class _Unclear(Exception):
    """Something is not plainly right; the full way shall tell."""


class _LazyIndex(SpecIndex):
    """The specs of a run, of which those in unchanged sources are read only when they are asked for."""

    def __init__(self, sources: Mapping[Key, Source], config: Config) -> None:
        super().__init__()
        self._sources = sources
        self._config = config

    def add(self, specs: Iterable[Spec]) -> None:
        """Specs that were read already."""
        from kaigen.pipeline.load import spec_key

        for spec in specs:
            self._blocks[spec_key(spec, self._config.namespace)] = spec.block

    def _find(self, key: Key) -> Any:
        if key not in self._blocks and key in self._sources:
            specs, _ = _read(self._sources[key], self._config)
            self.add(specs)
        return self._blocks.get(key)

    def _keys(self) -> Iterable[Key]:
        return self._sources


def _read(source: Source, config: Config) -> tuple[list[Spec], list[Diagnostic]]:
    from kaigen.pipeline.load import load_source

    specs: list[Spec] = []
    found = Diagnostics()
    plain: list[Document] = []
    self_contained = load_source(source, config, specs, plain, found)
    if found.has_errors or plain or not self_contained:
        raise _Unclear
    return specs, found.sorted()


@dataclass(slots=True)
class _Known:
    """Content that the tree is known to hold; made by the full way should it not."""

    path: str
    digest: str
    full: _Full

    def read(self) -> bytes:
        return self.full.files()[self.path]


class _Full:
    """The full way, gone once and only when it is needed."""

    def __init__(
        self,
        config: Config,
        overrides: Sequence[Overrides],
        form: Format,
        progress: Progress | None = None,
    ) -> None:
        self._inputs = (config, overrides)
        self._form = form
        self.progress = progress
        self._compilation: Compilation | None = None
        self._files: dict[str, bytes] | None = None

    def compilation(self) -> Compilation:
        from kaigen.pipeline.run import compile_specs, load_specs

        if self._compilation is None:
            config, overrides = self._inputs
            loaded = load_specs((), config, progress=self.progress)
            self._compilation = compile_specs(loaded, config, overrides, progress=self.progress)
        return self._compilation

    def files(self) -> dict[str, bytes]:
        if self._files is None:
            from kaigen.pipeline.output import output_files

            self._files = output_files(self.compilation(), self._inputs[0], self._form)
        return self._files


def render_incrementally(
    config: Config,
    overrides: Sequence[Overrides],
    form: Format,
    root: Path,
    *,
    use_cache: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Render every configured spec, compiling only those that changed since the tree was last rendered.

    Args:
        config: the repository's settings.
        overrides: values by app.
        form: what is written.
        root: the output tree.
        use_cache: False goes the full way and remembers nothing.
        progress: is told how much is read and compiled.

    Raises:
        InputError: with every problem found.
    """
    full = _Full(config, overrides, form, progress)
    # ExternalSecrets come from all apps together, plain objects from no spec.
    folder = cache_folder() if use_cache and not (config.passthrough or config.external_secrets) else None
    if folder is None:
        return _whole(full)
    store = Store(folder, root, run_id(config, overrides, form))
    try:
        return _Run(config, overrides, form, store, full).result()
    except _Unclear:
        return _whole(full)


def _whole(full: _Full) -> Result:
    compilation = full.compilation()
    return Result(full.files(), compilation.rows(), compilation.diagnostics, compiled=len(compilation.apps))


class _Run:
    """One incremental render."""

    def __init__(
        self, config: Config, overrides: Sequence[Overrides], form: Format, store: Store, full: _Full
    ) -> None:
        self.config = config
        self.layers = [*config.values, *overrides]
        self.form = form
        self.store = store
        self.full = full

    def result(self) -> Result:
        from kaigen.config.settings import paths_without_specs
        from kaigen.pipeline.load import kind_problems
        from kaigen.yaml.sources import read_sources

        config = self.config
        named = [str(config.root / path) for path in config.specs]
        sources, problems = read_sources(named, root=config.root, exclude=paths_without_specs(config))
        if problems.has_errors:
            raise _Unclear
        known, state = self.store.read()
        # A run that is remembered had no such problems, and its kinds were the same.
        if not known and kind_problems(config):
            raise _Unclear
        texts = {source.path: source.digest for source in sources}
        fresh = [
            source
            for source in sources
            if source.path not in known or known[source.path].text != texts[source.path]
        ]
        stale = {source.path for source in fresh}
        if len(fresh) == len(sources):
            known = {}
        specs = {
            source.path: _read(source, config) for source in counted(fresh, "reading", self.full.progress)
        }
        definers = self._definers(sources, specs, known)
        for source in sources:
            if source.path not in stale and any(
                texts.get(definers[key].path if key in definers else "", "") != before
                for key, before in known[source.path].refers
            ):
                stale.add(source.path)
                specs[source.path] = _read(source, config)
        entries, content = self._compile(sources, specs, known, definers, texts)
        self._check_names(entries)
        if config.gitops is not None:
            entries[_SYNC], files = self._sync(entries, known.get(_SYNC))
            content.update(files)
        rows = sorted(
            (row for entry in entries.values() for row in entry.apps),
            key=lambda row: (row.namespace, row.name),
        )
        told = (item for entry in entries.values() for item in entry.warnings)
        warnings = Diagnostics([*problems, *self._unmatched(entries), *told])
        return Result(
            files=dict(sorted(content.items())),
            apps=rows,
            diagnostics=warnings.sorted(),
            state=state,
            compiled=len(specs),
            _forgotten=bool(known.keys() - entries.keys()) or len(state) < len(content),
            _entries=entries,
            _store=self.store,
        )

    def _definers(
        self,
        sources: Sequence[Source],
        specs: Mapping[str, tuple[list[Spec], list[Diagnostic]]],
        known: Mapping[str, Entry],
    ) -> dict[Key, Source]:
        from kaigen.pipeline.load import spec_key

        definers: dict[Key, Source] = {}
        for source in sources:
            if source.path in specs:
                keys = [spec_key(spec, self.config.namespace) for spec in specs[source.path][0]]
            else:
                keys = known[source.path].defines
            for key in keys:
                if definers.setdefault(key, source) is not source:
                    raise _Unclear
        return definers

    def _compile(
        self,
        sources: Sequence[Source],
        specs: Mapping[str, tuple[list[Spec], list[Diagnostic]]],
        known: Mapping[str, Entry],
        definers: Mapping[Key, Source],
        texts: Mapping[str, str],
    ) -> tuple[dict[str, Entry], dict[str, FileContent]]:
        fresh = [source for source in sources if source.path in specs]
        made = iter(self._make(fresh, specs, definers, texts))
        entries: dict[str, Entry] = {}
        content: dict[str, FileContent] = {}
        for source in sources:
            if source.path in specs:
                entries[source.path], files = next(made)
                content.update(files)
                continue
            entry = entries[source.path] = known[source.path]
            for path, expected in entry.files.items():
                content[path] = _Known(path, expected, self.full)
        return entries, content

    def _make(
        self,
        fresh: Sequence[Source],
        specs: Mapping[str, tuple[list[Spec], list[Diagnostic]]],
        definers: Mapping[Key, Source],
        texts: Mapping[str, str],
    ) -> list[tuple[Entry, dict[str, bytes]]]:
        """What each source comes to, and its files, compiled on all cores when there are many."""
        if not fresh:
            return []
        from kaigen.pipeline.compile_spec import compile_spec, make_context
        from kaigen.pipeline.load import spec_key
        from kaigen.pipeline.result import object_keys
        from kaigen.system.parallel import map_on_cores

        index = _LazyIndex(definers, self.config)
        for own, _ in specs.values():
            index.add(own)
        context = make_context(self.config, index)

        def make(source: Source) -> tuple[Entry, dict[str, bytes]]:
            own, said = specs[source.path]
            found = Diagnostics(said)
            index.asked.clear()
            items = []
            for spec in own:
                asked = len(index.asked)
                item = compile_spec(spec, context, self.layers, found)
                if item is not None:
                    items.append(replace(item, needs=index.found(asked)))
            if found.has_errors:
                raise _Unclear
            files = {path: data for item in items for path, data in item.files(self.form).items()}
            entry = Entry(
                text="" if any(spec.entry.volatile for spec in own) else texts[source.path],
                defines=[spec_key(spec, self.config.namespace) for spec in own],
                refers=[
                    (key, texts[definers[key].path] if key in definers else "")
                    for key in dict.fromkeys(index.asked)
                ],
                objects=[key for item in items for key in object_keys(item)],
                apps=[
                    AppRow(
                        item.app.namespace, item.app.name, item.app.kind, len(item.objects), item.app.source
                    )
                    for item in items
                ],
                files={path: digest(data) for path, data in files.items()},
                warnings=found.sorted(),
                matched=[
                    *(name for spec in own for name in spec.matched),
                    *(name for item in items for name in item.patched),
                ],
                facts=self._facts_of(items),
            )
            return entry, files

        progress = self.full.progress
        tell = None if progress is None else lambda done: progress("compiling", done, len(fresh))
        return map_on_cores(make, fresh, tell)

    def _unmatched(self, entries: Mapping[str, Entry]) -> list[Diagnostic]:
        """Overrides and pins that no spec got; the full way tells when one of them is wrong."""
        if not (self.config.overrides or self.config.pins or self.config.patches):
            return []
        from kaigen.environments.unmatched import unmatched

        apps = [(row.namespace, row.name) for entry in entries.values() for row in entry.apps]
        matched = {name for entry in entries.values() for name in entry.matched}
        if self.config.patches:
            from kaigen.extend.patch_files import read_patches

            if read_patches(self.config).unmatched(matched, apps, partial=False):
                raise _Unclear
        found = Diagnostics(unmatched(self.config, matched, apps))
        if found.has_errors:
            raise _Unclear
        return found.sorted()

    def _facts_of(self, items: Sequence[Compiled]) -> list[AppFacts]:
        if self.config.gitops is None:
            return []
        from kaigen.gitops.delivery import facts_of

        return [facts_of(item.app, item.objects, item.needs) for item in items]

    def _sync(
        self, entries: Mapping[str, Entry], known: Entry | None
    ) -> tuple[Entry, Mapping[str, FileContent]]:
        """The files that tell Argo CD and Flux of all apps; made anew only when something about an app is."""
        from kaigen.pipeline.output import sync_tree

        apps = sorted((item for entry in entries.values() for item in entry.facts), key=lambda item: item.key)
        text = digest(json.dumps([asdict(item) for item in apps]).encode())
        if known is not None and known.text == text:
            return known, {path: _Known(path, value, self.full) for path, value in known.files.items()}
        files = sync_tree(apps, self.config, self.form)
        return Entry(text, [], [], [], [], {path: digest(data) for path, data in files.items()}, []), files

    def _check_names(self, entries: Mapping[str, Entry]) -> None:
        """Names are unique, and overrides name apps that exist; otherwise the full way tells."""
        objects = [key for entry in entries.values() for key in entry.objects]
        apps = [(row.namespace, row.name) for entry in entries.values() for row in entry.apps]
        if len(set(objects)) != len(objects) or len(set(apps)) != len(apps):
            raise _Unclear
        if self.layers:
            from kaigen.emit.values import unknown_names

            if unknown_names(apps, self.layers):
                raise _Unclear
