"""Read specs: files in, what they say and what is wrong with them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kaigen.diagnostics.category import FIELDS
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Severity
from kaigen.pipeline.document import take_document
from kaigen.system.progress import counted

if TYPE_CHECKING:
    from kaigen.compile.context import Key
    from kaigen.config.settings import Config
    from kaigen.kinds.spec import Spec
    from kaigen.system.progress import Progress
    from kaigen.yaml.document import Document
    from kaigen.yaml.sources import Source


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
    from kaigen.config.settings import Config, paths_without_specs
    from kaigen.yaml.sources import read_sources

    config = config or Config()
    named = list(paths) or [str(config.root / path) for path in config.specs]
    sources, found = read_sources(named, root=config.root, stdin=stdin, exclude=paths_without_specs(config))
    found.extend(kind_problems(config))
    specs: list[Spec] = []
    plain: list[Document] = []
    broken: set[Key] = set()
    parsed = [parse_source(source) for source in counted(sources, "reading", progress)]
    lower_sources(parsed, config, specs, plain, found, broken)
    files = tuple(source.path for source in sources)
    return Loaded(tuple(specs), tuple(plain), tuple(found.sorted()), files, frozenset(broken))


def load_others(loaded: Loaded, config: Config) -> Loaded:
    """The configured specs that were not named, for references to them; what is wrong there is not told."""
    from kaigen.config.settings import paths_without_specs
    from kaigen.yaml.sources import read_sources

    seen = {Path(path).absolute() for path in loaded.files}
    folders = [str(config.root / path) for path in config.specs if (config.root / path).exists()]
    sources, _ = read_sources(folders, root=config.root, exclude=paths_without_specs(config))
    specs: list[Spec] = []
    plain: list[Document] = []
    broken: set[Key] = set()
    parsed = [parse_source(source) for source in sources if Path(source.path).absolute() not in seen]
    found = Diagnostics()
    lower_sources(parsed, config, specs, plain, found, broken)
    # Not every broken document has a kind and a name.
    broken |= {("", "", item.mark.file) for item in found if item.mark and item.severity is Severity.ERROR}
    return Loaded(tuple(specs), tuple(plain), (), (), frozenset(broken))


def kind_problems(config: Config) -> Sequence[Diagnostic]:
    """What is wrong with the kinds that the repository's folders define."""
    if not config.kinds:
        return ()
    from kaigen.extend.find import folder_kinds

    return folder_kinds(config).diagnostics


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """The documents of one text.

    Attributes:
        source: the text.
        documents: those that could be parsed.
        diagnostics: what is wrong with the text.
    """

    source: Source
    documents: tuple[Document, ...]
    diagnostics: tuple[Diagnostic, ...]


def parse_source(source: Source) -> ParsedSource:
    """Parse a text, and check it for secrets."""
    from kaigen.yaml.document import parse
    from kaigen.yaml.document_secrets import find_secrets, find_secrets_in_comments, find_shared_sops_files

    found = Diagnostics()
    documents = parse(source, found)
    for document in documents:
        found.extend(find_secrets(document))
    found.extend(find_secrets_in_comments(source, documents))
    found.extend(find_shared_sops_files(documents))
    return ParsedSource(source, tuple(documents), tuple(found))


def lower_sources(
    sources: Iterable[ParsedSource],
    config: Config,
    specs: list[Spec],
    plain: list[Document],
    found: Diagnostics,
    broken: set[Key] | None = None,
) -> bool:
    """Make specs of all documents of a run.

    Args:
        sources: every source of the run; a document may refer to documents of other sources.
        config: the repository's settings.
        specs: takes the specs.
        plain: takes the Kubernetes objects that are let through.
        found: takes what is wrong, and what is worth a warning.
        broken: takes kind, namespace and name of the documents that are wrong.

    Returns:
        Whether every object that was looked up is in the source of the document that looked it up.
    """
    from kaigen.kinds.lowering import InputDocuments

    parsed = list(sources)
    for source in parsed:
        found.extend(source.diagnostics)
    documents = InputDocuments(document for source in parsed for document in source.documents)
    specs_first = sorted(
        ((source, document) for source in parsed for document in source.documents),
        key=lambda item: _is_kubernetes_object(item[1]),
    )
    consumed: set[int] = set()
    self_contained = True
    for source, document in specs_first:
        if id(document) in consumed:
            continue
        own = Diagnostics()
        count = len(specs)
        path = relative_path(source.source.path, config.root)
        result = take_document(document, path, config, specs, plain, own, documents)
        consumed.update(id(other) for other in result.consumed)
        self_contained &= all(
            any(other.source is source.source for other in documents.named(*name))
            for name in result.looked_up
        )
        found.extend(item for item in own if not _told_already(item, source.diagnostics))
        if broken is not None and len(specs) == count and document.kind and document.name:
            broken.add((document.kind, _namespace(document) or config.namespace, document.name))
    return self_contained


def load_source(
    source: Source,
    config: Config,
    specs: list[Spec],
    plain: list[Document],
    found: Diagnostics,
    broken: set[Key] | None = None,
) -> bool:
    """Make specs of the documents of one text; arguments and result as those of `lower_sources`."""
    return lower_sources([parse_source(source)], config, specs, plain, found, broken)


def _is_kubernetes_object(document: Document) -> bool:
    """Whether a document may be consumed by a spec, so that it is looked at after all specs."""
    from kaigen.dialects.registry import find_kind

    if find_kind(document.apiVersion, document.kind) is not None:
        return False
    from kaigen.kubernetes.schemas import is_cluster_scoped

    return is_cluster_scoped(document.apiVersion or "", document.kind or "") is not None


def _namespace(document: Document) -> str:
    metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return namespace if isinstance(namespace, str) else ""


def _told_already(item: Diagnostic, told: Iterable[Diagnostic]) -> bool:
    """Whether a wrong field is only one whose text could not be taken as it is, which loading has told."""
    return item.category in FIELDS and any(
        first.path
        and first.mark
        and item.mark
        and first.mark.line == item.mark.line
        and (item.path == first.path or item.path.startswith((f"{first.path}.", f"{first.path}[")))
        for first in told
    )


def relative_path(path: str, root: Path) -> str:
    """A file's path in the repository; its name when it stands elsewhere, and nothing for standard input."""
    if path.startswith("<"):
        return ""
    base = f"{root}/"
    if path.startswith(base):  # as nearly always; pathlib would take as long as reading the file
        return path.removeprefix(base)
    try:
        return Path(path).absolute().relative_to(root.absolute()).as_posix()
    except ValueError:
        return Path(path).name


def spec_key(spec: Spec, namespace: str) -> tuple[str, str, str]:
    """Kind, namespace and name of a spec."""
    metadata = spec.block.metadata
    return (spec.block.kind, metadata.namespace or namespace, metadata.name)
