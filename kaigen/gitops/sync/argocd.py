"""What Argo CD reads: projects as narrow as the apps, an Application for each, and what it must learn.

Source of fields: Argo CD's Application, ApplicationSet and AppProject, `argoproj.io/v1alpha1` (3.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kaigen.gitops.sync.delivery import OWN_KINDS, AppFacts, Delivery, group_of
from kaigen.gitops.sync.health import (
    APPLICATION_HEALTH,
    APPLICATION_HEALTH_KEY,
    CLAIM_HEALTH,
    CLAIM_HEALTH_KEY,
    health_of,
)
from kaigen.gitops.sync.tenancy import TENANT_FOLDER, Tenant

Object = dict[str, Any]
Files = dict[str, tuple[Object, Sequence[str]]]
"""Objects by the path of their file, with remarks for the reader."""

FOLDER = "_argocd"
"""Folder of the tree; no namespace can be called so."""

IN_CLUSTER = "https://kubernetes.default.svc"
_API = "argoproj.io/v1alpha1"
_WAVE = "argocd.argoproj.io/sync-wave"
_FINALIZER = "resources-finalizer.argocd.argoproj.io"

_REASONS = {
    "ServerSideApply=true": "fields that controllers own stay theirs, and objects may be large",
    "PruneLast=true": "what is no longer wanted goes when the new is healthy, not before",
    "RespectIgnoreDifferences=true": "a scaler sets the replicas, and a sync leaves them alone",
    "Replace=true": "a Job of a fixed name cannot be changed in place, so it is made anew",
    "Force=true": "as Replace, for it takes deleting the old one",
}


def argocd_files(delivery: Delivery, tenants: Sequence[Tenant]) -> Files:
    """Every object for Argo CD, by path in the tree.

    Args:
        delivery: what goes where.
        tenants: the namespaces that get something beside their apps.
    """
    settings = delivery.data["argocd"]
    destinations = _destinations(delivery)
    files: Files = {}
    files[f"{FOLDER}/bootstrap/appproject.yaml"] = (_root_project(delivery), ())
    files[f"{FOLDER}/bootstrap/application.yaml"] = (
        _root(delivery),
        (
            "Applied once, by hand; from then on Argo CD keeps the objects beside this folder as Git has them.",
        ),
    )
    for name, project in _projects(delivery, destinations):
        # No cluster and no namespace can be called so that the file would be another's.
        files[f"{FOLDER}/apps/_project.{name}.yaml"] = (
            project,
            (
                "Admits what the apps of this namespace hold, and what they may have held before: what Argo CD is",
                "not let at is never pruned.",
            ),
        )
    if tenants:
        files[f"{FOLDER}/apps/tenants.yaml"] = (_tenants_project(delivery, tenants, destinations), ())
    for tenant in tenants:
        for cluster, destination in destinations.items():
            name = ".".join(part for part in (cluster, tenant.namespace) if part)
            files[f"{FOLDER}/apps/{name}.yaml"] = _tenant_application(delivery, tenant, cluster, destination)
    if settings["applications"] == "set":
        files[f"{FOLDER}/apps/applicationset.yaml"] = _application_set(delivery, destinations)
    else:
        first = 1 if tenants else 0
        for app in delivery.apps:
            for cluster, destination in destinations.items():
                name = ".".join(part for part in (cluster, *app.key) if part)
                files[f"{FOLDER}/apps/{name}.yaml"] = _application(delivery, app, cluster, destination, first)
    files[f"{FOLDER}/argocd-cm.yaml"] = (
        _config_map(delivery),
        (
            "Entries for Argo CD's own ConfigMap. Add them with",
            "  kubectl apply --server-side --field-manager kaigen -f argocd-cm.yaml",
            "which leaves its other entries alone.",
        ),
    )
    return files


def _destinations(delivery: Delivery) -> dict[str, Object]:
    """Server or name of each cluster, by the part of a name that tells it; empty when there is one only."""
    clusters: Mapping[str, Mapping[str, Any]] = delivery.data["clusters"]
    if not clusters:
        return {"": {"server": IN_CLUSTER}}
    return {name if len(clusters) > 1 else "": _destination(name, each) for name, each in clusters.items()}


def _destination(name: str, cluster: Mapping[str, Any]) -> Object:
    if "selector" in cluster:
        # Clusters that are not known yet: what may go where is narrowed by namespaces and kinds only.
        return {"server": "*"}
    return {"server": cluster["server"]} if "server" in cluster else {"name": cluster.get("name", name)}


def _metadata(delivery: Delivery, name: str, wave: int = 0, *, cascade: bool = False) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": delivery.data["argocd"]["namespace"],
        "labels": dict(delivery.labels),
    }
    if wave:
        metadata["annotations"] = {_WAVE: str(wave)}
    if cascade:
        metadata["finalizers"] = [_FINALIZER]
    return metadata


def _kinds(kinds: Iterable[tuple[str, str]]) -> list[Object]:
    return [{"group": group, "kind": kind} for group, kind in sorted(set(kinds))]


_NODES = ("karpenter.sh", "NodePool")
_VOLUMES = ("", "PersistentVolume")


def _own(namespace: str, kinds: Iterable[tuple[str, str]]) -> list[Object]:
    """Objects of the cluster that a namespace's apps have, by the names that kaigen gives them."""
    return [{**entry, "name": f"{namespace}-*"} for entry in _kinds(kinds)]


