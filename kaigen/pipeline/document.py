"""Turn one document into specs, a Kubernetes object that passes through, or diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.config.tenant_settings import default_namespace
from kaigen.core.text import plural
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.problem import dotted_path
from kaigen.diagnostics.suggest import did_you_mean, nearest
from kaigen.dialects.registry import find_kind, own_kinds
from kaigen.kinds import spelling
from kaigen.kinds.base import AUTO
from kaigen.kinds.kind import CompiledKind
from kaigen.kinds.lowering import LoweringContext
from kaigen.pipeline.sources import is_overrides
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.environments.patch import PatchedDocument
    from kaigen.kinds.base import AppBlock
    from kaigen.kinds.entry import KindEntry
    from kaigen.kinds.input_documents import InputDocuments, ObjectName
    from kaigen.kinds.kind import Kind
    from kaigen.kinds.lowering import Lowered, LoweringResult
    from kaigen.kinds.positioned import Positioned
    from kaigen.kinds.repair import Repaired
    from kaigen.kinds.spec import Spec
    from kaigen.yaml.document import Document

with lazy_imports():
    from kaigen.compile import passthrough
    from kaigen.environments import builds, locked, match
    from kaigen.extend import find
    from kaigen.kinds import config_files, repair, spec
    from kaigen.kinds import model as kinds_model
    from kaigen.kubernetes import schemas
    from kaigen.yaml import document_secrets


_VARIABLE = re.compile(r"\{[A-Za-z]+\}")
"""A text that may have a variable of the environment in it."""


class DocumentResult(Struct, frozen=True):
    """One document after validation and lowering.

    Attributes:
        specs: the specs that it is lowered to.
        plain: the document itself when it is a Kubernetes object that passes through unchanged.
        consumed: other documents that became part of its specs.
        joined: whether the document became part of the specs of another one.
        lookups: objects that its lowering looked up among all documents.
        diagnostics: errors and warnings.
        doubtful: specs of a document with errors, each with what is left of it without them.
    """

    specs: tuple[Spec, ...] = ()
    plain: tuple[Document, ...] = ()
    consumed: tuple[Document, ...] = ()
    joined: bool = False
    lookups: tuple[ObjectName, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    doubtful: tuple[tuple[Spec, Repaired], ...] = ()


def is_kubernetes_object(document: Document) -> bool:
    """Return whether a document may become part of a spec, so that it is read after all specs."""
    if find_kind(document.apiVersion, document.kind) is not None:
        return False
    return schemas.is_cluster_scoped(document.apiVersion or "", document.kind or "") is not None


def read_document(document: Document, source: str, config: Config, documents: InputDocuments) -> DocumentResult:
    """Validate one document and lower it to specs, or pass it through.

    Args:
        document: the document.
        source: its file, relative to the repository.
        config: the repository's settings.
        documents: every document of the run.
    """
    if config_files.is_model_config(document.data):
        return DocumentResult()
    if not isinstance(document.data, dict):
        message = "a spec is a mapping with `apiVersion`, `kind`, `metadata` and `spec`"
        hint = "see `kaigen kinds` for what can be written"
        return _invalid(Diagnostic("KG0211", message, document.mark(()), hint))
    if is_overrides(document):
        return DocumentResult()
    entry = find_kind(document.apiVersion, document.kind)
    if entry is not None:
        return _read_spec(document, entry, source, config, documents)
    if is_kubernetes_object(document):
        return _read_other(document, config)
    found = Diagnostics()
    entry, known = find.find_user_kind(document.apiVersion, document.kind, config, found)
    if entry is not None:
        result = _read_spec(document, entry, source, config, documents)
    elif known.broken and {None, (document.apiVersion, document.kind)} & known.broken:
        result = DocumentResult()  # Its kind may be the one that is wrong.
    else:
        result = _read_other(document, config, known.entries)
    return replace(result, diagnostics=(*found, *result.diagnostics))


def _invalid(*problems: Diagnostic) -> DocumentResult:
    return DocumentResult(diagnostics=problems)


def _read_spec(
    document: Document, entry: Kind, source: str, config: Config, documents: InputDocuments
) -> DocumentResult:
    """Validate and lower a document of a known kind, with the environment's overrides and pins applied."""
    found: list[Diagnostic] = []
    document, moves = spelling.present_spelling(document, entry)
    notes = _old_spelling(document, moves)
    patched_document: Document | PatchedDocument = document
    matched: tuple[int | str, ...] = ()
    namespace = default_namespace(source, config.tenants, config.namespace)
    if (
        config.overrides
        or config.pins
        or config.storage_classes
        or namespace != config.namespace
        or _VARIABLE.search(document.source.text)
    ):
        patched_document, changed = match.patch_document(document, entry, config, source)
        found += changed
        matched = match.matched_by(patched_document)
        block, problems = entry.validate(patched_document)
        found += match.explain_removed_fields(patched_document, problems)
    else:
        block, problems = entry.validate(document)
        found += problems
    context = LoweringContext(config.profile, documents, str(config.root), namespace, config.dialects, config.catalog)
    if block is None:
        # The templates and packages of users say of a document without its wrong fields what is not true of it.
        is_own = find_kind(document.apiVersion, document.kind) is entry
        made = repair.repair(patched_document, entry, found) if is_own else None
        if made is None:
            return _invalid(*found, *notes)
        block, repaired = made
        result = entry.lower(block, repaired, context)
        doubtful = _specs(result, repaired, document, entry, source, config, ())
        found += [item for item in repaired.sound(result.diagnostics) if item not in found]
        return DocumentResult(doubtful=tuple((each, repaired) for each in doubtful), diagnostics=(*found, *notes))
    result = entry.lower(block, patched_document, context)
    specs = _specs(result, patched_document, document, entry, source, config, matched)
    return DocumentResult(
        tuple(specs),
        consumed=result.consumed,
        joined=result.joined,
        lookups=result.looked_up,
        diagnostics=(*found, *notes, *result.diagnostics),
    )


