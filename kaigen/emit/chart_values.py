"""Values that every chart has and plain manifests have not: names of the release, and what a parent chart sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.builders import settings
from kaigen.compile.expressions import CHART

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
