"""Objects for Argo CD: projects, an Application per app, and settings."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.gitops.argocd.applications import application, application_set, root, tenant_application
from kaigen.gitops.argocd.common import FOLDER, destinations_of
from kaigen.gitops.argocd.projects import app_projects, root_project, tenants_project
from kaigen.gitops.delivery import Delivery
from kaigen.gitops.health import APPLICATION_HEALTH, APPLICATION_HEALTH_KEY, CLAIM_HEALTH, CLAIM_HEALTH_KEY, health_of
from kaigen.gitops.tenancy import Tenant
from kaigen.kubernetes.manifest import Manifest

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
    files[f"{FOLDER}/bootstrap/appproject.yaml"] = (root_project(delivery), ())
    files[f"{FOLDER}/bootstrap/application.yaml"] = (
        root(delivery),
        ("Apply this once by hand; from then on Argo CD syncs the objects next to this folder from Git.",),
    )
    for name, project in app_projects(delivery, destinations):
        # No cluster and no namespace can be called so that the file would be another's.
        files[f"{FOLDER}/apps/_project.{name}.yaml"] = (
            project,
            (
                "Allows the objects of the apps in this namespace, and kinds that they had before: Argo CD never",
                "prunes an object that its project does not allow.",
            ),
        )
    if tenants:
        files[f"{FOLDER}/apps/tenants.yaml"] = (tenants_project(delivery, tenants, destinations), ())
    for tenant in tenants:
        for cluster, destination in destinations.items():
            name = ".".join(part for part in (cluster, tenant.namespace) if part)
            files[f"{FOLDER}/apps/{name}.yaml"] = tenant_application(delivery, tenant, cluster, destination)
    if settings.applications == "set":
        files[f"{FOLDER}/apps/applicationset.yaml"] = application_set(delivery, destinations)
    else:
        first = 1 if tenants else 0
        for app in delivery.apps:
            for cluster, destination in destinations.items():
                name = ".".join(part for part in (cluster, *app.key) if part)
                files[f"{FOLDER}/apps/{name}.yaml"] = application(delivery, app, cluster, destination, first)
    files[f"{FOLDER}/argocd-cm.yaml"] = (
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
