"""Read specs: source files in, validated specs and diagnostics out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.config.block_settings import ChosenApps
from kaigen.config.tenant_settings import default_namespace
from kaigen.diagnostics.category import FIELDS
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.dialects.registry import find_kind
from kaigen.kinds.input_documents import InputDocuments, object_name
from kaigen.kinds.lowering import ENVIRONMENTS
from kaigen.kubernetes.manifest import mapping
from kaigen.pipeline.document import is_kubernetes_object, read_document
from kaigen.pipeline.sources import is_unreadable, relative_path
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.kinds.input_documents import Key, ObjectName
    from kaigen.kinds.repair import Repaired
    from kaigen.kinds.spec import Spec
    from kaigen.yaml.document import Document
    from kaigen.yaml.sources import Source

with lazy_imports():
    from kaigen.compile import passthrough
    from kaigen.environments import match as environments_match
    from kaigen.pipeline import commits
    from kaigen.yaml import document as yaml_document
    from kaigen.yaml import document_secrets


_EVERY_APP = ChosenApps()


class ParsedSource(Struct, frozen=True):
    """The documents of one text.

    Attributes:
        source: the text.
        documents: those that could be parsed, and that the environment has.
        diagnostics: problems of the text.
        absent: documents that the environment does not have.
    """

    source: Source
    documents: tuple[Document, ...]
    diagnostics: tuple[Diagnostic, ...]
    absent: tuple[Document, ...] = ()


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
        doubtful: specs of its invalid documents, each with what is left of it without the errors. They are compiled
            for their diagnostics only.
    """

    parsed: ParsedSource
    specs: tuple[Spec, ...] = ()
    plain: tuple[Document, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    broken: frozenset[Key] = frozenset()
    lookups: tuple[ObjectName, ...] = ()
    consumed: tuple[Document, ...] = ()
    doubtful: tuple[tuple[Spec, Repaired], ...] = ()

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


def parse_source(source: Source, config: Config) -> ParsedSource:
    """Parse a text, check it for secrets, and set apart what the environment does not have.

    Args:
        source: the text.
        config: the repository's settings.
    """
    found = Diagnostics()
    documents = yaml_document.parse(source, found, is_manifest=is_kubernetes_object)
    for document in documents:
        found.extend(document_secrets.find_secrets(document))
    found.extend(document_secrets.find_secrets_in_comments(source, documents))
    found.extend(document_secrets.find_shared_sops_files(documents))
    if config.follows_commits:
        there, absent = commits.split_by_commit(source, documents, config)
    else:
        there, absent = documents, []
    left = [document for document in there if is_absent(document, config, found)]
    there = [document for document in there if not any(document is other for other in left)]
    return ParsedSource(source, tuple(there), tuple(found), (*absent, *left))


def is_absent(document: Document, config: Config, found: Diagnostics) -> bool:
    """Return whether an environment does not have a document: it names others, or kaigen.yaml chooses other apps.

    kaigen.yaml chooses the apps of specs here, and those of plain objects when it is known which objects have one.

    Args:
        document: of a file.
        config: the settings of the environment.
        found: receives errors about the environments that the document names.
    """
    metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
    if not isinstance(metadata, dict):
        return False
    annotations = metadata.get("annotations")
    is_named = "environments" in metadata or (isinstance(annotations, dict) and ENVIRONMENTS in annotations)
    if is_named and environments_match.is_absent(document, config, found):
        return True
    if config.apps == _EVERY_APP or not document.name or is_kubernetes_object(document):
        return False
    return not config.apps.has(_namespace(document, config), document.name)


def absent_keys(parsed: ParsedSource, config: Config) -> tuple[Key, ...]:
    """Return kind, namespace and name of the specs that the environment does not have."""
    return tuple(
        (document.kind, _namespace(document, config), document.name)
        for document in parsed.absent
        if document.kind and document.name and not is_kubernetes_object(document)
    )


def absent_matches(parsed: ParsedSource, config: Config) -> list[int | str]:
    """Return the overrides and pins that match specs which the environment does not have."""
    if not (config.overrides or config.pins):
        return []
    entries = [(document, find_kind(document.apiVersion, document.kind)) for document in parsed.absent]
    return [
        name
        for document, entry in entries
        if entry is not None and document.name
        for name in environments_match.matching_overrides(document, entry, config)
    ]


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
    if others and not _has_plain_objects(loaded, others, config):
        others = []
    if used:
        loaded = _add(loaded, used, replace(config, passthrough=True), InputDocuments())
    return _add(loaded, others, config, InputDocuments()) if others else loaded


def _has_plain_objects(loaded: LoadedSource, objects: Sequence[Document], config: Config) -> bool:
    """Whether the environment has the objects of a file that no spec uses.

    Those next to specs that it does not have belong to these, unless they are an app of their own.
    """
    if loaded.parsed.absent and not (config.passthrough and loaded.specs):
        return False
    if config.apps == _EVERY_APP:
        return True
    path = relative_path(loaded.source.file, config.root)
    own = default_namespace(path, config.tenants, config.namespace)
    namespace = passthrough.plain_namespace([mapping(document.data) for document in objects], own)
    return config.apps.has(namespace, passthrough.app_name(path, config.specs))


def _add(loaded: LoadedSource, documents: Iterable[Document], config: Config, every: InputDocuments) -> LoadedSource:
    """Return a file with more of its documents validated and lowered."""
    source = loaded.parsed.source
    path = relative_path(source.file, config.root)
    results = []
    found = Diagnostics(loaded.diagnostics)
    broken = set(loaded.broken)
    for document in documents:
        result = read_document(document, path, config, every)
        results.append(result)
        found.extend(item for item in result.diagnostics if not _is_known(item, loaded.parsed.diagnostics))
        if not (result.specs or result.plain or result.joined) and document.kind and document.name:
            broken.add((document.kind, _namespace(document, config), document.name))
    return LoadedSource(
        loaded.parsed,
        (*loaded.specs, *(spec for result in results for spec in result.specs)),
        (*loaded.plain, *(document for result in results for document in result.plain)),
        tuple(found.sorted()),
        frozenset(broken),
        (*loaded.lookups, *(name for result in results for name in result.lookups)),
        (*loaded.consumed, *(document for result in results for document in result.consumed)),
        (*loaded.doubtful, *(pair for result in results for pair in result.doubtful)),
    )


def _namespace(document: Document, config: Config) -> str:
    """Return the namespace that a document names, or else that of its tenant or of kaigen.yaml."""
    metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    if isinstance(namespace, str) and namespace:
        return namespace
    return default_namespace(relative_path(document.source.file, config.root), config.tenants, config.namespace)


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
