"""A whole object as one line of JSON text, for an argument or a variable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kaigen.compile.expressions import Expr, Scope, Setting, Tree, find_settings, resolve
from kaigen.compile.field_expressions import Entries, Labels
from kaigen.compile.go_json import go_json


class ObjectText(Expr, frozen=True):
    """An object with expressions in it, as JSON text.

    Each `$` is doubled, so that Kubernetes does not expand `$(NAME)`.

    Attributes:
        of: the object. Optional settings are left out while they are empty.
    """

    of: Mapping[str, Tree]

    def value(self, scope: Scope) -> str:
        return go_json(resolve(self.of, scope)).replace("$", "$$")

    def pipeline(self) -> str:
        return f'{_pipeline(self.of)} | toJson | replace "$" "$$"'

    def settings(self) -> Iterator[Setting]:
        yield from find_settings(self.of)

    def __hash__(self) -> int:
        return hash(tuple(self.of))


def _pipeline(node: Tree) -> str:
    """Return the Go template pipeline of a tree, in parentheses where it has several words."""
    if isinstance(node, Mapping):
        return _mapping(node)
    if isinstance(node, list | tuple):
        return f"(list {' '.join(map(_pipeline, node))})"
    if isinstance(node, Labels):
        return f"(merge {_mapping(node.own)} (include {go_json(node.helper)} . | fromYaml))"
    if isinstance(node, Entries):
        return f"(merge {_mapping(node.fixed)} ({node.more.pipeline()}))"
    return f"({node.pipeline()})" if isinstance(node, Expr) else go_json(node)


def _mapping(node: Mapping[str, Tree]) -> str:
    fixed, optional = [], []
    for key, value in node.items():
        text = _pipeline(value)
        if isinstance(value, Setting) and value.optional:
            optional.append(f"(empty {text} | ternary (dict) (dict {go_json(key)} {text}))")
        else:
            fixed.append(f"{go_json(key)} {text}")
    whole = f"(dict {' '.join(fixed)})" if fixed else "(dict)"
    return f"(merge {whole} {' '.join(optional)})" if optional else whole
