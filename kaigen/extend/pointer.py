"""Apply JSON patches (RFC 6902) to objects with expressions.

Own code because patch libraries work on plain JSON: here only the patched value becomes plain, other expressions stay.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kaigen.compile.expressions import Expr, Scope, Setting, Tree, resolve
from kaigen.compile.field_expressions import Entries, Items, Labels
from kaigen.core.json_types import FieldPath
from kaigen.core.text import clip_text
from kaigen.diagnostics.errors import InputError, KaigenError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.held import Changed, Held

_INDEX = re.compile("0|[1-9][0-9]{0,8}")
_MOST_LISTED = 12


class OperationFailed(KaigenError):
    """An operation cannot be applied.

    Attributes:
        member: the field of the operation that is wrong.
    """

    exit_code = InputError.exit_code

    def __init__(self, message: str, hint: str = "", member: str = "path") -> None:
        super().__init__(message, hint=hint)
        self.member = member


def thaw(tree: Tree) -> Any:
    """Return a mutable copy of a tree; it shares the expressions."""
    if isinstance(tree, Mapping):
        return {key: thaw(node) for key, node in tree.items()}
    if isinstance(tree, list | tuple):
        return [thaw(node) for node in tree]
    return tree


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """Return the steps of a JSON pointer (RFC 6901).

    Raises:
        ValueError: for text that is not a pointer.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"`{pointer}` does not start with `/`")
    if re.search("~(?![01])", pointer):
        raise ValueError("write `~` as `~0`, and `/` in a name as `~1`")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def apply(body: Any, operation: Mapping[str, Any], scope: Scope) -> tuple[Any, FieldPath]:
    """Apply one operation of a JSON patch.

    Args:
        body: a mutable tree.
        operation: a valid one.
        scope: resolves expressions for comparisons.

    Returns:
        The tree, and the path of the change; empty for `test`.

    Raises:
        OperationFailed: when it does not apply; the tree still has the same values.
    """
    name, path = operation["op"], parse_pointer(operation["path"])
    if name in {"add", "replace"}:
        return _put(body, path, copy.deepcopy(operation["value"]), scope, new=name == "add")
    if name == "remove":
        container, key = _locate(body, path, scope)
        del container[key]
        return body, _as_path(body, path[:-1])
    if name == "test":
        container, key = _locate(body, path, scope) if path else ([body], 0)
        found = resolve(container[key], scope)
        if not same(found, operation["value"]):
            raise OperationFailed(
                f"`{_shown(path)}` is {brief(found)}, not {brief(operation['value'])}", member="value"
            )
        return body, ()
    origin = parse_pointer(operation["from"])
    try:
        container, key = _locate(body, origin, scope) if origin else ([body], 0)
    except OperationFailed as error:
        error.member = "from"
        raise
    value = container[key]
    if name == "move":
        if origin == path:
            return body, ()
        if path[: len(origin)] == origin:
            raise OperationFailed("a value cannot be moved into itself", member="from")
        del container[key]
        return _put(body, path, value, scope, new=True)
    return _put(body, path, thaw(value), scope, new=True)


