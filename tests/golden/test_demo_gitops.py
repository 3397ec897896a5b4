"""The three environments of the demo for Argo CD and Flux: they build, are valid and have minimal permissions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kaigen.check.schema_check import check_object
from kaigen.kubernetes.kind_table import OWN_KINDS
from kaigen.kubernetes.schemas import is_cluster_scoped
from tests import helm, plain_yaml, tools

RENDERED = Path(__file__).parents[2] / "examples" / "demo" / "rendered"
ENVIRONMENTS = ("dev", "staging", "prod")
FOLDERS = sorted(path.parent.relative_to(RENDERED).as_posix() for path in RENDERED.rglob("kustomization.yaml"))
CHARTS = sorted(path.parent.relative_to(RENDERED).as_posix() for path in RENDERED.rglob("Chart.yaml"))

Object = dict[str, Any]


def built(folder: str) -> list[Object]:
    """Return the objects `kubectl kustomize` builds from a folder."""
    kubectl = str(tools.kubectl())
    done = subprocess.run([kubectl, "kustomize", str(RENDERED / folder)], capture_output=True, check=True)
    return [found for found in plain_yaml.load_all(done.stdout) if found]


def findings(objects: Iterable[Object]) -> list[str]:
    return [str(finding) for body in objects for finding in check_object(body, target="1.36")]


def test_there_are_three_environments_in_both_forms_for_both_controllers() -> None:
    for environment in ENVIRONMENTS:
        for part in ("_argocd/bootstrap", "_argocd/apps", "_flux/bootstrap", "_flux/apps", "_flux/tenants"):
            assert f"{environment}/{part}" in FOLDERS
    assert len(CHARTS) == 15


@pytest.mark.parametrize("folder", FOLDERS)
def test_kustomize_builds_valid_objects_from_every_folder(folder: str) -> None:
    objects = built(folder)
    assert objects
    assert findings(objects) == []


@pytest.mark.parametrize("chart", CHARTS)
def test_helm_renders_valid_objects_from_every_chart(chart: str) -> None:
    _, namespace, app, _ = chart.split("/")
    objects = helm.template(RENDERED / chart, app, namespace)
    assert objects
    assert findings(objects) == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_entries_for_argocd_are_a_valid_config_map(environment: str) -> None:
    body = plain_yaml.load((RENDERED / environment / "_argocd" / "argocd-cm.yaml").read_text())
    assert findings([body]) == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize(
    ("project", "part", "more"), [(".ml-{env}", "[a-z]*", {*OWN_KINDS}), ("-tenants", "_tenant", set())]
)
def test_each_project_allows_exactly_the_kinds_it_syncs(
    environment: str, project: str, part: str, more: set[tuple[str, str]]
) -> None:
    applied = built(f"{environment}/_argocd/apps")
    name = f"ml-{environment}{project}".replace("{env}", environment)
    (found,) = [each["spec"] for each in applied if each["kind"] == "AppProject" and each["metadata"]["name"] == name]
    applications = [
        each["spec"] for each in applied if each["kind"] == "Application" and each["spec"]["project"] == name
    ]
    paths = {each["source"]["path"].removeprefix("rendered/") for each in applications}
    folders = {
        path.relative_to(RENDERED).as_posix() for path in RENDERED.glob(f"{environment}/[a-z]*/{part}/manifests")
    }
    assert paths == folders
    objects = [body for folder in folders for body in built(folder)]

    def kinds(cluster: bool) -> set[tuple[str, str]]:
        return {
            (body["apiVersion"].rpartition("/")[0], body["kind"])
            for body in objects
            if bool(is_cluster_scoped(body["apiVersion"], body["kind"])) is cluster
        }

    assert {(each["group"], each["kind"]) for each in found["namespaceResourceWhitelist"]} == (kinds(False) | more)
    assert {(each["group"], each["kind"]) for each in found["clusterResourceWhitelist"]} == kinds(True)
    spaces = {body["metadata"].get("namespace", body["metadata"]["name"]) for body in objects}
    assert {each["namespace"] for each in found["destinations"]} == spaces
    assert found["destinations"] == [
        {key: value for key, value in each["destination"].items()} for each in applications[:1]
    ]
