"""The way of the data: load, lower, compile, check, emit. Each step is a function that can be called alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kaigen.load.diagnostics import Diagnostic, Diagnostics, InputError, Mark, Severity
from kaigen.load.progress import counted

if TYPE_CHECKING:
    from kaigen.compile.app import App, Json, Rendered, SpecPath
    from kaigen.compile.context import Context, Key, SpecIndex
    from kaigen.config import Config, Format
    from kaigen.environments.patch import PatchedDocument
    from kaigen.gitops.sync.delivery import AppFacts
    from kaigen.incremental import AppRow
    from kaigen.kinds.registry import KindEntry
    from kaigen.kinds.spec import Spec
    from kaigen.load.progress import Progress
    from kaigen.load.sources import Source
    from kaigen.load.yaml import Document
    from kaigen.overrides import Overrides


DIRECTIVES = ("version",)
"""Annotations behind `kaigen.dev/` that direct kaigen in its own kinds."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read.

    Attributes:
        specs: every valid spec, lowered.
        plain: Kubernetes objects that are let through.
        diagnostics: what is wrong, and what is worth a warning.
        files: the files read.
        broken: kind, namespace and name of documents that are wrong, as far as they tell.
    """

    specs: tuple[Spec, ...]
    plain: tuple[Document, ...]
    diagnostics: tuple[Diagnostic, ...]
    files: tuple[str, ...]
    broken: frozenset[Key] = frozenset()


@dataclass(frozen=True, slots=True)
class Compiled:
    """One app beside its values and its objects as they will be written.

    Attributes:
        app: the app.
        values: its settings.
        objects: in the order of their waves.
        spec: what it was made from; None for plain Kubernetes objects.
        needs: namespace and name of the apps that it refers to.
        patched: which patches changed it.
        documents: what plain Kubernetes objects were read from, one each.
    """

    app: App
    values: Mapping[str, Json]
    objects: list[Rendered]
    spec: Spec | None = None
    needs: tuple[tuple[str, str], ...] = ()
    patched: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()

    def files(self, form: Format) -> dict[str, bytes]:
        """The app's files by path in the output tree; what must stay as it was written is in manifests only."""
        files: dict[str, bytes] = {}
        fixed = [item for item in self.objects if item.object.verbatim]
        if form != "chart" or fixed:
            from kaigen.emit.manifests import manifest_files

            files |= manifest_files(self.app, rendered=fixed if form == "chart" else self.objects)
        if form != "manifests" and len(fixed) < max(len(self.objects), 1):
            from kaigen.emit.chart import chart_files

            files |= chart_files(self.app, self.values)
        return files

    def written_at(
        self, index: int, path: Sequence[str | int], text: str, beside: str = ""
    ) -> tuple[Mark | None, tuple[str | int, ...]]:
        """Where a text in an object was written: its place, and the field there.

        Args:
            index: of the object.
            path: of the text in it.
            text: the text.
            beside: what stands beside it, to tell places with that text apart.
        """
        if self.documents:
            return self.documents[index].mark(path), tuple(path)
        if self.spec is None:
            return None, ()
        place = self.objects[index].object.place
        mark = place(tuple(path)) if place else None
        if mark is not None:
            return mark, ()
        document = self.spec.document
        origin = _spec_path(self.objects[index], path, document.data)
        start = self.spec.document_path(origin) if origin else ()
        here = (
            _path_of(text, document.data, start, beside) or _path_of(text, document.data, (), beside) or start
        )
        return document.mark(here or ("metadata", "name")), here


@dataclass(frozen=True, slots=True)
class Compilation:
    """Every app of a run, and what is worth a warning."""

    apps: tuple[Compiled, ...]
    diagnostics: tuple[Diagnostic, ...]

    def owns(self, path: str) -> bool:
        """Whether a path of the output tree belongs to one of these apps."""
        from kaigen.emit.files import app_folder

        return any(path.startswith(f"{app_folder(item.app)}/") for item in self.apps)

    def files(self, form: Format) -> dict[str, bytes]:
        """The output tree: content by relative path, sorted.

        Args:
            form: `manifests`, `chart` or `both`.
        """
        files: dict[str, bytes] = {}
        for item in self.apps:
            files |= item.files(form)
        return dict(sorted(files.items()))

    def rows(self) -> list[AppRow]:
        """Every app, for a table."""
        from kaigen.incremental import AppRow

        return [
            AppRow(item.app.namespace, item.app.name, item.app.kind, len(item.objects), item.app.source)
            for item in self.apps
        ]

    def stream(self) -> str:
        """All objects as one YAML stream in the order of their waves, those of one wave app by app."""
        from kaigen.emit.manifests import manifest_stream

        return manifest_stream([rendered for item in self.apps for rendered in item.objects])


