"""Write a chart's README and NOTES.txt.

Own templates because importing a template engine takes longer than a small render.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from kaigen.compile.app import App
from kaigen.core.json_types import Json
from kaigen.emit.chart_helpers import ROWS
from kaigen.emit.manifests import shown_source
from kaigen.kubernetes.kind_table import KINDS

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

_encode = json.JSONEncoder(ensure_ascii=False).encode


def readme(app: App, values: Mapping[str, Json]) -> str:
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
