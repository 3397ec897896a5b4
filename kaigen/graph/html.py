"""The graph as one HTML page that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from kaigen.graph.layout import lay_out
from kaigen.graph.model import Graph, ObjectNode, Place
from kaigen.graph.style import FAMILIES, absence, app_relations, family, one_line
from kaigen.graph.svg import drawing

Json: TypeAlias = "int | str | list[Json] | dict[str, Json]"

_FOLDER = Path(__file__).parent / "page"
_MARGIN = 16


def render_html(graph: Graph) -> str:
    """The graph as a page: the drawing, a list with a search, and each object's manifest beside its spec.

    Nothing is fetched, which the page's own Content-Security-Policy holds: it allows the one script and the one
    style that stand in it, by their hashes.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from kaigen import __version__

    layout = lay_out(graph)
    style = "\n" + _part("svg.css") + _part("page.css")
    script = "\n" + _part("page.js")
    view = (-_MARGIN, -_MARGIN, max(layout.width, 120) + 2 * _MARGIN, max(layout.height, 40) + 2 * _MARGIN)
    used = {family(node) for app in graph.apps for node in app.objects} | {
        family(node) for node in graph.externals
    }
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
        # Made by kaigen, its texts escaped; all else is escaped by the template.
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
    """What a Content-Security-Policy calls an inline text by."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _data(graph: Graph) -> str:
    """All that the page tells, as JSON that nothing in it can end early; ids as they stand in the drawing."""
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
            "place": _place(app.place),
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
    edges: list[Json] = [
        [one_line(edge.source), one_line(edge.target), edge.relation.value] for edge in graph.edges
    ]
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
        "place": _place(node.place),
        "yaml": node.yaml,
        "lines": [_line(place, node.place) for place in node.lines],
    }


def _line(place: Place | None, own: Place) -> Json:
    """A line of the node's own file as a number, of another as text; 0 for none."""
    if place is None:
        return 0
    return place.line if place.file == own.file else one_line(str(place))


def _place(place: Place) -> dict[str, Json]:
    return {"file": one_line(place.file), "line": place.line}
