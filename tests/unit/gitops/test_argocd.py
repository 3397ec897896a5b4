"""What Argo CD reads: narrow projects, an Application for each app, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from typing import Any

import pytest

from kaigen.check.schema_check import check_object
from kaigen.kubernetes.kind_table import OWN_KINDS
from kaigen.kubernetes.schemas import is_cluster_scoped
from tests.unit.gitops.conftest import JOB, MODEL, Object, Rendered

ARGOCD: Object = {}
WAVE = "argocd.argoproj.io/sync-wave"


def app_objects(files: Rendered) -> list[Object]:
    """The objects of all apps, as the manifests hold them."""
    return [
        body
        for path, body in files.items()
        if not path.startswith("_") and "/_tenant/" not in path and body["kind"] != "Kustomization"
    ]


def held(objects: Iterable[Object], *, cluster: bool) -> set[tuple[str, str]]:
    return {
        (body["apiVersion"].rpartition("/")[0], body["kind"])
        for body in objects
        if bool(is_cluster_scoped(body["apiVersion"], body["kind"])) is cluster
    }


def pairs(entries: Iterable[Object]) -> set[tuple[str, str]]:
    return {(entry["group"], entry["kind"]) for entry in entries}


def applications(files: Rendered) -> dict[str, Object]:
    return {
        body["metadata"]["name"]: body
        for path, body in files.items()
        if path.startswith("_argocd/apps/") and body["kind"] == "Application"
    }


@pytest.mark.parametrize("environment", ["dev", "prod", "wide"])
@pytest.mark.parametrize("applied", ["each", "set"])
@pytest.mark.parametrize(
    "tenancy",
    [
        {},
        {
            "namespaces": True,
            "quota": {"requests.nvidia.com/gpu": 8},
            "defaultDeny": ["Ingress", "Egress"],
            "serviceAccount": "deployer",
            "adminServiceAccount": "argocd:admin",
        },
    ],
)
def test_every_object_passes_its_schema(
    rendered: Callable[..., Rendered], environment: str, applied: str, tenancy: Object
) -> None:
    files = rendered(environment, argocd={"applications": applied}, flux={}, tenancy=tenancy)
    checked = {
        path: [str(finding) for finding in check_object(body, target="1.36")]
        for path, body in files.items()
        if not path.endswith("kustomization.yaml")
    }
    assert {path: found for path, found in checked.items() if found} == {}
    assert "_flux/bootstrap/gitrepository.yaml" in checked
    assert any(path.startswith("_argocd/apps/_project.") for path in checked)


def test_the_project_of_a_namespace_admits_what_its_apps_can_hold(rendered: Callable[..., Rendered]) -> None:
    files = rendered(argocd=ARGOCD)
    project = files["_argocd/apps/_project.ml.yaml"]["spec"]
    objects = app_objects(files)
    assert pairs(project["namespaceResourceWhitelist"]) == held(objects, cluster=False) | {*OWN_KINDS}
    assert pairs(project["clusterResourceWhitelist"]) == held(objects, cluster=True) == set()
    assert project["destinations"] == [
        {"server": "https://near.example.com", "namespace": name}
        for name in sorted({body["metadata"]["namespace"] for body in objects})
    ]
    assert project["sourceRepos"] == ["https://git.example.com/ml.git"]


def test_every_project_syncs_only_commits_that_a_key_signed(rendered: Callable[..., Rendered]) -> None:
    keys = ["4AEE18F83AFDEB23", "07E34825A909B250"]
    files = rendered(argocd={"signatureKeys": keys})
    projects = [body for body in files.values() if body["kind"] == "AppProject"]
    assert len(projects) > 1
    for project in projects:
        assert project["spec"]["signatureKeys"] == [{"keyID": key} for key in keys]
        assert check_object(project) == []
    assert all("signatureKeys" not in each["spec"] for each in rendered(argocd={}).values() if "spec" in each)


def test_every_place_has_a_project_that_outlives_its_applications(rendered: Callable[..., Rendered]) -> None:
    config = {"environments": {"wide": {"clusters": ["near", "far"]}}}
    elsewhere = MODEL.replace("{name: qwen}", "{name: qwen, namespace: elsewhere}")
    files = rendered("wide", specs=(MODEL, JOB, elsewhere), config=config, argocd=ARGOCD)
    projects = {body["metadata"]["name"]: body for body in files.values() if body["kind"] == "AppProject"}
    used = {name: body["spec"] for name, body in applications(files).items()}
    assert {spec["project"] for spec in used.values()} == projects.keys() - {"ml-wide-root"}
    assert len(projects) == 5
    for spec in used.values():
        body = projects[spec["project"]]
        assert body["spec"]["destinations"] == [spec["destination"]]
        assert body["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]


def test_a_project_admits_the_nodes_of_its_own_namespace_only(rendered: Callable[..., Rendered]) -> None:
    serving = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  model: qwen
  resources: {instanceType: g6.xlarge}
  provisioning: karpenter
"""
    files = rendered(specs=(MODEL, serving), config={"profile": "eks"}, argocd=ARGOCD)
    (project,) = [body["spec"] for path, body in files.items() if "/_project." in path]
    admitted = project["clusterResourceWhitelist"]
    assert admitted == [{"group": "karpenter.sh", "kind": "NodePool", "name": "ml-*"}]
    (pool,) = [body for body in files.values() if body["kind"] == "NodePool"]
    assert fnmatch(pool["metadata"]["name"], admitted[0]["name"])


