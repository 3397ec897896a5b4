"""Hints about the document that a person wrote: a hint of a compile step names fields of kaigen's kinds, which the kind
of another system does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.schema import branches, deref, entries, json_schema

if TYPE_CHECKING:
    from kaigen.kinds.entry import KindEntry

_QUOTED = re.compile("`([^`]*)`")
_FIELD = re.compile(r"(?:spec\.)?([a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*)(:.*)?")
_ALTERNATIVES = re.compile(r", or |; ")
_OF_OTHERS = re.compile(r"\b(?:claim|Dataset|Job|Model|Secret|kaigen\.yaml|did you mean)\b")
"""What a way names that is about another object, about kaigen.yaml, or about a name and not a field."""
_DEEPEST = 10
"""Levels of fields that are known; a schema may contain itself."""


def hint_for_document(hint: str, target: KindEntry, entry: KindEntry, origins: Mapping[FieldPath, FieldPath]) -> str:
    """Return a hint without advice that the document cannot follow.

    A field that came from one of the document is called by the name of that one. Of several ways, those remain that the
    document has; if it has none, the hint says which kind has them.

    Args:
        hint: for the spec.
        target: the kind of the spec.
        entry: the kind of the document.
        origins: the field of the document that each field of the spec comes from, or would come from.
    """
    if not foreign_fields(hint, target, entry):
        return hint
    ways = []
    for way in _ALTERNATIVES.split(hint):
        translated = _translated(way, target, entry, origins)
        if not foreign_fields(translated, target, entry):
            ways.append(translated)
    if ways:
        return ", or ".join(ways)
    return f"a {entry.kind} has no field for this; in a {target.kind}: {hint}"


def foreign_fields(hint: str, target: KindEntry, entry: KindEntry) -> list[str]:
    """Return the fields of one kind that a hint names and another kind does not have.

    Args:
        hint: the hint.
        target: the kind whose fields it may name.
        entry: the kind of the document that the hint is about.
    """
    return [
        name
        for way in _ALTERNATIVES.split(hint)
        if not _OF_OTHERS.search(way)
        for text in _QUOTED.findall(way)
        if (name := _field_of(text)) and _has(target, name) and not _has(entry, name)
    ]


def _translated(way: str, target: KindEntry, entry: KindEntry, origins: Mapping[FieldPath, FieldPath]) -> str:
    def name(quoted: re.Match[str]) -> str:
        field = _FIELD.fullmatch(quoted[1])
        if field is None or field[2] or not foreign_fields(quoted[0], target, entry):
            return quoted[0]
        path = tuple(field[1].split("."))
        places = [origin for own, origin in origins.items() if own[-len(path) :] == path]
        if len({*places}) != 1 or len(places[0]) < 2:
            return quoted[0]
        (place, *_) = places
        if place[:2] == ("metadata", "annotations") and len(place) == 3:
            return f"the annotation `{place[2]}`"
        return f"`{dotted_path(place)}`"

    return _QUOTED.sub(name, way)


def _field_of(text: str) -> str:
    field = _FIELD.fullmatch(text)
    return field[1] if field is not None else ""


def _has(kind: KindEntry, name: str) -> bool:
    return any(f".{path}".endswith(f".{name}") for path in _paths(kind))


def _paths(kind: KindEntry) -> frozenset[str]:
    """Return the dotted paths of all fields of a kind, without list indices."""
    if kind.key not in _KNOWN:
        found: set[str] = set()
        root = json_schema(kind)
        _collect(root, root, "", found, 0)
        _KNOWN[kind.key] = frozenset(found)
    return _KNOWN[kind.key]


_KNOWN: dict[str, frozenset[str]] = {}
"""Paths of kinds that were asked for."""


def _collect(root: dict[str, Any], node: dict[str, Any], place: str, found: set[str], depth: int) -> None:
    if depth > _DEEPEST:
        return
    for branch in branches(root, node):
        for name, field in branch.get("properties", {}).items():
            path = f"{place}.{name}".strip(".")
            if path not in found:
                found.add(path)
                _collect(root, deref(root, field), path, found, depth + 1)
        for inner in (branch.get("items"), entries(branch)):
            if isinstance(inner, dict):
                _collect(root, deref(root, inner), place, found, depth + 1)
