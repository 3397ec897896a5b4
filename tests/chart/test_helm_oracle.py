"""Helm as a library and as a program agree, so that tests may use the faster library."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests import helm, tools

TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-z
  namespace: {{ .Release.Namespace }}
data:
  values: {{ toJson .Values | quote }}
  number: {{ .Values.number | quote }}
  revision: {{ .Release.Revision | quote }}
  install: {{ .Release.IsInstall | quote }}
  modern: {{ semverCompare ">=1.28-0" .Capabilities.KubeVersion.Version | quote }}
---
{{- if .Values.more }}
apiVersion: v1
kind: Secret
metadata: {name: a}
{{- end }}
"""

HOOK = """\
apiVersion: v1
kind: Pod
metadata:
  name: check
  annotations: {helm.sh/hook: test}
"""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "global": {"type": "object"},
        "more": {"type": "boolean"},
        "number": {"type": ["number", "null"]},
        "text": {"type": ["string", "null"]},
        "tree": {"type": "object"},
    },
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    root = tmp_path / "oracle"
    (root / "templates" / "tests").mkdir(parents=True)
    (root / "Chart.yaml").write_text(
        "apiVersion: v2\nname: oracle\nversion: 0.1.0\nicon: data:,\nkubeVersion: '>=1.28.0-0'\n"
    )
    (root / "values.yaml").write_text("more: false\nnumber: 1\ntext: t\ntree: {kept: 1, gone: 2}\n")
    (root / "values.schema.json").write_text(json.dumps(SCHEMA))
    (root / "templates" / "all.yaml").write_text(TEMPLATE)
    (root / "templates" / "_helpers.tpl").write_text('{{ define "nothing" }}{{ end }}')
    (root / "templates" / "NOTES.txt").write_text("Not: an object\n")
    (root / "templates" / "tests" / "check.yaml").write_text(HOOK)
    return root


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        {"more": True},
        {"number": 7},
        {"number": 2.5},
        {"number": 1e21},
        {"number": 12345678901},
        {"number": None},
        {"text": None, "tree": {"gone": None, "new": [1, "2", None, {}]}},
        {"text": "on"},
        {"text": "yes: {{ no }} # \u00e9\u2028\n"},
        {"global": {"region": "x"}},
    ],
    ids=str,
)
def test_library_and_program_render_the_same_objects(chart: Path, values: dict[str, Any] | None) -> None:
    slow = helm.template(chart, "one", "apart", values)
    assert helm.template(chart, "one", "apart", values, fast=True) == slow
    assert [found["kind"] for found in slow][:2] == ["ConfigMap", "Pod"]
    assert slow[0]["metadata"] == {"name": "one-z", "namespace": "apart"}


@pytest.mark.parametrize("values", [{"unknown": 1}, {"more": "yes"}, {"tree": []}], ids=str)
@pytest.mark.parametrize("fast", [False, True], ids=["program", "library"])
def test_both_reject_values_that_violate_the_schema(chart: Path, values: dict[str, Any], fast: bool) -> None:
    with pytest.raises(helm.HelmError, match=next(iter(values))):
        helm.template(chart, "one", "apart", values, fast=fast)


@pytest.mark.parametrize("fast", [False, True], ids=["program", "library"])
def test_both_reject_a_broken_template(chart: Path, fast: bool) -> None:
    (chart / "templates" / "broken.yaml").write_text("a: {{ .Values.missing.leaf }}\n")
    with pytest.raises(helm.HelmError, match=r"broken\.yaml"):
        helm.template(chart, "one", "apart", fast=fast)


@pytest.mark.parametrize("fast", [False, True], ids=["program", "library"])
def test_both_reject_an_invalid_release_name(chart: Path, fast: bool) -> None:
    with pytest.raises(helm.HelmError):
        helm.template(chart, "No_Name", "apart", fast=fast)


def test_lint_treats_warnings_as_errors(chart: Path) -> None:
    assert "0 chart(s) failed" in helm.lint(chart)
    (chart / "templates" / "all.yaml").unlink()
    (chart / "templates" / "tests" / "check.yaml").write_text("apiVersion: extensions/v1beta1\nkind: Ingress\n")
    with pytest.raises(helm.HelmError, match="1 chart"):
        helm.lint(chart)


def test_the_tools_run(helm: Path, kubectl: Path) -> None:
    assert os.access(helm, os.X_OK)
    assert os.access(kubectl, os.X_OK)
    assert (tools.helm(), tools.kubectl()) == (helm, kubectl)
