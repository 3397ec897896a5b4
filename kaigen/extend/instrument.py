"""What is added to a template before it runs: steps are counted, and the output tells where it comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

MARK, END = "\ufdd0", "\ufdd1"
"""Around the place of a template that a part of the output comes from; no text of a user's holds them."""

PLACE = re.compile(f"{MARK}([^{MARK}{END}]*):([0-9]+){END}")
"""A mark in the output: name and line of the template."""


class Instrumented(NodeTransformer):
    """A template that counts its steps, tells where its output comes from, and joins text in the sandbox."""

    def __init__(self, template: str) -> None:
        """Take the template's name."""
        self._template = template
        self._captured = 0

    def _call(self, name: str, *arguments: nodes.Expr, line: int) -> nodes.Call:
        function = nodes.EnvironmentAttribute(name, lineno=line)
        return nodes.Call(function, list(arguments), [], None, None, lineno=line)

    def _counted(self, node: Any) -> None:
        size = sum(len(data.data) for part in node.body for data in _data_of(part))
        weight = nodes.Const(1 + size // 64, lineno=node.lineno)
        step = self._call("step", weight, line=node.lineno)
        node.body.insert(0, nodes.ExprStmt(step, lineno=node.lineno))

    def visit_For(self, node: nodes.For) -> nodes.Node:
        """Count its turns."""
        self.generic_visit(node)
        self._counted(node)
        return node

    def _capture(self, node: Any) -> Any:
        # What is captured may be looked at, so it holds no marks.
        self._captured += 1
        self.generic_visit(node)
        self._captured -= 1
        self._counted(node)
        return node

    visit_Macro = visit_CallBlock = visit_FilterBlock = visit_AssignBlock = _capture

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """`~`."""
        self.generic_visit(node)
        return self._call("chain", *node.nodes, line=node.lineno)

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        """Tell `setting` where it is called, and from which field of the spec its default comes."""
        self.generic_visit(node)
        if isinstance(node.node, nodes.Name) and node.node.name == "setting":
            default = node.args[1] if len(node.args) > 1 else None
            known = {
                "_place": (self._template, node.lineno),
                "_origin": _field_of(default) if default is not None else (),
            }
            for key, value in known.items():
                node.kwargs.append(
                    nodes.Keyword(key, nodes.Const(value, lineno=node.lineno), lineno=node.lineno)
                )
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        """Put the place of each line and expression before it."""
        self.generic_visit(node)
        if self._captured:
            return node
        marked: list[nodes.Expr] = []
        for part in node.nodes:
            if isinstance(part, nodes.TemplateData):
                lines = part.data.split("\n")
                text = "".join(
                    f"{self._mark(part.lineno + number)}{line}" + ("\n" if number < len(lines) - 1 else "")
                    for number, line in enumerate(lines)
                )
                marked.append(nodes.TemplateData(text, lineno=part.lineno))
            else:
                marked.append(nodes.TemplateData(self._mark(part.lineno), lineno=part.lineno))
                marked.append(part)
        node.nodes = marked
        return node

    def _mark(self, line: int) -> str:
        return f"{MARK}{self._template}:{line}{END}"


def _data_of(node: nodes.Node) -> Sequence[nodes.TemplateData]:
    return [node] if isinstance(node, nodes.TemplateData) else list(node.find_all(nodes.TemplateData))


def _field_of(node: nodes.Expr) -> tuple[str, ...]:
    """The path in the document that an expression such as `spec.image.tag` reads; empty for another."""
    if isinstance(node, nodes.Name):
        return ("spec",) if node.name == "spec" else ()
    if isinstance(node, nodes.Getattr):
        parent = _field_of(node.node)
        return (*parent, node.attr) if parent else ()
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        parent = _field_of(node.node)
        return (*parent, node.arg.value) if parent else ()
    return ()
