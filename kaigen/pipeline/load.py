"""Read specs: source files in, validated specs and diagnostics out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.diagnostics.category import FIELDS
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.kinds.input_documents import InputDocuments, object_name
from kaigen.pipeline.document import is_kubernetes_object, read_document
from kaigen.pipeline.sources import is_unreadable, relative_path
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.kinds.input_documents import Key, ObjectName
    from kaigen.kinds.spec import Spec
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


def parse_source(source: Source) -> ParsedSource:
    """Parse a text, and check it for secrets."""
    found = Diagnostics()
    documents = yaml_document.parse(source, found, is_manifest=is_kubernetes_object)
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
        document for document in loaded.parsed.documents if is_kubernetes_object(document) and id(document) not in taken
    ]
    looked_up = frozenset(loaded.lookups)
    used = [document for document in objects if object_name(document.data) in looked_up]
    others = [document for document in objects if object_name(document.data) not in looked_up]
    if used:
        loaded = _add(loaded, used, replace(config, passthrough=True), InputDocuments())
    return _add(loaded, others, config, InputDocuments()) if others else loaded


def _add(loaded: LoadedSource, documents: Iterable[Document], config: Config, every: InputDocuments) -> LoadedSource:
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
