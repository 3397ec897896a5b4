"""Objects for Flux: the source, and a Kustomization or a HelmRelease per app.

Source of fields: `source.toolkit.fluxcd.io/v1`, `kustomize.toolkit.fluxcd.io/v1`, `helm.toolkit.fluxcd.io/v2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kaigen.gitops.delivery import AppFacts, Delivery
from kaigen.gitops.health import health_of
from kaigen.gitops.tenancy import TENANT_FOLDER, Tenant

Object = dict[str, Any]
Files = dict[str, tuple[Object, Sequence[str]]]

FOLDER = "_flux"
"""Folder of the tree; no namespace can have this name."""

SLACK_S = 300
"""Seconds that an app may take in addition to the deadline of its Jobs: scheduling, pulling, mounting."""

_KUSTOMIZE = "kustomize.toolkit.fluxcd.io/v1"
_SOURCE = "source.toolkit.fluxcd.io/v1"
_HELM = "helm.toolkit.fluxcd.io/v2"


def flux_files(delivery: Delivery, tenants: Sequence[Tenant]) -> Files:
    """Return every object for Flux, by path in the tree.

    Args:
        delivery: what goes where.
        tenants: the namespaces that need objects in addition to their apps.
    """
    source = _source(delivery)
    apps = _kustomization(delivery, delivery.project, _folder(delivery, FOLDER, "apps"), wait=False)
    # Taking the bootstrap away must not take the apps away, and their data with them.
    apps["spec"]["deletionPolicy"] = "Orphan"
    files: Files = {
        f"{FOLDER}/bootstrap/{source['kind'].lower()}.yaml": (source, ()),
        f"{FOLDER}/bootstrap/apps.yaml": (apps, _ONCE),
    }
    if tenants:
        # A Kustomization of their own: Flux dry-runs the objects of one together, and the apps need the namespaces.
        name = f"{delivery.project}-tenants"
        before = _kustomization(delivery, name, _folder(delivery, FOLDER, "tenants"))
        before["spec"]["deletionPolicy"] = "Orphan"
        files[f"{FOLDER}/bootstrap/tenants.yaml"] = (before, _ONCE)
        apps["spec"]["dependsOn"] = [{"name": name}]
    for tenant in tenants:
        path = _folder(delivery, tenant.namespace, TENANT_FOLDER, "manifests")
        body = _kustomization(delivery, _tenant_name(delivery, tenant.namespace), path)
        body["spec"]["deletionPolicy"] = "Orphan"
        files[f"{FOLDER}/tenants/{tenant.namespace}.yaml"] = (body, ())
    for app in delivery.apps:
        name = f"{FOLDER}/apps/{app.namespace}.{app.name}"
        if not delivery.as_chart(app):
            files[f"{name}.yaml"] = (_app(delivery, app), _remarks(app))
            continue
        files[f"{name}.yaml"] = (_helm_release(delivery, app), ())
        if delivery.settings.charts:
            files[f"{name}.chart.yaml"] = (_chart_source(delivery, app), ())
    return files


def _tenant_name(delivery: Delivery, namespace: str) -> str:
    """Return the name of a namespace's Kustomization, different from those of the bootstrap."""
    name = delivery.name(namespace)
    taken = {delivery.project, f"{delivery.project}-tenants"}
    return f"{name}-tenant" if name in taken or name.removesuffix("-tenant") in taken else name


_ONCE = ("Apply this once by hand; from then on Flux syncs the objects next to this folder from Git.",)


def _home(delivery: Delivery, namespace: str) -> str:
    """Namespace of an app's Kustomization: where the account is looked for in whose name it is synced."""
    return namespace if delivery.service_account else delivery.flux.namespace


def _needs(delivery: Delivery, app: AppFacts) -> list[Object]:
    found = []
    for key in delivery.needs(app):
        home = _home(delivery, key[0])
        elsewhere = {"namespace": home} if home != _home(delivery, app.namespace) else {}
        found.append({"name": delivery.name(*key), **elsewhere})
    return found


def _metadata(delivery: Delivery, name: str, namespace: str = "") -> Object:
    home = namespace or delivery.flux.namespace
    return {"name": name, "namespace": home, "labels": dict(delivery.labels)}


def _source(delivery: Delivery) -> Object:
    flux = delivery.flux
    spec: Object = {"interval": flux.interval}
    if flux.oci:
        kind = "OCIRepository"
        url = flux.oci.replace("{env}", delivery.environment)
        spec |= {"url": url, "ref": {"tag": flux.tag}}
    else:
        kind = "GitRepository"
        spec |= {"url": delivery.repository, "ref": {"branch": delivery.branch}}
    if flux.secret:
        spec["secretRef"] = {"name": flux.secret}
    return {
        "apiVersion": _SOURCE,
        "kind": kind,
        "metadata": _metadata(delivery, delivery.project),
        "spec": spec,
    }