def _appproject(
    delivery: Delivery,
    name: str,
    description: str,
    destinations: list[Object],
    kinds: Iterable[tuple[str, str]],
    cluster_kinds: list[Object],
    accounts: list[Object],
    repositories: Sequence[str] = (),
    wave: int = 0,
) -> Object:
    spec: Object = {
        "description": description,
        "sourceRepos": list(repositories) or [delivery.repository],
        "destinations": destinations,
        "clusterResourceWhitelist": cluster_kinds,
        "namespaceResourceWhitelist": _kinds(kinds),
    }
    if accounts:
        spec["destinationServiceAccounts"] = accounts
    return {
        "apiVersion": _API,
        "kind": "AppProject",
        "metadata": _metadata(delivery, name, wave),
        "spec": spec,
    }


def _projects(delivery: Delivery, destinations: Mapping[str, Object]) -> Iterator[tuple[str, Object]]:
    """A project for each place that apps live in, so that it goes with the last of them, and not before.

    Were there one for all, it would no longer admit a namespace or a cluster when the apps there are to be deleted.
    An ApplicationSet may know clusters by label only, so its projects are for namespaces.
    """
    places = [(cluster, [destination]) for cluster, destination in destinations.items()]
    if delivery.data["argocd"]["applications"] == "set":
        places = [("", [*destinations.values()])]
    for cluster, where in places:
        for home in sorted({app.namespace for app in delivery.apps}):
            apps = [app for app in delivery.apps if app.namespace == home]
            name = ".".join(part for part in (cluster, home) if part)
            yield name, _project(delivery, f"{delivery.project}.{name}", apps, where)


def _project(
    delivery: Delivery, name: str, apps: Sequence[AppFacts], destinations: Sequence[Object]
) -> Object:
    tenancy = delivery.data["tenancy"] or {}
    account = tenancy.get("service_account")
    namespaces = sorted({space for app in apps for space in (app.namespace, *app.namespaces) if space})
    spaces = [{**where, "namespace": space} for where in destinations for space in namespaces]
    cluster_kinds = {pair for app in apps for pair in app.cluster_kinds}
    # NodePools also where the last one just went, else it would stay. Not so volumes: one may be a folder of the
    # node, so none is let in before an app has it.
    everywhere = {pair for app in delivery.apps for pair in app.cluster_kinds}
    named = (everywhere & {_NODES}) | (cluster_kinds & {_VOLUMES})
    charts = delivery.data["charts"] if delivery.charts else None
    project = _appproject(
        delivery,
        name,
        f"Apps rendered by kaigen{f' for {delivery.environment}' if delivery.environment else ''}.",
        spaces,
        [*OWN_KINDS, *(pair for app in apps for pair in app.namespaced_kinds)],
        [*_kinds(cluster_kinds - named), *_own(apps[0].namespace, named)],
        [
            {"server": where.get("server", "*"), "namespace": space, "defaultServiceAccount": account}
            for where in destinations
            for space in namespaces
        ]
        if account
        else [],
        [charts.removeprefix("oci://")] if charts else (),
        wave=-1,
    )
    # Argo CD keeps it until no Application refers to it any more.
    project["metadata"]["finalizers"] = [_FINALIZER]
    return project


