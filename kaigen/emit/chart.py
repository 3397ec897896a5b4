"""Write an app as a Helm chart that renders to the app's plain manifests, object for object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any

from kaigen.compile.app import App, Object
from kaigen.compile.expressions import CHART, Setting
from kaigen.core.json_types import Json
from kaigen.emit.chart_helpers import ROWS, SCHEMAS, VALUES, hashed_template, helpers
from kaigen.emit.helm_template import dump_template
from kaigen.emit.manifests import app_folder, header, shown_source
from kaigen.kubernetes.kind_table import KINDS
from kaigen.yaml.dump import dump, entry_lines

_README = """\
# {name}

{summary}

Rendered by kaigen{source} ({kind}). Change the spec, not this chart.

```sh
helm install {name} . --namespace {namespace}
helm test {name} --namespace {namespace}
```

Installing it under another release name creates an independent copy, whose objects are named RELEASE-{name}. In another
chart's `dependencies`, `condition: {name}.enabled` switches it off, and its objects are named RELEASE-{name} too.

## Objects

| kind | file | wave |
| --- | --- | --- |
{objects}
## Settings

| setting | default | description |
| --- | --- | --- |
{settings}"""

_NOTES = """\
{{{{ .Chart.Name }}}}: {{{{ .Chart.Description }}}}

Release {{{{ .Release.Name }}}} in namespace {{{{ .Release.Namespace }}}}:
{names}
Watch it:
  kubectl get {watched} -n {{{{ .Release.Namespace }}}} -l {selector}
Check it:
  helm test {{{{ .Release.Name }}}} -n {{{{ .Release.Namespace }}}}
"""


def _readme(app: App, values: Mapping[str, Json]) -> str:
    """Return the README: the app's summary, its objects, and every setting with its value."""
    source = shown_source(app)
    rows = []
    for setting in app.settings:
        shown = _encode(setting.within(values)).replace("|", "\\|").replace("`", "'")
        rows.append(f"| `{setting.path}` | `{shown}` | {setting.doc} |\n")
    text = _README.format(
        name=app.name,
        namespace=app.namespace,
        summary=app.summary,
        kind=app.kind,
        source=f" from `{source}`" if source else "",
        objects="".join(
            f"| {item.kind} | `templates/{item.role}.yaml` | {item.wave} |\n" for item in app.objects if not item.test
        ),
        settings="".join(rows) + ROWS,
    )
    if app.notes:
        text += "\n## Notes\n\n" + "".join(f"- {note.text}\n" for note in app.notes)
    return text


def notes(app: App) -> str:
    """Return `NOTES.txt`, itself a template: names with hashes, and commands to watch and test the release."""
    names = [
        f'  {{{{ include "{app.name}.fullname" . }}}}-{{{{ include "{item.hashed.helper}" . }}}} ({item.kind})\n'
        for item in app.objects
        if item.hashed and not item.test
    ]
    kinds = {item.kind for item in app.objects}
    rolling = sorted(row.kind for row in KINDS.values() if row.lifecycle == "rolling")
    serving = [kind.lower() + "s" for kind in rolling if kind in kinds]
    runs = {row.kind for row in KINDS.values() if row.lifecycle == "run"} & kinds | {"Job"}
    running = [*(kind.lower() + "s" for kind in sorted(runs)), "pods", "pvc"]
    watched = ",".join([*serving, "pods", "services"] if serving else running)
    selector = (
        "app.kubernetes.io/instance={{ .Release.Name }},"
        f'app.kubernetes.io/name={{{{ include "{app.name}.name" . }}}}'
    )
    return _NOTES.format(selector=selector, names="".join(names), watched=watched)


KUBE_VERSION = ">=1.31.0-0"
"""Oldest supported Kubernetes: podFailurePolicy is stable since 1.31."""

VERSION_DIGEST_LENGTH = 12
"""Digits of the digest in the version of a chart."""


def chart_files(app: App, values: Mapping[str, Json] | None = None) -> dict[str, bytes]:
    """Return the files of an app's chart by path in the output tree.

    Args:
        app: the app.
        values: settings with overrides applied; they become the chart's defaults.
    """
    folder = f"{app_folder(app)}/chart"
    files = _files(app, values)
    if app.digest_in_version:
        files["Chart.yaml"] = header(app) + dump(_chart_yaml(app, _with_digest(app.version, files)))
    return {f"{folder}/{path}": text.encode() for path, text in files.items()}


def chart_version(app: App, values: Mapping[str, Json] | None = None) -> str:
    """Return the version of an app's chart, which may end in a digest of its content.

    Args:
        app: the app.
        values: as for `chart_files`.
    """
    return _with_digest(app.version, _files(app, values)) if app.digest_in_version else app.version


