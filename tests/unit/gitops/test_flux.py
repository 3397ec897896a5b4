"""What Flux reads: a source, and a Kustomization or a HelmRelease for each app."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import ANY

import pytest

from kaigen.diagnostics.errors import InputError
from kaigen.kubernetes.kind_table import OWN_KINDS
from kaigen.kubernetes.manifest import resource_of
from tests.unit.gitops.conftest import JOB, MODEL, Object, Rendered

FLUX: Object = {}
TENANT: Object = {"serviceAccount": "deployer"}
SERVER = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  engine: transformers
  model: {folder: /weights}
"""


def test_a_kustomization_waits_for_what_its_app_needs(rendered: Callable[..., Rendered]) -> None:
    spec = rendered(flux=FLUX)["_flux/apps/ml.tune.yaml"]["spec"]
    assert spec["dependsOn"] == [{"name": "prod.ml.qwen"}]
    assert spec["path"] == "./rendered/prod/ml/tune/manifests"
    assert (spec["prune"], spec["wait"]) == (True, True)
    assert spec["sourceRef"] == {"kind": "GitRepository", "name": "ml-prod"}


def test_no_commit_of_a_routed_app_is_applied_with_the_previous_dependencies(rendered: Callable[..., Rendered]) -> None:
    def component(canary: str, form: str = "manifests") -> str:
        route = "  route: {host: chat.example.com, gateway: {name: public}}\n"
        files = rendered(specs=(SERVER + route + canary,), flux=FLUX, form=form)
        app = files["_flux/apps/ml.chat.yaml"]["spec"]
        listed = [path for path, body in files.items() if body.get("kind") == "Component"]
        if form == "chart":
            assert not listed
            return ""
        (path,) = app["components"]
        assert listed == [f"{path.removeprefix('../../../')}/kustomization.yaml"]
        assert files[listed[0]] == {"apiVersion": ANY, "kind": "Component", "resources": []}
        assert not any("after" in path for path in files["_flux/apps/kustomization.yaml"]["resources"])
        return str(path)

    alone, ten, hundred = (
        component(f"  canary: {{weight: {weight}, env: {{A: b}}, pool: two}}\n") for weight in (0, 10, 100)
    )
    assert alone == component("")
    assert alone != ten == hundred
    assert component("", form="chart") == ""
    without = rendered(specs=(SERVER,), flux=FLUX)
    assert "components" not in without["_flux/apps/ml.chat.yaml"]["spec"]
    assert not any(path.startswith("_flux/after") for path in without)


def test_the_timeout_is_beyond_the_deadline_of_the_work(rendered: Callable[..., Rendered]) -> None:
    files = rendered(flux={"timeout": "45m"})
    assert files["_flux/bootstrap/apps.yaml"]["spec"].get("timeout") is None
    assert files["_flux/apps/ml.tune.yaml"]["spec"]["timeout"] == f"{2 * 3600 + 300}s"
    fetch = files["ml/qwen/manifests/job.yaml"]["spec"].get("activeDeadlineSeconds")
    expected = f"{fetch + 300}s" if fetch else "45m"
    assert files["_flux/apps/ml.qwen.yaml"]["spec"]["timeout"] == expected


def test_a_timeout_of_the_user_overrides_the_time_that_pods_may_take_to_start(
    rendered: Callable[..., Rendered],
) -> None:
    def timeout(flux: Object) -> str:
        return str(rendered(specs=(SERVER,), flux=flux)["_flux/apps/ml.chat.yaml"]["spec"]["timeout"])

    assert timeout({"timeout": "3m"}) == "3m"
    probe = rendered(specs=(SERVER,), flux=FLUX)["ml/chat/manifests/deployment.yaml"]["spec"]["template"]
    startup = probe["spec"]["containers"][0]["startupProbe"]
    starting = startup["failureThreshold"] * startup["periodSeconds"]
    assert timeout(FLUX) == f"{starting + 600 + 300}s"


def test_an_artifact_takes_the_place_of_the_repository(rendered: Callable[..., Rendered]) -> None:
    files = rendered(flux={"oci": "oci://registry.example.com/ml/{env}", "secret": "pull"})
    source = files["_flux/bootstrap/ocirepository.yaml"]
    assert source["spec"]["url"] == "oci://registry.example.com/ml/prod"
    assert source["spec"]["secretRef"] == {"name": "pull"}
    spec = files["_flux/apps/ml.qwen.yaml"]["spec"]
    assert (spec["sourceRef"]["kind"], spec["path"]) == ("OCIRepository", "./ml/qwen/manifests")
    assert files["_flux/bootstrap/apps.yaml"]["spec"]["path"] == "./_flux/apps"