def _tenants_project(
    delivery: Delivery, tenants: Sequence[Tenant], destinations: Mapping[str, Object]
) -> Object:
    names = [tenant.namespace for tenant in tenants]
    kinds = {(group_of(body["apiVersion"]), body["kind"]) for each in tenants for body in each.objects}
    made = ("", "Namespace") in kinds
    return _appproject(
        delivery,
        f"{delivery.project}-tenants",
        "Namespaces of the apps, with their quotas and policies.",
        [{**where, "namespace": name} for where in destinations.values() for name in names],
        kinds - {("", "Namespace")},
        [{"group": "", "kind": "Namespace", "name": name} for name in names] if made else [],
        _admin_accounts(delivery, [*destinations.values()], names),
        wave=-1,
    )


def _admin_accounts(delivery: Delivery, destinations: Sequence[Object], names: Iterable[str]) -> list[Object]:
    tenancy = delivery.data["tenancy"] or {}
    if not tenancy.get("service_account"):
        return []
    admin = tenancy["admin_service_account"]
    return [
        {"server": where.get("server", "*"), "namespace": name, "defaultServiceAccount": admin}
        for where in destinations
        for name in names
    ]


def _root_project(delivery: Delivery) -> Object:
    home = delivery.data["argocd"]["namespace"]
    here = {"server": IN_CLUSTER}
    kinds = {"AppProject", "Application"}
    if delivery.data["argocd"]["applications"] == "set":
        kinds.add("ApplicationSet")
    return _appproject(
        delivery,
        f"{delivery.project}-root",
        "The Applications that kaigen renders, and nothing else.",
        [{**here, "namespace": home}],
        [("argoproj.io", kind) for kind in kinds],
        [],
        _admin_accounts(delivery, [here], [home]),
    )


def _root(delivery: Delivery) -> Object:
    spec = _spec(
        delivery,
        f"{delivery.project}-root",
        {"path": delivery.folder(FOLDER, "apps")},
        {"server": IN_CLUSTER, "namespace": delivery.data["argocd"]["namespace"]},
        ["ServerSideApply=true", "PruneLast=true"],
    )
    # No finalizer: taking the root away must not take the apps away, and their data with them.
    return {
        "apiVersion": _API,
        "kind": "Application",
        "metadata": _metadata(delivery, f"{delivery.project}-root"),
        "spec": spec,
    }


def _spec(
    delivery: Delivery,
    project: str,
    source: Object,
    destination: Object,
    options: Sequence[str],
) -> Object:
    automated = (
        {"automated": {"prune": True, "selfHeal": True}} if delivery.data["argocd"]["auto_sync"] else {}
    )
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


def _application(
    delivery: Delivery, app: AppFacts, cluster: str, destination: Object, first: int
) -> tuple[Object, list[str]]:
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
    metadata = _metadata(
        delivery, delivery.name(cluster, *app.key), first + delivery.depths[app.key], cascade=True
    )
    body = {"apiVersion": _API, "kind": "Application", "metadata": metadata, "spec": spec}
    return body, _remarks(options)


def _source(delivery: Delivery, app: AppFacts) -> Object:
    if not delivery.as_chart(app):
        return {"path": delivery.folder(*app.key, "manifests")}
    helm = {"helm": {"releaseName": app.name}}
    charts = delivery.data["charts"]
    if charts:
        return {
            "repoURL": charts.removeprefix("oci://"),
            "chart": app.name,
            "targetRevision": app.version,
            **helm,
        }
    return {"path": delivery.folder(*app.key, "chart"), **helm}


