"""Objects for Flux: the source, and a Kustomization or a HelmRelease per app.

Source of fields: `source.toolkit.fluxcd.io/v1`, `kustomize.toolkit.fluxcd.io/v1`, `helm.toolkit.fluxcd.io/v2`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.gitops.delivery import Delivery
from kaigen.gitops.facts import AppFacts
from kaigen.gitops.health import Health, health_of
from kaigen.gitops.layout import FLUX_FOLDER, TENANT_FOLDER, guard_component, guard_folder
from kaigen.gitops.tenancy import Tenant
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.object_kind import HealthConditions

Files = dict[str, tuple[Manifest, Sequence[str]]]

SLACK_S = 300
"""Seconds that an app may take in addition to the deadline of its Jobs: scheduling, pulling, mounting."""

DEFAULT_TIMEOUT = "1h"
"""Time for an app to become healthy when neither a setting nor its objects limit it."""

QUEUE_TIMEOUT_S = 24 * 3600
"""Seconds that the Jobs of a HelmRelease may wait in a queue: a release that takes longer fails and is retried."""

_JOB = Health("batch/v1", "Job", HealthConditions(("Complete",), degraded=("Failed",)))
"""Flux counts a suspended Job as healthy, which would release the apps that wait for a queued one."""

_CRON_JOB, _CLAIM = ("batch/v1", "CronJob"), ("v1", "PersistentVolumeClaim")
UNUSED_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "current": "status.phase in ['Pending', 'Bound']",
    "failed": "status.phase == 'Lost'",
}
"""Most storage classes bind a claim when its first pod is scheduled, which is the first run of a schedule."""

_ROUTE = ("gateway.networking.k8s.io/v1", "HTTPRoute")
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
    apps = _kustomization(delivery, delivery.project, _folder(delivery, FLUX_FOLDER, "apps"), wait=False)
    # Taking the bootstrap away must not take the apps away, and their data with them.
    apps["spec"]["deletionPolicy"] = "Orphan"
    files: Files = {
        f"{FLUX_FOLDER}/bootstrap/{source['kind'].lower()}.yaml": (source, ()),
        f"{FLUX_FOLDER}/bootstrap/apps.yaml": (apps, _ONCE),
    }
    if tenants:
        # A Kustomization of their own: Flux dry-runs the objects of one together, and the apps need the namespaces.
        name = f"{delivery.project}-tenants"
        before = _kustomization(delivery, name, _folder(delivery, FLUX_FOLDER, "tenants"))
        before["spec"]["deletionPolicy"] = "Orphan"
        files[f"{FLUX_FOLDER}/bootstrap/tenants.yaml"] = (before, _ONCE)
        apps["spec"]["dependsOn"] = [{"name": name}]
    for tenant in tenants:
        path = _folder(delivery, tenant.namespace, TENANT_FOLDER, "manifests")
        body = _kustomization(delivery, _tenant_name(delivery, tenant.namespace), path)
        body["spec"]["deletionPolicy"] = "Orphan"
        files[f"{FLUX_FOLDER}/tenants/{tenant.namespace}.yaml"] = (body, ())
    if delivery.service_account:
        for home in sorted({app.namespace for app in delivery.apps}):
            # An app's file has the app's name in its own, after the namespace.
            files[f"{FLUX_FOLDER}/apps/{home}.yaml"] = (_source(delivery, home), ())
    for app in delivery.apps:
        name = f"{FLUX_FOLDER}/apps/{app.namespace}.{app.name}"
        if not delivery.as_chart(app):
            files[f"{name}.yaml"] = (_app(delivery, app), _remarks(app))
            if _ROUTE in app.kinds:
                files[f"{_guard(delivery, app)}/kustomization.yaml"] = (_COMPONENT, _GUARDED)
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
    """Return the namespace of an app's Kustomization, its source and its account, which Flux looks for there."""
    return namespace if delivery.service_account else delivery.flux.namespace


def _needs(delivery: Delivery, app: AppFacts) -> list[Manifest]:
    found = []
    for key in delivery.needs(app):
        home = _home(delivery, key[0])
        elsewhere = {"namespace": home} if home != _home(delivery, app.namespace) else {}
        found.append({"name": delivery.name(*key), **elsewhere})
    return found


