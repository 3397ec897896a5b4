"""What one document becomes: specs of kaigen's kinds, a Kubernetes object that is let through, or a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics
from kaigen.kinds.kind import CompiledKind

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.environments.patch import PatchedDocument
    from kaigen.kinds.entry import KindEntry
    from kaigen.kinds.lowering import InputDocuments, LoweringResult
    from kaigen.kinds.spec import Spec
    from kaigen.yaml.document import Document


def take_document(
    document: Document,
    source: str,
    config: Config,
    specs: list[Spec],
    plain: list[Document],
    found: Diagnostics,
    documents: InputDocuments,
) -> LoweringResult:
    """Make specs of one document, or let it through.

    Args:
        document: the document.
        source: its file.
        config: the repository's settings.
        specs: takes its specs.
        plain: takes it when it is a Kubernetes object that is let through.
        found: takes what is wrong, and what is worth a warning.
        documents: every document of the run.

    Returns:
        What its lowering returned.
    """
    from kaigen.dialects.registry import find_kind
    from kaigen.environments.match import explained, matched_by, patched
    from kaigen.extend.find import find_user_kind
    from kaigen.kinds.lowering import LoweringContext, LoweringResult
    from kaigen.kinds.spec import Spec

    nothing = LoweringResult()
    if not isinstance(document.data, dict):
        found.add(
            Diagnostic(
                "KG0211",
                "a spec is a mapping with `apiVersion`, `kind`, `metadata` and `spec`",
                document.mark(()),
                "see `kaigen kinds` for what can be written",
            )
        )
        return nothing
    entry = find_kind(document.apiVersion, document.kind)
    if entry is None:
        from kaigen.kubernetes.schemas import is_cluster_scoped

        if is_cluster_scoped(document.apiVersion or "", document.kind or "") is not None:
            _take_unknown(document, config, plain, found)
            return nothing
        entry, known = find_user_kind(document.apiVersion, document.kind, config, found)
        if entry is None:
            if not known.broken or not {None, (document.apiVersion, document.kind)} & known.broken:
                _take_unknown(document, config, plain, found, known.entries)
            return nothing
    patched_document: Document | PatchedDocument = document
    if config.overrides or config.pins:
        patched_document, problems = patched(document, entry, config)
        found.extend(problems)
    block, diagnostics = entry.validate(patched_document)
    found.extend(explained(patched_document, diagnostics))
    if block is None:
        return nothing
    result = entry.lower(block, patched_document, LoweringContext(config.profile, documents))
    found.extend(result.diagnostics)
    for item in result.specs:
        target = entry if item.origins is None else find_kind(item.block.api_version, item.block.kind)
        if target is None:
            target, _ = find_user_kind(item.block.api_version, item.block.kind, config, found)
        assert isinstance(target, CompiledKind)
        specs.append(
            Spec(
                item.block,
                entry,
                target,
                patched_document,
                source,
                item.origins,
                item.naming,
                matched_by(patched_document),
                item.hints,
            )
        )
    return result


def _take_unknown(
    document: Document,
    config: Config,
    plain: list[Document],
    found: Diagnostics,
    added: Sequence[KindEntry] = (),
) -> None:
    from kaigen.compile.passthrough import is_secret_way
    from kaigen.diagnostics.suggest import did_you_mean
    from kaigen.dialects.registry import KINDS
    from kaigen.kubernetes.schemas import is_cluster_scoped
    from kaigen.yaml.document_secrets import has_secret_values

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
        if has_secret_values(document.data):
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
