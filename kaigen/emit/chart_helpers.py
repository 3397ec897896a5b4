"""Values that every chart has, and `_helpers.tpl`, which reads them: names, labels, and what a parent chart sets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kaigen.compile.app import App, Object
from kaigen.compile.builders import settings
from kaigen.compile.expressions import CHART, DIGEST_LENGTH
from kaigen.compile.field_expressions import MUTABLE_JOB_FIELDS, HashedName
from kaigen.emit.helm_template import dump_template

_NAME = r"^([a-z]([-a-z0-9]*[a-z0-9])?)?$"
_ENABLED = f"Whether a parent chart installs this one, with `condition: {CHART}.enabled`."

VALUES = f"""\
# Name of the app in names and labels; empty for the name of the chart.
nameOverride: ""
# Beginning of the names of all objects; empty for the names of release and app.
fullnameOverride: ""
# {_ENABLED}
enabled: true
global:
  # Registry of all images, in place of their own.
  imageRegistry: ""
  # Further Secrets for pulling images, by name.
  imagePullSecrets: []
  # Further labels of every object and pod.
  labels: {{}}
  # Further annotations of every object and pod.
  annotations: {{}}
"""
"""The last lines of `values.yaml`."""

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "nameOverride": {
        "description": "Name of the app in names and labels; empty for the name of the chart.",
        "type": "string",
        "pattern": _NAME,
    },
    "fullnameOverride": {
        "description": "Beginning of the names of all objects; empty for the names of release and app.",
        "type": "string",
        "pattern": _NAME,
    },
    "enabled": {"description": "Whether a parent chart installs this one.", "type": "boolean"},
    "global": {
        "description": "Values that a parent chart sets for all of its dependencies.",
        "type": "object",
        "properties": {
            "imageRegistry": {"type": "string"},
            "imagePullSecrets": {"type": "array", "items": {"type": ["string", "object"]}},
            "labels": settings.LABELS,
            "annotations": settings.STRING_MAP,
        },
    },
}
"""JSON Schemas of these values."""

ROWS = """\
| `nameOverride` | `""` | Name of the app in names and labels; empty for the name of the chart. |
| `fullnameOverride` | `""` | Beginning of the names of all objects; empty for the names of release and app. |
| `enabled` | `true` | Whether a parent chart installs this one. |
| `global.imageRegistry` | `""` | Registry of all images, in place of their own. |
| `global.imagePullSecrets` | `[]` | Further Secrets for pulling images, by name. |
| `global.labels` | `{}` | Further labels of every object and pod. |
| `global.annotations` | `{}` | Further annotations of every object and pod. |
"""
"""Rows of these values in the README's table of settings."""


_NAMES = """\
{{/* Name of the app, in names and labels. */}}
{{- define "CHART.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{/* A name of at most so many characters: a longer one becomes its beginning and a hash of the whole. */}}
{{- define "CHART.shortened" -}}
{{- $name := index . 0 -}}
{{- $most := index . 1 | int -}}
{{- if gt (len $name) $most -}}
{{- $begin := trunc (sub $most 9 | int) $name | trimAll "-." -}}
{{- printf "%s-%s" $begin (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{/*
Full name of the release, with which the names of its objects begin. A dependency shares the name of the release with
others, so its own name is always appended.
*/}}
{{- define "CHART.fullname" -}}
{{- $name := include "CHART.name" . -}}
{{- $release := replace "." "-" .Release.Name -}}
{{- if .Values.fullnameOverride -}}
{{- include "CHART.shortened" (list .Values.fullnameOverride MOST) -}}
DIGIT{{- else if and .Chart.IsRoot (contains $name $release) -}}
{{- include "CHART.shortened" (list $release MOST) -}}
{{- else -}}
{{- include "CHART.shortened" (list (printf "%s-%s" $release $name) MOST) -}}
{{- end -}}
{{- end }}

"""
_DIGIT = """\
{{- else if regexMatch "^[0-9]" $release -}}
{{- fail (printf "a Service may not begin with a digit, as the release `%s` does: set fullnameOverride" $release) -}}
"""
"""The branch of `fullname` for an app with a Service."""
_OTHER_APP = """\
{{/* Full name of another app: its name, or as it is in a dependency next to this one. */}}
{{- define "CHART.otherApp" -}}
{{- $context := index . 0 -}}
{{- if $context.Chart.IsRoot -}}
{{- index . 1 -}}
{{- else -}}
{{- $release := replace "." "-" $context.Release.Name -}}
{{- include "CHART.shortened" (list (printf "%s-%s" $release (index . 1)) (index . 2)) -}}
{{- end -}}
{{- end }}

"""
_RUN_DIGEST = """\
{{/* Hash of a run in this release: global values change its pods, so they change the hash. */}}
{{- define "CHART.runDigest" -}}
{{- $used := dict -}}
{{- range $key := list "annotations" "imagePullSecrets" "imageRegistry" "labels" -}}
{{- with get (index $ 0).Values.global $key }}{{ $_ := set $used $key . }}{{ end -}}
{{- end -}}
{{- if $used -}}
{{- printf "%s %s" (index . 1) (toJson $used) | sha256sum | trunc 8 -}}
{{- else -}}
{{- index . 1 -}}
{{- end -}}
{{- end }}

"""
_UNIQUE = """\
{{/* Stops where an item of a setting is there already: the API server would reject the list. */}}
{{- define "CHART.unique" -}}
{{- $keys := index . 1 -}}
{{- $taken := index . 2 -}}
{{- $path := index . 0 -}}
{{- range $item := index . 3 -}}
{{- $values := list -}}
{{- range $keys }}{{ $values = append $values (get $item . | default "" | toString) }}{{ end -}}
{{- $value := join " " $values -}}
{{- if and (trim $value) (has $value $taken) -}}
{{- fail (printf "%s: `%s` is there already; set it in the spec, or choose another %s" $path $value (first $keys)) -}}
{{- end -}}
{{- $taken = append $taken $value -}}
{{- end -}}
{{- end }}

"""
_GLOBALS = """\
{{/* Labels, with `global.labels`. */}}
{{- define "CHART.withGlobalLabels" -}}
{{- merge (dict) (index . 1) ((index . 0).Values.global.labels | default dict) | toJson -}}
{{- end }}

{{/* Annotations, with `global.annotations`. */}}
{{- define "CHART.withGlobalAnnotations" -}}
{{- merge (dict) (index . 1) ((index . 0).Values.global.annotations | default dict) | toJson -}}
{{- end }}

"""
_IMAGES = """\
{{/* An image, from the registry in `global.imageRegistry`. */}}
{{- define "CHART.image" -}}
{{- with (index . 0).Values.global.imageRegistry -}}
{{- printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" (index $ 1) "") -}}
{{- else -}}
{{- index . 1 -}}
{{- end -}}
{{- end }}

{{/* Secrets for pulling images, with `global.imagePullSecrets`. */}}
{{- define "CHART.imagePullSecrets" -}}
{{- $secrets := index . 1 -}}
{{- range (index . 0).Values.global.imagePullSecrets -}}
{{- $secret := kindIs "map" . | ternary . (dict "name" .) -}}
{{- if not (has $secret $secrets) }}{{ $secrets = append $secrets $secret }}{{ end -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end }}

"""


