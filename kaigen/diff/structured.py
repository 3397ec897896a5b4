"""Prints a change as JSON, for other tools.

The shape is stable; fields are only ever added:

    {
      "version": 1,
      "summary": {"apps": 1, "danger": 0, "notice": 1, "info": 2, "formattingOnly": 0, "otherFiles": 0},
      "apps": [{
        "root": "prod", "namespace": "team-a", "name": "finetune", "oldNamespace": "", "oldRoot": "",
        "oldName": "", "aliasOf": "",
        "status": "added | removed | changed | moved | renamed",
        "chartFiles": 0,
        "effects": [{"level": "info | notice | danger", "rule": "restart", "text": "pods restart (rolling)"}],
        "objects": [{
          "apiVersion": "batch/v1", "kind": "Job", "namespace": "team-a",
          "oldName": "finetune-1a2b3c4d", "newName": "finetune-5e6f7a8b",
          "status": "added | removed | changed | replaced",
          "path": "team-a/finetune/manifests/job.yaml",
          "effects": [],
          "fields": [{"path": "spec.template.spec.containers[run].image", "old": "a", "new": "b"}]
        }]
      }],
      "lock": ["owner/name@main moves from 1a2b3c4d5e6f to 7a8b9c0d1e2f; …"]
    }

`lock` is missing if kaigen.lock is the same. `oldName` is null for an added object and `newName` for a removed one. A
new field has no `old`, and a removed field no `new`. `kind` is empty for a file that could not be read as
objects. Values of Secrets are `(hidden)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from kaigen.core.json_types import Json
from kaigen.diff.model import AppChange, Change, Effect, FieldChange, ObjectChange

VERSION = 1
"""Version of the shape; it increases when a field changes its meaning or is removed."""


def render_json(change: Change) -> str:
    """Return a change as JSON, ending in a newline."""
    summary: dict[str, Json] = {
        "apps": len(change.apps),
        "danger": change.count("danger"),
        "notice": change.count("notice"),
        "info": change.count("info"),
        "formattingOnly": change.formatting_only,
        "otherFiles": change.other_files,
    }
    whole: dict[str, Json] = {"version": VERSION, "summary": summary, "apps": [_app(app) for app in change.apps]}
    if change.lock:
        whole["lock"] = list(change.lock)
    # ASCII, so that lone surrogates of odd file names stay valid JSON.
    return json.dumps(whole, indent=2) + "\n"


def _app(app: AppChange) -> Json:
    return {
        "root": app.root,
        "namespace": app.namespace,
        "name": app.name,
        "oldNamespace": app.old_namespace,
        "oldRoot": app.old_root,
        "oldName": app.old_name,
        "aliasOf": app.alias_of,
        "status": app.status,
        "chartFiles": app.charts,
        "effects": _effects(app.effects),
        "objects": [_object(item) for item in app.objects],
    }


def _object(item: ObjectChange) -> Json:
    return {
        "apiVersion": item.api_version,
        "kind": item.kind,
        "namespace": item.namespace,
        "oldName": item.old_name,
        "newName": item.new_name,
        "status": item.status,
        "path": item.path,
        "effects": _effects(item.effects),
        "fields": [_field(field) for field in item.fields],
    }


def _field(field: FieldChange) -> Json:
    found: dict[str, Json] = {"path": field.path}
    for key, side in (("old", field.old), ("new", field.new)):
        if side is None or isinstance(side, (str, int, float, list, dict)):
            found[key] = side
    return found


def _effects(effects: Iterable[Effect]) -> list[Json]:
    return [{"level": effect.level, "rule": effect.rule, "text": effect.text} for effect in effects]
