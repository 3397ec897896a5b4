"""The chart of the reaper, rendered by Helm."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import kaigen
from kaigen.catalog.images import default_images
from kaigen.check.policy import check_policy
from kaigen.check.schema_check import check_object
from kaigen.compile.builders.alerts import RUNBOOK
from kaigen.diagnostics.codes import page_url
from kaigen.kubernetes.schemas import SUPPORTED_VERSIONS
from tests import helm

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "kaigen-reaper"
PAGE = ROOT / "docs" / f"{RUNBOOK}.md"
NAMESPACE = "kaigen-system"
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "cronjob": {"schedule": "*/10 * * * *", "namespaces": ["a", "b"]},
    "dry-run": {"dryRun": True, "namespaces": ["a"]},
    "everything": {
        "namespaces": "all",
        "rate": 0.5,
        "resync": "1h30m",
        "page": 100,
        "replicas": 2,
        "image": "registry.example/team/reaper@sha256:" + "0" * 64,
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "pull"}],
        "serviceAccount": {"annotations": {"cloud": "identity"}},
        "podMonitor": {"enabled": True, "interval": "30s", "labels": {"prometheus": "main"}},
        "prometheusRule": {
            "enabled": True,
            "labels": {"rules": "main"},
            "alertLabels": {"team": "platform"},
            "runbook": "https://runbooks.example.com/reaper",
        },
        "labels": {"team": "ml"},
        "annotations": {"note": "text"},
        "podLabels": {"cost": "shared"},
        "podAnnotations": {"sidecar": "none"},
        "runtimeClassName": "gvisor",
        "priorityClassName": "low",
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "global": {"imageRegistry": "mirror.example", "labels": {"all": "yes"}, "imagePullSecrets": ["global"]},
    },
    "own-account": {"serviceAccount": {"create": False, "name": "mine"}, "networkPolicy": {"enabled": False}},
}


def render(values: dict[str, Any], release: str = "reaper") -> list[dict[str, Any]]:
    return helm.template(CHART, release, NAMESPACE, values)


def find(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [obj for obj in objects if obj["kind"] == kind]


def pod_specs(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [obj["spec"] for obj in find(objects, "Pod")]
    found += [obj["spec"]["template"]["spec"] for obj in find(objects, "Deployment")]
    return found + [obj["spec"]["jobTemplate"]["spec"]["template"]["spec"] for obj in find(objects, "CronJob")]


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("release", ["reaper", "kaigen-reaper", "r" * 53])
def test_every_object_passes_every_check(values: dict[str, Any], release: str) -> None:
    for obj in render(values, release):
        for target in SUPPORTED_VERSIONS:
            found = check_object(obj, target=target)
            assert [f"{one.where}: {one.message}" for one in found] == [], (obj["kind"], target)
        policy = check_policy(obj, pod_security="restricted")
        assert [f"{one.where}: {one.message}" for one in policy] == [], obj["kind"]


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_program_accepts_its_arguments(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "runtimes" / "reaper"))
    from kaigen_reaper.cli import parser  # type: ignore[import-not-found, unused-ignore]

    specs = pod_specs(render(values))
    assert len(specs) == 2
    for spec in specs:
        (container,) = spec["containers"]
        options = parser().parse_args(container["args"])
        assert options.all_namespaces == (values.get("namespaces") == "all")
        assert options.page == values.get("page", 250)
    for name in [name for name in sys.modules if name.startswith("kaigen_reaper")]:
        monkeypatch.delitem(sys.modules, name)


def test_every_value_reaches_an_object() -> None:
    text = json.dumps(render(VALUES["everything"]))
    for part in (
        "--rate=0.5",
        "--resync=1h30m",
        '"replicas": 2',
        "mirror.example/team/reaper@sha256:",
        '"imagePullPolicy": "Always"',
        '"imagePullSecrets": [{"name": "pull"}, {"name": "global"}]',
        '"cloud": "identity"',
        '"interval": "30s"',
        '"prometheus": "main"',
        '"rules": "main"',
        '"team": "platform"',
        '"https://runbooks.example.com/reaper#kaigenreaperdown"',
        '"team": "ml"',
        '"all": "yes"',
        '"note": "text"',
        '"cost": "shared"',
        '"sidecar": "none"',
        '"runtimeClassName": "gvisor"',
        '"priorityClassName": "low"',
        '"pool": "system"',
        '"operator": "Exists"',
        '"nodeAffinity"',
        '"maxSkew": 1',
    ):
        assert part in text, part


def test_roles_are_in_the_namespaces_and_the_cluster_role_only_for_all() -> None:
    kinds = {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    found = {
        name: [
            (obj["kind"], obj["metadata"].get("namespace"))
            for obj in render(VALUES[name])
            if obj["kind"] in kinds and not obj["metadata"]["name"].endswith("-lease")
        ]
        for name in ("defaults", "cronjob", "everything")
    }
    assert found == {
        "defaults": [("Role", NAMESPACE), ("RoleBinding", NAMESPACE)],
        "cronjob": [("Role", "a"), ("Role", "b"), ("RoleBinding", "a"), ("RoleBinding", "b")],
        "everything": [("ClusterRole", None), ("ClusterRoleBinding", None)],
    }


def test_a_dry_run_may_not_delete() -> None:
    for role in find(render(VALUES["dry-run"]), "Role"):
        for rule in role["rules"]:
            assert "delete" not in rule["verbs"]
            assert rule["resources"] != ["events"]
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]


def test_the_schema_is_closed_and_accepts_the_defaults() -> None:
    for values in ({"other": 1}, {"podMonitor": {"other": 1}}, {"rate": 0}, {"namespaces": "one"}, {"page": 0}):
        with pytest.raises(helm.HelmError, match="values don't meet the specifications"):
            render(values)
    with pytest.raises(helm.HelmError):
        render({"serviceAccount": {"create": False}})


def test_every_value_has_a_comment_and_is_in_the_readme() -> None:
    text = (CHART / "values.yaml").read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    readme = (CHART / "README.md").read_text()

    def check(values: dict[str, Any], rules: dict[str, Any], path: str) -> None:
        assert set(values) <= set(rules["properties"])
        assert rules["additionalProperties"] is False
        for key, value in values.items():
            rule = rules["properties"][key]
            if "description" not in rule:
                check(value, rule, f"{path}{key}.")
                continue
            indent = "  " * path.count(".")
            assert f"{indent}# {rule['description']}\n{indent}{key}:" in text, key
            assert f"| `{path}{key}` | `{json.dumps(value)}` | {rule['description']} |" in readme

    check(yaml.safe_load(text), schema, "")


def test_the_versions_are_those_of_kaigen() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == kaigen.__version__
    images = {spec["containers"][0]["image"] for spec in pod_specs(render({}))}
    assert images == {default_images()["reaper"]}


def test_alerts_read_the_metrics_of_the_pod_monitor_and_link_to_the_documentation() -> None:
    objects = render({"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}})
    (monitor,), (rule,) = find(objects, "PodMonitor"), find(objects, "PrometheusRule")
    rules = rule["spec"]["groups"][0]["rules"]
    assert [each["alert"] for each in rules] == ["KaigenReaperErrors", "KaigenReaperDown"]
    headings = {line[4:].lower() for line in PAGE.read_text().splitlines() if line.startswith("### ")}
    for each in rules:
        assert f'{{job="{NAMESPACE}/{monitor["metadata"]["name"]}"}}' in each["expr"]
        page, _, heading = each["annotations"]["runbook_url"].partition("#")
        assert page == page_url(RUNBOOK)
        assert heading in headings
        assert "{{ $labels" not in each["annotations"]["summary"]


def test_alerts_need_the_metrics_of_a_pod_monitor() -> None:
    with pytest.raises(helm.HelmError, match=re.escape("prometheusRule.enabled needs podMonitor.enabled")):
        render({"prometheusRule": {"enabled": True}})
    assert find(render({"prometheusRule": {"enabled": True}, "schedule": "@hourly"}), "PrometheusRule") == []


def test_helm_lint_has_no_warning() -> None:
    assert "[WARNING]" not in helm.lint(CHART)
