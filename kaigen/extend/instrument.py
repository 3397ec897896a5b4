"""Instrument templates before they run: count their steps and mark which line wrote each part of the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from kaigen.extend.tokens import END, MARK


class InstrumentedTemplate(NodeTransformer):
    """Adds step counting, source marks and the sandbox's string concatenation to a template's syntax tree."""

    def __init__(self, template: str) -> None:
        """Store the template's name."""
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
        """Count a loop's iterations."""
        self.generic_visit(node)
        self._counted(node)
        return node

    def _capture(self, node: Any) -> Any:
        # The template may inspect captured output, so it gets no source marks.
        self._captured += 1
        self.generic_visit(node)
        self._captured -= 1
        self._counted(node)
        return node

    visit_Macro = visit_CallBlock = visit_FilterBlock = visit_AssignBlock = _capture

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """Replace `~` with the sandbox's concatenation."""
        self.generic_visit(node)
        return self._call("chain", *node.nodes, line=node.lineno)

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        """Pass to `setting` the line that calls it and the field of the spec that its default reads."""
        self.generic_visit(node)
        if isinstance(node.node, nodes.Name) and node.node.name == "setting":
            default = node.args[1] if len(node.args) > 1 else None
            arguments = {
                "_line": (self._template, node.lineno),
                "_origin": _field_of(default) if default is not None else (),
            }
            for key, value in arguments.items():
                node.kwargs.append(nodes.Keyword(key, nodes.Const(value, lineno=node.lineno), lineno=node.lineno))
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        """Put a source mark before each line and expression."""
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
    """Return the path that an expression such as `spec.image.tag` reads; empty for any other expression."""
    if isinstance(node, nodes.Name):
        return ("spec",) if node.name == "spec" else ()
    if isinstance(node, nodes.Getattr):
        parent = _field_of(node.node)
        return (*parent, node.attr) if parent else ()
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        parent = _field_of(node.node)
        return (*parent, node.arg.value) if parent else ()
    return ()
