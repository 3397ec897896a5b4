"""Messages between kaigen and the process of patches: objects, whose expressions have numbers, and what patches change.

An answer contains plain data and numbers of expressions that were sent: to read it runs no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.msgpack import Ext

from kaigen.compile.expressions import Expr, Scope, Setting, Tree, resolve
from kaigen.core.json_types import FieldPath
from kaigen.extend.held import Changed, Held, HeldOptional
from kaigen.extend.pointer import OpenList, OpenMap, open_expression
from kaigen.extend.wire import encode, plain

_HELD, _REFERENCE, _CHANGED = 11, 12, 13
_DEEPEST = 200
"""Most levels of a patched object. YAML files have at most 100."""


class PatchRequest(Struct, frozen=True):
    """Request: apply a patch to objects.

    Attributes:
        bodies: the objects, with expressions as `Sender` encodes them.
        content: of the patch, encoded.
    """

    bodies: list[Any]
    content: msgspec.Raw


class PatchFailure(Struct, frozen=True):
    """Why a patch does not apply to an object.

    Attributes:
        message: the error.
        hint: how to fix it.
        origin: path in the patch.
    """

    message: str
    hint: str
    origin: FieldPath


class Patched(Struct, frozen=True):
    """An object after a patch.

    Attributes:
        body: the object; None after a failure.
        written: pairs of a path in the object and the path in the patch that its value comes from.
        absent: pairs of paths of what the patch removes and the object does not have.
        failure: why the patch does not apply; None if it does.
    """

    body: Any = None
    written: tuple[tuple[FieldPath, FieldPath], ...] = ()
    absent: tuple[tuple[FieldPath, FieldPath], ...] = ()
    failure: PatchFailure | None = None


class Sender:
    """Encodes objects for the process, and reads its answer."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._expressions: list[Expr] = []

    def frozen(self, tree: Tree) -> Any:
        """Return a tree as it is sent."""
        if isinstance(tree, Expr):
            return Ext(_HELD, encode(self._held(tree)))
        if isinstance(tree, Mapping):
            return {key: self.frozen(node) for key, node in tree.items()}
        if isinstance(tree, list | tuple):
            return [self.frozen(node) for node in tree]
        return plain(tree)

    def _held(self, node: Expr) -> list[Any]:
        number = len(self._expressions)
        self._expressions.append(node)
        optional = node.optional if isinstance(node, Setting) else node.omit_empty
        inside = open_expression(node)
        return [
            optional,
            number,
            plain(resolve(node, self._scope)),
            None if isinstance(inside, Expr) else self.frozen(inside),
            isinstance(inside, OpenList | OpenMap),
        ]

    def read(self, data: bytes) -> list[Patched]:
        """Return the answer.

        Raises:
            ValueError: it is not one, or not one for these objects.
        """
        try:
            answer = msgspec.msgpack.decode(data, type=list[Patched], ext_hook=self._expression)
        except (msgspec.MsgspecError, RecursionError, LookupError, TypeError) as error:
            raise ValueError(str(error)) from None
        for item in answer:
            _check(item.body)
        return answer

    def _expression(self, code: int, data: memoryview) -> Any:
        if code == _REFERENCE:
            return self._expressions[msgspec.msgpack.decode(data, type=int)]
        if code != _CHANGED:
            raise ValueError(f"unknown extension {code}")
        number, fixed = msgspec.msgpack.decode(data, type=tuple[int, Any], ext_hook=self._expression)
        inside = open_expression(self._expressions[number])
        if isinstance(inside, OpenMap) and isinstance(fixed, dict):
            return inside.closed(fixed)
        if isinstance(inside, OpenList) and isinstance(fixed, list):
            return inside.closed(fixed)
        raise ValueError("an expression that cannot be changed")


def read_held(code: int, data: memoryview) -> Any:
    """Return an expression in the process."""
    if code != _HELD:
        raise ValueError(f"unknown extension {code}")
    optional, *fields = msgspec.msgpack.decode(data, type=list[Any], ext_hook=read_held)
    return (HeldOptional if optional else Held)(*fields)


def encode_answer(tree: Any) -> Any:
    """Return a patched tree as the process sends it."""
    if isinstance(tree, Held):
        return Ext(_REFERENCE, encode(tree.number))
    if isinstance(tree, Changed):
        return Ext(_CHANGED, encode([tree.number, encode_answer(tree.fixed)]))
    if isinstance(tree, dict):
        return {key: encode_answer(node) for key, node in tree.items()}
    return [encode_answer(node) for node in tree] if isinstance(tree, list) else tree


def _check(tree: Any) -> None:
    """Check that a tree is JSON with expressions, and not too deep for what follows.

    Raises:
        ValueError: it is not.
    """
    level: list[Any] = [tree]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                if not all(isinstance(key, str) for key in node):
                    raise ValueError("a key is not a text")
                inner += node.values()
            elif isinstance(node, list):
                inner += node
            elif not isinstance(node, str | int | float | Expr | None):
                raise ValueError(f"a value of type {type(node).__name__}")
        level = inner
        if not level:
            return
    raise ValueError(f"an object has more than {_DEEPEST} levels")
