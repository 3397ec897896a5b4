"""Where in a spec something in an object came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kaigen.compile.app import Rendered


def spec_path(item: Rendered, path: Sequence[str | int], document: Any) -> tuple[str | int, ...]:
    """The spec's field that a place in an object came from; empty when kaigen made it."""
    from kaigen.compile.expressions import Expr
    from kaigen.compile.field_expressions import HashedName

    node: Any = item.object.body
    value: Any = item.body
    for depth, key in enumerate(path):
        try:
            node, value = node[key], value[key]
        except (KeyError, IndexError, TypeError):
            break
        if isinstance(node, Expr) and not isinstance(node, HashedName):
            origins = [setting.origin for setting in node.settings() if setting.origin]
            return _inside(origins[0], value, path[depth + 1 :], document) if origins else ()
    return ()


def _inside(
    origin: tuple[str | int, ...], value: Any, rest: Sequence[str | int], document: Any
) -> tuple[str | int, ...]:
    """The place below a field that the rest of a path leads to, as far as the document holds the same there.

    A list in an object may begin with entries of kaigen's own, so an entry is found by what it is.
    """
    here, path = document, list(origin)
    try:
        for key in origin:
            here = here[key]
        for key in rest:
            value = value[key]
            step = here.index(value) if isinstance(here, list) else key
            here = here[step]
            path.append(step)
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    return tuple(path)


def path_of(text: str, document: Any, start: tuple[str | int, ...], beside: str) -> tuple[str | int, ...]:
    """The field below a place that holds a text; empty when there is none.

    Of several the one with another text beside it comes first, then one that speaks of Secrets.
    """
    node = document
    for step in start:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            return ()
    found: list[tuple[bool, bool, str, tuple[str | int, ...]]] = []
    waiting: list[tuple[tuple[str | int, ...], Any, Any]] = [(start, node, None)]
    while waiting:
        path, node, parent = waiting.pop()
        if node == text and path[:1] != ("metadata",):
            alone = not (isinstance(parent, dict) and beside in parent.values())
            found.append((alone, "secret" not in str(path).lower(), str(path), path))
        below = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        waiting += [((*path, key), value, node) for key, value in below]
    return min(found)[-1] if found else ()