def test_charts_are_helm_releases(rendered: Callable[..., Rendered]) -> None:
    files = rendered(flux=FLUX, form="chart")
    spec = files["_flux/apps/ml.tune.yaml"]["spec"]
    assert (spec["releaseName"], spec["targetNamespace"]) == ("tune", "ml")
    assert spec["chart"]["spec"]["chart"] == "./rendered/prod/ml/tune/chart"
    assert spec["dependsOn"] == [{"name": "prod.ml.qwen"}]
    files = rendered(flux=FLUX, form="chart", charts="oci://registry.example.com/charts")
    assert files["_flux/apps/ml.tune.yaml"]["spec"]["chartRef"] == {"kind": "OCIRepository", "name": "prod.ml.tune"}
    source = files["_flux/apps/ml.tune.chart.yaml"]["spec"]
    assert source["url"] == "oci://registry.example.com/charts/tune"
    assert "secretRef" not in source


def test_flux_verifies_artifacts_of_a_registry_and_no_commits(rendered: Callable[..., Rendered]) -> None:
    charts = "oci://registry.example.com/charts"
    files = rendered(flux={"verifySecret": "keys"}, form="chart", charts=charts)
    verify = {"provider": "cosign", "secretRef": {"name": "keys"}}
    assert files["_flux/apps/ml.tune.chart.yaml"]["spec"]["verify"] == verify
    assert "verify" not in files["_flux/bootstrap/gitrepository.yaml"]["spec"]
    files = rendered(flux={"verifySecret": "keys", "oci": "oci://registry.example.com/ml"})
    assert files["_flux/bootstrap/ocirepository.yaml"]["spec"]["verify"] == verify


@pytest.mark.parametrize(("own", "used"), [({}, "git"), ({"chartsSecret": "registry"}, "registry")])
def test_the_registry_of_charts_may_have_a_secret_of_its_own(
    rendered: Callable[..., Rendered], own: Object, used: str
) -> None:
    charts = "oci://registry.example.com/charts"
    files = rendered(flux={"secret": "git", **own}, form="chart", charts=charts)
    assert files["_flux/bootstrap/gitrepository.yaml"]["spec"]["secretRef"] == {"name": "git"}
    assert files["_flux/apps/ml.tune.chart.yaml"]["spec"]["secretRef"] == {"name": used}


def test_an_account_of_the_namespace_syncs_its_apps(rendered: Callable[..., Rendered]) -> None:
    """Flux looks for the account in the Kustomization's own namespace."""
    files = rendered(flux=FLUX, tenancy={"namespaces": True, "serviceAccount": "deployer"})
    found = files["_flux/apps/ml.tune.yaml"]
    assert found["metadata"]["namespace"] == "ml"
    assert found["spec"]["serviceAccountName"] == "deployer"
    # Its source is next to it: with --no-cross-namespace-refs, Flux reads no other.
    assert "namespace" not in found["spec"]["sourceRef"]
    source = files["_flux/apps/ml.yaml"]
    assert (source["metadata"]["name"], source["metadata"]["namespace"]) == ("ml-prod", "ml")
    assert found["spec"]["sourceRef"] == {"kind": source["kind"], "name": source["metadata"]["name"]}
    assert source["spec"] == files["_flux/bootstrap/gitrepository.yaml"]["spec"]
    tenant = files["_flux/tenants/ml.yaml"]
    assert tenant["metadata"]["namespace"] == "flux-system"
    assert "serviceAccountName" not in tenant["spec"]
    assert files["_flux/bootstrap/apps.yaml"]["spec"]["dependsOn"] == [{"name": "ml-prod-tenants"}]


@pytest.mark.parametrize("tenancy", [{}, {"tenancy": {"serviceAccount": "deployer"}}])
@pytest.mark.parametrize(
    ("oci", "form"),
    [
        ({}, {}),
        ({}, {"form": "chart"}),
        ({}, {"form": "chart", "charts": "oci://registry.example/charts"}),
        ({"oci": "oci://registry.example/tree"}, {}),
        ({"oci": "oci://registry.example/tree"}, {"form": "chart", "charts": "oci://registry.example/charts"}),
    ],
)
def test_every_object_reads_a_source_of_its_own_namespace(
    rendered: Callable[..., Rendered], tenancy: Object, oci: Object, form: Object
) -> None:
    elsewhere = MODEL.replace("name: qwen", "name: qwen, namespace: other")
    objects = rendered(specs=(MODEL, JOB, elsewhere), flux=oci, **tenancy, **form)
    found = [body for path, body in objects.items() if path.startswith("_flux/")]
    sources = {
        (body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])
        for body in found
        if body["kind"] in {"GitRepository", "OCIRepository"}
    }
    references = 0
    for body in found:
        spec = body.get("spec", {})
        chart = spec.get("chart", {}).get("spec", {}).get("sourceRef")
        for reference in (spec.get("sourceRef"), spec.get("chartRef"), chart):
            if reference is not None:
                references += 1
                assert "namespace" not in reference
                assert (reference["kind"], body["metadata"]["namespace"], reference["name"]) in sources
    assert references >= 4


