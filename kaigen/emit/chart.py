"""An app as a Helm chart that renders to the app's plain manifests, object for object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import (
    DIGEST_LENGTH,
    MUTABLE_JOB_FIELDS,
    App,
    HashedName,
    Json,
    Object,
    Setting,
)
from kaigen.emit.files import app_folder, header, shown_source
from kaigen.emit.yaml import dump, dump_template, entry_lines

if TYPE_CHECKING:
    from jinja2 import Environment

KUBE_VERSION = ">=1.31.0-0"
"""Oldest Kubernetes that the objects work on: podFailurePolicy is stable since 1.31."""


def chart_files(app: App, values: Mapping[str, Json] | None = None) -> dict[str, bytes]:
    """The app's chart by path in the output tree.

    Args:
        app: what to write.
        values: settings with overrides applied; they become the chart's defaults.
    """
    folder = f"{app_folder(app)}/chart"
    used = app.default_values() if values is None else values
    files = {
        "Chart.yaml": header(app) + dump(_chart_yaml(app)),
        "values.yaml": header(app) + values_yaml(app, used),
        "values.schema.json": json.dumps(values_schema(app.settings), indent=2, ensure_ascii=False) + "\n",
        "README.md": _text("README.md.jinja", app, used),
        "templates/_helpers.tpl": _helpers(app),
        "templates/NOTES.txt": _text("NOTES.txt.jinja", app, used),
    }
    for item in app.objects:
        files[f"templates/{item.role}.yaml"] = template(app, item)
    return {f"{folder}/{path}": text.encode() for path, text in files.items()}


def _chart_yaml(app: App) -> dict[str, Json]:
    return {
        "apiVersion": "v2",
        "name": app.name,
        "description": app.summary,
        "type": "application",
        "version": app.version,
        **({"appVersion": app.app_version} if app.app_version else {}),
        "kubeVersion": KUBE_VERSION,
        "annotations": {
            "kaigen.dev/kind": app.kind,
            "kaigen.dev/pod-security": app.pod_security,
        },
    }


def template(app: App, item: Object) -> str:
    """One object's template."""
    name = item.hashed
    text = dump_template(item.body) if name is None else _hashed_template(app, item, name)
    if item.when is not None:
        text = f"{{{{- if {item.when.pipeline()} }}}}\n{text}{{{{- end }}}}\n"
    return text


def _hashed_template(app: App, item: Object, name: HashedName) -> str:
    part = f"{app.name}.{item.role}"
    head = {key: node for key, node in item.body.items() if key != "spec"}
    fields = " ".join(f'"{field}"' for field in MUTABLE_JOB_FIELDS)
    return (
        f'{{{{- define "{part}.spec" -}}}}\n'
        f"{dump_template(name.spec)}"
        f"{{{{- end }}}}\n"
        f"{{{{- /* The API server lets no one change this spec in place, so its hash is in the name. */}}}}\n"
        f'{{{{- define "{name.helper}" -}}}}\n'
        f'{{{{- omit (include "{part}.spec" . | fromYaml) {fields} | toJson | sha256sum | trunc {DIGEST_LENGTH} }}}}\n'
        f"{{{{- end }}}}\n"
        f"{dump_template(head)}"
        "spec:\n"
        f'  {{{{- include "{part}.spec" . | nindent 2 }}}}\n'
    )


def _helpers(app: App) -> str:
    return (
        "{{/* Labels of every object. */}}\n"
        f'{{{{- define "{app.name}.labels" -}}}}\n{dump_template(app.labels)}{{{{- end }}}}\n\n'
        "{{/* Labels that tell this release's pods from all others. */}}\n"
        f'{{{{- define "{app.name}.selectorLabels" -}}}}\n{dump_template(app.selector_labels)}{{{{- end }}}}\n'
    )


def values_yaml(app: App, values: Mapping[str, Json]) -> str:
    """`values.yaml`: every setting with its value, under a comment that says what it is."""
    tree: dict[str, Any] = {}
    for setting in app.settings:
        here = tree
        *parents, last = setting.keys
        for key in parents:
            here = here.setdefault(key, {})
        here[last] = setting
    lines: list[str] = []
    _value_lines(tree, values, "", lines)
    return "\n".join(lines) + "\n"


def _value_lines(tree: Mapping[str, Any], values: Mapping[str, Any], indent: str, lines: list[str]) -> None:
    for key, node in tree.items():
        value = values.get(key)
        if isinstance(node, Setting):
            lines.append(f"{indent}# {node.doc}")
            lines.extend(entry_lines(key, value, indent))
        else:
            lines.append(f"{indent}{key}:")
            _value_lines(node, value if isinstance(value, Mapping) else {}, indent + "  ", lines)


def values_schema(settings: Sequence[Setting]) -> dict[str, Any]:
    """JSON Schema of `values.yaml`: closed, so that a mistyped key is an error; `global` stays open for parents."""
    root: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#", **_closed()}
    for setting in settings:
        here = root
        *parents, last = setting.keys
        for key in parents:
            if key not in here["properties"]:
                here["properties"][key] = _closed()
                here["required"].append(key)
            here = here["properties"][key]
        here["properties"][last] = {"description": setting.doc, **setting.schema}
        here["required"].append(last)
    root["properties"]["global"] = {
        "description": "Values of a parent chart; not used here.",
        "type": "object",
    }
    return root


def _closed() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": [], "properties": {}}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # NOTES.txt is itself a Go template, so the text templates use delimiters of their own.
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown and plain text, not HTML.
    )


def _text(name: str, app: App, values: Mapping[str, Json]) -> str:
    rows = []
    for setting in app.settings:
        here: Any = values
        for key in setting.keys:
            here = here.get(key) if isinstance(here, Mapping) else None
        shown = json.dumps(here, ensure_ascii=False).replace("|", "\\|").replace("`", "'")
        rows.append({"path": setting.path, "doc": setting.doc, "default": shown})
    objects = [item for item in app.objects if not item.test]
    return (
        _environment()
        .get_template(name)
        .render(app=app, source=shown_source(app), settings=rows, objects=objects)
    )
