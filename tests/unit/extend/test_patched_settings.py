"""A patch of a list or map that also has entries of a setting keeps the setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.emit.chart import chart_files
from tests import helm
from tests.cases import write_chart
from tests.unit.extend.repository import compiled, messages

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec: {model: {folder: /weights}, engine: transformers, image: "registry.example/chat:1", resources: {gpus: 0}}
"""
VALUES: dict[str, Any] = {
    "extraEnv": [{"name": "GIVEN", "value": "1"}],
    "extraVolumes": [{"name": "given", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "given", "mountPath": "/given"}],
    "labels": {"given": "label"},
    "annotations": {"example.com/given": "note"},
    "podAnnotations": {"example.com/given": "pod"},
}
PATCHES = {
    "json": """\
    patch:
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: ADDED, value: "1"}}
      - {op: add, path: /spec/template/spec/volumes/-, value: {name: added, emptyDir: {}}}
      - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: added, mountPath: /added}}
      - {op: add, path: /metadata/labels/added, value: label}
      - {op: add, path: /metadata/annotations/example.com~1added, value: note}
      - {op: add, path: /spec/template/metadata/annotations, value: {example.com/added: pod}}
""",
    "merge": """\
    patch:
      metadata: {labels: {added: label}, annotations: {example.com/added: note}}
      spec:
        template:
          metadata: {annotations: {example.com/added: pod}}
          spec:
            containers:
              - name: serve
                env: [{name: ADDED, value: "1"}]
                volumeMounts: [{name: added, mountPath: /added}]
            volumes: [{name: added, emptyDir: {}}]
""",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_entries_of_a_patch_and_of_a_setting_are_both_there(tmp_path: Path, patch: str) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "chat.yaml").write_text(SPEC)
    (tmp_path / "kaigen.yaml").write_text(
        "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\npatches:\n"
        f"  - target: {{app: chat, kind: Deployment}}\n{patch}"
    )
    kept = set(VALUES) - ({"podAnnotations"} if "op: add" in patch else set())
    item = compiled(tmp_path)
    assert kept <= {setting.path for setting in item.app.settings}
    assert [each for each in messages(tmp_path) if "KG1024" in each and not set(VALUES) - kept] == []
    chart = write_chart(tmp_path / "charts", item)
    given = {key: value for key, value in VALUES.items() if key in kept}
    objects = helm.template(chart, "chat", "ml", given)
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    assert {"added": "label", "given": "label"}.items() <= deployment["metadata"]["labels"].items()
    assert deployment["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-wave": "3",
        "example.com/added": "note",
        "example.com/given": "note",
    }
    pod = deployment["spec"]["template"]["spec"]
    assert [each["name"] for each in pod["containers"][0]["env"]][-2:] == ["ADDED", "GIVEN"]
    assert [each["name"] for each in pod["containers"][0]["volumeMounts"]][-2:] == ["added", "given"]
    assert [each["name"] for each in pod["volumes"]][-2:] == ["added", "given"]
    notes = deployment["spec"]["template"]["metadata"]["annotations"]
    assert notes["example.com/added"] == "pod"
    assert ("example.com/given" in notes) == ("podAnnotations" in kept)
    values = yaml.safe_load(chart_files(item.app, item.values)["ml/chat/chart/values.yaml"])
    assert kept <= set(values)