def _source_ref(delivery: Delivery, home: str = "") -> Object:
    flux = delivery.flux
    kind = "OCIRepository" if flux.oci else "GitRepository"
    elsewhere = {"namespace": flux.namespace} if home not in {"", flux.namespace} else {}
    return {"kind": kind, "name": delivery.project, **elsewhere}


def _folder(delivery: Delivery, *parts: str) -> str:
    """Return the path of a folder in the source: an artifact contains just the tree, a repository more."""
    folder = "/".join(parts) if delivery.flux.oci else delivery.folder(*parts)
    return f"./{folder}"


def _kustomization(delivery: Delivery, name: str, path: str, *, home: str = "", wait: bool = True) -> Object:
    flux = delivery.flux
    spec: Object = {
        "interval": flux.interval,
        "retryInterval": "2m",
        "sourceRef": _source_ref(delivery, home),
        "path": path,
        "prune": True,
        "wait": wait,
    }
    if wait:
        spec["timeout"] = flux.timeout
    return {
        "apiVersion": _KUSTOMIZE,
        "kind": "Kustomization",
        "metadata": _metadata(delivery, name, home),
        "spec": spec,
    }


def _app(delivery: Delivery, app: AppFacts) -> Object:
    home = _home(delivery, app.namespace)
    path = _folder(delivery, *app.key, "manifests")
    body = _kustomization(delivery, delivery.name(*app.key), path, home=home)
    spec = body["spec"]
    if app.deadline_s:
        spec["timeout"] = f"{app.deadline_s + SLACK_S}s"
    needs = _needs(delivery, app)
    if needs:
        spec["dependsOn"] = needs
    if delivery.service_account:
        spec["serviceAccountName"] = delivery.service_account
    if app.replaces:
        spec["force"] = True
    flux = delivery.flux
    if flux.decrypt and app.encrypted:
        secret = {"secretRef": {"name": flux.decryption_secret}} if flux.decryption_secret else {}
        spec["decryption"] = {"provider": "sops", **secret}
    expressions = [health.cel() for health in health_of(app.kinds)]
    if expressions:
        spec["healthCheckExprs"] = expressions
    return body


def _remarks(app: AppFacts) -> list[str]:
    return (
        ["force: a Job with a fixed name cannot be changed in place, so it is recreated."]
        if app.replaces
        else []
    )


def _chart_source(delivery: Delivery, app: AppFacts) -> Object:
    assert delivery.settings.charts is not None
    charts = delivery.settings.charts.replace("{env}", delivery.environment)
    flux = delivery.flux
    spec: Object = {
        "interval": flux.interval,
        "url": f"{charts}/{app.name}",
        "ref": {"tag": app.version.replace("+", "_")},
        "layerSelector": {
            "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            "operation": "copy",
        },
    }
    if flux.secret:
        spec["secretRef"] = {"name": flux.secret}
    return {
        "apiVersion": _SOURCE,
        "kind": "OCIRepository",
        "metadata": _metadata(delivery, delivery.name(*app.key), _home(delivery, app.namespace)),
        "spec": spec,
    }


def _helm_release(delivery: Delivery, app: AppFacts) -> Object:
    flux = delivery.flux
    spec: Object = {
        "interval": flux.interval,
        "timeout": f"{app.deadline_s + SLACK_S}s" if app.deadline_s else flux.timeout,
        "releaseName": app.name,
        "targetNamespace": app.namespace,
        "storageNamespace": app.namespace,
        "install": {"strategy": {"name": "RetryOnFailure"}},
        "upgrade": {"strategy": {"name": "RetryOnFailure"}},
        "driftDetection": {"mode": "enabled"},
    }
    if delivery.settings.charts:
        spec["chartRef"] = {"kind": "OCIRepository", "name": delivery.name(*app.key)}
    else:
        spec["chart"] = {
            "spec": {
                "chart": _folder(delivery, *app.key, "chart"),
                "sourceRef": _source_ref(delivery, _home(delivery, app.namespace)),
                "reconcileStrategy": "Revision",
            }
        }
    needs = _needs(delivery, app)
    if needs:
        spec["dependsOn"] = needs
    ignored = [
        {"target": {"kind": kind, "name": name}, "paths": ["/spec/replicas"]} for _, kind, name in app.scaled
    ]
    if ignored:
        spec["driftDetection"]["ignore"] = ignored
    if delivery.service_account:
        spec["serviceAccountName"] = delivery.service_account
    return {
        "apiVersion": _HELM,
        "kind": "HelmRelease",
        "metadata": _metadata(delivery, delivery.name(*app.key), _home(delivery, app.namespace)),
        "spec": spec,
    }