def _options(apps: Iterable[AppFacts]) -> list[str]:
    found = list(apps)
    options = ["ServerSideApply=true", "PruneLast=true"]
    if any(app.scaled for app in found):
        options.append("RespectIgnoreDifferences=true")
    if found and all(app.replaces for app in found):
        options += ["Replace=true", "Force=true"]
        options.remove("ServerSideApply=true")
    return options


def _remarks(options: Iterable[str]) -> list[str]:
    return [f"{option}: {_REASONS[option]}." for option in options]


def _differences(apps: Iterable[AppFacts]) -> list[Object]:
    """What a scaler owns, and a sync must neither see nor undo."""
    targets = sorted({target for app in apps for target in app.scaled})
    return [
        {"group": group_of(version), "kind": kind, "name": name, "jsonPointers": ["/spec/replicas"]}
        for version, kind, name in targets
    ]


def _tenant_application(
    delivery: Delivery, tenant: Tenant, cluster: str, destination: Object
) -> tuple[Object, list[str]]:
    options = ["ServerSideApply=true", "PruneLast=true"]
    spec = _spec(
        delivery,
        f"{delivery.project}-tenants",
        {"path": delivery.folder(tenant.namespace, TENANT_FOLDER, "manifests")},
        {**destination, "namespace": tenant.namespace},
        options,
    )
    # No finalizer: a namespace that is no longer rendered may hold what others put there.
    metadata = _metadata(delivery, delivery.name(cluster, tenant.namespace))
    body = {"apiVersion": _API, "kind": "Application", "metadata": metadata, "spec": spec}
    return body, _remarks(options)


def _application_set(delivery: Delivery, destinations: Mapping[str, Object]) -> tuple[Object, list[str]]:
    depth = len([part for part in delivery.path.split("/") if part])
    options = _options(delivery.apps)
    target = {
        "server": "{{.server}}",
        "name": "{{if not .server}}{{.name}}{{end}}",
        "namespace": f"{{{{index .path.segments {depth}}}}}",
    }
    leaf: Object = {"path": "{{.path.path}}/manifests"}
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
        "apiVersion": _API,
        "kind": "ApplicationSet",
        "metadata": _metadata(delivery, delivery.project, 1),
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
                    "finalizers": [_FINALIZER],
                },
                "spec": spec,
            },
        },
    }
    return body, _remarks(options)


def _cluster_generators(delivery: Delivery, destinations: Mapping[str, Object]) -> list[Object]:
    """Generators that give `server`, `name` and `values.cluster` of every cluster."""
    clusters: Mapping[str, Mapping[str, Any]] = delivery.data["clusters"]
    listed = [
        {"server": "", "name": "", **where, "values": {"cluster": f"{name}." if name else ""}}
        for name, where in destinations.items()
        if where != {"server": "*"}
    ]
    generators: list[Object] = [{"list": {"elements": listed}}] if listed else []
    for cluster in clusters.values():
        if "selector" in cluster:
            generators.append(
                {
                    "clusters": {
                        "selector": {"matchLabels": dict(cluster["selector"])},
                        "values": {"cluster": "{{.nameNormalized}}."},
                    }
                }
            )
    return generators


def _config_map(delivery: Delivery) -> Object:
    kinds = {pair for app in delivery.apps for pair in app.kinds}
    data = {APPLICATION_HEALTH_KEY: APPLICATION_HEALTH}
    if ("v1", "PersistentVolumeClaim") in kinds:
        data[CLAIM_HEALTH_KEY] = CLAIM_HEALTH
    data |= {health.argocd_key: health.lua() for health in health_of(kinds)}
    if (delivery.data["tenancy"] or {}).get("service_account"):
        data["application.sync.impersonation.enabled"] = "true"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": delivery.data["argocd"]["namespace"],
            "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "data": data,
    }
