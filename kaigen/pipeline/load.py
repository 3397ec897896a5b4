"""Read specs: source files in, validated specs and diagnostics out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.config.settings import Config
from kaigen.diagnostics.category import FIELDS
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.kinds.input_documents import InputDocuments, object_name
from kaigen.pipeline.document import is_kubernetes_object, read_document
from kaigen.pipeline.inputs import listed
from kaigen.pipeline.sources import is_unreadable, kind_problems, read_named, read_others, relative_path
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.progress import counted

if TYPE_CHECKING:
    from pathlib import Path

    from kaigen.kinds.input_documents import Key, ObjectName
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.inputs import Inputs
    from kaigen.system.progress import Progress
    from kaigen.yaml.document import Document
    from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.yaml import document as yaml_document
    from kaigen.yaml import document_secrets


class ParsedSource(Struct, frozen=True):
    """The documents of one text.

    Attributes:
        source: the text.
        documents: those that could be parsed.
        diagnostics: problems of the text.
    """

    source: Source
    documents: tuple[Document, ...]
    diagnostics: tuple[Diagnostic, ...]


class LoadedSource(Struct, frozen=True):
    """One source file after reading, validating and lowering its documents.

    Attributes:
        parsed: its documents.
        specs: its valid specs, lowered to kinds that kaigen compiles.
        plain: its Kubernetes objects that pass through unchanged.
        diagnostics: errors and warnings.
        broken: kind, namespace and name of its invalid documents, as far as they are known.
        lookups: objects that its specs looked up among all documents.
        consumed: documents of any file that became part of its specs.
    """

    parsed: ParsedSource
    specs: tuple[Spec, ...] = ()
    plain: tuple[Document, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    broken: frozenset[Key] = frozenset()
    lookups: tuple[ObjectName, ...] = ()
    consumed: tuple[Document, ...] = ()

    @property
    def source(self) -> Source:
        """The file."""
        return self.parsed.source

    @property
    def unreadable(self) -> bool:
        """True when it has a document that could not be parsed, so any spec may be missing."""
        return is_unreadable(self.parsed.diagnostics)

    @property
    def has_errors(self) -> bool:
        """True when at least one diagnostic is an error."""
        return any(item.severity is Severity.ERROR for item in self.diagnostics)


class Loaded(Struct, frozen=True):
    """Every source file of a run.

    Attributes:
        sources: in the order of reading.
        problems: diagnostics of files that could not be read, and of the repository's own kinds.
    """

    sources: tuple[LoadedSource, ...]
    problems: tuple[Diagnostic, ...] = ()

    @property
    def specs(self) -> tuple[Spec, ...]:
        """Every valid spec."""
        return tuple(spec for source in self.sources for spec in source.specs)

    @property
    def plain(self) -> tuple[Document, ...]:
        """Every Kubernetes object that passes through unchanged."""
        return tuple(document for source in self.sources for document in source.plain)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every diagnostic, by file and position."""
        found = Diagnostics(self.problems)
        for source in self.sources:
            found.extend(source.diagnostics)
        return tuple(found.sorted())

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files."""
        return tuple(source.source.path for source in self.sources)


def load_specs(
    inputs: Inputs = (),
    config: Config | None = None,
    *,
    stdin: IO[bytes] | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Read and validate specs.

    Args:
        inputs: files and folders, `-` for standard input, and specs as Python objects: those of the kinds, such as
            `Model`, or dicts with the content of a document. The configured specs when empty.
        config: the repository's settings; the defaults when None.
        stdin: what `-` reads.
        folder: that relative paths start from; the repository's folder when None.
        progress: receives the number of files read.

    Returns:
        The source files; their diagnostics name everything that is wrong.
    """
    config = config or Config()
    sources, problems = read_named(listed(inputs), config, stdin=stdin, folder=folder)
    loaded = load_sources(counted(sources, "reading", progress), config)
    return Loaded(tuple(loaded), (*problems, *kind_problems(config)))


def load_others(loaded: Loaded, config: Config) -> Loaded:
    """Return the configured specs that are not among those loaded, for references to them."""
    return Loaded(tuple(load_sources(read_others(loaded.files, config), config)))


