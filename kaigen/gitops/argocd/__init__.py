"""Objects for Argo CD: projects, an Application per app, and settings.

An AppProject allows only what the apps need: sources, destinations, kinds, service accounts. Source of its fields:
Argo CD's AppProject, `argoproj.io/v1alpha1` (3.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kaigen.gitops.argocd.applications import (
    API,
    FINALIZER,
    IN_CLUSTER,
    application,
    application_set,
    destinations_of,
    metadata_of,
    root,
    tenant_application,
)
from kaigen.gitops.delivery import Delivery, cluster_kinds, group_of, namespaced_kinds
from kaigen.gitops.facts import AppFacts
from kaigen.gitops.health import APPLICATION_HEALTH, APPLICATION_HEALTH_KEY, CLAIM_HEALTH, CLAIM_HEALTH_KEY, health_of
from kaigen.gitops.layout import ARGOCD_FOLDER
from kaigen.gitops.tenancy import Tenant
from kaigen.kubernetes.kind_table import OWN_KINDS
from kaigen.kubernetes.manifest import Manifest

_NODES = ("karpenter.sh", "NodePool")
_VOLUMES = ("", "PersistentVolume")


def _root_project(delivery: Delivery) -> Manifest:
    """Return the project of the root Application."""
    home = delivery.argocd.namespace
    here = {"server": IN_CLUSTER}
    kinds = {"AppProject", "Application"}
    if delivery.argocd.applications == "set":
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


def _app_projects(delivery: Delivery, destinations: Mapping[str, Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Return one project per namespace and cluster, so that it is deleted with its last app, not before.

    Were there one for all, it would no longer admit a namespace or a cluster when the apps there are to be deleted.
    An ApplicationSet may know clusters by label only, so its projects are for namespaces.
    """
    places = [(cluster, [destination]) for cluster, destination in destinations.items()]
    if delivery.argocd.applications == "set":
        places = [("", [*destinations.values()])]
    for cluster, where in places:
        for home in sorted({app.namespace for app in delivery.apps}):
            apps = [app for app in delivery.apps if app.namespace == home]
            name = ".".join(part for part in (cluster, home) if part)
            yield name, _project(delivery, f"{delivery.project}.{name}", apps, where)


