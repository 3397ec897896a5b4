"""What Flux reads: a source, and a Kustomization or a HelmRelease for each app."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kaigen.gitops.own_kinds import OWN_KINDS
from kaigen.gitops.tenancy import resource_of
from tests.unit.gitops.conftest import JOB, MODEL, Object, Rendered

FLUX: Object = {}


def test_a_kustomization_waits_for_what_its_app_needs(rendered: Callable[..., Rendered]) -> None:
    spec = rendered(flux=FLUX)["_flux/apps/ml.tune.yaml"]["spec"]
    assert spec["dependsOn"] == [{"name": "prod.ml.qwen"}]
    assert spec["path"] == "./rendered/prod/ml/tune/manifests"
    assert (spec["prune"], spec["wait"]) == (True, True)
    assert spec["sourceRef"] == {"kind": "GitRepository", "name": "ml-prod"}


def test_the_timeout_is_beyond_the_deadline_of_the_work(rendered: Callable[..., Rendered]) -> None:
    files = rendered(flux={"timeout": "45m"})
    assert files["_flux/apps/ml.tune.yaml"]["spec"]["timeout"] == f"{2 * 3600 + 300}s"
    fetch = files["ml/qwen/manifests/job.yaml"]["spec"].get("activeDeadlineSeconds")
    expected = f"{fetch + 300}s" if fetch else "45m"
    assert files["_flux/apps/ml.qwen.yaml"]["spec"]["timeout"] == expected


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
    assert files["_flux/apps/ml.tune.yaml"]["spec"]["chartRef"] == {
        "kind": "OCIRepository",
        "name": "prod.ml.tune",
    }
    assert files["_flux/apps/ml.tune.chart.yaml"]["spec"]["url"] == "oci://registry.example.com/charts/tune"


def test_an_account_of_the_namespace_syncs_its_apps(rendered: Callable[..., Rendered]) -> None:
    """Flux looks for the account in the Kustomization's own namespace."""
    files = rendered(flux=FLUX, tenancy={"namespaces": True, "serviceAccount": "deployer"})
    found = files["_flux/apps/ml.tune.yaml"]
    assert found["metadata"]["namespace"] == "ml"
    assert found["spec"]["serviceAccountName"] == "deployer"
    assert found["spec"]["sourceRef"]["namespace"] == "flux-system"
    tenant = files["_flux/tenants/ml.yaml"]
    assert tenant["metadata"]["namespace"] == "flux-system"
    assert "serviceAccountName" not in tenant["spec"]
    assert files["_flux/bootstrap/apps.yaml"]["spec"]["dependsOn"] == [{"name": "ml-prod-tenants"}]


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
        rule
        for rule in rules
        if "patch" in rule["verbs"] and "resourceNames" not in rule and "delete" in rule["verbs"]
    ]
    assert {
        (group, name) for rule in writing for group in rule["apiGroups"] for name in rule["resources"]
    } == held
    removing = [rule for rule in rules if "delete" in rule["verbs"] and "create" not in rule["verbs"]]
    assert {
        (group, name) for rule in removing for group in rule["apiGroups"] for name in rule["resources"]
    } == {(group, resource_of(kind)) for group, kind in OWN_KINDS} - held
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
def test_what_is_encrypted_is_decrypted_and_nothing_else(
    rendered: Callable[..., Rendered], form: str
) -> None:
    files = rendered(specs=(MODEL, SEALED), flux={"decryption": {"secret": "age"}}, form=form)
    decrypted = [body for body in files.values() if "decryption" in body.get("spec", {})]
    assert [body["spec"]["decryption"] for body in decrypted] == [
        {"provider": "sops", "secretRef": {"name": "age"}}
    ]
    assert decrypted[0]["kind"] == "Kustomization", "no chart can hold it"
    assert decrypted[0]["spec"]["path"].endswith("/manifests")


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
    (path,) = (
        path
        for path in rendered(specs=(plain,), config=config, flux=FLUX)
        if path.startswith("_flux/apps/ml")
    )
    assert rendered(specs=(plain,), config=config, flux=FLUX)[path]["spec"]["force"] is True
    assert "force" not in rendered(specs=(plain + claim,), config=config, flux=FLUX)[path]["spec"]
    assert "force" not in rendered(flux=FLUX)["_flux/apps/ml.tune.yaml"]["spec"], (
        "its name is that of its content"
    )


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
    assert (
        "healthCheckExprs" not in rendered(flux=FLUX, specs=(MODEL, JOB))["_flux/apps/ml.qwen.yaml"]["spec"]
    )


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