@pytest.mark.parametrize("account", ["", "deployer"])
def test_every_object_names_an_account_when_flux_has_a_default_one(
    rendered: Callable[..., Rendered], account: str
) -> None:
    tenancy = {"namespaces": True, **({"serviceAccount": account} if account else {})}
    for form in ("manifests", "chart"):
        files = rendered(flux={"serviceAccount": "flux"}, tenancy=tenancy, form=form)
        named = {
            path: body["spec"].get("serviceAccountName")
            for path, body in files.items()
            if path.startswith("_flux/") and {"path", "chart"} & body.get("spec", {}).keys()
        }
        apps = {path for path in named if path.startswith("_flux/apps/")}
        assert len(apps) == 2
        assert {named[path] for path in apps} == {account or "flux"}
        assert {named[path] for path in named.keys() - apps} == {"flux"}
        assert len(named) == 5, "two of the bootstrap, and one of the namespace"


@pytest.mark.parametrize("charts", [None, "oci://registry.example.com/charts"])
def test_an_account_that_syncs_charts_may_keep_helms_releases(
    rendered: Callable[..., Rendered], charts: str | None
) -> None:
    tenancy = {**TENANT, "adminServiceAccount": "argocd:admin"}

    def secrets(form: str, **tools: Object) -> list[str]:
        files = rendered(**tools, tenancy=tenancy, form=form, **({"charts": charts} if charts else {}))
        return verbs(files["ml/_tenant/manifests/role-deployer.yaml"], "", "secrets")

    assert secrets("chart", flux=FLUX) == ["get", "list", "watch", "create", "patch", "update", "delete"]
    assert "create" not in secrets("manifests", flux=FLUX)
    # Argo CD stores no releases.
    assert "create" not in secrets("chart", argocd={})


def test_an_account_may_read_what_the_health_of_its_apps_shows(rendered: Callable[..., Rendered]) -> None:
    role = rendered(specs=(SERVER,), flux=FLUX, tenancy=TENANT)["ml/_tenant/manifests/role-deployer.yaml"]
    for group, resource in (("apps", "replicasets"), ("", "pods")):
        assert verbs(role, group, resource) == ["get", "list", "watch"]
    role = rendered(specs=(MODEL,), flux=FLUX, tenancy=TENANT)["ml/_tenant/manifests/role-deployer.yaml"]
    assert verbs(role, "apps", "replicasets") == []


def verbs(role: Object, group: str, resource: str) -> list[str]:
    """Return what a role may do with a resource."""
    return [
        verb
        for rule in role["rules"]
        if group in rule["apiGroups"] and resource in rule["resources"] and "resourceNames" not in rule
        for verb in rule["verbs"]
    ]


@pytest.mark.parametrize("namespace", ["ml", "ml-tenants", "ml-tenant", "other"])
def test_a_namespace_with_the_name_of_the_project_replaces_no_object(
    rendered: Callable[..., Rendered], namespace: str
) -> None:
    config = {"namespace": namespace, "environments": {}}
    files = rendered("", config=config, flux=FLUX, tenancy={"namespaces": True}, project="ml")
    made = [
        body["metadata"]["name"]
        for path, body in files.items()
        if body["kind"] == "Kustomization" and body["apiVersion"].startswith("kustomize.toolkit.fluxcd.io")
    ]
    assert len(made) == len(set(made)) == 5


def test_the_account_may_do_what_its_apps_take(rendered: Callable[..., Rendered]) -> None:
    files = rendered(flux=FLUX, tenancy={"serviceAccount": "deployer"})
    rules = files["ml/_tenant/manifests/role-deployer.yaml"]["rules"]
    held = {
        (body["apiVersion"].rpartition("/")[0], resource_of(body["kind"]))
        for path, body in files.items()
        if path.startswith("ml/") and "/_tenant/" not in path and body["kind"] != "Kustomization"
    }
    writing = [
        rule for rule in rules if "patch" in rule["verbs"] and "resourceNames" not in rule and "delete" in rule["verbs"]
    ]
    assert {(group, name) for rule in writing for group in rule["apiGroups"] for name in rule["resources"]} == held
    removing = [rule for rule in rules if "delete" in rule["verbs"] and "create" not in rule["verbs"]]
    assert {(group, name) for rule in removing for group in rule["apiGroups"] for name in rule["resources"]} == {
        (group, resource_of(kind)) for group, kind in OWN_KINDS
    } - held
    for rule in files["ml/qwen/manifests/role.yaml"]["rules"]:
        assert rule in rules, "an account can grant only rights that it has"
    assert all("*" not in str(rule) for rule in rules)


