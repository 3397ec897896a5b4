"""Write objects with expressions in them as Helm templates, in the YAML style of `kaigen.yaml.dump`.

Own code because no YAML library writes template actions between the lines of a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from kaigen.compile.expressions import CHART, Expr, Setting, Tree
from kaigen.compile.field_expressions import Arguments, Entries, Items, Labels, Spread
from kaigen.compile.go_json import go_json
from kaigen.compile.setting_expressions import Unless
from kaigen.yaml.dump import Writer, scalar


def _escape_actions(text: str) -> str:
    """Return text in which Helm sees no template action."""
    return text.replace("{{", '{{ "{{" }}') if "{{" in text else text


@lru_cache(maxsize=100_000)
def _template_scalar(text: str) -> str:
    return _escape_actions(scalar(text))


def _unique(setting: Setting, keys: Sequence[str], taken: Sequence[str]) -> str:
    """Return the line of a template that fails where items of a setting are there already."""
    lists = (f"(list {' '.join(map(go_json, each))})" if each else "list" for each in (keys, taken))
    return f'{{{{- include "{CHART}.unique" (list "{setting.path}" {" ".join(lists)} {setting.pipeline()}) }}}}'


class _TemplateWriter(Writer):
    """Writes the lines of one Helm template."""

    __slots__ = ()

    scalar = staticmethod(_template_scalar)

    def literal_line(self, line: str) -> str:
        """Return one line of a literal block, its template actions escaped."""
        return _escape_actions(line)

    def inline(self, node: object) -> str:
        """Return a value that is written on one line: an expression as its template action."""
        return node.inline() if isinstance(node, Expr) else super().inline(node)

    def special_entry(self, start: str, node: object, indent: str, lead: str) -> None:
        """Write an entry whose value is an expression."""
        if not isinstance(node, Expr):
            super().special_entry(start, node, indent, lead)
            return
        assert lead == indent or not (isinstance(node, Setting) and node.optional), (
            "an optional setting cannot be the first entry of a sequence's mapping"
        )
        self._expression(start, node, indent)

    def _expression(self, start: str, node: Expr, indent: str) -> None:
        """Write an entry whose value is an expression; `start` is its key with everything before it on its line."""
        lines = self.lines
        if isinstance(node, Labels):
            lines.append(start)
            lines.append(f"{indent}  {{{{- {node.pipeline()} | nindent {len(indent) + 2} }}}}")
            self.mapping(node.own, indent + "  ")
            further = node.further()
            if further:
                lines.extend(self._given(further, indent))
            return
        if isinstance(node, Spread):
            lines.append(indent + _unique(node.of, node.keys, ()))
            lines.append(f"{indent}{{{{- with {node.of.pipeline()} }}}}")
            lines.append(start)
            lines.append(f"{indent}  {{{{- range . }}}}")
            lines.append(f"{indent}  - {node.inline()}")
            lines.append(f"{indent}  {{{{- end }}}}")
            lines.append(f"{indent}{{{{- end }}}}")
            return
        if isinstance(node, Entries):
            self._entries(start, node, indent)
            return
        if isinstance(node, Items):
            self._items(start, node, indent)
            return
        if isinstance(node, Arguments):
            lines.append(start)
            self.sequence(node.fixed, indent + "  ")
            lines.extend([f"{indent}  {line}" for line in node.lines()])
            return
        if isinstance(node, Unless):
            lines.append(f"{indent}{{{{- with {node.pipeline()} }}}}")
            lines.append(f"{start} {{{{ toJson . }}}}")
            lines.append(f"{indent}{{{{- end }}}}")
            return
        block = isinstance(node, Setting) and isinstance(node.default, dict | list)
        if isinstance(node, Setting) and node.optional:
            lines.append(f"{indent}{{{{- with {node.pipeline()} }}}}")
            if block:
                lines.append(start)
                lines.append(f"{indent}  {{{{- toYaml . | nindent {len(indent) + 2} }}}}")
            else:
                lines.append(f"{start} {{{{ toJson . }}}}")
            lines.append(f"{indent}{{{{- end }}}}")
        elif block:
            lines.append(start)
            lines.append(f"{indent}  {{{{- toYaml {node.pipeline()} | nindent {len(indent) + 2} }}}}")
        else:
            lines.append(f"{start} {node.inline()}")

    def _entries(self, start: str, node: Entries, indent: str) -> None:
        """Write a map with the entries of a setting; without fixed ones, it is left out while it is empty."""
        begin, *rest = self._given(node.pipeline(), indent)
        if not node.fixed:
            self.lines.extend([begin, start, *rest])
            return
        self.lines.extend([start, begin, *rest])
        self.mapping(node.fixed, indent + "  ")

    def _items(self, start: str, node: Items, indent: str) -> None:
        """Write a list with the items of settings; without fixed ones, it is left out while it is empty."""
        if not node:
            return
        taken = node.taken()
        for given in (node.before, node.after):
            if given is not None and node.keys:
                self.lines.append(indent + _unique(given, node.keys, taken))
        if not node.fixed:
            begin, *rest = self._given(node.pipeline(), indent)
            self.lines.extend([begin, start, *rest])
            return
        self.lines.append(start)
        if node.before is not None:
            self.lines.extend(self._given(node.before.pipeline(), indent))
        self.sequence(node.fixed, indent + "  ")
        if node.after is not None:
            self.lines.extend(self._given(node.after.pipeline(), indent))

    @staticmethod
    def _given(pipeline: str, indent: str) -> list[str]:
        """Return the lines of the entries of a map or list, which may be empty."""
        return [
            f"{indent}{{{{- with {pipeline} }}}}",
            f"{indent}  {{{{- toYaml . | nindent {len(indent) + 2} }}}}",
            f"{indent}{{{{- end }}}}",
        ]


def dump_template(tree: Tree, chart: str) -> str:
    """Return an object with expressions in it as a template of a Helm chart with that name."""
    return _TemplateWriter().document(tree).replace(CHART, chart)
