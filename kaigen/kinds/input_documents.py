"""The documents of a run, which a lowering may look up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaigen.yaml.document import Document

ObjectName = tuple[str, str, str]
"""apiVersion, kind and name of an object."""

Key = tuple[str, str, str]
"""Kind, namespace and name of a spec."""

ANY_NAME = "*"
"""The name by which all objects of a kind are looked up."""


class InputDocuments:
    """Every document of a run, found by apiVersion, kind and name."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._by_name: dict[ObjectName, list[Document]] = {}
        for document in documents:
            name = object_name(document.data)
            if name is not None:
                for lookup in lookups_of(name):
                    self._by_name.setdefault(lookup, []).append(document)

    def named(self, api_version: str, kind: str, name: str) -> Sequence[Document]:
        """Return the documents with that name, or with any for `ANY_NAME`, of any namespace."""
        return self._by_name.get((api_version, kind, name), ())


def lookups_of(name: ObjectName) -> tuple[ObjectName, ObjectName]:
    """Return the names by which an object is looked up: its own, and that of all objects of its kind."""
    return name, (name[0], name[1], ANY_NAME)


def object_name(data: Any) -> ObjectName | None:
    """Return the name that a document is found by; None when it lacks a part of it."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict):
        return None
    name = (data.get("apiVersion"), data.get("kind"), metadata.get("name"))
    return name if all(isinstance(part, str) for part in name) else None  # type: ignore[return-value]