def same(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


class OpenList(list[Any]):
    """The fixed items of a list, whose settings are empty by default and stay."""

    def __init__(self, fixed: Sequence[Tree], expression: Items | Held) -> None:
        super().__init__(thaw(fixed))
        self.expression = expression

    def closed(self, found: list[Any]) -> Expr:
        """Return the expression with the patched items."""
        if isinstance(self.expression, Held):
            return Changed(self.expression.number, found)
        return replace(self.expression, fixed=tuple(found))


class OpenMap(dict[str, Any]):
    """The fixed entries of a map, whose setting is empty by default and stays."""

    def __init__(self, fixed: Mapping[str, Tree], expression: Entries | Labels | Held) -> None:
        super().__init__(thaw(fixed))
        self.expression = expression

    def closed(self, found: dict[str, Any]) -> Any:
        """Return the expression with the patched entries."""
        if isinstance(self.expression, Held):
            return Changed(self.expression.number, found)
        if isinstance(self.expression, Entries):
            return replace(self.expression, fixed=found)
        common = self.expression.common
        if any(key not in found or found[key] != value for key, value in common.items()):
            return found
        own = {key: value for key, value in found.items() if key not in common}
        return replace(self.expression, own=own)


def close_expressions(tree: Any) -> Any:
    """Return a patched tree with the expressions that `open_expression` kept."""
    if isinstance(tree, dict):
        found = {key: close_expressions(node) for key, node in tree.items()}
        return tree.closed(found) if isinstance(tree, OpenMap) else found
    if isinstance(tree, list):
        items = [close_expressions(node) for node in tree]
        return tree.closed(items) if isinstance(tree, OpenList) else items
    return tree


def open_expression(node: Expr) -> Any:
    """Return the value inside an expression, so that it can be patched, or the expression itself.

    Settings of lists and maps stay where they are empty by default: the patch changes what is fixed.
    """
    if isinstance(node, Held):
        if node.inside is None:
            return node
        if node.is_open:
            return OpenMap(node.inside, node) if isinstance(node.inside, Mapping) else OpenList(node.inside, node)
        return thaw(node.inside)
    if isinstance(node, Labels):
        shown = {**node.common, **node.own}
        if node.more is None:
            return thaw(shown)
        return thaw({**node.more.default, **shown}) if node.more.default else OpenMap(shown, node)
    if isinstance(node, Items):
        before, after = (each.default if each is not None else () for each in (node.before, node.after))
        return thaw([*before, *node.fixed, *after]) if before or after else OpenList(node.fixed, node)
    if isinstance(node, Entries):
        given = node.more.default
        return thaw({**given, **node.fixed}) if given else OpenMap(node.fixed, node)
    if isinstance(node, Setting) and isinstance(node.default, Mapping | list | tuple):
        return copy.deepcopy(thaw(node.default))
    return node


def brief(value: Any) -> str:
    """Return a value as messages show it."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{clip_text(text)}`"


def _shown(path: Sequence[str]) -> str:
    return "/" + "/".join(path) if path else "the object"


def is_omitted(node: Any, scope: Scope) -> bool:
    """Return whether a field is omitted because its setting is empty."""
    may_be = node.optional if isinstance(node, Setting) else getattr(node, "omit_empty", False)
    return bool(may_be) and not node.value(scope)


def _as_path(body: Any, path: Sequence[str]) -> FieldPath:
    """Return the steps of a pointer as keys and indexes of a tree."""
    result: list[str | int] = []
    for part in path:
        if isinstance(body, list) and _INDEX.fullmatch(part):
            result.append(int(part))
            body = body[int(part)] if int(part) < len(body) else None
        else:
            result.append(part)
            body = body.get(part) if isinstance(body, dict) else None
    return tuple(result)


def _enter(container: Any, key: Any) -> Any:
    """Return the value of a key; the value inside where it is an expression."""
    node = container[key]
    if isinstance(node, Expr):
        node = container[key] = open_expression(node)
    return node


def _locate(body: Any, path: Sequence[str], scope: Scope) -> tuple[Any, Any]:
    """Return the container of the value that a pointer names, and its key there.

    Raises:
        OperationFailed: when there is no such value.
    """
    if not path:
        raise OperationFailed("the whole object cannot be removed")
    holder: Any = [body]
    key: Any = 0
    for depth, part in enumerate(path):
        inside = _enter(holder, key)
        holder, key = inside, _key(inside, part, path[:depth], scope)
    return holder, key


def _key(node: Any, part: str, path: Sequence[str], scope: Scope) -> Any:
    here = _shown(path)
    if isinstance(node, dict):
        there = [key for key, value in node.items() if not is_omitted(value, scope)]
        if part in there:
            return part
        hint = did_you_mean(part, there) or _listed(there)
        if part in node:
            hint = "use `add`: the field is omitted while its setting is empty"
        raise OperationFailed(f"{here} has no `{part}`" if path else f"the object has no `{part}`", hint)
    if isinstance(node, list):
        if _INDEX.fullmatch(part) and int(part) < len(node):
            return int(part)
        count = f"{len(node)} {'entry' if len(node) == 1 else 'entries'}"
        if _INDEX.fullmatch(part):
            raise OperationFailed(f"index {part} is out of range: {here} has {count}", _entries(node, scope))
        if part == "-":
            raise OperationFailed(f"`-` is the end of {here}, which has no value", "use `-` with `add` only")
        raise OperationFailed(
            f"{here} is a list, so `{part}` must be an index", f"use an index: {_entries(node, scope)}"
        )
    raise OperationFailed(f"{here} is {brief(resolve(node, scope))}, so it has no `{part}`")


def _listed(keys: Sequence[str]) -> str:
    return "fields: " + ", ".join(f"`{key}`" for key in keys) if keys else "it is empty"


def _entries(node: Sequence[Any], scope: Scope) -> str:
    """Return the entries of a list as messages show them: by index, with their names."""
    entries = []
    for index, item in enumerate(node[:_MOST_LISTED]):
        value = resolve(item, scope)
        name = value.get("name") if isinstance(value, dict) else value if isinstance(value, str) else None
        entries.append(f"{index} is `{name}`" if isinstance(name, str) else str(index))
    return ", ".join(entries) or "it is empty"


def _put(body: Any, path: Sequence[str], value: Any, scope: Scope, *, new: bool) -> tuple[Any, FieldPath]:
    if not path:
        return value, ()
    if not new:
        holder, key = _locate(body, path, scope)
        holder[key] = value
        return body, _as_path(body, path)
    root = [body]
    holder, key = (root, 0) if len(path) == 1 else _locate(body, path[:-1], scope)
    node = _enter(holder, key)
    last = path[-1]
    if isinstance(node, dict):
        node[last] = value
        return root[0], (*_as_path(root[0], path[:-1]), last)
    if isinstance(node, list):
        index = len(node) if last == "-" else int(last) if _INDEX.fullmatch(last) else -1
        if not 0 <= index <= len(node):
            _key(node, last, path[:-1], scope)
        node.insert(index, value)
        return root[0], (*_as_path(root[0], path[:-1]), index)
    raise OperationFailed(f"{_shown(path[:-1])} is {brief(resolve(node, scope))}, so nothing can be added to it")