def load_sources(sources: Iterable[Source], config: Config) -> list[LoadedSource]:
    """Parse texts, and validate and lower their documents, which may refer to each other."""
    every = [parse_source(source) for source in sources]
    documents = InputDocuments(document for parsed in every for document in parsed.documents)
    loaded = [lower_specs(parsed, config, documents) for parsed in every]
    consumed = [document for item in loaded for document in item.consumed]
    return [add_objects(item, config, consumed) for item in loaded]


def load_source(source: Source, config: Config) -> LoadedSource:
    """Parse one text, and validate and lower its documents."""
    return load_sources([source], config)[0]


def parse_source(source: Source) -> ParsedSource:
    """Parse a text, and check it for secrets."""
    found = Diagnostics()
    documents = yaml_document.parse(source, found)
    for document in documents:
        found.extend(document_secrets.find_secrets(document))
    found.extend(document_secrets.find_secrets_in_comments(source, documents))
    found.extend(document_secrets.find_shared_sops_files(documents))
    return ParsedSource(source, tuple(documents), tuple(found))


def lower_specs(parsed: ParsedSource, config: Config, documents: InputDocuments) -> LoadedSource:
    """Validate and lower the documents of a file that are not Kubernetes objects.

    Args:
        parsed: the file.
        config: the repository's settings.
        documents: every document of the run.
    """
    specs = [document for document in parsed.documents if not is_kubernetes_object(document)]
    return _add(LoadedSource(parsed, diagnostics=parsed.diagnostics), specs, config, documents)


def add_objects(loaded: LoadedSource, config: Config, consumed: Sequence[Document]) -> LoadedSource:
    """Return a file with its Kubernetes objects, passed through or reported.

    An object that a spec of the same file uses, such as the PersistentVolumeClaim of a Workspace, passes through even
    without `passthrough: true`.

    Args:
        loaded: the file with its specs.
        config: the repository's settings.
        consumed: the documents that became part of specs.
    """
    taken = {id(document) for document in consumed}
    objects = [
        document
        for document in loaded.parsed.documents
        if is_kubernetes_object(document) and id(document) not in taken
    ]
    looked_up = frozenset(loaded.lookups)
    used = [document for document in objects if object_name(document.data) in looked_up]
    others = [document for document in objects if object_name(document.data) not in looked_up]
    if used:
        loaded = _add(loaded, used, replace(config, passthrough=True), InputDocuments())
    return _add(loaded, others, config, InputDocuments()) if others else loaded


def _add(
    loaded: LoadedSource,
    documents: Iterable[Document],
    config: Config,
    every: InputDocuments,
) -> LoadedSource:
    """Return a file with more of its documents validated and lowered."""
    source = loaded.parsed.source
    path = relative_path(source.path, config.root)
    results = []
    found = Diagnostics(loaded.diagnostics)
    broken = set(loaded.broken)
    for document in documents:
        result = read_document(document, path, config, every)
        results.append(result)
        found.extend(item for item in result.diagnostics if not _is_known(item, loaded.parsed.diagnostics))
        if not (result.specs or result.plain or result.joined) and document.kind and document.name:
            broken.add((document.kind, _namespace(document) or config.namespace, document.name))
    return LoadedSource(
        loaded.parsed,
        (*loaded.specs, *(spec for result in results for spec in result.specs)),
        (*loaded.plain, *(document for result in results for document in result.plain)),
        tuple(found.sorted()),
        frozenset(broken),
        (*loaded.lookups, *(name for result in results for name in result.lookups)),
        (*loaded.consumed, *(document for result in results for document in result.consumed)),
    )


def _namespace(document: Document) -> str:
    metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return namespace if isinstance(namespace, str) else ""


def _is_known(item: Diagnostic, text_problems: Iterable[Diagnostic]) -> bool:
    """Whether a field is invalid only because its text is, which is reported already."""
    return any(
        item.category in FIELDS
        and first.path
        and first.mark
        and item.mark
        and first.mark.line == item.mark.line
        and (item.path == first.path or item.path.startswith((f"{first.path}.", f"{first.path}[")))
        for first in text_problems
    )