def _with_digest(version: str, files: Mapping[str, str]) -> str:
    """Return a version with a digest of the files as its build metadata (SemVer 2.0, 10)."""
    content = sha256()
    for path, text in sorted(files.items()):
        data = text.encode()
        content.update(b"%s\0%d\0%s" % (path.encode(), len(data), data))
    joint = "." if "+" in version else "+"
    return f"{version}{joint}{content.hexdigest()[:VERSION_DIGEST_LENGTH]}"


def _files(app: App, values: Mapping[str, Json] | None) -> dict[str, str]:
    """Return the files of the chart by path in it; its version has no digest."""
    used = app.default_values() if values is None else values
    files = {
        "Chart.yaml": header(app) + dump(_chart_yaml(app, app.version)),
        "values.yaml": header(app) + values_yaml(app, used),
        "values.schema.json": values_schema(app.settings),
        "README.md": _readme(app, used),
        "templates/_helpers.tpl": "",
        "templates/NOTES.txt": notes(app),
    }
    templates = {f"templates/{item.role}.yaml": template(app, item) for item in app.objects if not item.verbatim}
    files["templates/_helpers.tpl"] = helpers(app, "".join(templates.values()))
    return files | templates


def _chart_yaml(app: App, version: str) -> dict[str, Json]:
    return {
        "apiVersion": "v2",
        "name": app.name,
        "description": app.summary,
        "type": "application",
        "version": version,
        **({"appVersion": app.app_version} if app.app_version else {}),
        "kubeVersion": KUBE_VERSION,
        "annotations": {"kaigen.dev/kind": app.kind, "kaigen.dev/pod-security": app.lowest_pod_security},
    }


def template(app: App, item: Object) -> str:
    """Return the template of one object."""
    name = item.hashed
    text = dump_template(item.body, app.name) if name is None else hashed_template(app, item, name)
    if item.when is not None:
        text = f"{{{{- if {item.when.pipeline()} }}}}\n{text}{{{{- end }}}}\n"
    return text


def values_yaml(app: App, values: Mapping[str, Json]) -> str:
    """Return `values.yaml`: every setting with its value, under a comment that describes it."""
    lines: list[str] = []
    _value_lines(_nest_settings(app.settings), values, "", lines)
    return "\n".join(lines) + "\n" + VALUES.replace(CHART, app.name)


def _nest_settings(settings: Sequence[Setting]) -> dict[str, Any]:
    """Return the settings nested as in `values.yaml`."""
    tree: dict[str, Any] = {}
    for setting in settings:
        here = tree
        *parents, last = setting.keys
        for key in parents:
            here = here.setdefault(key, {})
        here[last] = setting
    return tree


def _value_lines(tree: Mapping[str, Any], values: Mapping[str, Any], indent: str, lines: list[str]) -> None:
    for key, node in tree.items():
        value = values.get(key)
        if isinstance(node, Setting):
            lines.append(f"{indent}# {node.doc}")
            lines.extend(entry_lines(key, value, indent))
        else:
            lines.append(f"{indent}{key}:")
            _value_lines(node, value if isinstance(value, Mapping) else {}, indent + "  ", lines)


_encode = json.JSONEncoder(ensure_ascii=False).encode


def values_schema(settings: Sequence[Setting]) -> str:
    """Return the JSON Schema of `values.yaml` as text.

    Unknown keys are errors, except in `global`, which parent charts use.
    """
    head = '{\n  "$schema": "http://json-schema.org/draft-07/schema#",\n'
    return head + _closed_schema(_nest_settings(settings), "  ", _chart_schemas()) + "\n}\n"


@cache
def _chart_schemas() -> tuple[str, ...]:
    """Return the members for the values that every chart has."""
    return tuple(f'"{key}": {_indent_json(_encode(schema), "    ")}' for key, schema in SCHEMAS.items())


def _closed_schema(tree: Mapping[str, Any], indent: str, more: Sequence[str] = ()) -> str:
    """Return the members of a closed object's schema; all properties are required, except `more`."""
    inner = indent + "  "
    names = [_encode(key) for key in tree]
    properties = []
    for name, node in zip(names, tree.values(), strict=True):
        if isinstance(node, Setting):
            leaf = _indent_json(_encode({"description": node.doc, **node.schema}), inner)
            properties.append(f"{name}: {leaf}")
        else:
            properties.append(f"{name}: {{\n{_closed_schema(node, inner + '  ')}\n{inner}}}")
    comma = f",\n{inner}"
    required = f"[\n{inner}{comma.join(names)}\n{indent}]" if names else "[]"
    return (
        f'{indent}"type": "object",\n'
        f'{indent}"additionalProperties": false,\n'
        f'{indent}"required": {required},\n'
        f'{indent}"properties": {{\n{inner}{comma.join((*properties, *more))}\n{indent}}}'
    )


@lru_cache(maxsize=10_000)
def _indent_json(text: str, indent: str) -> str:
    """Return indented JSON. Cached: the indenting encoder is slow, and apps share most settings."""
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False).replace("\n", "\n" + indent)
