"""Common parts of all objects for Argo CD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.gitops.delivery import Delivery
from kaigen.kubernetes.manifest import Manifest

if TYPE_CHECKING:
    from kaigen.config.gitops import Cluster

FOLDER = "_argocd"
"""Folder of the tree; no namespace can have this name."""

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
