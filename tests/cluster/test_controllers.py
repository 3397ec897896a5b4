"""Argo CD and Flux on the plane, and the trap that kaigen's Jobs are built around."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.simulate import pod_spec

CONFIG_MAP = "v1/ConfigMap"
JOB = "batch/v1/Job"


def config_map(name: str, value: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})


def has_value(obj: Object, value: str) -> bool:
    return bool(obj["data"] == {"value": value})


def test_argo_cd_syncs_heals_and_prunes(plane: Plane, argocd: ArgoCD, namespace: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    both = {"app/one.yaml": config_map("one", "1"), "app/two.yaml": config_map("two", "1")}
    first = repository.commit(both)
    plane.client.apply(argocd.application(namespace, repository.url, "app", namespace))
    argocd.wait_synced(namespace, first)
    assert has_value(plane.client.get(CONFIG_MAP, "two", namespace), "1")

    mark = plane.audit.mark()
    plane.client.patch(CONFIG_MAP, "one", namespace, {"data": {"value": "meddled"}})
    plane.client.wait(CONFIG_MAP, "one", namespace, partial(has_value, value="1"), "healed")
    healed = plane.audit.writes_since(mark, namespace=namespace, user=argocd.user)
    assert {(entry.resource, entry.name) for entry in healed} == {("configmaps", "one")}

    second = repository.commit({"app/one.yaml": config_map("one", "2")})
    argocd.wait_synced(namespace, second)
    assert has_value(plane.client.get(CONFIG_MAP, "one", namespace), "2")
    plane.client.wait_gone(CONFIG_MAP, "two", namespace)

    plane.client.delete(APPLICATION, namespace, argocd.namespace)
    plane.client.wait_gone(APPLICATION, namespace, argocd.namespace)
    assert plane.client.find(CONFIG_MAP, "one", namespace) is None


def test_argo_cd_builds_kustomizations_and_charts(plane: Plane, argocd: ArgoCD, namespace: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repository")
    revision = repository.commit(
        {
            "plain/kustomization.yaml": "namePrefix: built-\nresources: [one.yaml]\n",
            "plain/one.yaml": config_map("one", "1"),
            "chart/Chart.yaml": "apiVersion: v2\nname: tiny\nversion: 0.1.0\n",
            "chart/values.yaml": "value: rendered\n",
            "chart/templates/one.yaml": config_map("charted", "{{ .Values.value }}"),
        }
    )
    for path in ("plain", "chart"):
        plane.client.apply(argocd.application(f"{namespace}-{path}", repository.url, path, namespace))
    for path in ("plain", "chart"):
        argocd.wait_synced(f"{namespace}-{path}", revision)
    assert has_value(plane.client.get(CONFIG_MAP, "built-one", namespace), "1")
    assert has_value(plane.client.get(CONFIG_MAP, "charted", namespace), "rendered")


def test_an_application_set_makes_applications(plane: Plane, argocd: ArgoCD, namespace: str, tmp_path: Path) -> None:
    argocd.start_application_sets()
    repository = Repository(tmp_path / "repository")
    revision = repository.commit({f"apps/{name}/one.yaml": config_map(name, "1") for name in ("a", "b")})
    application = argocd.application("", repository.url, "{{.path.path}}", namespace)
    application_set: Object = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": namespace, "namespace": argocd.namespace},
        "spec": {
            "goTemplate": True,
            "generators": [
                {"git": {"repoURL": repository.url, "revision": "main", "directories": [{"path": "apps/*"}]}}
            ],
            "template": {"metadata": {"name": namespace + "-{{.path.basename}}"}, "spec": application["spec"]},
        },
    }
    plane.client.apply(application_set)
    for name in ("a", "b"):
        plane.client.wait(APPLICATION, f"{namespace}-{name}", argocd.namespace, lambda _: True, "there")
        argocd.wait_synced(f"{namespace}-{name}", revision)
        assert has_value(plane.client.get(CONFIG_MAP, name, namespace), "1")


def test_argo_cd_recreates_a_plain_job_with_a_ttl(plane: Plane, argocd: ArgoCD, namespace: str, tmp_path: Path) -> None:
    template = {"spec": pod_spec() | {"restartPolicy": "Never"}}
    trapped = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "trapped"},
        "spec": {"ttlSecondsAfterFinished": 1, "template": template},
    }
    repository = Repository(tmp_path / "repository")
    repository.commit({"app/job.yaml": json.dumps(trapped)})
    plane.client.apply(argocd.application(namespace, repository.url, "app", namespace))
    made = set()
    for _, job in plane.client.watch(JOB, namespace, 90):
        made.add(job["metadata"]["uid"])
        if len(made) == 3:
            return
    raise AssertionError(f"made {len(made)} times, not three")


def test_flux_applies_corrects_and_prunes(plane: Plane, flux: Flux, namespace: str) -> None:
    both = {"app/one.yaml": config_map("one", "1"), "app/two.yaml": config_map("two", "1")}
    first = flux.publish(namespace, both)
    plane.client.apply(flux.kustomization(namespace, namespace, "app", namespace))
    flux.wait_ready(namespace, first)
    assert has_value(plane.client.get(CONFIG_MAP, "two", namespace), "1")

    plane.client.patch(CONFIG_MAP, "one", namespace, {"data": {"value": "meddled"}})
    plane.client.wait(CONFIG_MAP, "one", namespace, partial(has_value, value="1"), "corrected")

    second = flux.publish(namespace, {"app/one.yaml": config_map("one", "2")})
    flux.wait_ready(namespace, second)
    assert has_value(plane.client.get(CONFIG_MAP, "one", namespace), "2")
    plane.client.wait_gone(CONFIG_MAP, "two", namespace)

    plane.client.delete(KUSTOMIZATION, namespace, flux.namespace)
    plane.client.wait_gone(KUSTOMIZATION, namespace, flux.namespace)
    plane.client.wait_gone(CONFIG_MAP, "one", namespace)


def test_flux_waits_for_a_job_and_leaves_the_cluster_alone_afterwards(plane: Plane, flux: Flux, namespace: str) -> None:
    template = {"spec": pod_spec() | {"restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": {"template": template}}
    revision = flux.publish(namespace, {"app/job.yaml": json.dumps(job)})
    plane.client.apply(flux.kustomization(namespace, namespace, "app", namespace))
    flux.wait_ready(namespace, revision)
    assert is_true(plane.client.get(JOB, "once", namespace), "Complete")

    def reconciled() -> str:
        status = plane.client.get(KUSTOMIZATION, namespace, flux.namespace)["status"]
        return str(status["history"][0]["totalReconciliations"])

    mark, seen = plane.audit.mark(), reconciled()
    wait_until(lambda: reconciled() != seen, "it reconciled once more", 30, every=0.2)
    assert plane.audit.writes_since(mark, namespace=namespace) == []