def _metadata(delivery: Delivery, name: str, namespace: str = "") -> Manifest:
    home = namespace or delivery.flux.namespace
    return {"name": name, "namespace": home, "labels": dict(delivery.labels)}


def _source(delivery: Delivery, home: str = "") -> Manifest:
    """Return the source in a namespace, by default that of Flux.

    Each tenant has its own: with `--no-cross-namespace-refs`, Flux reads no source of another namespace.
    """
    flux = delivery.flux
    spec: Manifest = {"interval": flux.interval}
    if flux.oci:
        kind = "OCIRepository"
        url = flux.oci.replace("{env}", delivery.environment)
        spec |= {"url": url, "ref": {"tag": flux.tag}, **_verify(delivery)}
    else:
        kind = "GitRepository"
        spec |= {"url": delivery.repository, "ref": {"branch": delivery.branch}}
    if flux.secret:
        spec["secretRef"] = {"name": flux.secret}
    return {"apiVersion": _SOURCE, "kind": kind, "metadata": _metadata(delivery, delivery.project, home), "spec": spec}


def _verify(delivery: Delivery) -> Manifest:
    """Return the field that makes Flux verify the signature of an artifact."""
    secret = delivery.flux.verify_secret
    return {"verify": {"provider": "cosign", "secretRef": {"name": secret}}} if secret else {}


def _source_ref(delivery: Delivery) -> Manifest:
    return {"kind": "OCIRepository" if delivery.flux.oci else "GitRepository", "name": delivery.project}


def _folder(delivery: Delivery, *parts: str) -> str:
    """Return the path of a folder in the source: an artifact contains just the tree, a repository more."""
    folder = "/".join(parts) if delivery.flux.oci else delivery.folder(*parts)
    return f"./{folder}"


def _kustomization(delivery: Delivery, name: str, path: str, *, home: str = "", wait: bool = True) -> Manifest:
    flux = delivery.flux
    spec: Manifest = {
        "interval": flux.interval,
        "retryInterval": "2m",
        "sourceRef": _source_ref(delivery),
        "path": path,
        "prune": True,
        "wait": wait,
    }
    if wait:
        spec["timeout"] = flux.timeout or DEFAULT_TIMEOUT
    if flux.service_account and not home:
        spec["serviceAccountName"] = flux.service_account
    return {
        "apiVersion": _KUSTOMIZE,
        "kind": "Kustomization",
        "metadata": _metadata(delivery, name, home),
        "spec": spec,
    }


def _timeout(delivery: Delivery, app: AppFacts) -> str:
    """Return the time for an app to become healthy: a deadline of the spec, the setting, or what its pods may take."""
    if app.deadline_s:
        return f"{max(app.deadline_s, app.start_s) + SLACK_S}s"
    if delivery.flux.timeout:
        return delivery.flux.timeout
    return f"{app.start_s + SLACK_S}s" if app.start_s else DEFAULT_TIMEOUT


def _release_timeout(delivery: Delivery, app: AppFacts) -> str:
    """Return the same for a release, which fails when it takes longer, also while a Job waits in a queue."""
    if app.queued and not delivery.flux.timeout:
        return f"{QUEUE_TIMEOUT_S + app.deadline_s + SLACK_S}s"
    return _timeout(delivery, app)


def _account(delivery: Delivery) -> Manifest:
    """Return the field with the account that syncs an app; none for the account of the controller."""
    account = delivery.service_account or delivery.flux.service_account
    return {"serviceAccountName": account} if account else {}


def _health_checks(app: AppFacts) -> Manifest:
    """Return the field with the health checks of kinds that Flux does not know."""
    checks = health_of(app.kinds)
    if app.queued and (_JOB.api_version, _JOB.kind) in app.kinds:
        checks.append(_JOB)
    found = [check.cel(queued=app.queued) for check in checks]
    if {_CRON_JOB, _CLAIM} <= set(app.kinds):
        found.append(UNUSED_CLAIM)
    return {"healthCheckExprs": found} if found else {}