def _project(delivery: Delivery, name: str, apps: Sequence[AppFacts], destinations: Sequence[Manifest]) -> Manifest:
    account = delivery.service_account
    namespaces = sorted({space for app in apps for space in (app.namespace, *app.namespaces) if space})
    spaces = [{**where, "namespace": space} for where in destinations for space in namespaces]
    of_cluster = {pair for app in apps for pair in cluster_kinds(app)}
    # NodePools also where the last one just went, else it would stay. Not so volumes: one may be a folder of the
    # node, so none is let in before an app has it.
    everywhere = {pair for app in delivery.apps for pair in cluster_kinds(app)}
    named = (everywhere & {_NODES}) | (of_cluster & {_VOLUMES})
    charts = delivery.settings.charts if delivery.charts else None
    project = _appproject(
        delivery,
        name,
        f"Apps rendered by kaigen{f' for {delivery.environment}' if delivery.environment else ''}.",
        spaces,
        [*OWN_KINDS, *(pair for app in apps for pair in namespaced_kinds(app))],
        [*_kinds(of_cluster - named), *_own(apps[0].namespace, named)],
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
    project["metadata"]["finalizers"] = [FINALIZER]
    return project


def _tenants_project(delivery: Delivery, tenants: Sequence[Tenant], destinations: Mapping[str, Manifest]) -> Manifest:
    """Return the project of the namespaces' tenancy objects."""
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


def _admin_accounts(delivery: Delivery, destinations: Sequence[Manifest], names: Iterable[str]) -> list[Manifest]:
    tenancy = delivery.settings.tenancy
    if tenancy is None or not tenancy.service_account:
        return []
    admin = tenancy.admin_service_account
    return [
        {"server": where.get("server", "*"), "namespace": name, "defaultServiceAccount": admin}
        for where in destinations
        for name in names
    ]


def _appproject(
    delivery: Delivery,
    name: str,
    description: str,
    destinations: list[Manifest],
    kinds: Iterable[tuple[str, str]],
    cluster_kinds: list[Manifest],
    accounts: list[Manifest],
    repositories: Sequence[str] = (),
    wave: int = 0,
) -> Manifest:
    spec: Manifest = {
        "description": description,
        "sourceRepos": list(repositories) or [delivery.repository],
        "destinations": destinations,
        "clusterResourceWhitelist": cluster_kinds,
        "namespaceResourceWhitelist": _kinds(kinds),
    }
    if accounts:
        spec["destinationServiceAccounts"] = accounts
    if delivery.argocd.signature_keys:
        spec["signatureKeys"] = [{"keyID": key} for key in delivery.argocd.signature_keys]
    return {"apiVersion": API, "kind": "AppProject", "metadata": metadata_of(delivery, name, wave), "spec": spec}


def _kinds(kinds: Iterable[tuple[str, str]]) -> list[Manifest]:
    return [{"group": group, "kind": kind} for group, kind in sorted(set(kinds))]


def _own(namespace: str, kinds: Iterable[tuple[str, str]]) -> list[Manifest]:
    """Objects of the cluster that a namespace's apps have, by the names that kaigen gives them."""
    return [{**entry, "name": f"{namespace}-*"} for entry in _kinds(kinds)]


Files = dict[str, tuple[Manifest, Sequence[str]]]
"""Objects by the path of their file, with comments for the reader."""


def argocd_files(delivery: Delivery, tenants: Sequence[Tenant]) -> Files:
    """Return every object for Argo CD, by path in the tree.

    Args:
        delivery: what goes where.
        tenants: the namespaces that need objects in addition to their apps.
    """
    settings = delivery.argocd
    destinations = destinations_of(delivery)
    files: Files = {}
    files[f"{ARGOCD_FOLDER}/bootstrap/appproject.yaml"] = (_root_project(delivery), ())
    files[f"{ARGOCD_FOLDER}/bootstrap/application.yaml"] = (
        root(delivery),
        ("Apply this once by hand; from then on Argo CD syncs the objects next to this folder from Git.",),
    )
    for name, project in _app_projects(delivery, destinations):
        # No cluster and no namespace can be called so that the file would be another's.
        files[f"{ARGOCD_FOLDER}/apps/_project.{name}.yaml"] = (
            project,
            (
                "Allows the objects of the apps in this namespace, and kinds that they had before: Argo CD never",
                "prunes an object that its project does not allow.",
            ),
        )
    if tenants:
        files[f"{ARGOCD_FOLDER}/apps/tenants.yaml"] = (_tenants_project(delivery, tenants, destinations), ())
    for tenant in tenants:
        for cluster, destination in destinations.items():
            name = ".".join(part for part in (cluster, tenant.namespace) if part)
            files[f"{ARGOCD_FOLDER}/apps/{name}.yaml"] = tenant_application(delivery, tenant, cluster, destination)
    if settings.applications == "set":
        files[f"{ARGOCD_FOLDER}/apps/applicationset.yaml"] = application_set(delivery, destinations)
    else:
        first = 1 if tenants else 0
        for app in delivery.apps:
            for cluster, destination in destinations.items():
                name = ".".join(part for part in (cluster, *app.key) if part)
                files[f"{ARGOCD_FOLDER}/apps/{name}.yaml"] = application(delivery, app, cluster, destination, first)
    files[f"{ARGOCD_FOLDER}/argocd-cm.yaml"] = (
        _config_map(delivery),
        (
            "Entries for Argo CD's own ConfigMap. Add them with",
            "  kubectl apply --server-side --field-manager kaigen -f argocd-cm.yaml",
            "which leaves its other entries alone.",
        ),
    )
    return files


def _config_map(delivery: Delivery) -> Manifest:
    kinds = {pair for app in delivery.apps for pair in app.kinds}
    data = {APPLICATION_HEALTH_KEY: APPLICATION_HEALTH}
    if ("v1", "PersistentVolumeClaim") in kinds:
        data[CLAIM_HEALTH_KEY] = CLAIM_HEALTH
    data |= {health.argocd_key: health.lua() for health in health_of(kinds)}
    if delivery.service_account:
        data["application.sync.impersonation.enabled"] = "true"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "argocd-cm",
            "namespace": delivery.argocd.namespace,
            "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "data": data,
    }