def test_a_project_admits_volumes_only_where_an_app_has_one(rendered: Callable[..., Rendered]) -> None:
    bucket = MODEL.replace("name: qwen", "name: resting, namespace: elsewhere")
    bucket = bucket[: bucket.index("  store:")] + '  store: {bucket: {uri: "s3://models/qwen"}}\n'
    files = rendered(specs=(MODEL, bucket), argocd=ARGOCD)
    projects = [body["spec"] for path, body in files.items() if "/_project." in path]
    admitted = {each["destinations"][0]["namespace"]: each["clusterResourceWhitelist"] for each in projects}
    assert admitted == {"ml": [], "elsewhere": [{"group": "", "kind": "PersistentVolume", "name": "elsewhere-*"}]}
    (volume,) = [body for body in files.values() if body["kind"] == "PersistentVolume"]
    assert fnmatch(volume["metadata"]["name"], "elsewhere-*")


def test_a_project_widens_with_what_is_let_through(rendered: Callable[..., Rendered]) -> None:
    plain = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
---
apiVersion: v1
kind: Secret
metadata: {name: there, namespace: elsewhere}
"""
    files = rendered(specs=(MODEL, plain), config={"passthrough": True}, argocd=ARGOCD)
    projects = {path: body["spec"] for path, body in files.items() if "/_project." in path}
    (project,) = [each for each in projects.values() if each["clusterResourceWhitelist"]]
    assert pairs(project["clusterResourceWhitelist"]) == {("rbac.authorization.k8s.io", "ClusterRole")}
    (there,) = [each for each in projects.values() if ("", "Secret") in pairs(each["namespaceResourceWhitelist"])]
    assert "elsewhere" in {entry["namespace"] for entry in there["destinations"]}


def test_each_app_has_its_application_behind_those_it_waits_for(rendered: Callable[..., Rendered]) -> None:
    found = applications(rendered(argocd=ARGOCD))
    assert sorted(found) == ["prod.ml.qwen", "prod.ml.tune"]
    spec = found["prod.ml.tune"]["spec"]
    assert spec["source"] == {
        "repoURL": "https://git.example.com/ml.git",
        "targetRevision": "main",
        "path": "rendered/prod/ml/tune/manifests",
    }
    assert spec["destination"] == {"server": "https://near.example.com", "namespace": "ml"}
    assert spec["project"] == "ml-prod.ml"
    waves = {name: body["metadata"].get("annotations", {}).get(WAVE, "0") for name, body in found.items()}
    assert waves == {"prod.ml.qwen": "0", "prod.ml.tune": "1"}


def test_every_path_is_a_folder_of_the_tree(rendered: Callable[..., Rendered]) -> None:
    tenancy = {"namespaces": True}
    for form in ("manifests", "chart"):
        files = rendered(argocd=ARGOCD, flux={}, tenancy=tenancy, form=form)
        folders = {path.rpartition("/")[0] for path in files}
        for body in files.values():
            path = body.get("spec", {}).get("source", {}).get("path") or body.get("spec", {}).get("path")
            if path and body["apiVersion"].partition("/")[0] in {"argoproj.io", "kustomize.toolkit.fluxcd.io"}:
                assert path.removeprefix("./").removeprefix("rendered/prod/") in folders


def test_several_clusters_get_an_application_each(rendered: Callable[..., Rendered]) -> None:
    files = rendered("wide", specs=(MODEL,), argocd=ARGOCD)
    found = applications(files)
    assert {name: body["spec"]["destination"] for name, body in found.items()} == {
        "wide.near.ml.qwen": {"server": "https://near.example.com", "namespace": "ml"},
        "wide.far.ml.qwen": {"name": "far", "namespace": "ml"},
    }
    assert {path for path in files if "/_project." in path} == {
        "_argocd/apps/_project.far.ml.yaml",
        "_argocd/apps/_project.near.ml.yaml",
    }


def test_an_application_set_finds_the_apps_and_nothing_else(rendered: Callable[..., Rendered]) -> None:
    config = {
        "clusters": {"edge": {"selector": {"tier": "edge"}}},
        "environments": {"all": {"clusters": ["near", "far", "edge"]}},
    }
    files = rendered("all", config=config, argocd={"applications": "set"})
    assert applications(files) == {}
    spec = files["_argocd/apps/applicationset.yaml"]["spec"]
    listed, labelled = (entry["matrix"]["generators"] for entry in spec["generators"])
    assert listed[0]["git"]["directories"] == [
        {"path": "rendered/all/*/*"},
        {"path": "rendered/all/_*/*", "exclude": True},
        {"path": "rendered/all/*/_tenant", "exclude": True},
    ]
    project = files["_argocd/apps/_project.ml.yaml"]["spec"]
    assert [entry.get("server") for entry in project["destinations"]].count("*") == 1
    assert spec["template"]["spec"]["project"] == "ml-all.{{index .path.segments 2}}"
    assert [entry["values"]["cluster"] for entry in listed[1]["list"]["elements"]] == ["near.", "far."]
    assert labelled[1]["clusters"]["selector"] == {"matchLabels": {"tier": "edge"}}
    assert (
        spec["template"]["metadata"]["name"] == "all.{{.values.cluster}}{{index .path.segments 2}}.{{.path.basename}}"
    )


def test_replicas_that_a_scaler_sets_are_no_difference(rendered: Callable[..., Rendered]) -> None:
    plain = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: ml}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 3
"""
    files = rendered(specs=(plain,), config={"passthrough": True}, argocd=ARGOCD)
    (found,) = applications(files).values()
    assert found["spec"]["ignoreDifferences"] == [
        {"group": "apps", "kind": "Deployment", "name": "web", "jsonPointers": ["/spec/replicas"]}
    ]
    assert "RespectIgnoreDifferences=true" in found["spec"]["syncPolicy"]["syncOptions"]


