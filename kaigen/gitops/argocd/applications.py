"""Applications, or the ApplicationSet that generates them: what Argo CD syncs, where to, and how.

Source of fields: Argo CD's Application and ApplicationSet, `argoproj.io/v1alpha1` (3.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kaigen.gitops.delivery import Delivery, group_of, only_runs
from kaigen.gitops.facts import AppFacts
from kaigen.gitops.layout import ARGOCD_FOLDER, TENANT_FOLDER
from kaigen.gitops.tenancy import Tenant
from kaigen.kubernetes.manifest import Manifest

if TYPE_CHECKING:
    from kaigen.config.gitops import Cluster


API = "argoproj.io/v1alpha1"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
IN_CLUSTER = "https://kubernetes.default.svc"
_WAVE = "argocd.argoproj.io/sync-wave"


def destinations_of(delivery: Delivery) -> dict[str, Manifest]:
    """Return the server or name of each cluster by its suffix in object names; empty for a single cluster."""
    clusters = delivery.clusters
    if not clusters:
        return {"": {"server": IN_CLUSTER}}
    return {name if len(clusters) > 1 else "": _destination(name, each) for name, each in clusters.items()}


def _destination(name: str, cluster: Cluster) -> Manifest:
    if cluster.selector is not None:
        # Clusters that are not known yet: what may go where is narrowed by namespaces and kinds only.
        return {"server": "*"}
    return {"server": cluster.server} if cluster.server is not None else {"name": cluster.name or name}


def metadata_of(delivery: Delivery, name: str, wave: int = 0, *, cascade: bool = False) -> Manifest:
    """Return the metadata of an object.

    Args:
        delivery: what goes where.
        name: of the object.
        wave: in which it is synced.
        cascade: what it has made goes with it.
    """
    metadata: Manifest = {"name": name, "namespace": delivery.argocd.namespace, "labels": dict(delivery.labels)}
    if wave:
        metadata["annotations"] = {_WAVE: str(wave)}
    if cascade:
        metadata["finalizers"] = [FINALIZER]
    return metadata


_REASONS = {
    "ServerSideApply=true": "controllers keep the fields that they own, and objects may be large",
    "PruneLast=true": "removed objects are pruned only after the new ones are healthy",
    "RespectIgnoreDifferences=true": "the replicas are set in the cluster, and a sync does not change them",
    "Replace=true": "a Job with a fixed name cannot be changed in place, so it is recreated",
    "Force=true": "required by Replace, which deletes the old object first",
}


def root(delivery: Delivery) -> Manifest:
    """Return the root Application, which syncs all others from Git."""
    spec = _spec(
        delivery,
        f"{delivery.project}-root",
        {"path": delivery.folder(ARGOCD_FOLDER, "apps")},
        {"server": IN_CLUSTER, "namespace": delivery.argocd.namespace},
        ["ServerSideApply=true", "PruneLast=true"],
    )
    # No finalizer: taking the root away must not take the apps away, and their data with them.
    return {
        "apiVersion": API,
        "kind": "Application",
        "metadata": metadata_of(delivery, f"{delivery.project}-root"),
        "spec": spec,
    }


def application(
    delivery: Delivery, app: AppFacts, cluster: str, destination: Manifest, first: int
) -> tuple[Manifest, list[str]]:
    """Return the Application of one app on one cluster, with comments.

    Args:
        delivery: what goes where.
        app: the app.
        cluster: the cluster's suffix in its name.
        destination: server or name of the cluster.
        first: the wave of apps that need no other.
    """
    options = _options([app])
    spec = _spec(
        delivery,
        ".".join(part for part in (delivery.project, cluster, app.namespace) if part),
        _source(delivery, app),
        {**destination, "namespace": app.namespace},
        options,
    )
    differences = _differences([app])
    if differences:
        spec["ignoreDifferences"] = differences
    metadata = metadata_of(delivery, delivery.name(cluster, *app.key), first + delivery.depths[app.key], cascade=True)
    body = {"apiVersion": API, "kind": "Application", "metadata": metadata, "spec": spec}
    return body, _remarks(options)


def tenant_application(
    delivery: Delivery, tenant: Tenant, cluster: str, destination: Manifest
) -> tuple[Manifest, list[str]]:
    """Return the Application of a namespace's tenancy objects on one cluster, with comments."""
    options = ["ServerSideApply=true", "PruneLast=true"]
    spec = _spec(
        delivery,
        f"{delivery.project}-tenants",
        {"path": delivery.folder(tenant.namespace, TENANT_FOLDER, "manifests")},
        {**destination, "namespace": tenant.namespace},
        options,
    )
    # No finalizer: a namespace that is no longer rendered may hold what others put there.
    metadata = metadata_of(delivery, delivery.name(cluster, tenant.namespace))
    body = {"apiVersion": API, "kind": "Application", "metadata": metadata, "spec": spec}
    return body, _remarks(options)


