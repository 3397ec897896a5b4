"""The graph as a Mermaid flowchart, which code hosts render in comments and Markdown files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kaigen.graph.model import AppNode, Edge, ExternalNode, Graph, ObjectNode, Relation
from kaigen.graph.style import FAMILIES, absence, app_relations, family, one_line, shorten

MOST_CHARACTERS = 48_000
MOST_EDGES = 450
"""Mermaid refuses more than 50,000 characters or 500 edges, and code hosts do not let a page raise these limits.
Source: `maxTextSize` and `maxEdges` of Mermaid's configuration schema."""

_MOST_NAME = 60
_MOST_NAMESPACES = 20
_PLAIN = re.compile(r"[A-Za-z0-9 .,_/()-]|[^\W_]")
_STYLES = {
    "workload": "fill:#dbeafe,stroke:#2563eb,color:#172554",
    "storage": "fill:#dcfce7,stroke:#16a34a,color:#052e16",
    "config": "fill:#fef3c7,stroke:#d97706,color:#451a03",
    "access": "fill:#ede9fe,stroke:#7c3aed,color:#2e1065",
    "network": "fill:#cffafe,stroke:#0891b2,color:#083344",
    "other": "fill:#e5e7eb,stroke:#6b7280,color:#111827",
    "external": "fill:#fff1f2,stroke:#e11d48,color:#4c0519,stroke-dasharray:4 3",
}
_APP_STYLE = "fill:#f1f5f9,stroke:#475569,color:#0f172a"


def render_mermaid(graph: Graph) -> str:
    """Return the graph as Mermaid text.

    An arrow points from an object to one that it needs. A graph that exceeds Mermaid's limits is reduced to its apps,
    and a comment explains that.
    """
    if len(graph.edges) <= MOST_EDGES:
        text = _detailed(graph)
        if len(text) <= MOST_CHARACTERS:
            return text
    return _overview(graph)


class _Names:
    """Unique, readable identifiers for nodes."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._of: dict[str, str] = {}

    def get(self, prefix: str, node: str) -> str:
        """Return the identifier of a node; the prefix avoids keywords of Mermaid."""
        known = self._of.get(node)
        if known is None:
            word = f"{prefix}_" + re.sub(r"[^A-Za-z0-9]+", "_", node.removeprefix("external/"))[:_MOST_NAME]
            known, number = word, 1
            while known in self._taken:
                number += 1
                known = f"{word}_{number}"
            self._taken.add(known)
            self._of[node] = known
        return known


def _escape(text: str) -> str:
    """Return text for a label, with characters special to Mermaid, Markdown or HTML as character codes."""
    shown = shorten(one_line(text), _MOST_NAME)
    return "".join(char if _PLAIN.fullmatch(char) else f"#{ord(char)};" for char in shown)


def _label(*lines: str) -> str:
    return '"' + "<br/>".join(_escape(line) for line in lines if line) + '"'


def _detailed(graph: Graph) -> str:
    names = _Names()
    lines = ["flowchart LR"]
    for app in graph.apps:
        lines.append(f"  subgraph {names.get('app', app.id)}[{_label(f'{app.id} ({app.kind})')}]")
        for node in app.objects:
            lines.append(f"    {names.get('obj', node.id)}[{_label(node.kind, node.name)}]")
        lines.append("  end")
    for external in graph.externals:
        lines.append(f"  {names.get('ext', external.id)}([{_external(external)}])")
    prefixes = dict.fromkeys((node.id for node in graph.externals), "ext")
    for edge in graph.edges:
        source = names.get("obj", edge.source)
        target = names.get(prefixes.get(edge.target, "obj"), edge.target)
        lines.append(f"  {source} {_arrow(edge)} {target}")
    nodes: list[ObjectNode | ExternalNode] = [node for app in graph.apps for node in app.objects]
    nodes += graph.externals
    for name in FAMILIES:
        members = [
            names.get("ext" if isinstance(node, ExternalNode) else "obj", node.id)
            for node in nodes
            if family(node) == name
        ]
        lines += _class(name, _STYLES[name], members)
    return "\n".join(lines) + "\n"


def _external(node: ExternalNode) -> str:
    return _label(node.kind, node.name, absence(node))


def _arrow(edge: Edge) -> str:
    label = edge.relation.value
    return f"-. {label} .->" if edge.relation is Relation.WAITS else f"-- {label} -->"


def _class(name: str, style: str, members: Iterable[str]) -> list[str]:
    listed = list(members)
    return [f"  classDef {name} {style}", f"  class {','.join(listed)} {name}"] if listed else []


def _overview(graph: Graph) -> str:
    """Return a chart of the apps alone; apps without dependencies are only counted."""
    needs = graph.needs()
    edges = [(app, target, needs[app][target]) for app in needs for target in needs[app]]
    joined = {app for source, target, _ in edges for app in (source, target)}
    # Short identifiers, so that more fits; the label has the full name.
    names = {app.id: f"a{number}" for number, app in enumerate(graph.apps)}
    apps = {app.id: app for app in graph.apps}
    lines: list[str] = []
    shown: set[str] = set()
    size, left = 2_000, 0  # size of the lines around the apps
    for source, target, relations in edges:
        new = [app for app in dict.fromkeys((source, target)) if app not in shown]
        new_lines = [_app_line(names[app], apps[app]) for app in new]
        new_lines.append(f"  {names[source]} -- {app_relations(relations)} --> {names[target]}")
        cost = sum(len(line) + 1 for line in new_lines)
        if len(lines) - len(shown) >= MOST_EDGES or size + cost > MOST_CHARACTERS:
            left += 1
            continue
        size += cost
        shown.update(new)
        lines += new_lines
    alone = [app for app in graph.apps if app.id not in joined]
    counted: list[str] = []
    namespaces = sorted({app.namespace for app in alone})
    for namespace in namespaces[:_MOST_NAMESPACES]:
        number = sum(app.namespace == namespace for app in alone)
        noun = "app" if number == 1 else "apps"
        counted.append(f"alone{len(counted)}")
        lines.append(f"  {counted[-1]}([{_label(namespace, f'{number} {noun} without dependencies')}])")
    comment = f"{len(graph.apps)} apps, without their objects: the full graph exceeds the limits of Mermaid"
    if len(namespaces) > _MOST_NAMESPACES:
        more = len(namespaces) - _MOST_NAMESPACES
        comment += f"; apps without dependencies of {more} more namespaces are not shown"
    if left:
        comment += f"; {left} more dependencies do not fit"
    lines.append(f"  classDef default {_APP_STYLE}")
    lines += _class("other", _STYLES["other"], counted)
    return "\n".join([f"%% {comment}", "flowchart LR", *lines]) + "\n"


def _app_line(name: str, app: AppNode) -> str:
    number = len(app.objects)
    objects = "1 object" if number == 1 else f"{number} objects"
    return f"  {name}[{_label(app.id, f'{app.kind}, {objects}')}]"