def test_charts_are_installed_under_the_apps_name(rendered: Callable[..., Rendered]) -> None:
    found = applications(rendered(argocd=ARGOCD, form="chart"))
    assert found["prod.ml.qwen"]["spec"]["source"]["path"] == "rendered/prod/ml/qwen/chart"
    assert found["prod.ml.qwen"]["spec"]["source"]["helm"] == {"releaseName": "qwen"}
    found = applications(rendered(argocd=ARGOCD, form="chart", charts="oci://registry.example.com/charts"))
    source = found["prod.ml.qwen"]["spec"]["source"]
    assert (source["repoURL"], source["chart"]) == ("registry.example.com/charts", "qwen")


def test_tenants_are_made_first_and_outlive_their_apps(rendered: Callable[..., Rendered]) -> None:
    files = rendered(argocd=ARGOCD, tenancy={"namespaces": True, "defaultDeny": ["Ingress"]})
    found = applications(files)
    waves = {name: int(body["metadata"].get("annotations", {}).get(WAVE, 0)) for name, body in found.items()}
    assert waves == {"prod.ml": 0, "prod.ml.qwen": 1, "prod.ml.tune": 2}
    assert "finalizers" not in found["prod.ml"]["metadata"]
    project = files["_argocd/apps/tenants.yaml"]["spec"]
    assert project["clusterResourceWhitelist"] == [{"group": "", "kind": "Namespace", "name": "ml"}]
    assert pairs(project["namespaceResourceWhitelist"]) == {("networking.k8s.io", "NetworkPolicy")}
    space = files["ml/_tenant/manifests/namespace-ml.yaml"]
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert space["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"


def test_a_looser_app_loosens_its_namespace(rendered: Callable[..., Rendered]) -> None:
    loose = JOB.replace("spec:\n", "spec:\n  security: {podSecurity: baseline}\n")
    files = rendered(specs=(MODEL, loose), argocd=ARGOCD, tenancy={"namespaces": True})
    labels = files["ml/_tenant/manifests/namespace-ml.yaml"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"


def test_names_fit_and_differ(rendered: Callable[..., Rendered]) -> None:
    long = [MODEL.replace("name: qwen", f"name: {'a' * 52}{letter}") for letter in "xy"]
    names = list(applications(rendered(specs=tuple(long), argocd=ARGOCD)))
    files = rendered(specs=tuple(long), argocd=ARGOCD)
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)
    assert names == list(applications(files))


def test_what_is_synced_by_hand_is_not_automated(rendered: Callable[..., Rendered]) -> None:
    config = {"environments": {"prod": {"gitops": {"argocd": {"autoSync": False}}}}}
    by_hand: dict[str, Any] = applications(rendered(config=config, argocd=ARGOCD))
    assert all("automated" not in body["spec"]["syncPolicy"] for body in by_hand.values())
    alone = applications(rendered("dev", config=config, argocd=ARGOCD))
    assert all(body["spec"]["syncPolicy"]["automated"]["selfHeal"] for body in alone.values())


def test_the_root_may_make_applications_only(rendered: Callable[..., Rendered]) -> None:
    files = rendered(argocd=ARGOCD)
    root = files["_argocd/bootstrap/appproject.yaml"]["spec"]
    assert pairs(root["namespaceResourceWhitelist"]) == {("argoproj.io", "AppProject"), ("argoproj.io", "Application")}
    assert root["clusterResourceWhitelist"] == []
    assert [entry["namespace"] for entry in root["destinations"]] == ["argocd"]
    assert files["_argocd/bootstrap/application.yaml"]["spec"]["source"]["path"] == "rendered/prod/_argocd/apps"


SERVICE = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: serve}
spec:
  engine: container
  image: docker.io/acme/serve:1.0
  model: qwen
"""


def test_the_job_of_a_changed_spec_does_not_run_next_to_the_one_it_replaces(rendered: Callable[..., Rendered]) -> None:
    found = applications(rendered("dev", (MODEL, JOB, SERVICE), argocd=ARGOCD))
    last = {
        name.rpartition(".")[2]
        for name, body in found.items()
        if "PruneLast=true" in body["spec"]["syncPolicy"]["syncOptions"]
    }
    assert "serve" in last
    assert last.isdisjoint({"qwen", "tune"})
