"""The way of the data: load, lower, compile, check, emit. Each step is a function that can be called alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kaigen.load.diagnostics import Diagnostic, Diagnostics, InputError, Mark, Severity

if TYPE_CHECKING:
    from kaigen.compile.app import App, Json, Rendered
    from kaigen.compile.context import Context, Key, SpecIndex
    from kaigen.config import Config, Format
    from kaigen.incremental import AppRow
    from kaigen.kinds.spec import Spec
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
    """One app beside its values and its objects as they will be written."""

    app: App
    values: Mapping[str, Json]
    objects: list[Rendered]
    spec: Spec | None = None

    def files(self, form: Format) -> dict[str, bytes]:
        """The app's files by path in the output tree."""
        files: dict[str, bytes] = {}
        if form != "chart":
            from kaigen.emit.manifests import manifest_files

            files |= manifest_files(self.app, rendered=self.objects)
        if form != "manifests":
            from kaigen.emit.chart import chart_files

            files |= chart_files(self.app, self.values)
        return files


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
        """All objects as one YAML stream, app by app, in the order of their waves."""
        from kaigen.emit.manifests import manifest_stream

        return "".join(manifest_stream(item.objects) for item in self.apps)


def load_specs(
    paths: Sequence[str], config: Config | None = None, *, stdin: IO[bytes] | None = None
) -> Loaded:
    """Read and validate specs.

    Args:
        paths: files and folders, `-` for standard input; the configured ones when empty.
        config: the repository's settings; the defaults when None.
        stdin: what `-` reads.

    Returns:
        What was read; its diagnostics tell of everything that was not.
    """
    from kaigen.config import Config
    from kaigen.load.sources import read_sources

    config = config or Config()
    named = list(paths) or [str(config.root / path) for path in config.specs]
    sources, found = read_sources(named, root=config.root, stdin=stdin, exclude=[config.root / config.output])
    specs: list[Spec] = []
    plain: list[Document] = []
    broken: set[Key] = set()
    for source in sources:
        load_source(source, config, specs, plain, found, broken)
    files = tuple(source.path for source in sources)
    return Loaded(tuple(specs), tuple(plain), tuple(found.sorted()), files, frozenset(broken))


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
    from kaigen.load.secrets import find_secrets
    from kaigen.load.yaml import parse

    told = Diagnostics()
    documents = parse(source, told)
    for document in documents:
        told.extend(find_secrets(document))
    found.extend(told)
    for document in documents:
        own = Diagnostics()
        count = len(specs)
        _take_document(document, _relative(source.path, config.root), config, specs, plain, own)
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
) -> None:
    from importlib import import_module

    from kaigen.kinds.registry import find_kind
    from kaigen.kinds.spec import Spec
    from kaigen.kinds.validate import validate_document

    if not isinstance(document.data, dict):
        found.add(
            Diagnostic(
                "KG0211",
                "a spec is a mapping with `apiVersion`, `kind`, `metadata` and `spec`",
                document.mark(()),
                "see `kaigen kinds` for what can be written",
            )
        )
        return
    entry = find_kind(document.apiVersion, document.kind)
    if entry is None:
        _take_unknown(document, config, plain, found)
        return
    block, diagnostics = validate_document(document, entry)
    found.extend(diagnostics)
    if block is None:
        return
    if not entry.lower:
        from kaigen.dialects.base import Lowering

        spec = Spec(block, entry, document, source)  # type: ignore[arg-type]
        lowering = Lowering(document)
        lowering.directives(spec.block.metadata.annotations, DIRECTIVES)
        found.extend(lowering.diagnostics)
        specs.append(spec)
        return
    lowered, said = import_module(entry.lower).lower(block, document)
    found.extend(said)
    for item in lowered:
        specs.append(Spec(item.block, entry, document, source, item.origins, item.naming))


def _take_unknown(document: Document, config: Config, plain: list[Document], found: Diagnostics) -> None:
    from kaigen.check import is_cluster_scoped
    from kaigen.kinds.registry import KINDS
    from kaigen.load.suggest import did_you_mean

    api_version, kind = document.apiVersion, document.kind
    assert isinstance(document.data, dict)
    for name in ("apiVersion", "kind"):
        if not isinstance(document.data.get(name), str):
            _tell_missing(document, name, found)
    if api_version is None or kind is None:
        return
    if is_cluster_scoped(api_version, kind) is not None:
        if config.passthrough:
            plain.append(document)
            return
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
    versions = {entry.api_version for entry in KINDS}
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
    kinds = [entry.kind for entry in KINDS if entry.api_version == api_version]
    hint = did_you_mean(kind, kinds) or f"kinds of {api_version}: " + ", ".join(kinds)
    found.add(
        Diagnostic(
            "KG0212", f"unknown kind `{kind}` in `{api_version}`", document.mark(("kind",)), hint, path="kind"
        )
    )


def _tell_missing(document: Document, name: str, found: Diagnostics) -> None:
    from kaigen.kinds.registry import KINDS

    assert isinstance(document.data, dict)
    if name == "apiVersion":
        known = [entry.api_version for entry in KINDS if entry.kind == document.kind]
    else:
        known = [entry.kind for entry in KINDS if entry.api_version == document.apiVersion]
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
    from kaigen.load.sources import read_sources

    seen = {Path(path).absolute() for path in loaded.files}
    folders = [str(config.root / path) for path in config.specs if (config.root / path).exists()]
    sources, _ = read_sources(folders, root=config.root, exclude=[config.root / config.output])
    specs: list[Spec] = []
    broken: set[Key] = set()
    for source in sources:
        if Path(source.path).absolute() not in seen:
            load_source(source, config, specs, [], Diagnostics(), broken)
    return Loaded(tuple(specs), (), (), (), frozenset(broken))


