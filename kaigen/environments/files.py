"""Files of one document, as kaigen.yaml and pins are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Mark
from kaigen.kinds.base import Block
from kaigen.kinds.entry import KindEntry

if TYPE_CHECKING:
    from kaigen.yaml.document import Document


def read_document(path: Path, code: str, found: Diagnostics) -> Document | None:
    """The mapping that a file of one document holds; None for an empty file, and where something is wrong."""
    from kaigen.secret_scan.documents import find_in_comments, find_secrets
    from kaigen.yaml.document import parse
    from kaigen.yaml.sources import read_sources

    if path.is_dir():
        found.add(Diagnostic(code, f"{path.name} is a folder; it must be a file", Mark(str(path))))
        return None
    sources, problems = read_sources([str(path)], root=path.parent)
    found.extend(problems)
    documents = [document for source in sources for document in parse(source, found)]
    for document in documents:
        found.extend(find_secrets(document))
    for source in sources:
        found.extend(find_in_comments(source, documents))
    if found.has_errors or not documents:
        return None
    if len(documents) > 1:
        found.add(Diagnostic(code, f"{path.name} holds more than one document", documents[1].mark(())))
    if not isinstance(documents[0].data, dict):
        found.add(Diagnostic(code, f"{path.name} must hold a mapping", documents[0].mark(())))
        return None
    return documents[0]


def validated(document: Document, entry: KindEntry, found: Diagnostics) -> Block | None:
    """The document as its kind's model; None when something is wrong with it."""
    from kaigen.kinds.validate import validate_document

    model, diagnostics = validate_document(document, entry)
    found.extend(diagnostics)
    return model
