"""Kubernetes objects that are let through: an app for each file of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics
from kaigen.pipeline.load import relative_path
from kaigen.pipeline.result import Compiled

if TYPE_CHECKING:
    from kaigen.compile.app import App
    from kaigen.config.settings import Config
    from kaigen.kinds.spec import Spec
    from kaigen.yaml.document import Document


def by_file(documents: Iterable[Document], config: Config) -> dict[str, list[Document]]:
    """Documents by their file's path in the repository."""
    files: dict[str, list[Document]] = {}
    for document in documents:
        files.setdefault(relative_path(document.source.path, config.root), []).append(document)
    return files


def plain_app(source: str, documents: Sequence[Document], specs: Sequence[Spec], config: Config) -> App:
    """The app of one file, under a name that no spec of its namespace has.

    Args:
        source: the file.
        documents: its objects.
        specs: of the run.
        config: the repository's settings.
    """
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


def finish_plain(app: App, documents: Sequence[Document], config: Config, found: Diagnostics) -> Compiled:
    """The app with its objects, checked.

    Args:
        app: of one file.
        documents: what its objects were read from, one each.
        config: the repository's settings.
        found: takes what is wrong, and what is worth a warning.
    """
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


def has_name(document: Document, found: Diagnostics) -> bool:
    """Whether an object has a name, without which it can be told from no other; what is missing is told."""
    if document.name:
        return True
    found.add(
        Diagnostic(
            "KG0203", "`metadata.name` is missing", document.mark(("metadata", "name")), path="metadata.name"
        )
    )
    return False