def compile_specs(
    loaded: Loaded,
    config: Config | None = None,
    overrides: Sequence[Overrides] = (),
    *,
    others: Loaded | None = None,
) -> Compilation:
    """Make the app of each spec, with settings overridden, and check its objects.

    Args:
        loaded: what was read.
        config: the repository's settings; the defaults when None.
        overrides: values by app, later ones on top of earlier ones and of those in kaigen.yaml.
        others: specs that may be referred to but are not compiled.

    Raises:
        InputError: with every problem found, those of loading included.
    """
    from kaigen.compile.context import SpecIndex
    from kaigen.compile.passthrough import passthrough_app
    from kaigen.config import Config

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
    compiled = []
    for spec in specs:
        own = Diagnostics()
        index.asked.clear()
        item = compile_spec(spec, context, layers, own)
        # What is wrong with a document is told there, not again where it is referred to.
        known = not broken.isdisjoint(index.asked)
        found.extend(each for each in own if not (known and each.code == "KG0301"))
        if item is not None:
            compiled.append(item)
    by_file: dict[str, list[Document]] = {}
    for document in loaded.plain:
        by_file.setdefault(_relative(document.source.path, config.root), []).append(document)
    plain = [
        (passthrough_app(source, [document.data for document in documents], config.namespace), documents)  # type: ignore[misc]
        for source, documents in by_file.items()
        if all(_has_name(document, found) for document in documents)
    ]
    if layers:
        _check_override_names(specs, others, config, layers, found)
    compiled += [_finish_plain(app, documents, config, found) for app, documents in plain]
    _check_across(compiled, found)
    found.raise_errors()
    compiled.sort(key=lambda item: (item.app.namespace, item.app.name))
    return Compilation(tuple(compiled), tuple(found.sorted()))


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

    return Context(
        profile=get_profile(config.profile),
        namespace=config.namespace,
        target=config.kubernetes,
        images=config.images or default_images(),
        specs=specs,
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
    return None if app is None else _finish(app, spec, layers, context.target, found)


def _compile(spec: Spec, context: Context, found: Diagnostics) -> App | None:
    from kaigen.compile.problems import Problems
    from kaigen.kinds.model import Model

    problems = Problems()
    block = spec.block
    app: App
    if isinstance(block, Model):
        from kaigen.compile.model import compile_model

        app = compile_model(block, context, problems)
    else:
        from kaigen.compile.job import compile_job

        app = compile_job(block, context, problems, spec.naming)
    for problem in problems.errors:
        found.add(spec.diagnostic(problem.code, str(problem), problem.path, problem.hint))
    for problem in problems.warnings:
        found.add(spec.diagnostic(problem.code, str(problem), problem.path, problem.hint, warning=True))
    if problems.errors:
        return None
    kind = block.kind if spec.entry.system == "kaigen" else f"{spec.entry.kind} of {spec.entry.api_version}"
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
    for item, finding in _findings(objects, target, app.pod_security):
        path = _spec_path(item, finding.path, spec.document.data)
        if path and finding.code == "KG0566" and _leaks(spec):
            continue
        name = f" {item.body['metadata']['name']} at {finding.where}" if not path else ""
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
    return Compiled(app, {}, objects)


def _findings(objects: Sequence[Rendered], target: str, pod_security: str) -> Iterable[tuple[Rendered, Any]]:
    from kaigen.check import check_object, check_policy, check_references

    for item in objects:
        for finding in check_object(item.body, target=target):
            yield item, finding
        for finding in check_policy(item.body, pod_security=pod_security):
            yield item, finding
    for index, finding in check_references([item.body for item in objects], external=_Elsewhere()):
        yield objects[index], finding


class _Elsewhere:
    """What an app may refer to without making it: volumes of other apps, and what users keep in ConfigMaps."""

    def __contains__(self, identity: object) -> bool:
        return isinstance(identity, tuple) and identity[0] in {"PersistentVolumeClaim", "ConfigMap"}


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


def object_keys(item: Compiled) -> list[tuple[str, str, str, str]]:
    """Group, kind, namespace and name of each object of an app."""
    keys = []
    for rendered in item.objects:
        body = rendered.body
        metadata = body["metadata"]
        group = body["apiVersion"].rpartition("/")[0]
        keys.append((group, body["kind"], metadata.get("namespace", ""), metadata["name"]))
    return keys


def _check_across(compiled: Sequence[Compiled], found: Diagnostics) -> None:
    """No two apps make the same object."""
    makers: dict[tuple[str, str, str, str], Compiled] = {}
    for item in compiled:
        for key in object_keys(item):
            first = makers.setdefault(key, item)
            if first is not item:
                message = f"{key[1]} `{key[3]}` is made by app `{first.app.name}` too"
                hint = "give one of the two apps another name"
                found.add(
                    item.spec.diagnostic("KG0302", message, ("metadata", "name"), hint)
                    if item.spec
                    else Diagnostic("KG0302", message, Mark(item.app.source), hint)
                )


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

    Raises:
        InputError: with every problem found.
    """
    from kaigen.config import Config

    config = config or Config()
    loaded = load_specs(paths, config, stdin=stdin)
    others = load_others(loaded, config) if paths else None
    return compile_specs(loaded, config, overrides, others=others).files(form or config.format)