def output_files(compilation: Compilation, config: Config, form: Format | None = None) -> dict[str, bytes]:
    """The whole output tree: the files of every app, and those for Argo CD and Flux.

    Args:
        compilation: every app of the repository.
        config: the repository's settings.
        form: `manifests`, `chart` or `both`; the configured one when None.

    Returns:
        Content by relative path, sorted.
    """
    form = form or config.format
    files = compilation.files(form)
    if config.gitops is not None:
        from kaigen.gitops.sync.delivery import facts_of

        apps = [facts_of(item.app, item.objects, item.needs) for item in compilation.apps]
        files |= sync_tree(apps, config, form)
    return dict(sorted(files.items()))


def sync_tree(apps: Sequence[AppFacts], config: Config, form: Format) -> dict[str, bytes]:
    """The files for Argo CD and Flux, by facts about every app; none when kaigen.yaml asks for none."""
    from kaigen.gitops.sync.delivery import Delivery
    from kaigen.gitops.sync.files import sync_files

    if config.gitops is None:
        return {}
    return sync_files(Delivery(config.environment, form == "chart", config.gitops, tuple(apps)))


def load_specs(
    paths: Sequence[str],
    config: Config | None = None,
    *,
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Read and validate specs.

    Args:
        paths: files and folders, `-` for standard input; the configured ones when empty.
        config: the repository's settings; the defaults when None.
        stdin: what `-` reads.
        progress: is told how many files are read.

    Returns:
        What was read; its diagnostics tell of everything that was not.
    """
    from kaigen.config import Config, no_specs
    from kaigen.load.sources import read_sources

    config = config or Config()
    named = list(paths) or [str(config.root / path) for path in config.specs]
    sources, found = read_sources(named, root=config.root, stdin=stdin, exclude=no_specs(config))
    found.extend(kind_problems(config))
    specs: list[Spec] = []
    plain: list[Document] = []
    broken: set[Key] = set()
    for source in counted(sources, "reading", progress):
        load_source(source, config, specs, plain, found, broken)
    files = tuple(source.path for source in sources)
    return Loaded(tuple(specs), tuple(plain), tuple(found.sorted()), files, frozenset(broken))


def kind_problems(config: Config) -> Sequence[Diagnostic]:
    """What is wrong with the kinds that the repository's folders define."""
    if not config.kinds:
        return ()
    from kaigen.extend.find import folder_kinds

    return folder_kinds(config).diagnostics


def load_source(
    source: Source,
    config: Config,
    specs: list[Spec],
    plain: list[Document],
    found: Diagnostics,
    broken: set[Key] | None = None,
) -> None:
    """Read one text.

    Args:
        source: the text.
        config: the repository's settings.
        specs: takes its specs.
        plain: takes the Kubernetes objects that are let through.
        found: takes what is wrong, and what is worth a warning.
        broken: takes kind, namespace and name of the documents that are wrong.
    """
    from kaigen.load.secrets import find_in_comments, find_secrets, find_shared_files
    from kaigen.load.yaml import parse

    told = Diagnostics()
    documents = parse(source, told)
    for document in documents:
        told.extend(find_secrets(document))
    told.extend(find_in_comments(source, documents))
    told.extend(find_shared_files(documents))
    found.extend(told)
    taken: set[int] = set()
    # What a dialect may take over comes last, so that it is known whether one has.
    for document in sorted(documents, key=lambda document: document.kind == "ConfigMap"):
        if id(document) in taken:
            continue
        own = Diagnostics()
        count = len(specs)
        beside = [other for other in documents if other is not document]
        path = _relative(source.path, config.root)
        taken |= _take_document(document, path, config, specs, plain, own, beside)
        found.extend(item for item in own if not _told_already(item, told))
        if broken is not None and len(specs) == count and document.kind and document.name:
            broken.add((document.kind, _namespace(document) or config.namespace, document.name))


def _namespace(document: Document) -> str:
    metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return namespace if isinstance(namespace, str) else ""


def _told_already(item: Diagnostic, told: Iterable[Diagnostic]) -> bool:
    """Whether a wrong field is only one whose text could not be taken as it is, which loading has told."""
    return item.code.startswith("KG02") and any(
        first.path
        and first.mark
        and item.mark
        and first.mark.line == item.mark.line
        and (item.path == first.path or item.path.startswith((f"{first.path}.", f"{first.path}[")))
        for first in told
    )


def _relative(path: str, root: Path) -> str:
    if path.startswith("<"):
        return ""
    base = f"{root}/"
    if path.startswith(base):  # as nearly always; pathlib would take as long as reading the file
        return path.removeprefix(base)
    try:
        return Path(path).absolute().relative_to(root.absolute()).as_posix()
    except ValueError:
        return Path(path).name


def _take_document(
    document: Document,
    source: str,
    config: Config,
    specs: list[Spec],
    plain: list[Document],
    found: Diagnostics,
    beside: Sequence[Document] = (),
) -> set[int]:
    """Make specs of one document, or let it through.

    Args:
        document: the document.
        source: its file.
        config: the repository's settings.
        specs: takes its specs.
        plain: takes it when it is a Kubernetes object that is let through.
        found: takes what is wrong, and what is worth a warning.
        beside: the other documents of its file.

    Returns:
        Identities of those that became part of it.
    """
    from importlib import import_module

    from kaigen.environments.match import explained, matched_by, patched
    from kaigen.kinds.registry import find_kind
    from kaigen.kinds.spec import Spec

    if not isinstance(document.data, dict):
        found.add(
            Diagnostic(
                "KG0211",
                "a spec is a mapping with `apiVersion`, `kind`, `metadata` and `spec`",
                document.mark(()),
                "see `kaigen kinds` for what can be written",
            )
        )
        return set()
    entry = find_kind(document.apiVersion, document.kind)
    if entry is None:
        from kaigen.check import is_cluster_scoped

        if is_cluster_scoped(document.apiVersion or "", document.kind or "") is not None:
            _take_unknown(document, config, plain, found)
            return set()
        from kaigen.extend.find import find_user_kind

        entry, known = find_user_kind(document.apiVersion, document.kind, config, found)
        if entry is None:
            if not known.broken or not {None, (document.apiVersion, document.kind)} & known.broken:
                _take_unknown(document, config, plain, found, known.entries)
            return set()
    asked: Document | PatchedDocument = document
    if config.overrides or config.pins:
        asked, said = patched(document, entry, config)
        found.extend(said)
    block, diagnostics = entry.read(asked)
    found.extend(explained(asked, diagnostics))
    if block is None:
        return set()
    if not entry.lower:
        from kaigen.dialects.base import Lowering

        spec = Spec(block, entry, asked, source, matched=matched_by(asked))  # type: ignore[arg-type]
        lowering = Lowering(asked)
        lowering.directives(spec.block.metadata.annotations, DIRECTIVES)
        found.extend(lowering.diagnostics)
        specs.append(spec)
        return set()
    from kaigen.dialects.base import Around

    around = Around(config.profile, beside)
    lowered, said = import_module(entry.lower).lower(block, asked, around)
    found.extend(said)
    for item in lowered:
        specs.append(Spec(item.block, entry, asked, source, item.origins, item.naming, matched_by(asked)))
    return {id(taken) for taken in around.taken}


def _take_unknown(
    document: Document,
    config: Config,
    plain: list[Document],
    found: Diagnostics,
    added: Sequence[KindEntry] = (),
) -> None:
    from kaigen.check import is_cluster_scoped
    from kaigen.compile.passthrough import is_secret_way
    from kaigen.kinds.registry import KINDS
    from kaigen.load.secrets import holds_values
    from kaigen.load.suggest import did_you_mean

    api_version, kind = document.apiVersion, document.kind
    assert isinstance(document.data, dict)
    for name in ("apiVersion", "kind"):
        if not isinstance(document.data.get(name), str):
            _tell_missing(document, name, (*KINDS, *added), found)
    if api_version is None or kind is None:
        return
    if is_cluster_scoped(api_version, kind) is not None:
        if config.passthrough or is_secret_way(document.data):
            plain.append(document)
            return
        if holds_values(document.data):
            return  # Told already, and letting it through would not help.
        found.add(
            Diagnostic(
                "KG0213",
                f"`{kind}` of `{api_version}` is a Kubernetes object, not a spec",
                document.mark(("kind",)),
                "move it out of the specs, or set `passthrough: true` in kaigen.yaml",
                path="kind",
            )
        )
        return
    versions = {entry.api_version for entry in (*KINDS, *added)}
    if api_version not in versions:
        hint = did_you_mean(api_version, versions) or "known: " + ", ".join(sorted(versions))
        found.add(
            Diagnostic(
                "KG0212",
                f"unknown apiVersion `{api_version}`",
                document.mark(("apiVersion",)),
                hint,
                path="apiVersion",
            )
        )
        return
    kinds = [entry.kind for entry in (*KINDS, *added) if entry.api_version == api_version]
    hint = did_you_mean(kind, kinds) or f"kinds of {api_version}: " + ", ".join(kinds)
    if kind == "Config":
        hint = "kaigen.yaml is no spec: it is read, and checked, with every command that reads specs"
    found.add(
        Diagnostic(
            "KG0212", f"unknown kind `{kind}` in `{api_version}`", document.mark(("kind",)), hint, path="kind"
        )
    )


def _tell_missing(document: Document, name: str, kinds: Sequence[KindEntry], found: Diagnostics) -> None:
    assert isinstance(document.data, dict)
    if name == "apiVersion":
        known = [entry.api_version for entry in kinds if entry.kind == document.kind]
    else:
        known = [entry.kind for entry in kinds if entry.api_version == document.apiVersion]
    ways = " or ".join(f"`{name}: {value}`" for value in dict.fromkeys(known))
    hint = f"write {ways}" if ways else "`kaigen kinds` lists what can be written"
    mark = document.mark((name,))
    found.add(
        Diagnostic("KG0202", f"`{name}` must be a string", mark, hint, path=name)
        if document.data.get(name) is not None
        else Diagnostic("KG0209", f"`{name}` has no value", document.mark((name,), key=True), hint, path=name)
        if name in document.data
        else Diagnostic("KG0203", f"`{name}` is missing", mark, hint, path=name)
    )


def load_others(loaded: Loaded, config: Config) -> Loaded:
    """The configured specs that were not named, for references to them; what is wrong there is not told."""
    from kaigen.config import no_specs
    from kaigen.load.sources import read_sources

    seen = {Path(path).absolute() for path in loaded.files}
    folders = [str(config.root / path) for path in config.specs if (config.root / path).exists()]
    sources, _ = read_sources(folders, root=config.root, exclude=no_specs(config))
    specs: list[Spec] = []
    plain: list[Document] = []
    broken: set[Key] = set()
    for source in sources:
        if Path(source.path).absolute() not in seen:
            own = Diagnostics()
            load_source(source, config, specs, plain, own, broken)
            if own.has_errors:
                broken.add(("", "", source.path))  # Not all that is wrong has a kind and a name.
    return Loaded(tuple(specs), tuple(plain), (), (), frozenset(broken))


def compile_specs(
    loaded: Loaded,
    config: Config | None = None,
    overrides: Sequence[Overrides] = (),
    *,
    others: Loaded | None = None,
    progress: Progress | None = None,
) -> Compilation:
    """Make the app of each spec, with settings overridden, and check its objects.

    Args:
        loaded: what was read.
        config: the repository's settings; the defaults when None.
        overrides: values by app, later ones on top of earlier ones and of those in kaigen.yaml.
        others: specs that may be referred to but are not compiled.
        progress: is told how many specs are compiled.

    Raises:
        InputError: with every problem found, those of loading included.
    """
    from kaigen.compile.context import SpecIndex
    from kaigen.config import Config
    from kaigen.secrets.wiring import add_secrets

    config = config or Config()
    found = Diagnostics(loaded.diagnostics)
    specs = _unique(loaded.specs, config, found)
    every = [*specs, *loaded.specs, *(others.specs if others else ())]
    index = SpecIndex({spec_key(spec, config.namespace): spec.block for spec in reversed(every)})
    context = make_context(config, index)
    layers = list(overrides)
    if config.values:
        from kaigen.config_file import value_layers

        layers = [*value_layers(config), *overrides]
    broken = loaded.broken | (others.broken if others else frozenset())
    # A text that could not be read may hold whatever others refer to.
    unread = any(each.code < "KG0140" and each.severity is Severity.ERROR for each in loaded.diagnostics)
    compiled = []
    for spec in counted(specs, "compiling", progress):
        own = Diagnostics()
        index.asked.clear()
        item = compile_spec(spec, context, layers, own)
        # What is wrong with a document is told there, not again where it is referred to.
        known = unread or not broken.isdisjoint(index.asked)
        found.extend(each for each in own if not (known and each.code == "KG0301"))
        if item is not None:
            compiled.append(replace(item, needs=index.found()))
    by_file: dict[str, list[Document]] = {}
    for document in loaded.plain:
        by_file.setdefault(_relative(document.source.path, config.root), []).append(document)
    plain = [
        (_plain_app(source, documents, specs, config), documents)
        for source, documents in by_file.items()
        if all([_has_name(document, found) for document in documents])
    ]
    if layers:
        _check_override_names(specs, others, config, layers, found)
    if (config.overrides or config.pins) and not broken:
        _check_matches(every, config, found)
    if context.patches is not None and not broken:
        names = [
            (spec.block.metadata.namespace or config.namespace, spec.block.metadata.name) for spec in every
        ]
        matched = {token for item in compiled for token in item.patched}
        found.extend(
            context.patches.unmatched(matched, names, partial=others is not None or found.has_errors)
        )
    compiled += [_finish_plain(app, documents, config, found) for app, documents in plain]
    compiled = add_secrets(compiled, lambda: _compile_others(others, context, layers, config), config, found)
    _check_across(compiled, found)
    found.raise_errors()
    compiled.sort(key=lambda item: (item.app.namespace, item.app.name))
    return Compilation(tuple(compiled), tuple(found.sorted()))


def _plain_app(source: str, documents: Sequence[Document], specs: Sequence[Spec], config: Config) -> App:
    from kaigen.compile.passthrough import app_name, passthrough_app, plain_namespace

    bodies: list[Any] = [document.data for document in documents]
    namespace = plain_namespace(bodies, config.namespace)
    taken = {
        spec.block.metadata.name
        for spec in specs
        if (spec.block.metadata.namespace or config.namespace) == namespace
    }
    name = app_name(source, config.specs, taken)
    return passthrough_app(name, source, bodies, namespace, documents[0].source.text)


def _compile_others(
    others: Loaded | None, context: Context, layers: Sequence[Overrides], config: Config
) -> list[Compiled] | None:
    """The apps of the specs that were not named; None when one of them is wrong."""
    if others is None:
        return []
    if others.broken:
        return None
    found = Diagnostics()
    made = [compile_spec(spec, context, layers, found) for spec in others.specs]
    files: dict[str, list[Document]] = {}
    for document in others.plain:
        files.setdefault(_relative(document.source.path, config.root), []).append(document)
    plain = [
        _finish_plain(_plain_app(source, documents, others.specs, config), documents, config, found)
        for source, documents in files.items()
        if all(document.name for document in documents)
    ]
    return None if found.has_errors else [*(item for item in made if item is not None), *plain]


def _check_override_names(
    specs: Sequence[Spec],
    others: Loaded | None,
    config: Config,
    layers: Sequence[Overrides],
    found: Diagnostics,
) -> None:
    from kaigen.overrides import unknown_names

    every = [*specs, *(others.specs if others else ())]
    names = [(spec.block.metadata.namespace or config.namespace, spec.block.metadata.name) for spec in every]
    found.extend(unknown_names(names, layers))


def _check_matches(specs: Iterable[Spec], config: Config, found: Diagnostics) -> None:
    """Every override and every pin finds a spec."""
    from kaigen.environments.unmatched import unmatched

    apps: set[tuple[str, str]] = set()
    matched: set[int | str] = set()
    for spec in specs:
        apps.add((spec.block.metadata.namespace or config.namespace, spec.block.metadata.name))
        matched.update(spec.matched)
    found.extend(unmatched(config, matched, apps))


def _has_name(document: Document, found: Diagnostics) -> bool:
    if document.name:
        return True
    found.add(
        Diagnostic(
            "KG0203", "`metadata.name` is missing", document.mark(("metadata", "name")), path="metadata.name"
        )
    )
    return False


def _unique(specs: Iterable[Spec], config: Config, found: Diagnostics) -> list[Spec]:
    """Specs whose names are their own: an app's name is its release's, whatever its kind."""
    seen: dict[tuple[str, str], Spec] = {}
    for spec in specs:
        metadata = spec.block.metadata
        first = seen.setdefault((metadata.namespace or config.namespace, metadata.name), spec)
        if first is not spec:
            place = first.document.mark(("metadata", "name"))
            found.add(
                spec.diagnostic(
                    "KG0302",
                    f"`{metadata.name}` is the name of another app of this namespace, a {first.block.kind} at {place}",
                    ("metadata", "name"),
                    "give one of them another name, or another namespace",
                )
            )
    return list(seen.values())


def spec_key(spec: Spec, namespace: str) -> tuple[str, str, str]:
    """Kind, namespace and name of a spec."""
    metadata = spec.block.metadata
    return (spec.block.kind, metadata.namespace or namespace, metadata.name)


def make_context(config: Config, specs: SpecIndex) -> Context:
    """What specs are compiled for, by a repository's settings."""
    from kaigen.catalog.profiles import get_profile
    from kaigen.compile.context import Context
    from kaigen.config import default_images

    patches = None
    if config.patches:
        from kaigen.extend.patches import read_patches

        patches = read_patches(config)
    return Context(
        profile=get_profile(config.profile),
        namespace=config.namespace,
        target=config.kubernetes,
        images=config.images or default_images(),
        specs=specs,
        patches=patches,
    )


def compile_spec(
    spec: Spec, context: Context, layers: Sequence[Overrides], found: Diagnostics
) -> Compiled | None:
    """The app of one spec with its objects, checked; None when it cannot be made.

    Args:
        spec: the spec.
        context: what it is compiled for.
        layers: settings to override, by app.
        found: takes what is wrong, and what is worth a warning.
    """
    app = _compile(spec, context, found)
    if app is None:
        return None
    patched: tuple[str, ...] = ()
    if context.patches is not None:
        found.extend(context.patches.diagnostics)
        app, patched = context.patches.apply(app, found)
    return replace(_finish(app, spec, layers, context.target, found), patched=patched)


def _compile(spec: Spec, context: Context, found: Diagnostics) -> App | None:
    from kaigen.compile.problems import Problems
    from kaigen.kinds.registry import find_kind

    problems = Problems()
    block = spec.block
    entry = find_kind(block.api_version, block.kind) if spec.entry.lower else spec.entry
    assert entry is not None
    naming = () if spec.naming is None else (spec.naming,)
    app: App | None = entry.compiler()(block, context, problems, *naming)
    for problem in problems.errors:
        found.add(spec.diagnostic(problem.code, str(problem), problem.path, problem.hint))
    for problem in problems.warnings:
        found.add(spec.diagnostic(problem.code, str(problem), problem.path, problem.hint, warning=True))
    found.extend(problems.told)
    if app is None or problems.failed:
        return None
    kind = f"{spec.entry.kind} of {spec.entry.api_version}" if spec.entry.lower else block.kind
    return replace(app, source=spec.source, kind=kind)


def _finish(app: App, spec: Spec, layers: Sequence[Overrides], target: str, found: Diagnostics) -> Compiled:
    values = app.default_values()
    if any(name in layer for layer in layers for name in (app.name, f"{app.namespace}/{app.name}")):
        from kaigen.overrides import check_values, effective_values

        values = effective_values(app, layers)
        wrong = check_values(app, values, layers)
        found.extend(wrong)
        if wrong:
            values = app.default_values()
    objects = app.render(values)
    for item, finding in _findings(objects, target, app):
        path = _spec_path(item, finding.path, spec.document.data)
        written = item.object.place(finding.path) if item.object.place else None
        if written is not None:
            found.add(_placed_finding(item, finding, written, spec, path))
            continue
        if path and finding.code == "KG0566" and _leaks(spec):
            continue
        name = (
            f" {item.body['metadata']['name']}{f' at {finding.where}' * bool(finding.where)}"
            if not path
            else ""
        )
        found.add(
            spec.diagnostic(
                finding.code,
                f"{item.body['kind']}{name}: {finding.message}",
                path or ("metadata", "name"),
                finding.hint,
                warning=finding.severity is not Severity.ERROR,
                key=finding.code == "KG0504" and path[-1:] == finding.path[-1:],
            )
        )
    return Compiled(app, values, objects, spec)


def _placed_finding(
    item: Rendered, finding: Any, written: Mark, spec: Spec, path: tuple[str | int, ...]
) -> Diagnostic:
    """A finding about what a user's template or patch wrote: told there, with the place in the spec."""
    name = item.body["metadata"]["name"]
    origin = spec.document.mark(spec.document_path(path or ("metadata", "name")))
    hint = f"{finding.hint}; " if finding.hint else ""
    return Diagnostic(
        finding.code,
        f"{item.body['kind']} {name} at {finding.where}: {finding.message}",
        written,
        f"{hint}it is made for {origin}",
        finding.severity,
    )


def _finish_plain(app: App, documents: Sequence[Document], config: Config, found: Diagnostics) -> Compiled:
    from kaigen.check import check_object

    objects = app.render()
    for item, document in zip(objects, documents, strict=True):
        for finding in check_object(item.body, target=config.kubernetes):
            found.add(
                Diagnostic(
                    finding.code,
                    finding.message,
                    document.mark(finding.path),
                    finding.hint,
                    finding.severity,
                    finding.where,
                )
            )
    return Compiled(app, {}, objects, documents=tuple(documents))


def _findings(objects: Sequence[Rendered], target: str, app: App) -> Iterable[tuple[Rendered, Any]]:
    from kaigen.check import check_object, check_policy, check_references

    for item in objects:
        for finding in check_object(item.body, target=target):
            yield item, finding
        for finding in check_policy(item.body, pod_security=app.pod_security):
            yield item, finding
    for index, finding in check_references(
        [item.body for item in objects], external=_Elsewhere(app.elsewhere)
    ):
        yield objects[index], finding


class _Elsewhere:
    """What an app may refer to without making it: volumes of other apps, what users keep in ConfigMaps, and what it
    says itself."""

    def __init__(self, named: Collection[tuple[str, str]]) -> None:
        self._named = named

    def __contains__(self, identity: object) -> bool:
        if not isinstance(identity, tuple):
            return False
        kind, _, name = identity
        return kind in {"PersistentVolumeClaim", "ConfigMap"} or (kind, name) in self._named


def _leaks(spec: Spec) -> bool:
    """Whether loading has found a credential in the spec's document, and told it with its line."""
    from kaigen.load.secrets import find_secrets

    return any(find_secrets(spec.document))  # type: ignore[arg-type]


def _spec_path(item: Rendered, path: Sequence[str | int], document: Any) -> tuple[str | int, ...]:
    """The spec's field that a place in an object came from; empty when kaigen made it."""
    from kaigen.compile.app import Expr, HashedName

    node: Any = item.object.body
    value: Any = item.body
    for depth, key in enumerate(path):
        try:
            node, value = node[key], value[key]
        except (KeyError, IndexError, TypeError):
            break
        if isinstance(node, Expr) and not isinstance(node, HashedName):
            origins = [setting.origin for setting in node.settings() if setting.origin]
            return _inside(origins[0], value, path[depth + 1 :], document) if origins else ()
    return ()


def _inside(
    origin: tuple[str | int, ...], value: Any, rest: Sequence[str | int], document: Any
) -> tuple[str | int, ...]:
    """The place below a field that the rest of a path leads to, as far as the document holds the same there.

    A list in an object may begin with entries of kaigen's own, so an entry is found by what it is.
    """
    here, path = document, list(origin)
    try:
        for key in origin:
            here = here[key]
        for key in rest:
            value = value[key]
            step = here.index(value) if isinstance(here, list) else key
            here = here[step]
            path.append(step)
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    return tuple(path)


def _path_of(text: str, document: Any, start: tuple[str | int, ...], beside: str) -> tuple[str | int, ...]:
    """The field below a place that holds a text; empty when there is none.

    Of several the one with another text beside it comes first, then one that speaks of Secrets.
    """
    node = document
    for step in start:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            return ()
    found: list[tuple[bool, bool, str, tuple[str | int, ...]]] = []
    waiting: list[tuple[tuple[str | int, ...], Any, Any]] = [(start, node, None)]
    while waiting:
        path, node, parent = waiting.pop()
        if node == text and path[:1] != ("metadata",):
            alone = not (isinstance(parent, dict) and beside in parent.values())
            found.append((alone, "secret" not in str(path).lower(), str(path), path))
        below = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        waiting += [((*path, key), value, node) for key, value in below]
    return min(found)[-1] if found else ()


_FOLDER = "folder of a bucket"


def object_keys(item: Compiled) -> list[tuple[str, str, str, str]]:
    """Group, kind, namespace and name of each object of an app, and of what it alone may fill."""
    from kaigen.compile.bricks.frame import LOCATION

    keys = []
    for rendered in item.objects:
        body = rendered.body
        metadata = body["metadata"]
        group = body["apiVersion"].rpartition("/")[0]
        keys.append((group, body["kind"], metadata.get("namespace", ""), metadata["name"]))
        if folder := (metadata.get("annotations") or {}).get(LOCATION):
            keys.append(("", _FOLDER, "", folder))
    return keys


def _check_across(compiled: Sequence[Compiled], found: Diagnostics) -> None:
    """No two apps have one folder, and none makes an object of another."""
    folders: dict[tuple[str, str], Compiled] = {}
    for item in compiled:
        first = folders.setdefault((item.app.namespace, item.app.name), item)
        if first is not item and item.documents:
            message = f"the app of this file is `{item.app.name}`, as is that of {first.app.source}"
            found.add(Diagnostic("KG0302", message, item.documents[0].mark(()), "rename one of the files"))
    makers: dict[tuple[str, str, str, str], Compiled] = {}
    for item in compiled:
        for key in object_keys(item):
            first = makers.setdefault(key, item)
            if first is not item:
                found.add(_clash(key[1], key[3], item, first))


def _clash(kind: str, name: str, item: Compiled, first: Compiled) -> Diagnostic:
    """What is said of two apps that make, or fill, the same thing."""
    code: str = "KG0302"
    field: SpecPath = ("metadata", "name")
    message = f"{kind} `{name}` is made by app `{first.app.name}` too"
    hint = "give one of the two apps another name"
    if kind == _FOLDER:
        code, field = "KG0318", ("spec", "store", "bucket", "uri")
        message = f"app `{first.app.name}` in namespace `{first.app.namespace}` rests at {name} too"
        hint = "give this one a prefix of its own"
    if item.spec:
        return item.spec.diagnostic(code, message, field, hint)
    return Diagnostic(code, message, Mark(item.app.source), hint)


def validate(
    paths: Sequence[str], config: Config | None = None, *, stdin: IO[bytes] | None = None
) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """Everything that is wrong with specs, as far as rendering would find it.

    Returns:
        The diagnostics by place, and the files that were read.
    """
    from kaigen.config import Config

    config = config or Config()
    loaded = load_specs(paths, config, stdin=stdin)
    others = load_others(loaded, config) if paths else None
    try:
        return list(compile_specs(loaded, config, others=others).diagnostics), loaded.files
    except InputError as error:
        return error.diagnostics, loaded.files


def render(
    paths: Sequence[str],
    config: Config | None = None,
    *,
    overrides: Sequence[Overrides] = (),
    form: Format | None = None,
    stdin: IO[bytes] | None = None,
) -> dict[str, bytes]:
    """Specs in, the output tree out: content by relative path. Nothing is written.

    Files for Argo CD and Flux tell of every app, so they are among it only when no paths are given.

    Raises:
        InputError: with every problem found.
    """
    from kaigen.config import Config

    config = config or Config()
    loaded = load_specs(paths, config, stdin=stdin)
    others = load_others(loaded, config) if paths else None
    compilation = compile_specs(loaded, config, overrides, others=others)
    if paths:
        return compilation.files(form or config.format)
    return output_files(compilation, config, form)
