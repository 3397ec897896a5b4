"""Validation of documents against the models of their kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import ValidationError

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.block import Block, read_block
from kaigen.kinds.entry import KindEntry, NullPath
from kaigen.kinds.positioned import Positioned, name_of
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.kinds import block_schema, schema
    from kaigen.kinds import errors as kinds_errors


_NULLABLE: tuple[NullPath, ...] = (
    ("metadata", "creationTimestamp"),  # Kubernetes' own tools write it as null.
    ("metadata", "managedFields"),
    ("metadata", "ownerReferences"),
    ("status",),
)
"""Where null is allowed in every kind.

It is not allowed in parameters and Kubernetes fragments: Helm drops nulls from a chart's values.
"""


_LONGER = re.compile(r"-?[0-9]+\.[0-9]*[1-9]0+")
"""A number with zeros at its end, as versions have: `1.10`."""


def validate_document(document: Positioned, entry: KindEntry) -> tuple[Block | None, list[Diagnostic]]:
    """Return the document as its kind's model, or None and its errors.

    Args:
        document: plain data with positions.
        entry: its kind.
    """
    errors = [
        Diagnostic(
            "KG0209",
            f"`{name_of(path)}` has no value",
            document.mark(path, key=True),
            "give it a value, or delete the line",
            path=dotted_path(path),
        )
        for path in (_nulls(document.data, (), (*_NULLABLE, *entry.nullable)) if _holds_null(document.data) else ())
        if not any(_matches(path, allowed) for allowed in entry.empty)
    ]
    empty = {item.path for item in errors}
    try:
        model = read_block(entry.model(), document.data)
    except ValidationError:
        errors += [item for item in _explained(document, entry) if item.path not in empty]
        return None, errors
    errors += _shortened(document)
    return (None, errors) if errors else (model, [])


def _explained(document: Positioned, entry: KindEntry) -> list[Diagnostic]:
    violations = block_schema.violations(entry.model(), document.data)
    found = kinds_errors.explain(document, schema.document_schema(entry), violations)
    known = [item.path for item in found]
    for path, text in block_schema.broken_rules(entry.model(), document.data):
        dotted = dotted_path(path)
        if not any(_is_in(dotted, each) or _is_in(each, dotted) for each in known):
            message = f"`{name_of(path)}`: {text}" if path else f"the document: {text}"
            found.append(Diagnostic("KG0210", message, document.mark(path), path=dotted))
    return found


def _is_in(path: str, outer: str) -> bool:
    """Return whether a path names a value, or something inside it."""
    return not outer or path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _shortened(document: Positioned) -> Iterator[Diagnostic]:
    """Yield an error for each parameter that is a number with zeros at its end, which are lost with its text."""
    spec = document.data.get("spec")
    params = spec.get("params") if isinstance(spec, dict) else None
    for name, value in params.items() if isinstance(params, dict) else ():
        path: FieldPath = ("spec", "params", name)
        written = document.raw(path) if isinstance(value, float) else None
        if written is not None and _LONGER.fullmatch(written):
            yield Diagnostic(
                "KG0202",
                f"`{written}` is the number {value}, so the parameter would not have the text `{written}`",
                document.mark(path),
                f'quote it: `{name}: "{written}"`, or write {value}',
                path=dotted_path(path),
            )


def _holds_null(node: Any) -> bool:
    if isinstance(node, dict):
        return any(map(_holds_null, node.values()))
    return any(map(_holds_null, node)) if isinstance(node, list) else node is None


def _nulls(node: Any, path: FieldPath, nullable: Sequence[NullPath]) -> Iterator[FieldPath]:
    if any(_matches(path, allowed) for allowed in nullable):
        return
    if node is None:
        yield path
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _nulls(value, (*path, key), nullable)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _nulls(value, (*path, index), nullable)


def _matches(path: FieldPath, allowed: NullPath) -> bool:
    return len(path) == len(allowed) and all(step in {"*", part} for part, step in zip(path, allowed, strict=True))
