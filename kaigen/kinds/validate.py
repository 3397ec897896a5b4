"""A document against its kind: what pydantic found, said with places, reasons and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.field_path import dotted
from kaigen.kinds.registry import KindEntry

if TYPE_CHECKING:
    from kaigen.kinds.base import Block

_MAY_HOLD_NULL = (
    ("metadata", "creationTimestamp"),  # Kubernetes' own tools write it as null.
    ("metadata", "managedFields"),
    ("metadata", "ownerReferences"),
    ("status",),
    ("values",),  # In kaigen.yaml, where null takes a default away.
    ("environments", "*", "values"),
    *(  # In kaigen.yaml, where null takes a field away.
        (*place, "overrides", "*", part)
        for place in ((), ("environments", "*"))
        for part in ("resource", "inference", "tuning")
    ),
    ("overrides", "*", "spec"),
    ("overrides", "*", "metadata"),
    ("patches", "*", "patch"),
    ("environments", "*", "patches", "*", "patch"),
    ("environments", "*", "overrides", "*", "spec"),
    ("environments", "*", "overrides", "*", "metadata"),
)
"""Where null is allowed. Not in parameters or Kubernetes fragments: Helm drops nulls from a chart's values."""


class Positioned(Protocol):
    """What validation needs of a document."""

    @property
    def data(self) -> Any:
        """The document as plain data."""

    def mark(self, path: Sequence[str | int], *, key: bool = False) -> Mark:
        """Place of a path, or of the key at its end."""

    def raw(self, path: Sequence[str | int]) -> str | None:
        """A scalar as it was written."""


def validate_document(document: Positioned, entry: KindEntry) -> tuple[Block | None, list[Diagnostic]]:
    """The document as its kind's model, or what is wrong with it.

    Args:
        document: plain data with places.
        entry: its kind.
    """
    found = [
        Diagnostic(
            "KG0209",
            f"`{name_of(path)}` has no value",
            document.mark(path, key=True),
            "give it a value, or delete the line",
            path=dotted(path),
        )
        for path in (_nulls(document.data, ()) if _holds_null(document.data) else ())
    ]
    empty = {item.path for item in found}
    try:
        model = entry.model().model_validate(document.data, by_alias=True, by_name=False)
    except ValidationError as error:
        from kaigen.kinds.errors import explain

        found += [item for item in explain(document, entry, error) if item.path not in empty]
        return None, found
    return (None, found) if found else (model, [])


def name_of(path: Sequence[str | int]) -> str:
    """The end of a path that names something: `command[0]`, not `0`."""
    names = [index for index, part in enumerate(path) if isinstance(part, str)]
    last = names[-1] if names else 0
    return "".join(f"[{part}]" if isinstance(part, int) else part for part in path[last:])


def _holds_null(node: Any) -> bool:
    if isinstance(node, dict):
        return any(map(_holds_null, node.values()))
    return any(map(_holds_null, node)) if isinstance(node, list) else node is None


def _nulls(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    general = tuple("*" if isinstance(part, int) else part for part in path)
    if path[:1] == ("environments",):
        general = ("environments", "*", *general[2:])
    if general in _MAY_HOLD_NULL:
        return
    if node is None:
        yield path
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _nulls(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _nulls(value, (*path, index))