@lru_cache
def _names(most: int, *, service: bool) -> str:
    """Return the helpers for names that have at most this many characters, also that of a Service."""
    return _NAMES.replace("MOST", str(most)).replace("DIGIT", _DIGIT if service else "")


def helpers(app: App, templates: str) -> str:
    """Return `_helpers.tpl`.

    Args:
        app: the app.
        templates: the other templates of the chart; helpers that they do not use are left out.
    """
    labels = dump_template(app.labels, app.name)
    if any(setting.path == "labels" for setting in app.settings):
        given = f'include "{CHART}.withGlobalLabels" (list . .Values.labels) | fromJson'
        labels = f"{{{{- with {given} }}}}\n{{{{- toYaml . }}}}\n{{{{ end -}}}}\n{labels}"
    selector = dump_template(app.selector_labels, app.name)
    most = app.name_max
    text = (
        f"{_names(most, service=any(item.kind == 'Service' for item in app.objects))}{_GLOBALS}"
        "{{/* Labels of every object. */}}\n"
        f'{{{{- define "CHART.labels" -}}}}\n{labels}{{{{- end }}}}\n\n'
        "{{/* Labels that select the pods of this release. */}}\n"
        f'{{{{- define "CHART.selectorLabels" -}}}}\n{selector}{{{{- end }}}}\n'
    )
    for part, name in ((_IMAGES, "image"), (_OTHER_APP, "otherApp"), (_RUN_DIGEST, "runDigest"), (_UNIQUE, "unique")):
        if f'"{app.name}.{name}' in templates:
            text += "\n" + part.removesuffix("\n")
    return text.replace("CHART.", f"{app.name}.").replace(CHART, app.name)


def hashed_template(app: App, item: Object, name: HashedName) -> str:
    """Return the template of an object whose name ends in a hash of its spec."""
    part = f"{app.name}.{item.role}"
    head = {key: node for key, node in item.body.items() if key != "spec"}
    fields = " ".join(f'"{field}"' for field in MUTABLE_JOB_FIELDS)
    text = (
        f'{{{{- define "{part}.spec" -}}}}\n'
        f"{dump_template(name.spec, app.name)}"
        # Without `-`, which would remove the last line break of a text at the end of the spec.
        "{{ end }}\n"
        "{{- /*\n"
        "The API server rejects changes of this spec, so the name contains its hash. It is the hash of the spec in a\n"
        "release with the name of the chart, so it is the same in every release.\n"
        "*/}}\n"
        f'{{{{- define "{name.helper}" -}}}}\n'
        f'{{{{- $chart := dict "Name" "{app.name}" "IsRoot" true -}}}}\n'
        f'{{{{- $release := dict "Name" "{app.name}" "Namespace" .Release.Namespace -}}}}\n'
        '{{- $values := set (omit .Values "nameOverride" "fullnameOverride") "global" dict -}}\n'
        '{{- $same := dict "Chart" $chart "Release" $release "Values" $values -}}\n'
        f'{{{{- $spec := omit (include "{part}.spec" $same | fromYaml) {fields} -}}}}\n'
        f'{{{{- include "{CHART}.runDigest" (list . ($spec | toJson | sha256sum | trunc {DIGEST_LENGTH})) -}}}}\n'
        f"{{{{- end }}}}\n"
        f"{dump_template(head, app.name)}"
        "spec:\n"
        f'  {{{{- include "{part}.spec" . | nindent 2 }}}}\n'
    )
    return text.replace(CHART, app.name)