def _old_spelling(document: Document, moves: Sequence[spelling.Move]) -> Iterator[Diagnostic]:
    """Yield a note about the fields of a document that are written as they once were."""
    if moves:
        old, new = dotted_path(moves[0].old), dotted_path(moves[0].new)
        more = f", and {plural(len(moves) - 1, 'field')} more" if len(moves) > 1 else ""
        yield Diagnostic(
            "KG0457",
            f"`{old}` is now `{new}`{more}",
            document.mark(moves[0].new, key=True),
            "run `kaigen upgrade`, which rewrites it",
            Severity.NOTE,
            new,
        )


def _specs(
    result: LoweringResult,
    lowered: Positioned,
    document: Document,
    entry: Kind,
    source: str,
    config: Config,
    matched: tuple[int | str, ...],
) -> list[Spec]:
    """Return the specs that a document is lowered to, each with the settings that it is compiled with."""
    return [
        spec.Spec(
            _with_settings(item.block, config),
            entry,
            _target(item, entry, config),
            lowered,
            source,
            item.origins,
            item.naming,
            matched,
            item.hints,
            item.sources,
            () if number else result.urls,
            document.source.commit,
        )
        for number, item in enumerate(result.specs)
    ]


def _with_settings(block: AppBlock, config: Config) -> AppBlock:
    """Return a spec with what the lock and kaigen.yaml add."""
    block = builds.with_repositories(block, block.metadata.name, config)
    return locked.with_lock(block, config) if _is_lockable(block, config) else block


def _is_lockable(block: AppBlock, config: Config) -> bool:
    """Return whether a spec may change by the lock: there is one, or it has a size that kaigen computes."""
    if config.lock.digest:
        return True
    if not isinstance(block, kinds_model.Downloaded):
        return False
    converted = block.spec.convert if isinstance(block, kinds_model.Model) else None
    convert = converted.distributed_llama if converted is not None else None
    stores = (block.spec.store, convert.store if convert is not None else None)
    volumes = [store.volume for store in stores if store is not None]
    return any(volume is not None and volume.size == AUTO for volume in volumes)


def _target(item: Lowered, entry: Kind, config: Config) -> CompiledKind:
    """Return the kind that compiles a lowered spec."""
    target = entry if item.origins is None else find_kind(item.block.api_version, item.block.kind)
    if target is None:
        target, _ = find.find_user_kind(item.block.api_version, item.block.kind, config, Diagnostics())
    assert isinstance(target, CompiledKind)
    return target


