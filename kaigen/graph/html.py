"""The graph as one self-contained HTML page that needs no network, server or other file."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kaigen import __version__
from kaigen.core.json_types import Json
from kaigen.graph.layout import lay_out
from kaigen.graph.model import Graph, Location, ObjectNode
from kaigen.graph.style import FAMILIES, absence, app_relations, family, one_line
from kaigen.graph.svg import drawing

_FOLDER = Path(__file__).parent / "page"
_MARGIN = 16


def render_html(graph: Graph) -> str:
    """Return the graph as a page: the drawing, a list with a search, and each object's manifest next to its spec.

    The page fetches nothing. Its Content-Security-Policy enforces that: it allows only the script and the style
    inside the page, by their hashes.
    """
    layout = lay_out(graph)
    style = "\n" + _part("svg.css") + _part("page.css")
    script = "\n" + _part("page.js")
    view = (-_MARGIN, -_MARGIN, max(layout.width, 120) + 2 * _MARGIN, max(layout.height, 40) + 2 * _MARGIN)
    used = {family(node) for app in graph.apps for node in app.objects} | {family(node) for node in graph.externals}
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.jinja").render(
        title=f"kaigen: {len(graph.apps)} {'app' if len(graph.apps) == 1 else 'apps'}",
        version=__version__,
        view=" ".join(map(str, view)),
        families=[name for name in FAMILIES if name in used],
        # Escaped by kaigen; the template escapes everything else.
        drawing=Markup(drawing(graph, layout)),
        data=Markup(_data(graph)),
        style=Markup(style),
        script=Markup(script),
        style_hash=_source(style),
        script_hash=_source(script),
    )


def _part(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """Return the hash of an inline text as a Content-Security-Policy writes it."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _data(graph: Graph) -> str:
    """Return the data of the page as JSON that no value can end early; ids match those of the drawing."""
    needs = graph.needs()
    needed: dict[str, list[Json]] = {app.id: [] for app in graph.apps}
    for source, targets in needs.items():
        for target, relations in targets.items():
            needed[target].append([one_line(source), app_relations(relations)])
    apps: list[Json] = [
        {
            "id": one_line(app.id),
            "namespace": one_line(app.namespace),
            "name": one_line(app.name),
            "kind": one_line(app.kind),
            "summary": one_line(app.summary),
            "place": _location(app.location),
            "text": app.text,
            "needs": [[one_line(target), app_relations(how)] for target, how in needs[app.id].items()],
            "needed": needed[app.id],
            "objects": [_object(node) for node in app.objects],
        }
        for app in graph.apps
    ]
    externals: list[Json] = [
        {
            "id": one_line(node.id),
            "kind": one_line(node.kind),
            "namespace": one_line(node.namespace),
            "name": one_line(node.name),
            "family": "external",
            "absence": one_line(absence(node)),
        }
        for node in graph.externals
    ]
    edges: list[Json] = [[one_line(edge.source), one_line(edge.target), edge.relation.value] for edge in graph.edges]
    text = json.dumps({"apps": apps, "externals": externals, "edges": edges}, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _object(node: ObjectNode) -> dict[str, Json]:
    return {
        "id": one_line(node.id),
        "apiVersion": one_line(node.api_version),
        "kind": one_line(node.kind),
        "namespace": one_line(node.namespace),
        "name": one_line(node.name),
        "family": family(node),
        "wave": node.wave,
        "path": one_line(node.path),
        "place": _location(node.location),
        "yaml": node.yaml,
        "lines": [_line(line, node.location) for line in node.lines],
    }


def _line(location: Location | None, own: Location) -> Json:
    """Return a line of the node's own file as a number, of another file as text; 0 for none."""
    if location is None:
        return 0
    return location.line if location.file == own.file else one_line(str(location))


def _location(location: Location) -> dict[str, Json]:
    return {"file": one_line(location.file), "line": location.line}
