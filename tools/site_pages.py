"""Pages of the site that are made from kaigen itself: the fields of each kind, what ran in tests, the demo's graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from tools import proven

Change = Callable[[str], str]
"""Changes a text."""

_DEEPEST = 12
"""Most levels of fields; a schema may contain itself."""


NAMES = {"*What ran*": proven.PAGE}
"""How pages that a code host shows, too, name a page that only the site has; the site makes it a link."""


def pages() -> dict[str, str]:
    """Return the pages that only the site has, by path."""
    return {**field_pages(), proven.PAGE: proven.page()}


def pictures() -> dict[str, str]:
    """Return the pictures that only the site has, by path."""
    from kaigen import build_graph, compile_specs, load_config, render_graph
    from tools.pictures import DEMO

    config = load_config(DEMO, "dev")
    graph = build_graph(compile_specs((), config), config.external)
    return {"pictures/demo.svg": render_graph(graph, "svg")}


def field_pages() -> dict[str, str]:
    """Return a page for each kind, in its newest version, for kaigen.yaml, and for files of the catalogue."""
    from kaigen.config.catalog import CATALOG_ENTRY
    from kaigen.config.file import CONFIG_ENTRY
    from kaigen.dialects.registry import own_kinds
    from kaigen.kinds.schema import schema_file_name

    pages = {}
    for entry in (*own_kinds(), CONFIG_ENTRY, CATALOG_ENTRY):
        name = schema_file_name(entry).removesuffix(".json")
        if not name.endswith("-v1alpha1"):
            pages[f"fields/{name}.md"] = "\n".join(_lines(entry)) + "\n"
    return pages


def _lines(entry: Any) -> Iterator[str]:
    """Yield the lines of the page of a kind."""
    from kaigen.explain.fields import nested_fields
    from kaigen.kinds.schema import json_schema

    root = json_schema(entry)
    title = "kaigen.yaml" if entry.kind == "Config" else entry.key
    yield f"# Fields of {title}"
    yield ""
    yield f"`apiVersion: {entry.api_version}`, `kind: {entry.kind}`. {root.get('description', '')}"
    yield f"In a terminal: `kaigen explain {entry.key} --recursive`."
    sections: list[tuple[str, Any, bool]] = []
    for name, node, required in nested_fields(root, root):
        if name == "spec":
            sections += [(f"spec.{each}", field, needed) for each, field, needed in nested_fields(root, node)]
        elif name not in ("apiVersion", "kind"):
            sections.append((name, node, required))
    for path, node, required in sections:
        yield ""
        yield f"## {path} {{#{path}}}"
        yield ""
        yield _description(root, node, required)
        rows = list(_rows(root, node, path, "", 1))
        if rows:
            yield ""
            yield "| field | type | |"
            yield "| --- | --- | --- |"
            yield from rows


def _rows(root: Any, node: Any, path: str, prefix: str, level: int) -> Iterator[str]:
    """Yield a row for each field below a field."""
    from kaigen.explain.fields import nested_fields, type_name

    if level > _DEEPEST:
        return
    for name, field, required in nested_fields(root, node):
        anchor = f'<span class="field" id="{escape(path)}.{escape(name)}">`{prefix}{name}`</span>'
        kind = type_name(root, field) + (", required" if required else "")
        yield f"| {anchor} | {_cell(kind)} | {_cell(_facts(field))} |"
        yield from _rows(root, field, f"{path}.{name}", f"{prefix}{name}.", level + 1)


def _description(root: Any, node: Any, required: bool) -> str:
    from kaigen.explain.fields import type_name

    return f"*{escape(type_name(root, node))}{', required' if required else ''}*. {_facts(node)}"


def _facts(node: Any) -> str:
    """Return the description of a field with its default, values and limits."""
    from kaigen.explain.fields import facts

    found = [escape(node.get("description", ""), quote=False), *(f"`{fact}`" for fact in facts(node))]
    return " ".join(filter(None, found))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
