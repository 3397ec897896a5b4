"""Rendering only what changed: specs whose text, settings and references are as they were are not compiled again.

The cache holds no output, only what each source came to: the digests of its files and what was said about it.
The tree itself is the store; where it holds something else, the source is compiled again. A cache that is
lost, damaged or of another kaigen costs time and nothing else. Whatever is not plainly right, such as a
problem or two apps of one name, is left to the full way of `kaigen.pipeline`, which tells it well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaigen.cache import build_id, cache_folder, replace_file
from kaigen.compile.context import Key, SpecIndex
from kaigen.gitops.contents import TreeState, digest
from kaigen.load.diagnostics import Diagnostic, Diagnostics, Mark, Severity

if TYPE_CHECKING:
    from kaigen.config import Config, Format
    from kaigen.gitops.contents import FileContent
    from kaigen.kinds.spec import Spec
    from kaigen.load.sources import Source
    from kaigen.overrides import Overrides
    from kaigen.pipeline import Compilation


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
    """

    text: str
    defines: list[Key]
    refers: list[tuple[Key, str]]
    objects: list[tuple[str, str, str, str]]
    apps: list[AppRow]
    files: dict[str, str]
    warnings: list[Diagnostic]


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
    return [entry.text, entry.defines, entry.refers, entry.objects, apps, entry.files, warnings]


def _entry(raw: Sequence[Any]) -> Entry:
    text, defines, refers, objects, apps, files, warnings = raw
    return Entry(
        text=text,
        defines=[(kind, namespace, name) for kind, namespace, name in defines],
        refers=[((key[0], key[1], key[2]), source) for key, source in refers],
        objects=[(group, kind, namespace, name) for group, kind, namespace, name in objects],
        apps=[AppRow(*app) for app in apps],
        files=files,
        warnings=[_diagnostic(item) for item in warnings],
    )


def _diagnostic(raw: Mapping[str, Any]) -> Diagnostic:
    mark = Mark(**raw["mark"]) if raw["mark"] else None
    return Diagnostic(raw["code"], raw["message"], mark, raw["hint"], Severity(raw["severity"]), raw["path"])


def run_id(config: Config, overrides: Sequence[Overrides], form: Format) -> str:
    """What all of a run's sources have in common: kaigen, the configuration, the overrides, the form."""
    meaning = {**asdict(config), "root": "", "overrides": overrides, "form": form, "build": build_id()}
    return digest(json.dumps(meaning, sort_keys=True, default=repr).encode())


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
        from kaigen.pipeline import spec_key

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
    from kaigen.pipeline import load_source

    specs: list[Spec] = []
    found = Diagnostics()
    load_source(source, config, specs, [], found)
    if found.has_errors:
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

    def __init__(self, config: Config, overrides: Sequence[Overrides], form: Format) -> None:
        self._inputs = (config, overrides)
        self._form = form
        self._compilation: Compilation | None = None
        self._files: dict[str, bytes] | None = None

    def compilation(self) -> Compilation:
        from kaigen.pipeline import compile_specs, load_specs

        if self._compilation is None:
            config, overrides = self._inputs
            self._compilation = compile_specs(load_specs((), config), config, overrides)
        return self._compilation

    def files(self) -> dict[str, bytes]:
        if self._files is None:
            self._files = self.compilation().files(self._form)
        return self._files


def render_incrementally(
    config: Config, overrides: Sequence[Overrides], form: Format, root: Path, *, use_cache: bool = True
) -> Result:
    """Render every configured spec, compiling only those that changed since the tree was last rendered.

    Args:
        config: the repository's settings.
        overrides: values by app.
        form: what is written.
        root: the output tree.
        use_cache: False goes the full way and remembers nothing.

    Raises:
        InputError: with every problem found.
    """
    full = _Full(config, overrides, form)
    folder = cache_folder() if use_cache and not config.passthrough else None
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
        from kaigen.load.sources import read_sources

        config = self.config
        named = [str(config.root / path) for path in config.specs]
        sources, problems = read_sources(named, root=config.root, exclude=[config.root / config.output])
        if problems.has_errors:
            raise _Unclear
        known, state = self.store.read()
        texts = {source.path: source.digest for source in sources}
        fresh = [
            source
            for source in sources
            if source.path not in known or known[source.path].text != texts[source.path]
        ]
        stale = {source.path for source in fresh}
        if len(fresh) == len(sources):
            known = {}
        specs = {source.path: _read(source, config) for source in fresh}
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
        rows = sorted(
            (row for entry in entries.values() for row in entry.apps),
            key=lambda row: (row.namespace, row.name),
        )
        warnings = Diagnostics([*problems, *(item for entry in entries.values() for item in entry.warnings)])
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
        from kaigen.pipeline import spec_key

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
        from kaigen.pipeline import compile_spec, make_context, object_keys, spec_key

        index = _LazyIndex(definers, self.config)
        context = None
        entries: dict[str, Entry] = {}
        content: dict[str, FileContent] = {}
        for source in sources:
            if source.path not in specs:
                entry = entries[source.path] = known[source.path]
                for path, expected in entry.files.items():
                    content[path] = _Known(path, expected, self.full)
                continue
            if context is None:
                for own, _ in specs.values():
                    index.add(own)
                context = make_context(self.config, index)
            own, said = specs[source.path]
            found = Diagnostics(said)
            index.asked.clear()
            compiled = [compile_spec(spec, context, self.layers, found) for spec in own]
            if found.has_errors:
                raise _Unclear
            items = [item for item in compiled if item is not None]
            files = {path: data for item in items for path, data in item.files(self.form).items()}
            content.update(files)
            entries[source.path] = Entry(
                text=texts[source.path],
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
            )
        return entries, content

    def _check_names(self, entries: Mapping[str, Entry]) -> None:
        """Names are unique, and overrides name apps that exist; otherwise the full way tells."""
        objects = [key for entry in entries.values() for key in entry.objects]
        apps = [(row.namespace, row.name) for entry in entries.values() for row in entry.apps]
        if len(set(objects)) != len(objects) or len(set(apps)) != len(apps):
            raise _Unclear
        if self.layers:
            from kaigen.overrides import unknown_names

            if unknown_names(apps, self.layers):
                raise _Unclear
