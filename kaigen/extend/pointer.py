"""RFC 6902 and RFC 7396 on objects that hold expressions: what is patched becomes plain, the rest stays as it is."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kaigen.compile.expressions import Expr, Scope, Setting, SpecPath, Tree, resolve
from kaigen.compile.field_expressions import Labels
from kaigen.diagnostics.suggest import did_you_mean

_INDEX = re.compile("0|[1-9][0-9]{0,8}")


class Fails(Exception):
    """An operation that cannot be done.

    Attributes:
        hint: what there is instead.
        member: of the operation, the one that is wrong.
    """

    def __init__(self, message: str, hint: str = "", member: str = "path") -> None:
        super().__init__(message)
        self.hint = hint
        self.member = member


def thaw(tree: Tree) -> Any:
    """A copy of a tree that can be changed; its expressions are shared."""
    if isinstance(tree, Mapping):
        return {key: thaw(node) for key, node in tree.items()}
    if isinstance(tree, list | tuple):
        return [thaw(node) for node in tree]
    return tree


def steps(pointer: str) -> tuple[str, ...]:
    """The parts of a JSON pointer (RFC 6901).

    Raises:
        ValueError: it is none.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"`{pointer}` does not start with `/`")
    if re.search("~(?![01])", pointer):
        raise ValueError("`~` is written `~0`, and `/` in a name `~1`")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def apply(body: Any, operation: Mapping[str, Any], scope: Scope) -> tuple[Any, SpecPath]:
    """Do one operation of a JSON patch.

    Args:
        body: a tree that may be changed.
        operation: a valid one.
        scope: what expressions are compared in.

    Returns:
        The tree, and the path of what changed in it.

    Raises:
        Fails: it does not apply; the tree may then be opened up, but means what it meant.
    """
    name, path = operation["op"], steps(operation["path"])
    if name in {"add", "replace"}:
        return _put(body, path, copy.deepcopy(operation["value"]), scope, new=name == "add")
    if name == "remove":
        container, key = _reach(body, path, scope)
        del container[key]
        return body, _as_path(body, path[:-1])
    if name == "test":
        container, key = _reach(body, path, scope) if path else ([body], 0)
        found = resolve(container[key], scope)
        if not same(found, operation["value"]):
            raise Fails(
                f"`{_shown(path)}` is {brief(found)}, not {brief(operation['value'])}", member="value"
            )
        return body, ()
    origin = steps(operation["from"])
    try:
        container, key = _reach(body, origin, scope) if origin else ([body], 0)
    except Fails as error:
        error.member = "from"
        raise
    value = container[key]
    if name == "move":
        if origin == path:
            return body, ()
        if path[: len(origin)] == origin:
            raise Fails("nothing can be moved into itself", member="from")
        del container[key]
        return _put(body, path, value, scope, new=True)
    return _put(body, path, thaw(value), scope, new=True)


def merge(
    node: Any, patch: Any, scope: Scope, path: SpecPath = (), missed: list[SpecPath] | None = None
) -> Any:
    """A merge patch laid over a tree.

    Args:
        node: the tree; it may be changed.
        patch: the patch.
        scope: what expressions are compared in.
        path: where the tree stands.
        missed: takes the paths that null should have taken away and that were not there.
    """
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    if isinstance(node, Expr):
        node = opened(node)
    if not isinstance(node, dict):
        node = {}
    for key, value in patch.items():
        if value is None:
            if missed is not None and (key not in node or _absent(node[key], scope)):
                missed.append((*path, key))
            node.pop(key, None)
        else:
            node[key] = merge(node.get(key), value, scope, (*path, key), missed)
    return node


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def opened(node: Expr) -> Any:
    """What is below an expression, so that a part of it can be patched; the expression itself when nothing is."""
    if isinstance(node, Labels):
        return thaw({**node.common, **node.own})
    if isinstance(node, Setting) and isinstance(node.default, Mapping | list | tuple):
        return copy.deepcopy(thaw(node.default))
    return node


def brief(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text if len(text) <= 60 else f'{text[:57]}…'}`"


def _shown(path: Sequence[str]) -> str:
    return "/" + "/".join(path) if path else "the object"


def _absent(node: Any, scope: Scope) -> bool:
    """Whether an object does not have a field, since the setting that fills it is empty."""
    return isinstance(node, Setting) and node.optional and not node.value(scope)


def _as_path(body: Any, path: Sequence[str]) -> SpecPath:
    """A pointer's parts as the keys and indexes that they are in a tree."""
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
    """The value of a key, opened up where it is an expression."""
    node = container[key]
    if isinstance(node, Expr):
        node = container[key] = opened(node)
    return node


def _reach(body: Any, path: Sequence[str], scope: Scope) -> tuple[Any, Any]:
    """The container of what a pointer leads to, and its key there.

    Raises:
        Fails: it leads to nothing.
    """
    if not path:
        raise Fails("the whole object cannot be taken away")
    holder: Any = [body]
    key: Any = 0
    for depth, part in enumerate(path):
        inside = _enter(holder, key)
        holder, key = inside, _key(inside, part, path[:depth], scope)
    return holder, key


def _key(node: Any, part: str, path: Sequence[str], scope: Scope) -> Any:
    here = _shown(path)
    if isinstance(node, dict):
        there = [key for key, value in node.items() if not _absent(value, scope)]
        if part in there:
            return part
        hint = did_you_mean(part, there) or _listed(there)
        if part in node:
            hint = "it is left out while its setting is empty; `add` puts it there"
        raise Fails(f"{here} has no `{part}`" if path else f"the object has no `{part}`", hint)
    if isinstance(node, list):
        if _INDEX.fullmatch(part) and int(part) < len(node):
            return int(part)
        count = f"{len(node)} {'entry' if len(node) == 1 else 'entries'}"
        if _INDEX.fullmatch(part):
            raise Fails(f"{here} has {count}, so there is no {part}", _entries(node, scope))
        if part == "-":
            raise Fails(f"`-` is behind the end of {here}, where there is nothing", "only `add` can use it")
        raise Fails(
            f"{here} is a list, so `{part}` leads nowhere in it", f"name an entry: {_entries(node, scope)}"
        )
    raise Fails(f"{here} is {brief(resolve(node, scope))}, so there is no `{part}` in it")


def _listed(keys: Sequence[str]) -> str:
    return "it has " + ", ".join(f"`{key}`" for key in keys) if keys else "it is empty"


def _entries(node: Sequence[Any], scope: Scope) -> str:
    """The entries of a list by their index, with the names that they have."""
    told = []
    for index, item in enumerate(node[:12]):
        value = resolve(item, scope)
        name = value.get("name") if isinstance(value, dict) else value if isinstance(value, str) else None
        told.append(f"{index} is `{name}`" if isinstance(name, str) else str(index))
    return ", ".join(told) or "it is empty"


def _put(body: Any, path: Sequence[str], value: Any, scope: Scope, *, new: bool) -> tuple[Any, SpecPath]:
    if not path:
        return value, ()
    if not new:
        holder, key = _reach(body, path, scope)
        holder[key] = value
        return body, _as_path(body, path)
    root = [body]
    holder, key = (root, 0) if len(path) == 1 else _reach(body, path[:-1], scope)
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
    raise Fails(f"{_shown(path[:-1])} is {brief(resolve(node, scope))}, so nothing can be put into it")