SEALED = """\
apiVersion: v1
kind: Secret
metadata: {name: hf-token, namespace: ml}
data:
  token: ENC[AES256_GCM,data:abcd,iv:abcd,tag:abcd,type:str]
sops:
  mac: ENC[AES256_GCM,data:abcd,iv:abcd,tag:abcd,type:str]
  version: 3.13.3
"""


@pytest.mark.parametrize("form", ["manifests", "chart"])
def test_what_is_encrypted_is_decrypted_and_nothing_else(rendered: Callable[..., Rendered], form: str) -> None:
    files = rendered(specs=(MODEL, SEALED), flux={"decryption": {"secret": "age"}}, form=form)
    decrypted = [body for body in files.values() if "decryption" in body.get("spec", {})]
    assert [body["spec"]["decryption"] for body in decrypted] == [{"provider": "sops", "secretRef": {"name": "age"}}]
    assert decrypted[0]["kind"] == "Kustomization", "no chart can hold it"
    assert "targetNamespace" not in decrypted[0]["spec"]
    assert decrypted[0]["spec"]["path"].endswith("/manifests")


def test_what_is_encrypted_without_a_namespace_goes_to_that_of_its_app(rendered: Callable[..., Rendered]) -> None:
    files = rendered(specs=(SEALED.replace(", namespace: ml", ""),), flux={"decryption": {}})
    (found,) = (body for path, body in files.items() if path.startswith("_flux/apps/ml."))
    assert found["spec"]["targetNamespace"] == "ml"


def test_a_volume_that_waits_for_the_first_run_of_a_schedule_is_ready(rendered: Callable[..., Rendered]) -> None:
    output = JOB + "  output: {volume: {size: 1Gi}}\n"
    once, scheduled = (
        rendered(specs=(MODEL, spec), flux=FLUX)["_flux/apps/ml.tune.yaml"]["spec"]
        for spec in (output, output + '  schedule: "@daily"\n')
    )
    (check,) = scheduled["healthCheckExprs"]
    assert (check["kind"], check["current"]) == ("PersistentVolumeClaim", "status.phase in ['Pending', 'Bound']")
    assert "healthCheckExprs" not in once


def test_a_queued_job_releases_what_waits_for_it_when_it_is_complete(rendered: Callable[..., Rendered]) -> None:
    queued = JOB + "  placement: {queue: batch}\n"
    spec = rendered(specs=(MODEL, queued), flux=FLUX)["_flux/apps/ml.tune.yaml"]["spec"]
    (check,) = spec["healthCheckExprs"]
    assert (check["apiVersion"], check["kind"]) == ("batch/v1", "Job")
    assert "'Complete'" in check["current"]
    assert spec["timeout"] == "7500s", "a Kustomization that is not ready in time is only compared again"
    # A release that is not ready in time has failed.
    spec = rendered(specs=(MODEL, queued), flux=FLUX, form="chart")["_flux/apps/ml.tune.yaml"]["spec"]
    assert spec["timeout"] == f"{24 * 3600 + 7500}s"
    assert spec["healthCheckExprs"] == [check]
    spec = rendered(specs=(MODEL, queued), flux={"timeout": "2h"}, form="chart")["_flux/apps/ml.tune.yaml"]
    assert spec["spec"]["timeout"] == "7500s"
    assert "healthCheckExprs" not in rendered(flux=FLUX)["_flux/apps/ml.tune.yaml"]["spec"]


def test_a_commit_changes_the_versions_of_the_charts_that_it_changes(rendered: Callable[..., Rendered]) -> None:
    def versions(*specs: str) -> dict[str, str]:
        files = rendered(specs=specs, flux=FLUX, form="chart")
        for app in ("qwen", "tune"):
            chart = files[f"_flux/apps/ml.{app}.yaml"]["spec"]["chart"]["spec"]
            assert chart["reconcileStrategy"] == "ChartVersion"
        return {app: files[f"ml/{app}/chart/Chart.yaml"]["version"] for app in ("qwen", "tune")}

    before = versions(MODEL, JOB)
    assert all(version.startswith("0.1.0+") for version in before.values())
    after = versions(MODEL, JOB.replace("2h", "3h"))
    assert after["qwen"] == before["qwen"]
    assert after["tune"] != before["tune"]
    plain = rendered(argocd={}, form="chart")["ml/tune/chart/Chart.yaml"]["version"]
    assert plain == "0.1.0", "Argo CD compares the objects"