def _app(delivery: Delivery, app: AppFacts) -> Manifest:
    home = _home(delivery, app.namespace)
    path = _folder(delivery, *app.key, "manifests")
    body = _kustomization(delivery, delivery.name(*app.key), path, home=home, wait=app.waited_for)
    spec = body["spec"]
    spec["timeout"] = _timeout(delivery, app)
    if app.homeless:
        spec["targetNamespace"] = app.namespace
    needs = _needs(delivery, app)
    if needs:
        spec["dependsOn"] = needs
    if _ROUTE in app.kinds:
        spec["components"] = [guard_component(_guard(delivery, app))]
    spec |= _account(delivery)
    if app.replaces:
        spec["force"] = True
    flux = delivery.flux
    if flux.decryption and app.encrypted:
        secret = {"secretRef": {"name": flux.decryption.secret}} if flux.decryption.secret else {}
        spec["decryption"] = {"provider": "sops", **secret}
    spec |= _health_checks(app)
    return body


def _guard(delivery: Delivery, app: AppFacts) -> str:
    """Return the folder of the component of an app with a route."""
    needs = ",".join("/".join(key) for key in delivery.needs(app))
    return guard_folder(app.namespace, app.name, needs)


# kustomize refuses one without any field.
_COMPONENT: Manifest = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "resources": []}
_GUARDED = (
    "It adds nothing. Its path changes with `dependsOn`, so that Flux applies no commit with the previous one.",
)


def _remarks(app: AppFacts) -> list[str]:
    return ["force: a Job with a fixed name cannot be changed in place, so it is recreated."] if app.replaces else []


def _chart_source(delivery: Delivery, app: AppFacts) -> Manifest:
    assert delivery.settings.charts is not None
    charts = delivery.settings.charts.replace("{env}", delivery.environment)
    flux = delivery.flux
    spec: Manifest = {
        "interval": flux.interval,
        "url": f"{charts}/{app.name}",
        "ref": {"tag": app.version.replace("+", "_")},
        "layerSelector": {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"},
        **_verify(delivery),
    }
    if secret := flux.charts_secret or flux.secret:
        spec["secretRef"] = {"name": secret}
    return {
        "apiVersion": _SOURCE,
        "kind": "OCIRepository",
        "metadata": _metadata(delivery, delivery.name(*app.key), _home(delivery, app.namespace)),
        "spec": spec,
    }


def _helm_release(delivery: Delivery, app: AppFacts) -> Manifest:
    flux = delivery.flux
    waits = {} if app.waited_for else {"disableWait": True}
    spec: Manifest = {
        "interval": flux.interval,
        "timeout": _release_timeout(delivery, app),
        "releaseName": app.name,
        "targetNamespace": app.namespace,
        "storageNamespace": app.namespace,
        "install": {**waits, "strategy": {"name": "RetryOnFailure"}},
        "upgrade": {**waits, "strategy": {"name": "RetryOnFailure"}},
        "driftDetection": {"mode": "enabled"},
    }
    if delivery.settings.charts:
        spec["chartRef"] = {"kind": "OCIRepository", "name": delivery.name(*app.key)}
    else:
        spec["chart"] = {
            "spec": {
                "chart": _folder(delivery, *app.key, "chart"),
                "sourceRef": _source_ref(delivery),
                # Its version ends in a digest of its content, so a commit upgrades only the releases that it changes.
                "reconcileStrategy": "ChartVersion",
            }
        }
    needs = _needs(delivery, app)
    if needs:
        spec["dependsOn"] = needs
    ignored = [{"target": {"kind": kind, "name": name}, "paths": ["/spec/replicas"]} for _, kind, name in app.scaled]
    if ignored:
        spec["driftDetection"]["ignore"] = ignored
    spec |= _account(delivery)
    spec |= _health_checks(app)
    return {
        "apiVersion": _HELM,
        "kind": "HelmRelease",
        "metadata": _metadata(delivery, delivery.name(*app.key), _home(delivery, app.namespace)),
        "spec": spec,
    }