def application_set(delivery: Delivery, destinations: Mapping[str, Manifest]) -> tuple[Manifest, list[str]]:
    """Return the ApplicationSet that generates an Application per app folder and cluster, with comments."""
    depth = len([part for part in delivery.path.split("/") if part])
    options = _options(delivery.apps)
    target = {
        "server": "{{.server}}",
        "name": "{{if not .server}}{{.name}}{{end}}",
        "namespace": f"{{{{index .path.segments {depth}}}}}",
    }
    leaf: Manifest = {"path": "{{.path.path}}/manifests"}
    if delivery.charts:
        leaf = {"path": "{{.path.path}}/chart", "helm": {"releaseName": "{{.path.basename}}"}}
    project = f"{delivery.project}.{{{{index .path.segments {depth}}}}}"
    spec = _spec(delivery, project, leaf, target, options)
    differences = _differences(delivery.apps)
    if differences:
        spec["ignoreDifferences"] = differences
    start = f"{delivery.environment}." if delivery.environment else ""
    git = {
        "git": {
            "repoURL": delivery.repository,
            "revision": delivery.branch,
            "directories": [
                {"path": delivery.folder("*", "*")},
                {"path": delivery.folder("_*", "*"), "exclude": True},
                {"path": delivery.folder("*", TENANT_FOLDER), "exclude": True},
            ],
        }
    }
    body = {
        "apiVersion": API,
        "kind": "ApplicationSet",
        "metadata": metadata_of(delivery, delivery.project, 1),
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [
                {"matrix": {"generators": [git, generator]}}
                for generator in _cluster_generators(delivery, destinations)
            ],
            "template": {
                "metadata": {
                    "name": start
                    + "{{.values.cluster}}"
                    + f"{{{{index .path.segments {depth}}}}}.{{{{.path.basename}}}}",
                    "labels": dict(delivery.labels),
                    "finalizers": [FINALIZER],
                },
                "spec": spec,
            },
        },
    }
    return body, _remarks(options)


def _cluster_generators(delivery: Delivery, destinations: Mapping[str, Manifest]) -> list[Manifest]:
    """Return generators of `server`, `name` and `values.cluster` for every cluster."""
    clusters = delivery.clusters
    listed = [
        {"server": "", "name": "", **where, "values": {"cluster": f"{name}." if name else ""}}
        for name, where in destinations.items()
        if where != {"server": "*"}
    ]
    generators: list[Manifest] = [{"list": {"elements": listed}}] if listed else []
    for cluster in clusters.values():
        if cluster.selector is not None:
            generators.append(
                {
                    "clusters": {
                        "selector": {"matchLabels": dict(cluster.selector)},
                        "values": {"cluster": "{{.nameNormalized}}."},
                    }
                }
            )
    return generators


def _spec(
    delivery: Delivery, project: str, source: Manifest, destination: Manifest, options: Sequence[str]
) -> Manifest:
    automated = {"automated": {"prune": True, "selfHeal": True}} if delivery.argocd.auto_sync else {}
    return {
        "project": project,
        "source": {"repoURL": delivery.repository, "targetRevision": delivery.branch, **source},
        "destination": destination,
        "syncPolicy": {
            **automated,
            "syncOptions": list(options),
            "retry": {
                # A sync that has failed for good is not tried again before the next commit, and one that is still
                # tried keeps the Application from being deleted: over an hour rides out most of what breaks.
                "limit": 20,
                "refresh": True,
                "backoff": {"duration": "10s", "factor": 2, "maxDuration": "5m"},
            },
        },
    }


def _source(delivery: Delivery, app: AppFacts) -> Manifest:
    if not delivery.as_chart(app):
        return {"path": delivery.folder(*app.key, "manifests")}
    helm = {"helm": {"releaseName": app.name}}
    charts = delivery.settings.charts
    if charts:
        return {"repoURL": charts.removeprefix("oci://"), "chart": app.name, "targetRevision": app.version, **helm}
    return {"path": delivery.folder(*app.key, "chart"), **helm}


def _options(apps: Iterable[AppFacts]) -> list[str]:
    found = list(apps)
    options = ["ServerSideApply=true"]
    # With PruneLast, the Job of a changed spec would run to its end before the Job that it replaces is deleted, and
    # both would write to the same volume.
    if not found or not all(map(only_runs, found)):
        options.append("PruneLast=true")
    if any(app.scaled for app in found):
        options.append("RespectIgnoreDifferences=true")
    if found and all(app.replaces for app in found):
        options += ["Replace=true", "Force=true"]
        options.remove("ServerSideApply=true")
    return options


def _remarks(options: Iterable[str]) -> list[str]:
    return [f"{option}: {_REASONS[option]}." for option in options]


def _differences(apps: Iterable[AppFacts]) -> list[Manifest]:
    """Return the fields that an autoscaler or a notebook's idle time owns, which a sync must ignore."""
    targets = sorted({target for app in apps for target in app.scaled})
    return [
        {"group": group_of(version), "kind": kind, "name": name, "jsonPointers": ["/spec/replicas"]}
        for version, kind, name in targets
    ]