def _read_other(document: Document, config: Config, added: Sequence[KindEntry] = ()) -> DocumentResult:
    """Pass a Kubernetes object through, or report that the document is not a spec.

    Args:
        document: of a kind that is neither kaigen's own nor a dialect's.
        config: the repository's settings.
        added: the kinds that users add.
    """
    api_version, kind = document.apiVersion, document.kind
    assert isinstance(document.data, dict)
    missing = [name for name in ("apiVersion", "kind") if not isinstance(document.data.get(name), str)]
    if missing or api_version is None or kind is None:
        return _invalid(*(_missing(document, name, (*own_kinds(), *added)) for name in missing))
    if not is_kubernetes_object(document):
        known = (*own_kinds(), *added)
        custom = _has_other_group(api_version, kind) and not _is_misspelled(api_version, kind, known)
        if custom and config.passthrough:
            return DocumentResult(plain=(document,))
        return _invalid(_unknown_kind(document, api_version, kind, known, custom=custom))
    if config.passthrough or passthrough.is_secret_source(document.data):
        return DocumentResult(plain=(document,))
    if document_secrets.has_secret_values(document.data):
        return DocumentResult()  # Reported already, and passing it through would not help.
    message = f"`{kind}` of `{api_version}` is a Kubernetes object, not a spec"
    hint = "move it out of the specs, or set `passthrough: true` in kaigen.yaml"
    return _invalid(Diagnostic("KG0213", message, document.mark(("kind",)), hint, path="kind"))


def _has_other_group(api_version: str, kind: str) -> bool:
    """Whether a kind is in a group of which there are schemas, or a CustomResourceDefinition may define it."""
    group = api_version.rpartition("/")[0]
    return schemas.may_be_custom(api_version, kind) or bool(schemas.kinds_of_group(group))


def _is_misspelled(api_version: str, kind: str, entries: Sequence[KindEntry]) -> bool:
    """Whether a document was meant as a spec: its group has kaigen's kinds, or is similar to that of its kind."""
    groups = {entry.api_version.rpartition("/")[0] for entry in entries}
    of_kind = {entry.api_version for entry in entries if entry.kind == kind}
    return api_version.rpartition("/")[0] in groups or bool(nearest(api_version, of_kind))


def _unknown_kind(
    document: Document, api_version: str, kind: str, entries: Sequence[KindEntry], *, custom: bool
) -> Diagnostic:
    versions = {entry.api_version for entry in entries}
    if api_version not in versions:
        hint = did_you_mean(api_version, versions) or "known: " + ", ".join(sorted(versions))
        if custom:
            hint = f"to copy objects of other APIs unchanged, set `passthrough: true` in kaigen.yaml; {hint}"
        mark = document.mark(("apiVersion",))
        return Diagnostic("KG0212", f"unknown apiVersion `{api_version}`", mark, hint, path="apiVersion")
    kinds = [entry.kind for entry in entries if entry.api_version == api_version]
    hint = did_you_mean(kind, kinds) or f"kinds of {api_version}: " + ", ".join(kinds)
    if kind == "Config":
        hint = "move it to kaigen.yaml, which every command reads and checks"
    message = f"unknown kind `{kind}` in `{api_version}`"
    return Diagnostic("KG0212", message, document.mark(("kind",)), hint, path="kind")


def _missing(document: Document, name: str, entries: Sequence[KindEntry]) -> Diagnostic:
    """Return the problem of a document whose `apiVersion` or `kind` is not a string."""
    assert isinstance(document.data, dict)
    if name == "apiVersion":
        known = [entry.api_version for entry in entries if entry.kind == document.kind]
    else:
        known = [entry.kind for entry in entries if entry.api_version == document.apiVersion]
    ways = " or ".join(f"`{name}: {value}`" for value in dict.fromkeys(known))
    hint = f"write {ways}" if ways else "`kaigen kinds` lists what can be written"
    mark = document.mark((name,))
    if document.data.get(name) is not None:
        return Diagnostic("KG0202", f"`{name}` must be a string", mark, hint, path=name)
    if name in document.data:
        mark = document.mark((name,), key=True)
        return Diagnostic("KG0209", f"`{name}` has no value", mark, hint, path=name)
    return Diagnostic("KG0203", f"`{name}` is missing", mark, hint, path=name)
