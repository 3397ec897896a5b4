"""Files of one document, such as kaigen.yaml and pins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.kinds.block import Block
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.validate import validate_document
from kaigen.system.limits import FILE_BYTES
from kaigen.yaml.document import Document, parse
from kaigen.yaml.document_secrets import find_secrets, find_secrets_in_comments
from kaigen.yaml.sources import Limits, read_sources


def read_document(path: Path, code: str, problems: Diagnostics, most: int = FILE_BYTES) -> Document | None:
    """Return the mapping in a file of one document; None for an empty file, and when something is wrong.

    Args:
        path: the file.
        code: diagnostic code for a file that is not one mapping.
        problems: receives what is wrong.
        most: most bytes of the file.
    """
    if path.is_dir():
        problems.add(Diagnostic(code, f"{path.name} is a folder; it must be a file", Mark(str(path))))
        return None
    sources, unread = read_sources([str(path)], root=path.parent, limits=Limits(file_bytes=most))
    problems.extend(unread)
    documents = [document for source in sources for document in parse(source, problems)]
    for document in documents:
        problems.extend(find_secrets(document))
    for source in sources:
        problems.extend(find_secrets_in_comments(source, documents))
    if problems.has_errors or not documents:
        return None
    if len(documents) > 1:
        message = f"{path.name} contains more than one document"
        problems.add(Diagnostic(code, message, documents[1].mark(()), "delete the `---` and what follows it"))
    if not isinstance(documents[0].data, dict):
        problems.add(Diagnostic(code, f"{path.name} must contain a mapping", documents[0].mark(())))
        return None
    return documents[0]


def validate_block(document: Document, entry: KindEntry, problems: Diagnostics) -> Block | None:
    """Return the document as its kind's model; None when something is wrong with it."""
    model, diagnostics = validate_document(document, entry)
    problems.extend(_by_environment(item, document.data) for item in diagnostics)
    return model


def _by_environment(item: Diagnostic, data: Any) -> Diagnostic:
    """Return an error about a value that is written once for each environment, with a hint where it belongs."""
    environments = data.get("environments") if isinstance(data, dict) else None
    path = item.path.split(".")
    value = data
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if not isinstance(environments, dict) or not isinstance(value, dict):
        return item
    if not value or not value.keys() <= environments.keys():
        return item
    first, own = next(iter(value.items()))
    text = f"{own}" if isinstance(own, str | int) else "…"
    for step in reversed(path):
        text = f"{{{step}: {text}}}"
    return replace(item, hint=f"each environment has its own: `environments: {{{first}: {text}}}`")