@pytest.mark.parametrize("suffix", [True, False])
def test_the_tree_names_the_version_that_is_pushed(rendered: Callable[..., Rendered], suffix: bool) -> None:
    files = rendered(
        flux=FLUX,
        argocd={},
        form="chart",
        charts="oci://registry.example.com/charts",
        config={"publish": {"versionSuffix": suffix}},
    )
    version = files["ml/tune/chart/Chart.yaml"]["version"]
    assert ("+" in version) == suffix
    tag = version.replace("+", "_")
    assert files["_flux/apps/ml.tune.chart.yaml"]["spec"]["ref"] == {"tag": tag}
    (application,) = (files[path] for path in files if path.endswith("apps/ml.tune.yaml") and "argocd" in path)
    assert application["spec"]["source"]["targetRevision"] == version


@pytest.mark.parametrize("form", ["manifests", "both"])
def test_an_artifact_with_charts_needs_a_registry_for_them(rendered: Callable[..., Rendered], form: str) -> None:
    flux = {"oci": "oci://registry.example.com/ml/{env}"}
    with pytest.raises(InputError) as caught:
        rendered(flux=flux, form="chart")
    (problem,) = caught.value.diagnostics
    assert problem.code == "KG0723"
    assert "gitops.charts" in str(problem.hint)
    assert problem.mark is not None
    files = rendered(flux=flux, form=form)
    assert files["_flux/apps/ml.tune.yaml"]["kind"] == "Kustomization"
    files = rendered(flux=flux, form="chart", charts="oci://registry.example.com/charts")
    assert files["_flux/apps/ml.tune.yaml"]["kind"] == "HelmRelease"


def test_a_job_of_a_fixed_name_is_made_anew_unless_data_would_go(rendered: Callable[..., Rendered]) -> None:
    plain = """\
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: docker.io/acme/once:1}]
"""
    claim = """\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ml}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
"""
    config = {"passthrough": True}
    (path,) = (path for path in rendered(specs=(plain,), config=config, flux=FLUX) if path.startswith("_flux/apps/ml"))
    assert rendered(specs=(plain,), config=config, flux=FLUX)[path]["spec"]["force"] is True
    assert "force" not in rendered(specs=(plain + claim,), config=config, flux=FLUX)[path]["spec"]
    assert "force" not in rendered(flux=FLUX)["_flux/apps/ml.tune.yaml"]["spec"], "its name is that of its content"


def test_kinds_unknown_to_flux_get_health_expressions(rendered: Callable[..., Rendered]) -> None:
    queue = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: ml}
spec: {clusterQueue: all}
"""
    files = rendered(specs=(queue,), config={"passthrough": True}, flux=FLUX, argocd={})
    (found,) = (body for path, body in files.items() if path.startswith("_flux/apps/ml."))
    assert [entry["kind"] for entry in found["spec"]["healthCheckExprs"]] == ["LocalQueue"]
    data = files["_argocd/argocd-cm.yaml"]["data"]
    assert "resource.customizations.health.kueue.x-k8s.io_LocalQueue" in data
    assert len(data) == 2
    assert "healthCheckExprs" not in rendered(flux=FLUX, specs=(MODEL, JOB))["_flux/apps/ml.qwen.yaml"]["spec"]


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Job", "jobs"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Gateway", "gateways"),
        ("ResourceFlavor", "resourceflavors"),
    ],
)
def test_kinds_are_counted_as_the_api_server_does(kind: str, plural: str) -> None:
    assert resource_of(kind) == plural


def test_objects_have_annotations_for_the_syncers_of_their_environment_only(rendered: Callable[..., Rendered]) -> None:
    def notes(**syncers: Object) -> set[str]:
        kept = MODEL.replace("size: 2Gi", "size: 2Gi, retain: true")
        found = rendered(specs=(kept, JOB), tenancy={"namespaces": True}, **syncers)
        return {key for body in found.values() for key in body.get("metadata", {}).get("annotations", {})}

    prefix = "argocd.argoproj.io/"
    with_both = notes(flux=FLUX, argocd={})
    assert {f"{prefix}sync-wave", f"{prefix}sync-options"} <= with_both
    only_flux = notes(flux=FLUX)
    assert not {key for key in only_flux if key.startswith(prefix)}
    assert "kustomize.toolkit.fluxcd.io/prune" in only_flux
