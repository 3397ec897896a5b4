"""Find the field of a spec that a value in an object comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kaigen.compile.expressions import Expr, Tree
from kaigen.compile.field_expressions import Entries, HashedName, Items, Labels
from kaigen.core.json_types import FieldPath

if TYPE_CHECKING:
    from kaigen.compile.app import Rendered


def spec_path(item: Rendered, path: Sequence[str | int], document: Any) -> FieldPath:
    """Return the spec's field that a place in an object comes from; empty when kaigen chose the value.

    Args:
        item: the object.
        path: the place in it.
        document: the spec's document.
    """
    node: Any = item.object.body
    value: Any = item.body
    for depth, key in enumerate(path):
        try:
            node, value = node[key], value[key]
        except (KeyError, IndexError, TypeError):
            break
        if isinstance(node, Items):
            node, origin = _item(node, path[depth + 1 :])
            if node is None:
                return field_below(document, origin, value, path[depth + 1 :])
            node = dict.fromkeys(path[depth + 1 : depth + 2], node)
        if isinstance(node, Entries | Labels) and (found := _entry(value, path[depth + 1 :], document)):
            return found
        if isinstance(node, Expr) and not isinstance(node, HashedName):
            origins = [setting.origin for setting in node.settings() if setting.origin]
            return field_below(document, origins[0], value, path[depth + 1 :]) if origins else ()
    return ()


def _item(items: Items, rest: Sequence[str | int]) -> tuple[Tree, FieldPath]:
    """Return the item of a list that kaigen made, or None with the spec's field that the item comes from."""
    index = rest[0] if rest else 0
    if not isinstance(index, int):
        return None, ()
    fixed = items.fixed_item(index)
    if fixed is not None:
        return fixed, ()
    before = len(items.before.default) if items.before is not None else 0
    setting = items.before if items.before is not None and index < before else items.after
    return None, setting.origin if setting is not None else ()


def _entry(entries: Any, rest: Sequence[str | int], document: Any) -> FieldPath:
    """Return the spec's entry with the key and value of one of the entries of a map; empty when there is none.

    Such a map has entries of several fields, which may have been added before the map was made.
    """
    if not rest or not isinstance(entries, dict) or rest[0] not in entries:
        return ()
    key, value = rest[0], entries[rest[0]]
    found = [path for path, node in _below(document) if path[-1:] == (key,) and node == value]
    return min(found, key=lambda path: (len(path), str(path)), default=())


def _below(document: Any, start: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Yield a value of a document and everything below it, with their paths."""
    waiting: list[tuple[FieldPath, Any]] = [(start, document)]
    while waiting:
        path, node = waiting.pop()
        yield path, node
        below = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        waiting += [((*path, key), value) for key, value in below]


def field_below(document: Any, origin: FieldPath, value: Any, rest: Sequence[str | int]) -> FieldPath:
    """Return the field below `origin` that corresponds to the rest of a path, as far as the values are equal.

    A list in an object may begin with entries that kaigen adds, so an entry is found by its value.

    Args:
        document: the spec's document.
        origin: a field of it.
        value: the value in the object that the field became.
        rest: the path below that value.
    """
    here, path = document, list(origin)
    try:
        for key in origin:
            here = here[key]
        for key in rest:
            value = value[key]
            step = here.index(value) if isinstance(here, list) else key
            if isinstance(here, dict) and isinstance(key, int):
                step = value["name"]  # A list of named items is a map by name in the spec.
            here = here[step]
            path.append(step)
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    return tuple(path)


def find_text(text: str, document: Any, start: FieldPath, sibling: str) -> FieldPath:
    """Return the field at or below `start` whose value is a text; empty when there is none.

    Of several fields, the one with the text `sibling` in the same mapping comes first, then one whose path names
    a Secret.
    """
    node = document
    for step in start:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            return ()
    found: list[tuple[bool, bool, str, FieldPath]] = []
    waiting: list[tuple[FieldPath, Any, Any]] = [(start, node, None)]
    while waiting:
        path, node, parent = waiting.pop()
        if node == text and path[:1] != ("metadata",):
            alone = not (isinstance(parent, dict) and sibling in parent.values())
            found.append((alone, "secret" not in str(path).lower(), str(path), path))
        below = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        waiting += [((*path, key), value, node) for key, value in below]
    return min(found)[-1] if found else ()
