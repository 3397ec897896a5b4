"""Read specs: files in, what they say and what is wrong with them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kaigen.diagnostics.codes import FIELDS
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics
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
    from kaigen.config.settings import Config, no_specs
    from kaigen.yaml.sources import read_sources

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


def load_others(loaded: Loaded, config: Config) -> Loaded:
    """The configured specs that were not named, for references to them; what is wrong there is not told."""
    from kaigen.config.settings import no_specs
    from kaigen.yaml.sources import read_sources

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
    from kaigen.secret_scan.documents import find_in_comments, find_secrets, find_shared_files
    from kaigen.yaml.document import parse

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
        path = relative_path(source.path, config.root)
        taken |= take_document(document, path, config, specs, plain, own, beside)
        found.extend(item for item in own if not _told_already(item, told))
        if broken is not None and len(specs) == count and document.kind and document.name:
            broken.add((document.kind, _namespace(document) or config.namespace, document.name))


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
