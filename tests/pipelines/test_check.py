"""`kaigen check` as a function: what counts as an object, its diagnostics, and what is never printed."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import jsonschema
import pytest

from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.report import OUTPUTS, render_report
from kaigen.pipeline.check_manifests import Checked, check_manifests
from tests.pipelines.checkout import ROOT, Checkout

SARIF = json.loads((ROOT / "tests" / "unit" / "diagnostics" / "data" / "sarif-2.1.0.json").read_text())

SECRETS = """\
apiVersion: v1
kind: Secret
metadata: {name: flow}
stringData: {user: ada-lovelace, password: "correct-horse"}
---
apiVersion: v1
kind: Secret
metadata: {name: wrong}
data:
  certificate: battery-staple!
  number: 8675309
  list: [hunter-two]
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  containers:
    - name: main
      image: a
      env:
        - {name: API_TOKEN, value: open-sesame}
        - name: HF
          value: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH
"""
HIDDEN = (
    *("ada-lovelace", "correct-horse", "battery-staple", "8675309", "hunter-two", "open-sesame"),
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
)


def check(text: str, **options: str) -> Checked:
    return check_manifests(["-"], stdin=BytesIO(text.encode()), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("output", OUTPUTS)
def test_no_report_shows_what_is_secret(output: str) -> None:
    checked = check(SECRETS)
    assert {"KG0565", "KG0566", "KG0567"} <= {item.code for item in checked.diagnostics}
    report = render_report(checked.diagnostics, output, files=checked.files)
    assert [each for each in HIDDEN if each in report] == []


def test_the_sarif_of_a_check_follows_its_schema() -> None:
    report = json.loads(render_report(check(SECRETS).diagnostics, "sarif", files=["<stdin>"]))
    jsonschema.Draft4Validator(SARIF).validate(report)


def test_what_kaigen_renders_is_right(tmp_path: Path) -> None:
    checked = check_manifests([str(Checkout(tmp_path).here / "rendered")])
    assert checked.diagnostics == ()
    assert checked.objects > 5
    assert not checked.failed(strict=True)


def test_a_document_that_is_no_object_lacks_everything() -> None:
    checked = check("[1, 2]\n")
    assert [item.code for item in checked.diagnostics] == ["KG0505"]
    assert checked.failed()
    assert not checked.unreadable


def test_text_that_is_no_yaml_is_not_read_and_the_rest_is_checked() -> None:
    checked = check("a: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndta: {}\n")
    assert checked.unreadable
    assert [item.code for item in checked.diagnostics] == ["KG0113", "KG0504"]


def test_a_list_is_checked_item_by_item_with_the_places_of_its_items() -> None:
    items = "".join(
        f"  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {{name: a{number}}}\n    data: {{a: {number}}}\n"
        for number in range(2)
    )
    checked = check(f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert checked.objects == 2
    assert [(item.path, item.mark and item.mark.line) for item in checked.diagnostics] == [
        ("items[0].data.a", 7),
        ("items[1].data.a", 11),
    ]


def test_the_same_object_twice_is_an_error_and_a_missing_one_a_warning() -> None:
    role = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\n"
    )
    found = {item.code: item.severity for item in check(f"{role}---\n{role}").diagnostics}
    assert found == {"KG0570": Severity.WARNING, "KG0573": Severity.ERROR}


@pytest.mark.parametrize(("level", "failed"), [("restricted", True), ("baseline", False), ("privileged", False)])
def test_the_requested_pod_security_level_is_used(level: str, failed: bool) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n"
    assert check(pod, pod_security=level).failed() is failed


def test_the_requested_kubernetes_version_is_used() -> None:
    text = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec: {}\n"
    assert [item.code for item in check(text, target="1.33").diagnostics] == ["KG0502"]
    assert check(text, target="1.36").diagnostics == ()


def test_an_unknown_version_or_level_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="Kubernetes"):
        check("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", target="1.2")
    with pytest.raises(ValueError, match="Pod Security"):
        check("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", pod_security="none")


def test_charts_and_kustomizations_below_a_folder_are_passed_over(tmp_path: Path) -> None:
    chart = tmp_path / "deep" / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: a\n")
    (chart / "values.yaml").write_text("a: 1\n")
    (chart / "templates" / "a.yaml").write_text("{{ .Values.a }}\n")
    (tmp_path / "kustomization.yaml").write_text("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
    (tmp_path / "a.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}')
    checked = check_manifests([str(tmp_path)])
    assert checked.objects == 1
    assert checked.diagnostics == ()
